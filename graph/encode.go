package graph

import (
	"encoding/json"
	"io"
)

// MarshalJSON writes the graph as an update service does, with schema version
// 1. Decoding the result gives an equal graph.
func (g *Graph) MarshalJSON() ([]byte, error) {
	type node struct {
		Version  string   `json:"version"`
		Payload  string   `json:"payload"`
		Metadata Metadata `json:"metadata"`
	}
	wire := struct {
		Version          int                `json:"version"`
		Nodes            []node             `json:"nodes"`
		Edges            [][2]int32         `json:"edges"`
		ConditionalEdges []ConditionalEdges `json:"conditionalEdges"`
	}{
		Version:          1,
		Nodes:            make([]node, 0, len(g.nodes)),
		Edges:            make([][2]int32, 0, len(g.to)),
		ConditionalEdges: g.conditional,
	}
	for i, n := range g.nodes {
		wire.Nodes = append(wire.Nodes, node{Version: n.Version.Original(), Payload: n.Image, Metadata: n.Metadata})
		for _, to := range g.out(i) {
			wire.Edges = append(wire.Edges, [2]int32{int32(i), to})
		}
	}
	if wire.ConditionalEdges == nil {
		wire.ConditionalEdges = []ConditionalEdges{}
	}
	return json.Marshal(wire)
}

// Encode writes the graph's JSON.
func Encode(w io.Writer, g *Graph) error {
	text, err := g.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}
