package catalog_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
)

func TestPicture(t *testing.T) {
	c := contents(t, "a.v1", "a.v2 >a.v1", "a.v3 >a.v2 ~a.v1.5 range=<3.0.0", "a.v1.5", "a.v3 @beta")
	path := checktest.Get(c.Path("a", "stable", olm.Origin{Name: "a.v2"}))(t)
	p := checktest.Get(catalog.NewPicture(c.Package("a"), catalog.PictureOptions{Path: path}))(t)
	const dot = `digraph "a" {
  rankdir=LR;
  node [shape=box];
  "a.v3" [label="a.v3 (stable, beta)", peripheries=2, penwidth=2];
  "a.v2" [label="a.v2", penwidth=2];
  "a.v1" [label="a.v1"];
  "a.v1.5" [label="a.v1.5", color=grey];
  "a.v1" -> "a.v3" [label="stable", style=dotted];
  "a.v2" -> "a.v3" [label="stable", penwidth=2];
  "a.v1.5" -> "a.v3" [label="stable", style=dashed];
}
`
	checktest.Same(t, dot, p.DOT())
	const mermaid = `flowchart LR
  n0["a.v3 (stable, beta)"]
  style n0 stroke-width:3px
  n1["a.v2"]
  style n1 stroke-width:3px
  n2["a.v1"]
  n3["a.v1.5"]
  n2 -.->|"stable"| n0
  n1 ==>|"stable"| n0
  n3 -.->|"stable"| n0
`
	checktest.Same(t, mermaid, p.Mermaid())

	edges := func(o catalog.PictureOptions) string {
		p, err := catalog.NewPicture(c.Package("a"), o)
		if err != nil {
			return "error: " + err.Error()
		}
		var out []string
		for _, e := range p.Edges {
			out = append(out, e.From+">"+e.To)
		}
		return fmt.Sprintf("%d nodes, %d omitted: %s", len(p.Nodes), p.Omitted, strings.Join(out, " "))
	}
	for _, tc := range []struct {
		o    catalog.PictureOptions
		want string
	}{
		{catalog.PictureOptions{AllEdges: true}, "4 nodes, 0 omitted: a.v1>a.v3 a.v1>a.v2 a.v2>a.v3 a.v1.5>a.v3"},
		{catalog.PictureOptions{Channels: []string{"beta"}}, "1 nodes, 0 omitted: "},
		{catalog.PictureOptions{Channels: []string{"x"}}, `error: package "a" has no channel "x"`},
		{catalog.PictureOptions{MaxNodes: 2}, "2 nodes, 2 omitted: a.v2>a.v3"},
		{catalog.PictureOptions{MaxNodes: -1}, "error: catalog.PictureOptions: MaxNodes is negative: -1"},
		{catalog.PictureOptions{MaxNodes: 1, AllNodes: true}, "4 nodes, 0 omitted: a.v1>a.v3 a.v2>a.v3 a.v1.5>a.v3"},
	} {
		checktest.Same(t, tc.want, edges(tc.o))
	}

	bad := checktest.Get(catalog.NewPicture(contents(t, "b.v1", "b.v2").Package("b"), catalog.PictureOptions{}))(t)
	if len(bad.Faults) != 1 || len(bad.Nodes) != 2 || !strings.Contains(bad.DOT(), "replacement chains") || !strings.Contains(bad.Mermaid(), "replacement chains") {
		t.Errorf("a channel in disorder: %+v", bad)
	}
}
