package graphdata

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata/internal/inside"
)

// Snapshot is a graph of all channels and architectures. It never changes, so it
// is safe for concurrent use.
type Snapshot struct {
	nodes  []node
	served [][]servedNode // of each node, one for each of its architectures
	in     [][]int32
	pairs  [][]inside.Pair
	lists  [][]configv1.ConditionalUpdateRisk
	index  map[string]map[string][]int32 // architecture → channel → nodes
	compat map[string][]int32            // under Compat: channel → nodes of every architecture
	report *Report

	reasons reasons
}

type servedNode struct {
	arch string
	node graph.Node
}

func (b *builder) snapshot() (*Snapshot, error) {
	slices.SortStableFunc(b.report.Problems, compareProblems)
	s := &Snapshot{nodes: b.nodes, in: b.in, pairs: b.pairs, report: b.report, reasons: b.reasons, served: make([][]servedNode, len(b.nodes)), index: map[string]map[string][]int32{}}
	for _, list := range b.lists {
		var risks []configv1.ConditionalUpdateRisk
		for _, id := range list {
			risks = append(risks, b.riskTable[id].risk)
		}
		s.lists = append(s.lists, risks)
	}
	names := map[string]map[string]string{} // architecture → served version → node
	if b.opts.Compat {
		s.compat = map[string][]int32{}
	}
	for i, n := range b.nodes {
		channels := inside.SplitList(n.metadata[graph.MetadataChannels])
		if b.opts.Compat {
			channels = slices.Compact(channels)
			for _, c := range channels {
				s.compat[c] = append(s.compat[c], int32(i))
			}
		}
		archs := inside.SplitList(n.metadata[graph.MetadataArch])
		slices.Sort(archs)
		archs = slices.Compact(archs)
		b.nodes[i].arch = n.metadata[graph.MetadataArch]
		delete(n.metadata, graph.MetadataArch)
		metadata := graph.NewMetadata(n.metadata)
		for _, arch := range archs {
			version := servedVersion(n.version, arch)
			if names[arch] == nil {
				names[arch], s.index[arch] = map[string]string{}, map[string][]int32{}
			}
			if other, twice := names[arch][version]; twice {
				return nil, fmt.Errorf("releases %s and %s are both %s on %s", other, n.version, version, arch)
			}
			names[arch][version] = n.version
			v, err := graph.ParseVersion(version)
			if err != nil {
				return nil, fmt.Errorf("release %s on %s: %w", n.version, arch, err)
			}
			s.served[i] = append(s.served[i], servedNode{arch, graph.Node{Version: v, Image: n.image, Metadata: metadata}})
			for _, c := range channels {
				s.index[arch][c] = append(s.index[arch][c], int32(i))
			}
		}
	}
	return s, nil
}

// servedVersion takes the architecture out of a version's build.
func servedVersion(version, arch string) string {
	text, build, _ := strings.Cut(version, "+")
	kept := slices.DeleteFunc(strings.Split(build, "."), func(id string) bool { return id == "" || id == arch })
	if len(kept) > 0 {
		text += "+" + strings.Join(kept, ".")
	}
	return text
}

// Graph returns the graph of a channel for an architecture, as an update service
// serves it: empty for an unknown name.
func (s *Snapshot) Graph(channel, arch string) *graph.Graph {
	members := s.index[arch][channel]
	place := make(map[int32]int, len(members))
	d := graph.Data{Nodes: make([]graph.Node, len(members))}
	for at, i := range members {
		place[i] = at
		for _, served := range s.served[i] {
			if served.arch == arch {
				d.Nodes[at] = served.node
			}
		}
	}
	d.Edges = s.edges(members, func(i int32) (int, bool) {
		at, ok := place[i]
		return at, ok
	})
	served := func(i int32) (version string, ok bool) {
		at, ok := place[i]
		if ok {
			version = d.Nodes[at].Version.Original()
		}
		return version, ok
	}
	if s.compat != nil {
		members = s.compat[channel]
		served = s.compatServed(members, arch)
	}
	d.ConditionalEdges = s.conditional(members, served)
	// What was built is not limited again.
	g, err := graph.New(d, graph.DecodeOptions{AllowNoPayload: true, MaxNodes: math.MaxInt, MaxEdges: math.MaxInt, MaxConditional: math.MaxInt, MaxPairs: math.MaxInt,
		MaxRisks: math.MaxInt, MaxRules: math.MaxInt, MaxKeys: math.MaxInt, MaxChannels: math.MaxInt, MaxText: math.MaxInt})
	if err != nil {
		return &graph.Graph{} // cannot happen: the versions are valid and differ
	}
	return g
}

// edges returns the unconditional updates to some nodes, in the order of their places:
// those between nodes that have one.
func (s *Snapshot) edges(members []int32, place func(int32) (int, bool)) (edges [][2]int) {
	out := make([][]int, len(members))
	count := 0
	for at, t := range members {
		for _, f := range s.in[t] {
			if from, ok := place(f); ok {
				out[from] = append(out[from], at)
				count++
			}
		}
	}
	edges = make([][2]int, 0, count)
	for from, targets := range out {
		for _, to := range targets {
			edges = append(edges, [2]int{from, to})
		}
	}
	return edges
}

// conditional returns the conditional updates to some nodes, between versions that
// are served.
func (s *Snapshot) conditional(targets []int32, served func(int32) (string, bool)) []graph.ConditionalEdges {
	var entries []graph.ConditionalEdges
	group := map[int32]int{} // list of risks → entry
	for _, t := range targets {
		to, ok := served(t)
		if !ok {
			continue
		}
		for _, c := range s.pairs[t] {
			from, ok := served(c.From)
			if !ok {
				continue
			}
			entry, known := group[c.List]
			if !known {
				entry = len(entries)
				group[c.List] = entry
				entries = append(entries, graph.ConditionalEdges{Risks: s.lists[c.List]})
			}
			entries[entry].Edges = append(entries[entry].Edges, graph.VersionPair{From: from, To: to})
		}
	}
	return entries
}

// Arches are the architectures of releases, by name.
func (s *Snapshot) Arches() []string { return sortedKeys(s.index) }

// Channels are the channels that hold a release of an architecture, by name.
func (s *Snapshot) Channels(arch string) []string { return sortedKeys(s.index[arch]) }

// sortedKeys is never nil.
func sortedKeys[V any](m map[string]V) []string {
	return append([]string{}, slices.Sorted(maps.Keys(m))...)
}

// Report describes what Build found and did.
type Report struct {
	// Edges and Conditional are how many updates there are of each kind, Removed
	// how many were taken out.
	Edges, Conditional, Removed int
	// Pairs counts the updates that each cause is about: the lists "previous" and
	// "next" of releases and the keys of metadata that add updates declare them;
	// files of blocked edges and the keys that remove updates take them out, or
	// make them conditional, if they are declared. One update may have several
	// causes. A cause that is about none is not there.
	Pairs map[string]int
	// UnknownTargets are the files of blocked edges whose target no release has,
	// UnknownVersions the versions of channels. Unmatched are the files of blocked
	// edges whose target there is, and that no declared update matches. All are
	// empty for a part of all releases.
	UnknownTargets, UnknownVersions, Unmatched []string
	// Abstract are versions that releases name and that have no release.
	Abstract []string
	// Problems are what was left out and why, sorted by source.
	Problems []Problem
}

// Report describes what Build found and did. Do not change it.
func (s *Snapshot) Report() *Report { return s.report }

// tally counts the updates that a blocked edge is about.
type tally struct {
	file  string
	known bool // there is a release that it is about
	pairs int
}

// count counts updates for a cause.
func (b *builder) count(cause string, pairs int) {
	if pairs > 0 {
		b.report.Pairs[cause] += pairs
	}
}

// countTallies puts what blocked edges are about into the report.
func (b *builder) countTallies() {
	for _, t := range b.tallies {
		b.count(t.file, t.pairs)
		if t.known && t.pairs == 0 && !b.opts.Partial {
			b.report.Unmatched = append(b.report.Unmatched, t.file)
		}
	}
	slices.Sort(b.report.Unmatched)
	b.report.Unmatched = slices.Compact(b.report.Unmatched)
}
