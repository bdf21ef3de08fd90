package graph

import (
	"fmt"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// Data is a graph as a program puts it together.
type Data struct {
	Nodes []NodeData
	// Edges are pairs of indices into Nodes.
	Edges            [][2]int
	ConditionalEdges []ConditionalEdges
}

// NodeData is a release of a [Data].
type NodeData struct {
	Version  string
	Image    string
	Metadata map[string]string
}

// New builds a graph from data, under the rules and limits of [Decode]. The
// graph keeps the conditional entries: do not change them any more. Memory is
// not counted, since the data take it already.
func New(d Data, o DecodeOptions) (*Graph, error) {
	o = o.withDefaults()
	p := &parts{conditional: d.ConditionalEdges}
	for i, n := range d.Nodes {
		v, err := ParseVersion(n.Version)
		if err != nil {
			return nil, withinIndex("nodes", i, within("version", fmt.Errorf("%s: %w", bounded.Quote(n.Version), err)))
		}
		if n.Image == "" && !o.AllowNoPayload && !o.Compat {
			return nil, withinIndex("nodes", i, within("payload", errMissing))
		}
		p.nodes = append(p.nodes, Node{Version: v, Image: n.Image, Metadata: NewMetadata(n.Metadata)})
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
