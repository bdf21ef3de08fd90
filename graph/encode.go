package graph

import (
	"encoding/json"
	"io"

	configv1 "github.com/openshift/api/config/v1"
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
		ConditionalEdges: make([]ConditionalEdges, 0, len(g.conditional)),
	}
	for i, n := range g.nodes {
		wire.Nodes = append(wire.Nodes, node{Version: n.Version.Original(), Payload: n.Image, Metadata: n.Metadata})
		for _, to := range g.out(i) {
			wire.Edges = append(wire.Edges, [2]int32{int32(i), to})
		}
	}
	for _, entry := range g.conditional {
		wire.ConditionalEdges = append(wire.ConditionalEdges, withoutNulls(entry))
	}
	return json.Marshal(wire)
}

// withoutNulls returns the entry with empty lists instead of nil ones, which
// would become null.
func withoutNulls(entry ConditionalEdges) ConditionalEdges {
	if entry.Edges == nil {
		entry.Edges = []VersionPair{}
	}
	risks := make([]configv1.ConditionalUpdateRisk, len(entry.Risks))
	copy(risks, entry.Risks)
	for i := range risks {
		if risks[i].MatchingRules == nil {
			risks[i].MatchingRules = []configv1.ClusterCondition{}
		}
	}
	entry.Risks = risks
	return entry
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
