package path

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/openshift"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ExplainQuery asks why a release can or cannot be updated to another in one
// step.
type ExplainQuery struct {
	From, To string
	Policy   Policy
	// Channel is the one that the cluster is in; empty means that any of the
	// network's will do.
	Channel string
	// Architecture is the cluster's: Multi, or a Go architecture name. Empty means
	// the graphs'.
	Architecture string
	// Others are networks of other architectures, in which a release is looked
	// up that this one does not have.
	Others []*Network
}

// What blocks an update, in the order in which it is looked for. Others are the
// causes of package graph for which an update is withheld.
const (
	sameVersion       = "SameVersion"       // there is nothing to update
	notInGraph        = "NotInGraph"        // no channel's graph has the release
	notInChannel      = "NotInChannel"      // only channels that the cluster is not in have it
	wrongArchitecture = "WrongArchitecture" // it is there for another architecture
	noEdge            = "NoEdge"            // no update leads from From to To
	filtered          = "Filtered"          // the policy leaves the version out
	blockedByRisk     = "Risk"              // the policy does not allow the risks
)

// Explanation reports whether one release can be updated to another, and if not
// why, and by which way instead.
type Explanation struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Block is the first thing that blocks the update, empty if none does:
	// SameVersion, NotInGraph, NotInChannel, WrongArchitecture, NoEdge, what withholds
	// an update (UnrecognizedRules, DuplicateTarget, InvalidRisks, InvalidMetadata),
	// Filtered by the policy, or Risk. Detail says it in words.
	Block  string `json:"block,omitempty"`
	Detail string `json:"detail"`
	// Missing is the version that Block is about, From or To, if one is not in the
	// graph or channel.
	Missing string `json:"missing,omitempty"`
	// FromChannels and ToChannels are the channels that have the releases: by
	// the graphs, and by the releases' metadata, in natural order.
	FromChannels []string `json:"fromChannels,omitempty"`
	ToChannels   []string `json:"toChannels,omitempty"`
	// Architectures are those of Others that have the missing version.
	Architectures []string `json:"architectures,omitempty"`
	// Downgrade: To is the lower version. SkipsMinor: a minor lies between.
	Downgrade  bool `json:"downgrade,omitempty"`
	SkipsMinor bool `json:"skipsMinor,omitempty"`
	// Edge is the update itself, nil without an edge.
	Edge *Hop `json:"edge,omitempty"`
	// Via is the shortest path where the update is blocked, and NoPath explains why
	// there is none.
	Via    *Path        `json:"via,omitempty"`
	NoPath *NoPathError `json:"noPath,omitempty"`
}

// Explain explains an update under a policy. Errors are about the query; that
// versions are not in the graph is an explanation.
func (n *Network) Explain(q ExplainQuery) (*Explanation, error) {
	r, err := n.compile(q.Policy)
	if err != nil {
		return nil, err
	}
	vf, err := graph.ParseVersion(q.From)
	if err != nil {
		return nil, fmt.Errorf("from %q: %w", q.From, err)
	}
	vt, err := graph.ParseVersion(q.To)
	if err != nil {
		return nil, fmt.Errorf("to %q: %w", q.To, err)
	}
	x := &Explanation{From: q.From, To: q.To, Downgrade: vt.LessThan(vf)}
	from, errFrom := n.find(q.From)
	to, errTo := n.find(q.To)
	if errFrom == nil {
		x.From, x.FromChannels = n.text(from), n.channelsKnown(from)
	}
	if errTo == nil {
		x.To, x.ToChannels = n.text(to), n.channelsKnown(to)
	}
	x.SkipsMinor = !x.Downgrade && openshift.Skips(n.minors(), openshift.MinorOf(vf), openshift.MinorOf(vt))
	switch {
	case errFrom != nil:
		n.missing(x, q, q.From, errFrom)
		return x, nil
	case errTo != nil:
		n.missing(x, q, q.To, errTo)
		return x, nil
	case from == to:
		x.Block, x.Detail = sameVersion, x.From+" is the same release"
		return x, nil
	}
	n.explainEdge(x, q, r, from, to)
	if x.Block == "" {
		return x, nil
	}
	via, err := n.ShortestPath(x.From, x.To, q.Policy)
	if err == nil {
		x.Via = via
		return x, nil
	}
	if !errors.As(err, &x.NoPath) {
		return nil, err
	}
	return x, nil
}

// missing explains that a version is in no graph.
func (n *Network) missing(x *Explanation, q ExplainQuery, version string, err error) {
	x.Missing = version
	for _, o := range q.Others {
		if _, err := o.find(version); err == nil && !slices.Contains(x.Architectures, o.arch) {
			x.Architectures = append(x.Architectures, o.arch)
		}
	}
	if len(x.Architectures) > 0 {
		x.Block = wrongArchitecture
		x.Detail = fmt.Sprintf("%s does not exist for %s; there it does for %s", version, orUnknown(n.arch), strings.Join(x.Architectures, ", "))
		return
	}
	x.Block = notInGraph
	if e, ok := errors.AsType[*graph.Error](err); ok {
		x.Detail = e.Message
	}
}

// explainEdge finds the first thing that blocks the update between two nodes.
func (n *Network) explainEdge(x *Explanation, q ExplainQuery, r *rules, from, to int32) {
	at := int32(-1)
	for i := n.first[from]; i < n.first[from+1]; i++ {
		if n.edges[i].to == to {
			at = i
		}
	}
	if at >= 0 {
		h := n.hop(&n.edges[at])
		h.Channel = h.Channels[0]
		if q.Channel != "" && slices.Contains(h.Channels, q.Channel) {
			h.Channel = q.Channel
		}
		x.Edge = &h
	}
	block := func(b string, format string, args ...any) { x.Block, x.Detail = b, fmt.Sprintf(format, args...) }
	if q.Channel != "" {
		for _, end := range []int32{from, to} {
			in := n.channelsOf(end)
			if !slices.Contains(n.Channels(), q.Channel) {
				in = n.channelsKnown(end) // only the metadata can say
			}
			if !slices.Contains(in, q.Channel) {
				x.Missing = n.text(end)
				block(notInChannel, "%s is not in channel %s; it is in %s", x.Missing, q.Channel, strings.Join(n.channelsKnown(end), ", "))
				return
			}
		}
	}
	if why := architectureFault(n.arch, q.Architecture, n.releases[to]); why != "" {
		block(wrongArchitecture, "%s", why)
		return
	}
	switch {
	case at < 0:
		block(noEdge, "%s", noEdgeText(x, n.Channels()))
		return
	case slices.Contains(n.Channels(), q.Channel) && !slices.Contains(x.Edge.Channels, q.Channel):
		block(noEdge, "channel %s has no update from %s to %s; there is one in %s", q.Channel, x.From, x.To, strings.Join(x.Edge.Channels, ", "))
		return
	}
	e := &n.edges[at]
	g := &n.guards[e.guard]
	switch {
	case g.withheld != "" && !r.pass[e.guard]:
		block(string(g.withheld), "clusters are not offered it: %v", g.err)
	case r.barred != nil && r.barred[to] != "":
		block(filtered, "%s is left out by the policy: %s", x.To, r.barred[to])
	case !r.pass[e.guard]:
		block(blockedByRisk, "%s", n.riskText(g))
	case e.guard == 0:
		x.Detail = "the update is recommended"
	case g.withheld != "":
		x.Detail = fmt.Sprintf("the policy allows the update, though clusters are not offered it: %v", g.err)
	default:
		x.Detail = "the policy allows the update; it is conditional: " + n.riskText(g)
	}
}

func noEdgeText(x *Explanation, channels []string) string {
	text := fmt.Sprintf("no update leads from %s to %s in %s", x.From, x.To, strings.Join(channels, ", "))
	switch {
	case x.Downgrade:
		text += "; it would be a downgrade"
	case x.SkipsMinor:
		text += "; it would skip a minor version"
	}
	return text
}

// riskText describes what the verdicts on an edge's risks are.
func (n *Network) riskText(g *guard) string {
	if len(g.verdicts) == 0 {
		return "the update is conditional, but names no risk"
	}
	var parts []string
	for _, v := range g.verdicts {
		verdict := &n.verdicts[v]
		risk := verdict.Risk
		word := "may apply"
		switch verdict.Applies.Status {
		case metav1.ConditionTrue:
			word = "applies"
		case metav1.ConditionFalse:
			word = "does not apply"
		}
		text := fmt.Sprintf("risk %s %s: %s %s", risk.Name, word, risk.Message, risk.URL)
		if verdict.Err != nil && !errors.Is(verdict.Err, errNoMatcher) {
			text += fmt.Sprintf(" (%v)", verdict.Err)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// architectureFault explains why a release does not fit a cluster's architecture.
func architectureFault(graphs, cluster string, r configv1.Release) string {
	multi := r.Architecture == configv1.ClusterVersionArchitectureMulti
	switch {
	case cluster == "":
		return ""
	case strings.EqualFold(cluster, "multi"):
		if graphs != "" && !strings.EqualFold(graphs, "multi") || graphs == "" && !multi {
			return fmt.Sprintf("the cluster is multi-architecture, %s is for %s", r.Version, orUnknown(graphs))
		}
	case multi, strings.EqualFold(graphs, "multi"):
		return fmt.Sprintf("the cluster is %s, %s is multi-architecture", cluster, r.Version)
	case graphs != "" && graphs != cluster:
		return fmt.Sprintf("the cluster is %s, %s is for %s", cluster, r.Version, graphs)
	}
	return ""
}

func orUnknown(arch string) string { return cmp.Or(arch, "a single architecture") }

// channelsKnown lists the channels that have a release, by graph or metadata.
func (n *Network) channelsKnown(node int32) []string {
	names := append(n.channelsOf(node), n.releases[node].Channels...)
	slices.SortFunc(names, graph.CompareChannels)
	return slices.Compact(names)
}

// minors lists the minor versions of the releases, ascending.
func (n *Network) minors() []openshift.Minor {
	minors := make([]openshift.Minor, len(n.versions))
	for i, v := range n.versions {
		minors[i] = openshift.MinorOf(v)
	}
	return slices.Compact(minors)
}

// String says it in a sentence or more.
func (x *Explanation) String() string {
	var b strings.Builder
	if x.Block == "" {
		fmt.Fprintf(&b, "%s can be updated to %s: %s", x.From, x.To, x.Detail)
		return b.String()
	}
	fmt.Fprintf(&b, "%s cannot be updated to %s (%s): %s", x.From, x.To, x.Block, x.Detail)
	switch {
	case x.Via != nil && len(x.Via.Hops) > 1:
		fmt.Fprintf(&b, "; only via %s", x.Via)
	case x.Via != nil:
		fmt.Fprintf(&b, "; the update is in channel %s", x.Via.Hops[0].Channel)
	case x.NoPath != nil:
		fmt.Fprintf(&b, "; %s", x.NoPath)
	}
	return b.String()
}
