package path

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/openshift"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"
)

// ChannelGraph is the graph of one channel.
type ChannelGraph struct {
	// Channel is its name. Graphs of one [Network] differ in it.
	Channel string
	// Arch is the architecture as an update service names it, empty if it is
	// not known. Graphs of one Network agree in it.
	Arch  string
	Graph *graph.Graph
}

// NetworkOptions say how edges are judged. The zero value knows no cluster:
// whether a conditional update is recommended is unknown then.
type NetworkOptions struct {
	// Matcher judges the risks; nil means that nothing is known about the
	// cluster, so that every conditional edge is Unknown.
	Matcher graph.RiskMatcher
	// Rules replaces Always and PromQL by a registry; Matcher is not used then.
	Rules *graph.Rules
	// Present is the channel that the cluster is in, empty if that does not matter:
	// a first hop in another is a switch. It need not be among the graphs.
	Present string
}

// Network is the union of the graphs of several channels of one architecture,
// or of one alone, with a judgement on each edge: what paths are searched in.
// It never changes, so it is safe for concurrent use.
//
// Nodes are releases by version. What they say about themselves comes from the
// newest channel that holds them: the one of the highest minor, then the
// greatest name. An edge is conditional if any channel says so; risks are
// united by name, in the newest channel's definition. Where a cluster would
// not be offered the target at all, the edge is withheld (see [Edges]).
//
// Judgements describe the cluster of today; later hops of a path happen on another.
type Network struct {
	channels []channelNodes // the newest first
	present  int            // index of the cluster's channel, -1: none of them
	away     bool           // the cluster is in a channel that is not among them
	arch     string
	notes    []string

	// Nodes in the order of versions, ascending; equal precedence by text.
	versions []*semver.Version
	releases []configv1.Release
	broken   []error // what is wrong with the node's metadata
	index    map[string]int32

	// Edges: those of node i are first[i]:first[i+1], the greatest target
	// first. into lists them by target: into[firstIn[i]:firstIn[i+1]].
	first    []int32
	edges    []edge
	firstIn  []int32
	into     []int32
	acyclic  bool
	guards   []guard // 0: none
	verdicts []risk.Verdict
	sets     channelSets
}

// channelNodes is a channel's graph and where its nodes are: union node → its
// node, -1 for none.
type channelNodes struct {
	Channel string
	Graph   *graph.Graph
	local   []int32
}

type edge struct {
	from, to int32
	guard    int32
	set      int32 // of channels that hold the edge
}

// guard is what stands before an edge.
type guard struct {
	conditional bool    // a channel has a conditional edge
	verdicts    []int32 // of its risks
	withheld    graph.DropCause
	err         error // details of withheld
	judgement   judgement
}

// judgement reports whether an edge is recommended. The zero value is.
type judgement uint8

const (
	recommended judgement = iota
	unknown
	notRecommended
)

// ErrChannelEmpty reports that the graph of a channel has no nodes: the channel is
// empty or does not exist, which an update service does not distinguish.
var ErrChannelEmpty = errors.New("the channel's graph is empty: the channel is empty or unknown")

const (
	// maxNetworkNodes is what path lengths must fit in.
	maxNetworkNodes = 1 << 20
	// maxNetworkRisks bounds what a few entries of many edges and many risks
	// cost.
	maxNetworkRisks = 4_000_000
)

// NewNetwork unites graphs and judges their edges by asking the matcher about
// each different risk once, those of the highest versions first. Empty graphs
// are left out with a note; where all are empty the error is ErrChannelEmpty.
// One version with different images is an error, as are graphs of several
// architectures: see [ByArchitecture]. More than 1,048,576 releases, or 4,000,000
// risks on all edges together, are a [*graph.LimitError]. A context that ends is an error, too.
func NewNetwork(ctx context.Context, o NetworkOptions, graphs ...ChannelGraph) (*Network, error) {
	b := builder{n: &Network{present: -1}, o: o}
	if err := b.choose(graphs); err != nil {
		return nil, err
	}
	if err := b.nodes(); err != nil {
		return nil, err
	}
	if err := b.connect(); err != nil {
		return nil, err
	}
	b.reverse()
	if err := b.judge(ctx); err != nil {
		return nil, err
	}
	b.n.acyclic = !b.hasCycle()
	return b.n, nil
}

// ByArchitecture builds a network for each architecture, sorted by its name.
// Errors are those of [NewNetwork], joined, each with its architecture; the other
// networks are returned nevertheless.
func ByArchitecture(ctx context.Context, o NetworkOptions, graphs ...ChannelGraph) ([]*Network, error) {
	byArch := map[string][]ChannelGraph{}
	for _, g := range graphs {
		byArch[g.Arch] = append(byArch[g.Arch], g)
	}
	var networks []*Network
	var errs []error
	for _, arch := range slices.Sorted(maps.Keys(byArch)) {
		n, err := NewNetwork(ctx, o, byArch[arch]...)
		if err != nil {
			errs = append(errs, fmt.Errorf("architecture %q: %w", arch, err))
			continue
		}
		networks = append(networks, n)
	}
	return networks, bounded.Errors(errs...)
}

// Channels names the channels, the newest first.
func (n *Network) Channels() []string {
	names := make([]string, len(n.channels))
	for i, c := range n.channels {
		names[i] = c.Channel
	}
	return names
}

// Arch is the architecture of the graphs, empty if they did not say.
func (n *Network) Arch() string { return n.arch }

// Notes are remarks about the graphs, such as that one was empty.
func (n *Network) Notes() []string { return slices.Clone(n.notes) }

// Len is the number of releases.
func (n *Network) Len() int { return len(n.releases) }

// Releases lists all releases, the highest version first.
func (n *Network) Releases() []configv1.Release {
	all := make([]configv1.Release, 0, len(n.releases))
	for i := len(n.releases) - 1; i >= 0; i-- {
		all = append(all, n.release(int32(i)))
	}
	return all
}

// Release finds a version: the node with its text, else the greatest text of
// equal precedence. The error is an [*graph.Error] of reason VersionNotFound.
func (n *Network) Release(version string) (configv1.Release, error) {
	i, err := n.find(version)
	if err != nil {
		return configv1.Release{}, err
	}
	return n.release(i), nil
}

// ChannelsWith names the channels whose graphs hold a version, the newest
// first; nil if none does.
func (n *Network) ChannelsWith(version string) []string {
	i, err := n.find(version)
	if err != nil {
		return nil
	}
	return n.channelsOf(i)
}

func (n *Network) channelsOf(node int32) []string {
	var names []string
	for _, c := range n.channels {
		if c.local[node] >= 0 {
			names = append(names, c.Channel)
		}
	}
	return names
}

func (n *Network) release(i int32) configv1.Release {
	r := n.releases[i]
	r.Channels = slices.Clone(r.Channels)
	return r
}

func (n *Network) text(i int32) string { return n.releases[i].Version }

func (n *Network) find(version string) (int32, error) {
	if i, ok := n.index[version]; ok {
		return i, nil
	}
	v, err := graph.ParseVersion(version)
	if err != nil {
		return 0, &graph.Error{Reason: string(graph.ErrVersionNotFound), Message: fmt.Sprintf("%q is not a version: %v", version, err), Err: err}
	}
	// The first above: what is equal stands just before it.
	at, _ := slices.BinarySearchFunc(n.versions, v, func(have, want *semver.Version) int {
		if have.Compare(want) <= 0 {
			return -1
		}
		return 1
	})
	if at > 0 && n.versions[at-1].Compare(v) == 0 {
		return int32(at - 1), nil
	}
	details := &graph.NotFoundError{Version: version, Channel: strings.Join(n.Channels(), ", "), Nodes: len(n.releases)}
	prefix := openshift.Prefix(version)
	details.MinorKnown = slices.ContainsFunc(n.releases, func(r configv1.Release) bool { return strings.HasPrefix(r.Version, prefix) })
	if at > 0 {
		details.Below = n.text(int32(at - 1))
	}
	if at < len(n.versions) {
		details.Above = n.text(int32(at))
	}
	return 0, &graph.Error{Reason: string(graph.ErrVersionNotFound), Message: details.Error(), Err: details}
}

func quoteList(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(quoted, ", ")
}
