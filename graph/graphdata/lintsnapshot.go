package graphdata

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// matchesNoUpdate reports an expression that matches no declared update to its
// target. A target without a release is another rule's.
func (l *linter) matchesNoUpdate(b BlockedEdge, x *expression) {
	targets := l.declared.targets(b)
	for _, t := range targets {
		for _, f := range l.declared.of(t) {
			if x.re.MatchString(l.snap.nodes[f].version) {
				return
			}
		}
	}
	if len(targets) > 0 {
		l.report(b.File, b.Line, "from", fmt.Sprintf("%s matches no version that updates to %s", bounded.Quote(b.From), b.To))
	}
}

// commonUpdate returns the source of a declared update that two blocked edges
// match, "" if there is none.
func (l *linter) commonUpdate(a, b BlockedEdge) string {
	x, y := l.expression(a.From), l.expression(b.From)
	if x == nil || y == nil {
		return ""
	}
	targets := l.declared.targets(b)
	for _, t := range l.declared.targets(a) {
		if !slices.Contains(targets, t) {
			continue
		}
		for _, f := range l.declared.of(t) {
			if v := l.snap.nodes[f].version; x.re.MatchString(v) && y.re.MatchString(v) {
				return v
			}
		}
	}
	return ""
}

// overlapMetadata reports the metadata that remove an update which a risk is about,
// each place once.
func (l *linter) overlapMetadata(r BlockedEdge) {
	x := l.expression(r.From)
	if x == nil {
		return
	}
	seen := map[string]bool{}
	for _, t := range l.declared.targets(r) {
		for _, f := range l.declared.of(t) {
			v := l.snap.nodes[f].version
			if !x.re.MatchString(v) {
				continue
			}
			for _, c := range l.snap.removedByMetadata(int(f), int(t)) {
				place := c.place() + ": " + c.Key
				if !seen[place] {
					seen[place] = true
					l.report(r.File, r.Line, "from", fmt.Sprintf("the update from %s is removed by %s", v, place))
				}
			}
		}
	}
}

func (l *linter) updatesOut() {
	if l.snap == nil {
		return
	}
	ways := newConnectivity(l.snap)
	for _, c := range l.tree.Channels {
		way := ways.wayOut(c)
		for i, e := range c.Versions {
			if text, known := way.concern(e.Version); known && text != "" {
				l.report(c.File, e.Line, element("versions", i), text)
			}
		}
	}
}

func (l *linter) updatesPatch() {
	if l.snap == nil {
		return
	}
	ways := newConnectivity(l.snap)
	if ways == nil {
		return
	}
	for _, c := range l.tree.Channels {
		concerns := ways.patchConcerns(c)
		for i, e := range c.Versions {
			at := ways.find(e.Version)
			if text := concerns[at]; text != "" {
				l.report(c.File, e.Line, element("versions", i), text)
				delete(concerns, at)
			}
		}
	}
}

// predecessors finds which updates releases declare, whatever becomes of them.
type predecessors struct {
	snap  *Snapshot
	index map[[2]string]int32 // version without build, and build → node
	bases map[string][]int32  // version without build → releases
	next  map[int32][]int32   // what releases say by their successors
	known map[int32][]int32
}

func newPredecessors(s *Snapshot) *predecessors {
	p := &predecessors{snap: s, index: map[[2]string]int32{}, bases: map[string][]int32{}, next: map[int32][]int32{}, known: map[int32][]int32{}}
	for i, n := range s.nodes {
		p.index[[2]string{n.base, n.build}] = int32(i)
		if n.metadata != nil {
			p.bases[n.base] = append(p.bases[n.base], int32(i))
		}
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
			if at, ok := p.index[[2]string{withoutBuild(v), n.build}]; ok {
				nodes = append(nodes, at)
			}
		}
	}
	return nodes
}

// edits returns the nodes that a node's metadata name.
func (p *predecessors) edits(n node, key string) (nodes []int32) {
	for _, item := range splitList(n.metadata[key]) {
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

// targets returns the releases that a blocked edge is about, as Build finds them.
func (p *predecessors) targets(b BlockedEdge) (nodes []int32) {
	to := b.To
	if b.Risk == nil {
		to = dropTarget(to)
	}
	text, build, has := strings.Cut(to, "+")
	for _, i := range p.bases[text] {
		if !has || p.snap.nodes[i].build == build {
			nodes = append(nodes, i)
		}
	}
	return nodes
}
