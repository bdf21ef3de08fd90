package graph_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// encodePlainly is what AppendJSON promises, by encoding/json.
func encodePlainly(t checktest.T, g *graph.Graph) string {
	type node struct {
		Version  string         `json:"version"`
		Payload  string         `json:"payload"`
		Metadata map[string]any `json:"metadata"`
	}
	wire := struct {
		Version          int                      `json:"version"`
		Nodes            []node                   `json:"nodes"`
		Edges            [][2]int                 `json:"edges"`
		ConditionalEdges []graph.ConditionalEdges `json:"conditionalEdges"`
	}{1, []node{}, [][2]int{}, []graph.ConditionalEdges{}}
	for i, n := range g.Nodes() {
		metadata := map[string]any{}
		for k, v := range n.Metadata.All() {
			metadata[k] = v
		}
		wire.Nodes = append(wire.Nodes, node{n.Version.Original(), n.Image, metadata})
		for e := range g.Edges(i) {
			wire.Edges = append(wire.Edges, [2]int{e.From, e.To})
		}
	}
	for _, c := range g.ConditionalEdges() {
		entry := graph.ConditionalEdges{Edges: append([]graph.VersionPair{}, c.Edges...), Risks: append([]configv1.ConditionalUpdateRisk{}, c.Risks...)}
		for i := range entry.Risks {
			entry.Risks[i].Conditions = nil
			if entry.Risks[i].MatchingRules == nil {
				entry.Risks[i].MatchingRules = []configv1.ClusterCondition{}
			}
		}
		wire.ConditionalEdges = append(wire.ConditionalEdges, entry)
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	checktest.OK(t, encoder.Encode(wire))
	return strings.TrimSuffix(b.String(), "\n")
}

// The text is that of encoding/json without HTML escapes, byte for byte.
func TestAppendJSONProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawGraph(t)
		text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune("a<>&\"\\/\b\f\n\r\t\x00\x1f\x7f\u2028\u2029é\U0001f600"))),
			rapid.SampledFrom([]string{"\xff", "a\xc3", "\xed\xa0\x80", "\ufffd"}))
		for i := range d.Nodes {
			d.Nodes[i].Image = "i" + text.Draw(t, "image")
			d.Nodes[i].Metadata = graph.NewMetadata(map[string]string{text.Draw(t, "key"): text.Draw(t, "value"), "z": ""})
		}
		for i := range d.ConditionalEdges {
			for j := range d.ConditionalEdges[i].Risks {
				risk := &d.ConditionalEdges[i].Risks[j]
				risk.Message, risk.URL, risk.Name = text.Draw(t, "message"), text.Draw(t, "url"), text.Draw(t, "name")
			}
		}
		g := checktest.Must(graph.New(d, graph.DecodeOptions{}))
		want, got := encodePlainly(t, g), string(g.AppendJSON([]byte("before")))
		if !strings.HasPrefix(got, "before") {
			t.Fatal("AppendJSON does not append")
		}
		checktest.Same(t, want, got[len("before"):])
	})
}

// A graph of parts of another shares them, and encodes without being indexed.
func TestNewOfNodes(t *testing.T) {
	whole := graphtest.Sketch(t, "4.1.0>4.1.1 4.1.1>4.2.0 4.1.0>4.2.0:A", map[string]string{"4.1.1": "a,b"})
	part, err := graph.New(graph.Data{Nodes: []graph.Node{whole.Node(0), whole.Node(1)}, Edges: [][2]int{{0, 1}}}, graph.DecodeOptions{})
	checktest.OK(t, err)
	checktest.Equal(t, whole.Node(1).Version, part.Node(1).Version, "the version was copied")
	checktest.Same(t, encodePlainly(t, part), string(part.AppendJSON(nil)))
}

func TestEncodeAllocations(t *testing.T) {
	g := checktest.Must(graph.DecodeBytes(graphtest.Synthetic(t, 1000), graph.DecodeOptions{}))
	if n := testing.AllocsPerRun(10, func() { g.MarshalJSON() }); n > 2 {
		t.Errorf("%v allocations", n)
	}
}

// Many goroutines may put the first question at once.
func TestFirstQuestionAtOnce(t *testing.T) {
	text := graphtest.Synthetic(t, 100)
	g := checktest.Must(graph.DecodeBytes(text, graph.DecodeOptions{}))
	want := checktest.Must(graph.DecodeBytes(text, graph.DecodeOptions{}))
	q := graph.UpdatesQuery{Version: "4.0.0", Architecture: "amd64"}
	updates := checktest.Must(want.Updates(q))
	results := make(chan string)
	for range 8 {
		go func() {
			got, err := g.Updates(q)
			if err != nil {
				results <- err.Error()
				return
			}
			results <- cmp.Diff(updates.Available, got.Available) + cmp.Diff(want.Channels(), g.Channels())
		}()
	}
	for range 8 {
		checktest.Equal(t, "", <-results, "value")
	}
}

// A part of a graph, as a server selects it, shares its nodes with the whole.
func ExampleGraph_AppendJSON() {
	whole, err := graph.New(graph.Data{
		Nodes: []graph.Node{
			{Version: semver.MustParse("4.18.1"), Image: "quay.io/r@sha256:1", Metadata: graph.NewMetadata(map[string]string{graph.MetadataChannels: "stable-4.18"})},
			{Version: semver.MustParse("4.18.2"), Image: "quay.io/r@sha256:2"},
			{Version: semver.MustParse("4.18.3"), Image: "quay.io/r@sha256:3"},
		},
		Edges: [][2]int{{0, 1}, {1, 2}},
	}, graph.DecodeOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	part, err := graph.New(graph.Data{Nodes: []graph.Node{whole.Node(0), whole.Node(1)}, Edges: [][2]int{{0, 1}}}, graph.DecodeOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n", part.AppendJSON(nil))
	// Output:
	// {"version":1,"nodes":[{"version":"4.18.1","payload":"quay.io/r@sha256:1","metadata":{"io.openshift.upgrades.graph.release.channels":"stable-4.18"}},{"version":"4.18.2","payload":"quay.io/r@sha256:2","metadata":{}}],"edges":[[0,1]],"conditionalEdges":[]}
}
