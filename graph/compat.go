package graph

// What the options named Compat change, and nothing else:
//
// [DecodeOptions], and [Client] with it:
//   - names of fields are read in any case, repeated keys merge, other schema
//     versions and nodes without a payload are accepted
//   - a node without a version is 0.0.0, of equal versions the first counts
//   - edges to indices that do not exist are kept, and so are repeated ones; null as
//     an index is 0
//   - an empty from or to of a conditional edge is accepted
//   - a Client adds its parameters to those of the upstream
//
// [UpdatesQuery]:
//   - one target whose metadata are invalid fails the query
//   - channels are neither trimmed nor deduplicated
//   - the release can be its own update
//   - risks that a ClusterVersion cannot hold, and updates without risks, stay; so
//     do more than 500 conditional updates
//
// Limits on bytes and memory still hold.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"

	"github.com/clusterupdate/clusterupdate/graph/internal/schema"
	"github.com/clusterupdate/clusterupdate/internal/limit"
)

// decodeCompat reads a graph by encoding/json into structs like those of the
// cluster-version operator, which is what gives it its leniency.
func decodeCompat(data []byte, o DecodeOptions) (*parts, error) {
	var wire struct {
		Nodes            []compatNode
		Edges            []compatEdge
		ConditionalEdges []ConditionalEdges `json:"conditionalEdges"`
	}
	if err := (limit.Limit{Max: o.MaxMemory, What: "bytes of memory"}).Check(limit.Cost(data, &wire)); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &wire); err != nil {
		return nil, &DecodeError{Err: err}
	}
	p := &parts{conditional: wire.ConditionalEdges}
	for i := range wire.ConditionalEdges {
		for j := range wire.ConditionalEdges[i].Risks {
			wire.ConditionalEdges[i].Risks[j].Conditions = nil // a cluster's, never a graph's
		}
	}
	for i, n := range wire.Nodes {
		n.Version = cmp.Or(n.Version, "0.0.0")
		v, err := ParseVersion(string(n.Version))
		if err != nil {
			return nil, &DecodeError{Path: fmt.Sprintf("nodes[%d].version", i), Err: err}
		}
		m, err := metadataOf(n.Metadata)
		if err != nil {
			return nil, &DecodeError{Path: fmt.Sprintf("nodes[%d].metadata", i), Err: err}
		}
		p.nodes = append(p.nodes, Node{Version: v, Image: n.Image, Metadata: m})
	}
	for _, e := range wire.Edges {
		p.edges = append(p.edges, [2]int32{compatIndex(e[0]), compatIndex(e[1])})
	}
	if err := p.check(o); err != nil {
		return nil, err
	}
	return p, nil
}

type compatNode struct {
	Version  compatVersion
	Image    string `json:"payload"`
	Metadata map[string]any
}

// compatVersion is empty only where the field is absent.
type compatVersion string

func (v *compatVersion) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	if text == "" {
		return errEmptyVersion
	}
	*v = compatVersion(text)
	return nil
}

type compatEdge [2]int

func (e *compatEdge) UnmarshalJSON(data []byte) error {
	var fields []int
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	if len(fields) != len(e) {
		return fmt.Errorf("expected %d fields, found %d", len(e), len(fields))
	}
	copy(e[:], fields)
	return nil
}

func compatIndex(i int) int32 {
	if i < 0 || i > math.MaxInt32 {
		return -1
	}
	return int32(i)
}

// metadataOf returns metadata of values as encoding/json gives them.
func metadataOf(values map[string]any) (Metadata, error) {
	var m Metadata
	for key, value := range values {
		e := metadataEntry{key: key}
		if text, ok := value.(string); ok {
			e.value = text
		} else {
			text, err := schema.JSON(value)
			if err != nil {
				return m, err
			}
			e.value, e.json = string(text), true
		}
		m.entries = append(m.entries, e)
	}
	m.sort()
	return m, nil
}

// splitChannelsCompat reads it as the cluster-version operator does, which
// neither trims nor deduplicates.
func splitChannelsCompat(value string) ([]string, []error) { return splitList(value, true) }
