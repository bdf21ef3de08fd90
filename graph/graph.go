package graph

import (
	"iter"
	"slices"
	"sync"

	"github.com/Masterminds/semver/v3"
	"github.com/clusterupdate/clusterupdate/graph/internal/schema"
	configv1 "github.com/openshift/api/config/v1"
)

// Graph is a decoded update graph. It never changes, so it is safe for
// concurrent use. The first question indexes it, so that questions about one
// release cost no more than its edges. The zero value is an empty graph.
type Graph struct {
	nodes []Node

	byVersion    map[string]int32 // exact string → first node
	byPrecedence map[string]int32 // precedenceKey → first node; nil: as byVersion

	// Out edges of node i: to[first[i]:first[i+1]], each target once, in the
	// order of the wire. -1 is a target that does not exist (Compat only).
	first []int32
	to    []int32

	conditional []ConditionalEdges
	compat      bool

	once sync.Once
	lazy queryIndex // see queries
}

// queryIndex is what only questions need: to encode a graph, or to make another of
// it, costs less without.
type queryIndex struct {
	releases []release // what nodes say as releases, in the nodes' order

	// Pairs of conditional that leave a version, in the order of the wire:
	// refs[firstRef[i]:firstRef[i+1]] with i = fromVersion[version].
	fromVersion map[string]int32
	firstRef    []int32
	refs        []conditionalRef
}

// queries returns the index, which the first call builds.
func (g *Graph) queries() *queryIndex {
	g.once.Do(func() {
		g.lazy.indexConditional(g.conditional, g.byVersion)
		g.lazy.releases = releasesOf(g.nodes)
	})
	return &g.lazy
}

// Node is a release in a graph.
type Node struct {
	// Version is strict SemVer. Do not change it.
	Version *semver.Version
	// Image is the pull spec of the release image, "payload" on the wire.
	Image string
	// Metadata says more about the release.
	Metadata Metadata
}

// Edge is an unconditional edge between two nodes, by their index.
type Edge struct {
	From, To int
	// Downgrade reports that To has a lower version than From.
	Downgrade bool
}

// ConditionalEdges are pairs of versions that share risks, all of which apply
// to each pair. Do not change what a Graph returned.
type ConditionalEdges struct {
	Edges []VersionPair                    `json:"edges"`
	Risks []configv1.ConditionalUpdateRisk `json:"risks"`
}

// VersionPair is a conditional edge, by exact version strings.
type VersionPair struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// ConditionalTarget is where a conditional edge leads.
type ConditionalTarget struct {
	Version string
	Node    int // its index; -1 where the graph has no node of that version
}

type release struct {
	configv1.Release
	err   error
	bound int // of its size as JSON
}

// conditionalRef leads to conditional[entry].Edges[pair] and its target's
// node, or -1.
type conditionalRef struct{ entry, pair, to int32 }

// Len is the number of nodes.
func (g *Graph) Len() int { return len(g.nodes) }

// Node returns the i-th node of the wire's order.
func (g *Graph) Node(i int) Node { return g.nodes[i] }

// Release returns the i-th node as ClusterVersion status shows a release. The error
// reports which of its metadata cannot be shown, as [Node.Release] does; what can
// is listed nevertheless. Do not change the channels.
func (g *Graph) Release(i int) (configv1.Release, error) {
	r := &g.queries().releases[i]
	return r.Release, r.err
}

// Nodes yields the nodes in the wire's order.
func (g *Graph) Nodes() iter.Seq2[int, Node] { return slices.All(g.nodes) }

// Find returns the index of a version: the first node of equal precedence, so
// that builds do not matter.
func (g *Graph) Find(v *semver.Version) (int, bool) {
	return g.findText(v.Original())
}

// findText is Find for a strict version's text.
func (g *Graph) findText(version string) (int, bool) {
	index := g.byPrecedence
	if index == nil {
		index = g.byVersion
	}
	i, ok := index[precedenceKey(version)]
	return int(i), ok
}

// Edges yields the unconditional edges that leave a node, each target once, in
// the wire's order.
func (g *Graph) Edges(from int) iter.Seq[Edge] {
	return func(yield func(Edge) bool) {
		for _, to := range g.out(from) {
			if to < 0 {
				continue
			}
			e := Edge{From: from, To: int(to), Downgrade: g.nodes[to].Version.LessThan(g.nodes[from].Version)}
			if !yield(e) {
				return
			}
		}
	}
}

// EdgeCount is the number of unconditional edges, each pair counted once.
func (g *Graph) EdgeCount() int { return len(g.to) }

// ConditionalEdges yields the conditional entries in the wire's order.
func (g *Graph) ConditionalEdges() iter.Seq2[int, ConditionalEdges] { return slices.All(g.conditional) }

// ConditionalEdgesFrom yields the conditional edges that leave a version, by its
// exact text, in the wire's order: the index of the entry, and the target.
func (g *Graph) ConditionalEdgesFrom(version string) iter.Seq2[int, ConditionalTarget] {
	return func(yield func(int, ConditionalTarget) bool) {
		for _, ref := range g.outConditional(version) {
			target := ConditionalTarget{Version: g.conditional[ref.entry].Edges[ref.pair].To, Node: int(ref.to)}
			if !yield(int(ref.entry), target) {
				return
			}
		}
	}
}

// Channels lists every channel that some node's metadata name, in natural
// order. These are the channels that share a release with this graph, which
// need not be all that there are.
func (g *Graph) Channels() []string {
	seen := map[string]bool{}
	var all []string
	releases := g.queries().releases
	for i := range releases {
		for _, c := range releases[i].Channels {
			if !seen[c] {
				seen[c] = true
				all = append(all, c)
			}
		}
	}
	slices.SortFunc(all, CompareChannels)
	return all
}

// Equal reports whether two graphs have the same nodes in the same order, the same
// edges and the same conditional entries.
func (g *Graph) Equal(o *Graph) bool {
	if g == nil || o == nil {
		return g == o
	}
	return slices.EqualFunc(g.nodes, o.nodes, func(a, b Node) bool {
		return a.Version.Original() == b.Version.Original() && a.Image == b.Image && a.Metadata.equal(b.Metadata)
	}) && slices.Equal(g.first, o.first) && slices.Equal(g.to, o.to) &&
		slices.EqualFunc(g.conditional, o.conditional, func(a, b ConditionalEdges) bool {
			return slices.Equal(a.Edges, b.Edges) && slices.EqualFunc(a.Risks, b.Risks, schema.EqualRisks)
		})
}

// out returns the targets of a node.
func (g *Graph) out(from int) []int32 { return g.to[g.first[from]:g.first[from+1]] }

// outConditional returns the conditional pairs that leave a version.
func (g *Graph) outConditional(version string) []conditionalRef {
	q := g.queries()
	i, ok := q.fromVersion[version]
	if !ok {
		return nil
	}
	return q.refs[q.firstRef[i]:q.firstRef[i+1]]
}
