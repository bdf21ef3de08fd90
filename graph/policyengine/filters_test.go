package policyengine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/policyengine"
)

// picture shows a graph as lines: versions, "a → b", "a → b [risks]".
func picture(g *graph.Graph) (lines []string) {
	for i, n := range g.Nodes() {
		lines = append(lines, n.Version.Original())
		for e := range g.Edges(i) {
			lines = append(lines, n.Version.Original()+" → "+g.Node(e.To).Version.Original())
		}
	}
	for _, c := range g.ConditionalEdges() {
		for _, p := range c.Edges {
			lines = append(lines, fmt.Sprintf("%s → %s %s", p.From, p.To, c.Risks[0].Name))
		}
	}
	return lines
}

// TestFilters: what is in the graph of a channel and an architecture.
func TestFilters(t *testing.T) {
	for _, compat := range []bool{false, true} {
		s := serve(t, policyengine.Options{Compat: compat}, sample(t))
		for _, tt := range []struct {
			query string
			want  []string
		}{
			{"channel=candidate-1.1", []string{"1.0.0", "1.0.0 → 1.0.1", "1.0.1", "1.1.0", "1.0.1 → 1.1.0 R"}},
			{"channel=candidate-1.1&arch=s390x", []string{"1.1.0"}},
			{"channel=fast-1.1", []string{"1.0.1", "1.1.0", "1.0.1 → 1.1.0 R"}},
			{"channel=fast-1.1&arch=s390x", nil},
			{"channel=fast-1.10", []string{"1.0.0"}},
			{"channel=fast-1.", nil},
			{"channel=fast-1.1.0", nil},
			{"channel=candidate-1.1&arch=64", nil},
			{"channel=candidate-1.1&arch=md6", nil},
			{"channel=candidate-1.1&arch=multi", nil},
		} {
			got := s.get(t, "/api/graph?"+tt.query)
			g, err := graph.DecodeBytes([]byte(got.body), graph.DecodeOptions{})
			if err != nil {
				t.Fatalf("%s: %v", tt.query, err)
			}
			if diff := cmp.Diff(tt.want, picture(g)); diff != "" {
				t.Errorf("%s: %s", tt.query, diff)
			}
			for _, n := range g.Nodes() { // the list of channels stays whole, the architecture goes
				channels, _ := n.Metadata.Get(graph.MetadataChannels)
				if _, has := n.Metadata.Get(graph.MetadataArch); has || n.Version.Original() == "1.0.1" && channels != "candidate-1.1,fast-1.1" {
					t.Errorf("%s: %s has %q", tt.query, n.Version, channels)
				}
			}
			if !strings.HasPrefix(got.body, `{"version":1,"nodes":[`) {
				t.Errorf("%s: %.40s", tt.query, got.body)
			}
		}
	}
	s := serve(t, policyengine.Options{DefaultArch: "s390x"}, sample(t))
	if got := s.get(t, candidate); strings.Count(got.body, `"payload"`) != 1 {
		t.Errorf("the default architecture: %s", got.body)
	}
}
