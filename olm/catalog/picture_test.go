package catalog_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
)

func TestPicture(t *testing.T) {
	c := contents("a.v1", "a.v2 >a.v1", "a.v3 >a.v2 ~a.v1.5 range=<3.0.0", "a.v1.5", "a.v3 @beta")
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

	for _, tc := range []struct {
		o    catalog.PictureOptions
		want string
	}{
		{catalog.PictureOptions{AllEdges: true}, "a.v3 a.v2 a.v1 a.v1.5: a.v1>a.v3 a.v1>a.v2 a.v2>a.v3 a.v1.5>a.v3"},
		{catalog.PictureOptions{Channels: []string{"beta"}}, "a.v3:"},
		{catalog.PictureOptions{Channels: []string{"x"}}, `error: package "a" has no channel "x"`},
		{catalog.PictureOptions{MaxNodes: 2}, "a.v3 a.v2: a.v2>a.v3 (2 omitted)"},
		{catalog.PictureOptions{MaxNodes: 1, Path: path}, "a.v3 a.v2: a.v2>a.v3 (2 omitted)"},
		{catalog.PictureOptions{MaxNodes: -1}, "error: catalog.PictureOptions: MaxNodes is negative: -1"},
	} {
		checktest.Same(t, tc.want, drawn(c.Package("a"), tc.o))
	}

	bad := checktest.Get(catalog.NewPicture(contents("b.v1", "b.v2").Package("b"), catalog.PictureOptions{}))(t)
	if !strings.Contains(bad.DOT(), "replacement chains") || !strings.Contains(bad.Mermaid(), "replacement chains") {
		t.Errorf("a channel in disorder: %+v", bad)
	}
}

var (
	drawnNode    = regexp.MustCompile(`(?m)^  "(\S+)" \[`)
	drawnEdge    = regexp.MustCompile(`(?m)^  "(\S+)" -> "(\S+)" `)
	drawnOmitted = regexp.MustCompile(`(\d+) operators further`)
)

// drawn lists what a picture shows, or why there is none.
func drawn(p *olm.Package, o catalog.PictureOptions) string {
	picture, err := catalog.NewPicture(p, o)
	if err != nil {
		return "error: " + err.Error()
	}
	dot := picture.DOT()
	var b strings.Builder
	for _, m := range drawnNode.FindAllStringSubmatch(dot, -1) {
		b.WriteString(" " + m[1])
	}
	b.WriteString(":")
	for _, m := range drawnEdge.FindAllStringSubmatch(dot, -1) {
		b.WriteString(" " + m[1] + ">" + m[2])
	}
	if m := drawnOmitted.FindStringSubmatch(dot); m != nil {
		b.WriteString(" (" + m[1] + " omitted)")
	}
	return b.String()[1:]
}

// Every package can be drawn.
func TestRealPictures(t *testing.T) {
	for _, p := range community(t).Packages() {
		for _, all := range []bool{false, true} {
			nodes, edges, _ := strings.Cut(drawn(p, catalog.PictureOptions{AllEdges: all}), ":")
			names := map[string]bool{}
			for _, name := range strings.Fields(nodes) {
				names[name] = true
			}
			if len(names) > 40 || len(names) != len(strings.Fields(nodes)) {
				t.Errorf("%s: nodes %s", p.Name, nodes)
			}
			edges, _, _ = strings.Cut(edges, " (")
			for _, e := range strings.Fields(edges) {
				if from, to, ok := strings.Cut(e, ">"); !ok || !names[from] || !names[to] || from == to {
					t.Errorf("%s: edge %s", p.Name, e)
				}
			}
		}
	}
}
