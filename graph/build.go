package graph

import "fmt"

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
// graph keeps the conditional entries: do not change them any more.
func New(d Data, o DecodeOptions) (*Graph, error) {
	o = o.withDefaults()
	if len(d.Nodes) > o.MaxNodes {
		return nil, &LimitError{Limit: "nodes", Max: int64(o.MaxNodes)}
	}
	pairs := len(d.Edges)
	for _, c := range d.ConditionalEdges {
		pairs += len(c.Edges)
	}
	if pairs > o.MaxEdges {
		return nil, &LimitError{Limit: "edges", Max: int64(o.MaxEdges)}
	}
	p := &parts{conditional: d.ConditionalEdges}
	for i, n := range d.Nodes {
		v, err := ParseVersion(n.Version)
		if err != nil {
			return nil, withinIndex("nodes", i, within("version", fmt.Errorf("%q: %w", n.Version, err)))
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
	return p.index(o)
}
