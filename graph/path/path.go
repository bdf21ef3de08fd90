package path

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/risk"
	configv1 "github.com/openshift/api/config/v1"
)

// Path leads from one release to another.
type Path struct {
	// Releases are those on the way, both ends included.
	Releases []configv1.Release `json:"releases"`
	// Hops are the updates, one less than the releases.
	Hops []Hop `json:"hops"`
	// NotRecommended and Unknown count the hops with these recommendations, whether
	// their risks are accepted or not.
	NotRecommended int `json:"notRecommended"`
	Unknown        int `json:"unknown"`
	// Switches is how often the channel must be changed.
	Switches int `json:"switches"`
}

// Versions lists the versions on the way, both ends included.
func (p *Path) Versions() []string {
	versions := make([]string, len(p.Releases))
	for i, r := range p.Releases {
		versions[i] = r.Version
	}
	return versions
}

// String is the versions with arrows between them.
func (p *Path) String() string { return strings.Join(p.Versions(), " -> ") }

// Whether an update is recommended.
const (
	isRecommended    = "Recommended"
	isNotRecommended = "NotRecommended"
	isUnknown        = "Unknown"
)

// Hop is one update of a path.
type Hop struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Channels are those whose graphs hold the edge, the newest first.
	Channels []string `json:"channels"`
	// Channel is the one of Channels to be in, chosen such that there are few
	// changes. Switch reports that it differs from the hop before, or from the
	// cluster's own.
	Channel string `json:"channel"`
	Switch  bool   `json:"switch,omitempty"`
	// Conditional reports that the edge has risks, or should have.
	Conditional bool `json:"conditional,omitempty"`
	// Recommendation is Recommended, NotRecommended or Unknown.
	Recommendation string `json:"recommendation"`
	// Risks are those of a conditional edge, with the verdicts on them. What is
	// accepted is the policy's business: Accepted is not set.
	Risks []risk.Verdict `json:"risks,omitempty"`
	// Withheld explains why a cluster is not offered the update, empty if it is,
	// and WithheldBy details it.
	Withheld   graph.DropCause `json:"withheld,omitempty"`
	WithheldBy string          `json:"withheldBy,omitempty"`
	// Downgrade reports that To is the lower version.
	Downgrade bool `json:"downgrade,omitempty"`
	// Later marks each hop but the first: it is judged by the state that the
	// cluster has today, and the cluster will be another by then.
	Later bool `json:"evaluatedOnTodaysState,omitempty"`
}

// ErrNoPath is what a [*NoPathError] is, for errors.Is.
var ErrNoPath = fmt.Errorf("no path")

// NoPathError reports that no path leads from one release to another.
type NoPathError struct {
	From, To string
	// Highest is the highest version that can be reached from From, which may
	// be From itself.
	Highest string
	// Sources are the versions from which To can be reached, the highest
	// first, without To. All is under the policy that was asked for.
	Sources []string
}

// Error names the nearest sources only; the field has all.
func (e *NoPathError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "no path from %s to %s: ", e.From, e.To)
	if e.Highest == e.From {
		fmt.Fprintf(&b, "nothing above %s can be reached from it", e.From)
	} else {
		fmt.Fprintf(&b, "the highest version that can be reached is %s", e.Highest)
	}
	const shown = 5
	switch {
	case len(e.Sources) == 0:
		fmt.Fprintf(&b, "; nothing leads to %s", e.To)
	case len(e.Sources) > shown:
		fmt.Fprintf(&b, "; %s can be reached from %s and %d others", e.To, strings.Join(e.Sources[:shown], ", "), len(e.Sources)-shown)
	default:
		fmt.Fprintf(&b, "; %s can be reached from %s", e.To, strings.Join(e.Sources, ", "))
	}
	return b.String()
}

// Is finds ErrNoPath.
func (e *NoPathError) Is(target error) bool { return target == ErrNoPath }

// path describes a list of edges that starts at a node.
func (n *Network) path(from int32, edges []int32) *Path {
	p := &Path{Releases: []configv1.Release{n.release(from)}}
	channels := n.chooseChannels(edges)
	last := n.present
	for i, at := range edges {
		h := n.hop(&n.edges[at])
		h.Channel = n.channels[channels[i]].Channel
		h.Switch = last >= 0 && channels[i] != int32(last) || i == 0 && n.away
		h.Later = i > 0
		last = int(channels[i])
		if h.Switch {
			p.Switches++
		}
		switch h.Recommendation {
		case isNotRecommended:
			p.NotRecommended++
		case isUnknown:
			p.Unknown++
		}
		p.Hops = append(p.Hops, h)
		p.Releases = append(p.Releases, n.release(n.edges[at].to))
	}
	return p
}

// hop describes an edge by itself.
func (n *Network) hop(e *edge) Hop {
	g := &n.guards[e.guard]
	h := Hop{
		From: n.text(e.from), To: n.text(e.to), Conditional: g.conditional,
		Withheld: g.withheld, Downgrade: n.versions[e.to].LessThan(n.versions[e.from]),
		Recommendation: [...]string{isRecommended, isUnknown, isNotRecommended}[g.judgement],
	}
	if g.err != nil {
		h.WithheldBy = g.err.Error()
	}
	for _, c := range n.sets.members[e.set] {
		h.Channels = append(h.Channels, n.channels[c].Channel)
	}
	for _, v := range g.verdicts {
		verdict := n.verdicts[v]
		verdict.Risk = *verdict.Risk.DeepCopy()
		verdict.Versions = slices.Clone(verdict.Versions)
		h.Risks = append(h.Risks, verdict)
	}
	return h
}

// chooseChannels chooses a channel for each hop with the fewest changes: it stays
// in its channel for as long as that costs nothing, else takes the newest.
func (n *Network) chooseChannels(edges []int32) []int32 {
	chosen := make([]int32, len(edges))
	if len(edges) == 0 {
		return chosen
	}
	// ahead[i][c]: the changes after hop i if that is made in channel c.
	count := len(n.channels)
	ahead := make([][]int32, len(edges))
	for i := len(edges) - 1; i >= 0; i-- {
		ahead[i] = slices.Repeat([]int32{noWay}, count)
		least := int32(0)
		if i+1 < len(edges) {
			least = slices.Min(ahead[i+1])
		}
		for _, c := range n.sets.members[n.edges[edges[i]].set] {
			ahead[i][c] = least
			if i+1 < len(edges) {
				ahead[i][c] = min(ahead[i+1][c], least+1)
			}
		}
	}
	at := int32(n.present)
	for i := range edges {
		fewest, channel := int32(math.MaxInt32), int32(0)
		for _, c := range n.sets.members[n.edges[edges[i]].set] {
			changes := ahead[i][c]
			if at >= 0 && c != at {
				changes++
			}
			if changes < fewest || changes == fewest && c == at {
				fewest, channel = changes, c
			}
		}
		chosen[i], at = channel, channel
	}
	return chosen
}
