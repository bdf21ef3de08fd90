package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"

	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// drawGraph draws graphs of up to 8 releases with every kind of oddity that
// decoding accepts: cycles, self edges, shared images, bad metadata, risks
// without rules, conditional edges to nowhere.
func drawGraph(t *rapid.T) graph.Data {
	var d graph.Data
	versions := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"4.1.0", "4.1.0+b", "4.1.1", "4.1.2-rc.1", "4.1.2", "4.2.0", "4.10.0", "5.0.0"}), 0, 8, rapid.ID[string]).Draw(t, "versions")
	for i, v := range versions {
		n := graph.Node{Version: semver.MustParse(v), Image: fmt.Sprint("i", i)}
		if rapid.IntRange(0, 9).Draw(t, "shared") == 0 {
			n.Image = "i0"
		}
		n.Metadata = graph.NewMetadata(rapid.MapOfN(rapid.SampledFrom([]string{"url", graph.MetadataChannels, graph.MetadataArchitecture, "x<y"}),
			rapid.SampledFrom([]string{"a,b", "", "multi", "%zz", "b, a,"}), 0, 2).Draw(t, "metadata"))
		d.Nodes = append(d.Nodes, n)
	}
	if len(versions) == 0 {
		return d
	}
	index := rapid.IntRange(0, len(versions)-1)
	for range rapid.IntRange(0, 20).Draw(t, "edges") {
		d.Edges = append(d.Edges, [2]int{index.Draw(t, "from"), index.Draw(t, "to")})
	}
	for range rapid.IntRange(0, 6).Draw(t, "entries") {
		var c graph.ConditionalEdges
		for range rapid.IntRange(0, 3).Draw(t, "pairs") {
			to := versions[index.Draw(t, "to")]
			if rapid.IntRange(0, 30).Draw(t, "nowhere") == 0 {
				to = "9.9.9"
			}
			c.Edges = append(c.Edges, graph.VersionPair{From: versions[index.Draw(t, "from")], To: to})
		}
		for range rapid.IntRange(0, 2).Draw(t, "risks") {
			r := graphtest.Risk(rapid.SampledFrom([]string{"A", "B", "c-d"}).Draw(t, "name"), rapid.SampledFrom([]string{"T", "F", "U"}).Draw(t, "query"))
			r.MatchingRules = rapid.SliceOfN(rapid.SampledFrom([]configv1.ClusterCondition{graphtest.PromQL("T"), graphtest.PromQL("F"), graphtest.PromQL("U"), graphtest.PromQL(""), graphtest.AlwaysRule, {Type: "CEL"}}), 0, 2).Draw(t, "rules")
			c.Risks = append(c.Risks, r)
		}
		d.ConditionalEdges = append(d.ConditionalEdges, c)
	}
	return d
}

func TestEncodeDecodeProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := checktest.Must(graph.New(drawGraph(t), graph.DecodeOptions{}))
		text := checktest.Must(g.MarshalJSON())
		again := checktest.Must(graph.DecodeBytes(text, graph.DecodeOptions{}))
		if !again.Equal(g) {
			t.Fatalf("decode(encode(g)) is not g: %s", text)
		}
		second, err := again.MarshalJSON()
		checktest.OK(t, err)
		checktest.Equal(t, string(text), string(second), "encoded differently: %s", second)
	})
}

// Texts and edges are what encoding/json reads, however they are written.
func TestDecodeTextProperty(t *testing.T) {
	piece := rapid.SampledFrom([]string{"a", "é", "\\\"", "\\\\", "\\u0041", "\\ud83d\\ude00", "\\ud83d", "\\n", "\xff", "\u2028", "/", " ", "{", "]", ",", "\x7f", "<"})
	space := rapid.SampledFrom([]string{"", " ", "\n", "\t\r\n   "})
	rapid.Check(t, func(t *rapid.T) {
		s := func() string { return space.Draw(t, "space") }
		value := strings.Join(rapid.SliceOfN(piece, 1, 20).Draw(t, "text"), "")
		var edges []string
		for range rapid.IntRange(0, 4).Draw(t, "edges") {
			e := rapid.SampledFrom([]string{"[0,1]", "[1,0]", "[-0,1]", "[0,2]", "[0,0000000001]", "[0,10000000000]", "[1e0,0]", "[0,1,0]", "[0]", "[0,1"}).Draw(t, "edge")
			edges = append(edges, s()+strings.NewReplacer("[", "["+s(), ",", s()+","+s(), "]", s()+"]").Replace(e)+s())
		}
		text := fmt.Sprintf(`{"nodes":[{"version":"4.1.0","payload":"a","metadata":{"x":%s"%s"%s}},{"version":"4.1.1","payload":"b"}],"edges":[%s]}`, s(), value, s(), strings.Join(edges, ","))
		var want struct {
			Nodes []struct{ Metadata map[string]string }
			Edges [][]int
		}
		wantErr := json.Unmarshal([]byte(text), &want)
		kept := map[[2]int]bool{}
		for _, e := range want.Edges {
			if len(e) != 2 || min(e[0], e[1]) < 0 || max(e[0], e[1]) > 1 {
				wantErr = errors.Join(wantErr, errors.New("an edge to nowhere"))
			} else {
				kept[[2]int{e[0], e[1]}] = true
			}
		}
		g, err := graph.DecodeBytes([]byte(text), graph.DecodeOptions{})
		checktest.Equal(t, wantErr == nil, err == nil, "%s: %v, encoding/json: %v", text, err, wantErr)
		if err != nil {
			return
		}
		if got := g.Node(0).Metadata.Text("x"); got != want.Nodes[0].Metadata["x"] {
			t.Fatalf("%s: %q, encoding/json: %q", text, got, want.Nodes[0].Metadata["x"])
		}
		for i := range g.Len() {
			for e := range g.Edges(i) {
				if !kept[[2]int{e.From, e.To}] {
					t.Fatalf("%s: edge %+v", text, e)
				}
			}
		}
		if g.EdgeCount() != len(kept) {
			t.Fatalf("%s: %d edges", text, g.EdgeCount())
		}
	})
}

func TestUpdatesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawGraph(t)
		g := checktest.Must(graph.New(d, graph.DecodeOptions{}))
		for i, n := range d.Nodes {
			q := graph.UpdatesQuery{Version: n.Version.Original(), UnionDuplicates: rapid.Bool().Draw(t, "union")}
			u, err := g.Updates(q)
			if err != nil {
				continue
			}
			if again, _ := g.Updates(q); !cmp.Equal(u, again, cmp.Comparer(func(a, b error) bool { return (a == nil) == (b == nil) && (a == nil || a.Error() == b.Error()) })) {
				t.Fatal("another answer to the same question")
			}
			conditional := map[string]bool{}
			for _, c := range u.Conditional {
				if conditional[c.Release.Image] {
					t.Fatalf("%s twice among the conditional", c.Release.Image)
				}
				conditional[c.Release.Image] = true
				for _, r := range c.Risks {
					if len(r.MatchingRules) == 0 {
						t.Fatalf("a risk without rules is left: %+v", r)
					}
				}
			}
			for _, r := range u.Available {
				if conditional[r.Image] {
					t.Fatalf("%s is available and conditional", r.Version)
				}
				if !slices.ContainsFunc(d.Edges, func(e [2]int) bool {
					return d.Nodes[e[0]].Version.Original() == u.Current.Version && d.Nodes[e[1]].Version.Original() == r.Version
				}) {
					t.Fatalf("%s has no edge", r.Version)
				}
				for _, c := range d.ConditionalEdges {
					for _, e := range c.Edges {
						if e.From == n.Version.Original() && e.To == r.Version {
							t.Fatalf("%s is guarded by a risk and available", r.Version)
						}
					}
				}
			}
			for _, e := range d.Edges {
				if d.Nodes[e[0]].Version.Original() != u.Current.Version || d.Nodes[e[1]].Version.Original() == u.Current.Version {
					continue
				}
				to := d.Nodes[e[1]].Version.Original()
				listed := slices.ContainsFunc(u.Available, func(r configv1.Release) bool { return r.Version == to }) ||
					slices.ContainsFunc(u.Dropped, func(d graph.Dropped) bool { return d.Release.Version == to })
				if !listed {
					t.Fatalf("%s (from %d) is neither offered nor dropped with a cause", to, i)
				}
			}
			e := risk.Evaluator{Matcher: graphtest.Facts}.Evaluate(context.Background(), u.Available, u.Conditional, nil, graphtest.Start)
			if len(e.Conditional) != len(u.Conditional) {
				t.Fatal("evaluation lost an update")
			}
			for _, c := range e.Conditional {
				recommended := slices.ContainsFunc(e.Available, func(r configv1.Release) bool { return r.Image == c.Release.Image })
				checktest.Equal(t, c.Conditions[0].Status == "True", recommended, "%+v and available", c.Conditions[0])
			}
		}
	})
}
