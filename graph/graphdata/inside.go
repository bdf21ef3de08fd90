package graphdata

import (
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata/internal/inside"
)

// Inside returns what package maintain needs to know of the snapshot. It is of no use
// to others.
func (s *Snapshot) Inside() *inside.Graph {
	g := &inside.Graph{In: s.in, Pairs: s.pairs, Lists: s.lists, Index: s.index}
	var names *predecessors
	g.Declared = func(node int32) []int32 {
		if names == nil {
			names = newPredecessors(s)
		}
		return names.of(node)
	}
	g.Removed = func(from, to int32) (places []string) {
		for _, c := range s.removedByMetadata(int(from), int(to)) {
			places = append(places, c.place()+": "+c.Key)
		}
		return places
	}
	for i, n := range s.nodes {
		out := inside.Node{Version: n.version, Base: n.base, Build: n.build, SemVer: n.semver, Image: n.image, Metadata: n.metadata}
		for _, served := range s.served[i] {
			out.Served = append(out.Served, inside.Served{Arch: served.arch, Version: served.node.Version.Original()})
		}
		g.Nodes = append(g.Nodes, out)
	}
	return g
}

// predecessors finds which updates releases declare, whatever becomes of them.
type predecessors struct {
	snap  *Snapshot
	index map[[2]string]int32 // version without build, and build → node
	next  map[int32][]int32   // what releases say by their successors
	known map[int32][]int32
}

func newPredecessors(s *Snapshot) *predecessors {
	p := &predecessors{snap: s, index: map[[2]string]int32{}, next: map[int32][]int32{}, known: map[int32][]int32{}}
	for i, n := range s.nodes {
		p.index[[2]string{n.base, n.build}] = int32(i)
	}
	for f, n := range s.nodes {
		for _, t := range append(p.named(n, s.reasons.next[f]), p.edits(n, graph.MetadataNextAdd)...) {
			p.next[t] = append(p.next[t], int32(f))
		}
	}
	return p
}

// named returns the nodes that the releases of a node name.
func (p *predecessors) named(n node, lists []naming) (nodes []int32) {
	for _, list := range lists {
		for _, v := range list.versions {
			if at, ok := p.index[[2]string{inside.WithoutBuild(v), n.build}]; ok {
				nodes = append(nodes, at)
			}
		}
	}
	return nodes
}

// edits returns the nodes that a node's metadata name.
func (p *predecessors) edits(n node, key string) (nodes []int32) {
	for _, item := range inside.SplitList(n.metadata[key]) {
		text, build, _ := strings.Cut(item, "+")
		if n.arch != "" {
			build = n.arch
		}
		if at, ok := p.index[[2]string{text, build}]; ok {
			nodes = append(nodes, at)
		}
	}
	return nodes
}

// of returns the declared predecessors of a node, ascending.
func (p *predecessors) of(t int32) []int32 {
	if list, done := p.known[t]; done {
		return list
	}
	n := p.snap.nodes[t]
	list := append(p.named(n, p.snap.reasons.previous[t]), p.edits(n, graph.MetadataPreviousAdd)...)
	list = append(list, p.next[t]...)
	slices.Sort(list)
	list = slices.Compact(list)
	p.known[t] = list
	return list
}
