package path_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"strings"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"
	"github.com/clusterupdate/clusterupdate/graph/path"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestPicture(t *testing.T) {
	n := network(t, path.NetworkOptions{Matcher: graphtest.Facts}, channel("c", graphtest.Sketch(t, `1.0.0>1.1.0 1.1.0>1.2.0:T 1.1.0>1.3.0:CEL 1.0.0>1.3.0:U 0.9.0>1.0.0 2.0.0`, nil)))
	shortest := checktest.Must(n.ShortestPath("1.0.0", "1.1.0", path.Policy{}))
	p := checktest.Must(n.Picture(path.PictureOptions{From: "1.0.0", AllEdges: true, Path: shortest}))
	const dot = `digraph updates {
  rankdir=LR;
  node [shape=box];
  "1.0.0" [penwidth=2];
  "1.1.0" [penwidth=2];
  "1.2.0";
  "1.3.0";
  "1.0.0" -> "1.3.0" [style=dashed, color=orange, label="U (Unknown)"];
  "1.0.0" -> "1.1.0" [penwidth=2];
  "1.1.0" -> "1.3.0" [style=dotted, color=orange, label="UnrecognizedRules"];
  "1.1.0" -> "1.2.0" [style=dashed, color=red, label="T (NotRecommended)"];
}
`
	checktest.Same(t, dot, p.DOT())
	const mermaid = `flowchart LR
  v0["1.0.0"]
  style v0 stroke-width:3px
  v1["1.1.0"]
  style v1 stroke-width:3px
  v2["1.2.0"]
  v3["1.3.0"]
  v0 -.->|"U (Unknown)"| v3
  v0 ==> v1
  v1 -.->|"UnrecognizedRules"| v3
  v1 -.->|"T (NotRecommended)"| v2
`
	checktest.Same(t, mermaid, p.Mermaid())
	few, err := n.Picture(path.PictureOptions{MaxNodes: 2})
	if err != nil || few.Omitted != n.Len()-2 || !strings.Contains(few.Mermaid(), fmt.Sprintf("  %%%% %d lower releases are not shown\n", few.Omitted)) {
		t.Error(few, err)
	}
	checktest.ErrorIs(t, graph.ErrVersionNotFound, checktest.Err(n.Picture(path.PictureOptions{To: "9.9.9"})))
	var again path.Picture
	text, err := json.Marshal(p)
	if err != nil || json.Unmarshal(text, &again) != nil || again.DOT() != dot {
		t.Errorf("%s %v", text, err)
	}
	shown := func(o path.PictureOptions) string {
		p := checktest.Must(n.Picture(o))
		var versions []string
		for _, n := range p.Nodes {
			versions = append(versions, n.Release.Version)
		}
		return strings.Join(versions, " ")
	}
	for want, o := range map[string]path.PictureOptions{
		"0.9.0 1.0.0 1.1.0 1.2.0 1.3.0 2.0.0": {},
		"1.3.0 2.0.0":                         {MaxNodes: 2},
		"1.0.0 1.1.0 2.0.0":                   {MaxNodes: 3, Path: shortest},
		"1.0.0 1.1.0":                         {From: "1.0.0"},
		"0.9.0 1.0.0":                         {To: "1.0.0"},
		"1.0.0 1.1.0 1.2.0":                   {From: "1.0.0", To: "1.2.0", AllEdges: true},
		"1.1.0":                               {Policy: path.Policy{Minors: []string{"1.1"}}},
	} {
		checktest.Equal(t, want, shown(o), "%+v", o)
	}
	if p, err := n.Picture(path.PictureOptions{MaxNodes: 2}); err != nil || p.Omitted != 4 || !strings.Contains(p.DOT(), "4 lower releases are not shown") {
		t.Error(p, err)
	}
}

// What a network holds, what a release can be updated to, and how it gets to
// another one: as text. All of them are JSON, too.
func ExampleNetwork_Answer() {
	g, err := graph.DecodeBytes(sample.Graph(), graph.DecodeOptions{})
	if err != nil {
		log.Fatal(err)
	}
	network, err := path.NewNetwork(context.Background(), path.NetworkOptions{}, path.ChannelGraph{Channel: sample.Channel, Arch: "amd64", Graph: g})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(network.Summary(), "\n")
	updates, err := network.Updates(context.Background(), "4.20.4", nil, time.Time{}, path.Policy{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(updates, "\n")
	answer, err := network.Answer(path.ExplainQuery{From: "4.20.3", To: "4.21.0", Policy: path.Policy{Edges: path.AnyEdge}}, 2, path.Shortest)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(answer)
	// Output:
	// Channels: stable-4.21 (amd64)
	// Releases: 4, from 4.20.3 to 4.21.1
	// Heads: 4.21.1
	//
	// 4.20.4 (amd64)
	// Offered channels: candidate-4.20, fast-4.20, stable-4.20, stable-4.21
	//
	// Updates in stable-4.21:
	//   4.21.1
	//   4.21.0  Recommended=False RouterReload: Requests may fail while routers reload their configuration. Version 4.21.1 corrects this. https://docs.example/known-issues/router-reload
	//
	// Reachable: 1 releases in up to 1 hops; the highest is 4.21.1 in 1.
	//
	// 4.20.3 can be updated to 4.21.0: the policy allows the update; it is conditional: risk RouterReload may apply: Requests may fail while routers reload their configuration. Version 4.21.1 corrects this. https://docs.example/known-issues/router-reload
	//
	// Path 1: 1 hop
	//   1. 4.20.3 -> 4.21.0  in stable-4.21  Unknown
	//        risk RouterReload: Applies=Unknown  Requests may fail while routers reload their configuration. Version 4.21.1 corrects this. https://docs.example/known-issues/router-reload
	//
	// Path 2: 2 hops
	//   1. 4.20.3 -> 4.20.4  in stable-4.21
	//   2. 4.20.4 -> 4.21.0  in stable-4.21  Unknown
	//        risk RouterReload: Applies=Unknown  Requests may fail while routers reload their configuration. Version 4.21.1 corrects this. https://docs.example/known-issues/router-reload
	//   Risks are judged by what is known today; later hops happen on another cluster.
}
