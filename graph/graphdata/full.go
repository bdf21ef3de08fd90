package graphdata

import (
	"maps"
	"slices"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/internal/schema"
)

// RawGraph is a graph as the builder of an update service has it: all channels and
// architectures, versions with their builds, abstract nodes without an image and
// metadata, no schema version. It is for comparisons; no client reads it.
type RawGraph struct {
	Nodes            []RawNode                `json:"nodes"`
	Edges            [][2]int                 `json:"edges"`
	ConditionalEdges []graph.ConditionalEdges `json:"conditionalEdges"`
}

// RawNode is a node of a [RawGraph].
type RawNode struct {
	Version  string            `json:"version"`
	Payload  string            `json:"payload,omitempty"`
	Metadata map[string]string `json:"metadata,omitzero"` // nil: an abstract node
}

// Full returns the whole graph, in canonical order. It is the caller's own.
func (s *Snapshot) Full() *RawGraph {
	g := &RawGraph{Nodes: make([]RawNode, len(s.nodes)), Edges: [][2]int{}, ConditionalEdges: []graph.ConditionalEdges{}}
	for i, n := range s.nodes {
		g.Nodes[i] = RawNode{Version: n.version}
		if n.metadata == nil {
			continue
		}
		g.Nodes[i].Payload = n.image
		g.Nodes[i].Metadata = map[string]string{}
		maps.Copy(g.Nodes[i].Metadata, n.metadata)
		if n.arch != "" {
			g.Nodes[i].Metadata[graph.MetadataArch] = n.arch
		}
	}
	all := make([]int32, len(s.nodes))
	for i := range all {
		all[i] = int32(i)
	}
	g.Edges = append(g.Edges, s.edges(all, func(i int32) (int, bool) { return int(i), true })...)
	entries := s.conditional(all, func(i int32) (string, bool) { return s.nodes[i].version, true })
	for _, entry := range entries {
		entry.Risks = slices.Clone(entry.Risks)
		g.ConditionalEdges = append(g.ConditionalEdges, entry)
	}
	return g
}

// MarshalJSON writes the graph with sorted keys and without escapes for HTML,
// which json.Marshal would put in again: call it, or use an Encoder without them.
// Its errors are those of [encoding/json].
func (g *RawGraph) MarshalJSON() ([]byte, error) {
	type node struct {
		Version  string            `json:"version"`
		Payload  *string           `json:"payload,omitempty"` // nil: an abstract node; a release may have an empty one
		Metadata map[string]string `json:"metadata,omitzero"`
	}
	nodes := make([]node, len(g.Nodes))
	for i := range g.Nodes {
		n := &g.Nodes[i]
		nodes[i] = node{Version: n.Version, Metadata: n.Metadata}
		if n.Payload != "" || n.Metadata != nil {
			nodes[i].Payload = &n.Payload
		}
	}
	return schema.JSON(struct {
		Nodes            []node                   `json:"nodes"`
		Edges            [][2]int                 `json:"edges"`
		ConditionalEdges []graph.ConditionalEdges `json:"conditionalEdges"`
	}{nodes, g.Edges, g.ConditionalEdges})
}
