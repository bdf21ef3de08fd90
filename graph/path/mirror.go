package path

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// Want is an update that a mirror has to make possible.
type Want struct {
	// Cluster names the cluster in errors and in the plan; it may be empty.
	Cluster string `json:"cluster,omitempty"`
	// From is the version that the cluster has. Empty is an installation of To.
	From string `json:"from,omitempty"`
	// To is the version to get to. Empty is the highest that From can reach,
	// and without From the highest that the policy allows.
	To string `json:"to,omitempty"`
	// Arch is the architecture; empty stands for each network's.
	Arch string `json:"arch,omitempty"`
	// Every adds all releases that lie on any way from From to To, so that
	// people can choose; false takes those of the shortest path.
	Every  bool   `json:"every,omitempty"`
	Policy Policy `json:"policy,omitzero"`
}

// Way is how a want is met.
type Way struct {
	Want Want   `json:"want"`
	Arch string `json:"arch,omitempty"`
	// Path is the shortest one. An installation has one release and no hops.
	Path *Path `json:"path"`
}

// MirrorRelease is a release to copy.
type MirrorRelease struct {
	Arch    string           `json:"arch,omitempty"`
	Release configv1.Release `json:"release"`
	// Signatures is where a signature store has the signatures of the image:
	// a folder with files signature-1, signature-2 and so on. It is empty if the
	// image has no digest.
	Signatures string `json:"signatures,omitempty"`
}

// MirrorRange are releases to copy that follow one another in a channel: all that
// the channel's graph has from Min to Max, both ends included.
type MirrorRange struct {
	Arch    string `json:"arch,omitempty"`
	Channel string `json:"channel"`
	Min     string `json:"min"`
	Max     string `json:"max"`
}

// MirrorPlan lists what a mirror has to hold.
type MirrorPlan struct {
	// Ways are in the order of the wants, then of the networks.
	Ways []Way `json:"ways"`
	// Releases are sorted by architecture and version.
	Releases []MirrorRelease `json:"releases"`
	// Ranges cover exactly the releases of the plan.
	Ranges []MirrorRange `json:"ranges"`
	// GraphData is the address of the graph-data archive, from which an update
	// service serves the plan's ways.
	GraphData string `json:"graphData"`
}

// WantError reports a want that cannot be met.
type WantError struct {
	Want Want
	// Index is the want's place in the list, from 0.
	Index int
	// Arch is the architecture of the network that has no way.
	Arch string
	// Err is the error of [Network.ShortestPath] or [Network.Latest], or reports what is
	// wrong with the want.
	Err error
}

// Error names the want by its cluster or its place in the list.
func (e *WantError) Error() string {
	name := fmt.Sprintf("want %d", e.Index+1)
	if e.Want.Cluster != "" {
		name = fmt.Sprintf("cluster %q", bounded.Text(e.Want.Cluster, bounded.MaxQuoted))
	}
	if e.Arch != "" {
		name += inBrackets(e.Arch)
	}
	return fmt.Sprintf("%s: %v", name, e.Err)
}

// Unwrap returns the cause.
func (e *WantError) Unwrap() error { return e.Err }

const graphDataArchive = "https://api.openshift.com/api/upgrades_info/graph-data"

// Mirror plans what a mirror has to hold for the updates of any number of clusters:
// the union of the releases on their ways, over conditional edges and switches of
// channels as the wants' policies allow. With the releases of the plan alone, each
// want has its way. Networks differ in architecture, as those of [ByArchitecture].
//
// The errors are a [*WantError] for each want without a way, joined; two networks
// of one architecture; or the context's. The plan is nil then.
func Mirror(ctx context.Context, networks []*Network, wants []Want) (*MirrorPlan, error) {
	byArch := map[string]*mirrorNetwork{}
	var order []*mirrorNetwork
	for _, n := range networks {
		if byArch[n.arch] != nil {
			return nil, fmt.Errorf("two networks of architecture %q: one holds all channels", n.arch)
		}
		byArch[n.arch] = &mirrorNetwork{network: n, copied: make([]bool, len(n.versions))}
		order = append(order, byArch[n.arch])
	}
	plan := &MirrorPlan{GraphData: graphDataArchive}
	var errs []error
	for i, w := range wants {
		chosen := order
		if w.Arch != "" {
			chosen = []*mirrorNetwork{byArch[w.Arch]}
		}
		for _, m := range chosen {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if m == nil {
				errs = append(errs, &WantError{Want: w, Index: i, Arch: w.Arch, Err: errNoNetwork})
				continue
			}
			p, err := m.meet(w)
			if err != nil {
				errs = append(errs, &WantError{Want: w, Index: i, Arch: m.network.arch, Err: err})
				continue
			}
			plan.Ways = append(plan.Ways, Way{Want: w, Arch: m.network.arch, Path: p})
		}
	}
	if len(errs) > 0 {
		return nil, bounded.Errors(errs...)
	}
	slices.SortStableFunc(order, func(a, b *mirrorNetwork) int { return cmp.Compare(a.network.arch, b.network.arch) })
	for _, m := range order {
		plan.Releases = append(plan.Releases, m.releases()...)
		plan.Ranges = append(plan.Ranges, m.ranges()...)
	}
	return plan, nil
}

var errNoNetwork = errors.New("there is no graph of the architecture")

// mirrorNetwork is a network and which of its releases a mirror copies.
type mirrorNetwork struct {
	network *Network
	copied  []bool // by node
}

// meet finds the way of a want and copies its releases.
func (m *mirrorNetwork) meet(w Want) (*Path, error) {
	n := m.network
	from, to := w.From, w.To
	switch {
	case from == "" && w.Every:
		return nil, errors.New("every release on the way: the version to start from is missing")
	case from == "":
		target, err := n.installable(to, w.Policy)
		if err != nil {
			return nil, err
		}
		m.copied[target] = true
		return n.path(target, nil), nil
	case to == "":
		latest, err := n.Latest(from, "", w.Policy)
		if err != nil {
			return nil, err
		}
		to = latest.Version
	}
	s, start, err := n.search(from, to, Shortest, w.Policy)
	if err != nil {
		return nil, err
	}
	edges, ok := s.best(start, s.measure(nil))
	if !ok {
		return nil, s.noPath(start)
	}
	m.copied[start] = true
	for _, at := range edges {
		m.copied[n.edges[at].to] = true
	}
	if w.Every {
		_, reached := s.reach(start)
		leads := s.leading(s.to)
		for _, v := range reached {
			m.copied[v] = m.copied[v] || leads[v]
		}
	}
	return n.path(start, edges), nil
}

// installable finds the release of a version, or the highest, that a policy allows.
func (n *Network) installable(version string, p Policy) (int32, error) {
	barred, err := n.barred(p)
	if err != nil {
		return 0, err
	}
	if version == "" {
		for v := int32(len(n.versions)) - 1; v >= 0; v-- {
			if barred == nil || barred[v] == "" {
				return v, nil
			}
		}
		return 0, errors.New("the policy allows no release")
	}
	v, err := n.find(version)
	if err == nil && barred != nil && barred[v] != "" {
		err = fmt.Errorf("%s is not allowed: %s", version, barred[v])
	}
	return v, err
}

func (m *mirrorNetwork) releases() (list []MirrorRelease) {
	for v, copied := range m.copied {
		if !copied {
			continue
		}
		r := m.network.release(int32(v))
		_, digest, _ := strings.Cut(r.Image, "@")
		folder := ""
		if algorithm, hash, ok := strings.Cut(digest, ":"); ok {
			folder = algorithm + "=" + hash
		}
		list = append(list, MirrorRelease{Arch: m.network.arch, Release: r, Signatures: folder})
	}
	return list
}

// ranges covers the copied releases, each by the newest channel of its own minor,
// or the newest of all if that has none.
func (m *mirrorNetwork) ranges() (list []MirrorRange) {
	n := m.network
	by := make([]int, len(n.versions)) // the channel that covers a release
	for v := range n.versions {
		by[v] = -1
		for c := range n.channels {
			if n.channels[c].local[v] < 0 {
				continue
			}
			name, ok := graph.ParseChannel(n.channels[c].Channel)
			own := ok && openshift.MinorOf(n.versions[v]) == openshift.Minor{Major: name.Major, Minor: name.Minor}
			if own || by[v] < 0 {
				by[v] = c
			}
			if own {
				break
			}
		}
	}
	for c := range n.channels {
		open := false
		for v := range n.versions {
			if n.channels[c].local[v] < 0 {
				continue
			}
			covers := m.copied[v] && by[v] == c
			switch text := n.text(int32(v)); {
			case covers && open:
				list[len(list)-1].Max = text
			case covers:
				list = append(list, MirrorRange{Arch: n.arch, Channel: n.channels[c].Channel, Min: text, Max: text})
			}
			open = covers
		}
	}
	return list
}

// Versions lists the versions of the plan's releases, each once, for
// graphdata.Subset.
func (p *MirrorPlan) Versions() []string {
	var versions []string
	for _, r := range p.Releases {
		versions = append(versions, r.Release.Version)
	}
	slices.SortFunc(versions, func(a, b string) int { return cmp.Or(graph.CompareVersions(a, b), cmp.Compare(a, b)) })
	return slices.Compact(versions)
}

// String is the plan in lines: the ways, the releases with their images and
// signatures, and the address of the graph data.
func (p *MirrorPlan) String() string {
	var b strings.Builder
	for _, w := range p.Ways {
		name := bounded.Text(cmp.Or(w.Want.Cluster, "update"), bounded.MaxQuoted)
		fmt.Fprintf(&b, "%s%s: %s\n%s", name, inBrackets(w.Arch), w.Path, w.Path.Text())
	}
	fmt.Fprintf(&b, "Releases to copy: %d\n", len(p.Releases))
	for _, r := range p.Releases {
		fmt.Fprintf(&b, "  %s%s  %s\n", r.Release.Version, inBrackets(r.Arch), r.Release.Image)
		if r.Signatures != "" {
			fmt.Fprintf(&b, "    signatures: %s\n", r.Signatures)
		}
	}
	fmt.Fprintf(&b, "Graph data: %s\n", p.GraphData)
	return b.String()
}

// ImageSetConfigurations returns the plan as files for oc-mirror, by name. Each
// copies the releases of one range: a file with several channels would make
// oc-mirror look for its own path between them, which fails over empty channels.
// Run oc-mirror with each of them and one workspace. It is empty for an empty plan.
func (p *MirrorPlan) ImageSetConfigurations() map[string]string {
	files := map[string]string{}
	for _, r := range p.Ranges {
		arch := cmp.Or(r.Arch, "amd64")
		name := fmt.Sprintf("%s-%s-%s.yaml", arch, r.Channel, r.Min)
		files[name] = fmt.Sprintf(imageSetConfiguration, arch, r.Channel, r.Min, r.Max)
	}
	return files
}

// imageSetConfiguration takes an architecture, a channel and two versions. Their
// quoted form is the same in YAML.
const imageSetConfiguration = `apiVersion: mirror.openshift.io/v2alpha1
kind: ImageSetConfiguration
mirror:
  platform:
    architectures: [%q]
    graph: true
    channels:
    - name: %q
      type: ocp
      minVersion: %q
      maxVersion: %q
`
