package graph

import (
	"fmt"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/options"
)

// Data is a graph as a program puts it together.
type Data struct {
	// Nodes are the releases; their versions must be strict SemVer. Those of
	// another Graph can be used again: versions and metadata are shared then.
	Nodes []Node
	// Edges are pairs of indices into Nodes.
	Edges            [][2]int
	ConditionalEdges []ConditionalEdges
}

// New builds a graph from data, under the rules and limits of [Decode]. The
// graph keeps the lists of nodes and of conditional entries: do not change them
// any more. Memory is not counted, since the data take it already. Errors are
// those of [Decode].
func New(d Data, o DecodeOptions) (*Graph, error) {
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	p := &parts{nodes: d.Nodes, conditional: d.ConditionalEdges, edges: make([][2]int32, 0, len(d.Edges))}
	for i := range d.Nodes {
		if err := d.Nodes[i].checkVersion(); err != nil {
			return nil, withinIndex("nodes", i, within("version", err))
		}
		if d.Nodes[i].Image == "" && !o.AllowNoPayload && !o.Compat {
			return nil, withinIndex("nodes", i, within("payload", errMissing))
		}
	}
	for _, e := range d.Edges {
		pair := [2]int32{compatIndex(e[0]), compatIndex(e[1])}
		for i := range pair {
			if pair[i] < 0 && p.badIndex == "" {
				p.badIndex = fmt.Sprint(e[i])
			}
		}
		p.edges = append(p.edges, pair)
	}
	if err := p.check(o); err != nil {
		return nil, err
	}
	return p.index(o)
}

// checkVersion explains why the version is not one that [ParseVersion] gives.
func (n *Node) checkVersion() error {
	if n.Version == nil {
		return errMissing
	}
	text := n.Version.Original()
	if text == n.Version.String() {
		return nil
	}
	_, err := ParseVersion(text)
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", bounded.Quote(text), err)
}
