package graph

import (
	"fmt"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph/internal/schema"
)

// parts is a graph as read, before it is indexed.
type parts struct {
	nodes       []Node
	edges       [][2]int32 // -1 where an index does not fit
	conditional []ConditionalEdges
	badIndex    string // the text of the first such index
}

// index checks what only the whole can show and builds the Graph.
func (p *parts) index(o DecodeOptions) (*Graph, error) {
	g := &Graph{nodes: p.nodes, conditional: p.conditional, compat: o.Compat}
	if err := g.indexVersions(); err != nil {
		return nil, err
	}
	if err := g.indexEdges(p.edges, p.badIndex); err != nil {
		return nil, err
	}
	return g, nil
}

func (g *Graph) indexVersions() error {
	builds := false
	g.byVersion = make(map[string]int32, len(g.nodes))
	for i := range g.nodes {
		version := g.nodes[i].Version.Original()
		if first, ok := g.byVersion[version]; ok {
			if !g.compat {
				return &DecodeError{Path: fmt.Sprintf("nodes[%d].version", i), Err: fmt.Errorf("%q is the version of nodes[%d] already", version, first)}
			}
			continue
		}
		g.byVersion[version] = int32(i)
		builds = builds || strings.IndexByte(version, '+') >= 0
	}
	if !builds {
		return nil
	}
	g.byPrecedence = make(map[string]int32, len(g.nodes))
	for i := range g.nodes {
		key := precedenceKey(g.nodes[i].Version.Original())
		if _, ok := g.byPrecedence[key]; !ok {
			g.byPrecedence[key] = int32(i)
		}
	}
	return nil
}

// indexEdges groups the edges by origin, keeps their order within one, and
// keeps one of several equal edges, except with Compat, where each counts.
func (g *Graph) indexEdges(edges [][2]int32, badIndex string) error {
	n := int32(len(g.nodes))
	g.first = make([]int32, n+1)
	kept := int32(0)
	for i, e := range edges {
		from, to := e[0], e[1]
		if (from < 0 || from >= n || to < 0 || to >= n) && !g.compat {
			bad := to
			if from < 0 || from >= n {
				bad = from
			}
			text := fmt.Sprint(bad)
			if bad < 0 {
				text = badIndex
			}
			return &DecodeError{Path: fmt.Sprintf("edges[%d]", i), Err: fmt.Errorf("index %s is out of range: the graph has %d nodes", text, n)}
		}
		if from >= 0 && from < n {
			g.first[from+1]++
			kept++
		}
	}
	for i := range n {
		g.first[i+1] += g.first[i]
	}
	grouped, next := make([]int32, kept), make([]int32, n)
	copy(next, g.first)
	for _, e := range edges {
		from, to := e[0], e[1]
		if from < 0 || from >= n {
			continue
		}
		if to >= n {
			to = -1
		}
		grouped[next[from]] = to
		next[from]++
	}
	if g.compat {
		g.to = grouped
		return nil
	}

	// next becomes the mark of the origin that a target was last seen from.
	clear(next)
	write := int32(0)
	for from := range n {
		start, end := g.first[from], g.first[from+1]
		g.first[from] = write
		for _, to := range grouped[start:end] {
			if next[to] != from+1 {
				next[to] = from + 1
				grouped[write] = to
				write++
			}
		}
	}
	g.first[n] = write
	g.to = grouped[:write:write]
	return nil
}

// indexConditional groups the conditional pairs by the version that they leave.
func (q *queryIndex) indexConditional(conditional []ConditionalEdges, byVersion map[string]int32) {
	var counts []int32
	q.fromVersion = map[string]int32{}
	for i := range conditional {
		for _, e := range conditional[i].Edges {
			group, ok := q.fromVersion[e.From]
			if !ok {
				group = int32(len(counts))
				q.fromVersion[e.From] = group
				counts = append(counts, 0)
			}
			counts[group]++
		}
	}
	q.firstRef = make([]int32, len(counts)+1)
	for i, n := range counts {
		q.firstRef[i+1] = q.firstRef[i] + n
	}
	q.refs = make([]conditionalRef, q.firstRef[len(counts)])
	next := counts
	copy(next, q.firstRef)
	for i := range conditional {
		for j, e := range conditional[i].Edges {
			to, ok := byVersion[e.To]
			if !ok {
				to = -1
			}
			group := q.fromVersion[e.From]
			q.refs[next[group]] = conditionalRef{entry: int32(i), pair: int32(j), to: to}
			next[group]++
		}
	}
}

// releasesOf converts every node once. Nodes in the same channels, which are
// most, share the list.
func releasesOf(nodes []Node) []release {
	type split struct {
		channels []string
		errs     []error
	}
	known := map[string]split{}
	splitOnce := func(value string) ([]string, []error) {
		s, ok := known[value]
		if !ok {
			s.channels, s.errs = splitChannels(value)
			known[value] = s
		}
		return s.channels, s.errs
	}
	releases := make([]release, len(nodes))
	for i := range nodes {
		r := &releases[i]
		r.Release, r.err = nodes[i].release(splitOnce)
		r.bound = schema.BoundOfRelease(&r.Release)
	}
	return releases
}
