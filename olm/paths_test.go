package olm_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/olm"
)

func pathText(steps []olm.PathStep, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	var out []string
	for i, s := range steps {
		if i > 0 && steps[i-1].To != s.From {
			return fmt.Sprintf("step %d begins at %s, not at %s", i, s.From, steps[i-1].To)
		}
		if s.Entry == nil || s.Entry.Name != s.To || s.Version != s.Entry.Bundle.RawVersion {
			return fmt.Sprintf("step %d: %+v", i, s)
		}
		out = append(out, fmt.Sprintf("%s>%s %s@%s", s.From, s.To, s.Edge, s.Channel))
	}
	return strings.Join(out, ", ")
}

func at(v string) *semver.Version {
	p := semver.MustParse(v)
	return &p
}

func TestPath(t *testing.T) {
	c := contents(t,
		"a.v1", "a.v2 >a.v1", "a.v3 >a.v2 ~a.v0", "a.v4 >a.v3 range=>=2.5.0_<3.0.0",
		"a.v5 @beta >a.v4", "a.v4 @beta >a.v3", "a.v3 @beta",
		"b.v1", "b.v2",
		"d.v1", "d.v2 >d.v1", "d.v3 >d.v2 deprecated range=<3.0.0")
	for _, tc := range []struct {
		name, pkg, channel string
		from               olm.Origin
		want               string
	}{
		{"replaces", "a", "stable", olm.Origin{Name: "a.v1"}, "a.v1>a.v2 replaces@stable, a.v2>a.v3 replaces@stable, a.v3>a.v4 replaces@stable"},
		{"at the head", "a", "stable", olm.Origin{Name: "a.v4"}, ""},
		{"skips", "a", "stable", olm.Origin{Name: "a.v0"}, "a.v0>a.v3 skips@stable, a.v3>a.v4 replaces@stable"},
		{"range, operator unknown", "a", "stable", olm.Origin{Name: "x", Version: at("2.6.0")}, "x>a.v4 skipRange@stable"},
		{"unknown, no version", "a", "stable", olm.Origin{Name: "x"}, ""},
		{"any channel, the default first", "a", "", olm.Origin{Name: "a.v3"}, "a.v3>a.v4 replaces@stable, a.v4>a.v5 replaces@beta"},
		{"deprecated is passed over", "d", "stable", olm.Origin{Name: "d.v1"}, "d.v1>d.v2 replaces@stable"},
		{"no package", "x", "", olm.Origin{Name: "a.v1"}, `error: the catalog has no package "x"`},
		{"no channel", "a", "x", olm.Origin{Name: "a.v1"}, `error: package "a" has no channel "x"`},
		{"disorder", "b", "stable", olm.Origin{Name: "b.v1"}, `error: a unique replacement chain within a channel is required to determine the relative order between channel entries, but 2 replacement chains were found in channel "stable" of package "b": b.v1, b.v2`},
		{"all in disorder", "b", "", olm.Origin{Name: "b.v1"}, `error: a unique replacement chain within a channel is required to determine the relative order between channel entries, but 2 replacement chains were found in channel "stable" of package "b": b.v1, b.v2`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, pathText(c.Path(tc.pkg, tc.channel, tc.from))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPathTo(t *testing.T) {
	c := contents(t, "a.v1", "a.v2 >a.v1", "a.v3 >a.v2", "a.v4 >a.v3 range=>=1.0.0_<2.0.0", "a.v5 >a.v4 deprecated range=<5.0.0")
	for _, tc := range []struct{ name, to, want string }{
		{"the shortest", "a.v4", "a.v1>a.v4 skipRange@stable"},
		{"not the one that an update takes", "a.v3", "a.v1>a.v2 replaces@stable, a.v2>a.v3 replaces@stable"},
		{"deprecated", "a.v5", "error: package a: no update path from a.v1 in channels [stable]: it leads to a.v4 at most"},
		{"back", "a.v1", "error: package a: no update path from a.v1 in channels [stable]: it leads to a.v4 at most"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := pathText(c.PathTo("a", "stable", olm.Origin{Name: "a.v1"}, func(e *olm.Entry) bool { return e.Name == tc.to }))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	_, err := c.PathTo("a", "stable", olm.Origin{Name: "a.v4"}, func(*olm.Entry) bool { return true })
	var none *olm.PathError
	if !errors.As(err, &none) || len(none.Reached) != 0 || !strings.Contains(err.Error(), "nothing there replaces it") {
		t.Errorf("from the head: %v", err)
	}
	none.To = "a.v9"
	if !strings.Contains(err.Error(), "no update path from a.v4 to a.v9 in channels [stable]") {
		t.Errorf("with an end: %v", err)
	}
	if edge := c.Package("a").Channel("stable").Entry("a.v2").Edge("b.v1", nil); edge != "" {
		t.Errorf("a.v2 updates b.v1 by %q", edge)
	}
}

func TestPicture(t *testing.T) {
	c := contents(t, "a.v1", "a.v2 >a.v1", "a.v3 >a.v2 ~a.v1.5 range=<3.0.0", "a.v1.5", "a.v3 @beta")
	path, err := c.Path("a", "stable", olm.Origin{Name: "a.v2"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Package("a").Picture(olm.PictureOptions{Path: path})
	if err != nil {
		t.Fatal(err)
	}
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
	if diff := cmp.Diff(dot, p.DOT()); diff != "" {
		t.Error(diff)
	}
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
	if diff := cmp.Diff(mermaid, p.Mermaid()); diff != "" {
		t.Error(diff)
	}

	edges := func(o olm.PictureOptions) string {
		p, err := c.Package("a").Picture(o)
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
		o    olm.PictureOptions
		want string
	}{
		{olm.PictureOptions{AllEdges: true}, "4 nodes, 0 omitted: a.v1>a.v3 a.v1>a.v2 a.v2>a.v3 a.v1.5>a.v3"},
		{olm.PictureOptions{Channels: []string{"beta"}}, "1 nodes, 0 omitted: "},
		{olm.PictureOptions{Channels: []string{"x"}}, `error: package "a" has no channel "x"`},
		{olm.PictureOptions{MaxNodes: 2}, "2 nodes, 2 omitted: a.v2>a.v3"},
		{olm.PictureOptions{MaxNodes: -1}, "4 nodes, 0 omitted: a.v1>a.v3 a.v2>a.v3 a.v1.5>a.v3"},
	} {
		if diff := cmp.Diff(tc.want, edges(tc.o)); diff != "" {
			t.Error(diff)
		}
	}

	bad, err := contents(t, "b.v1", "b.v2").Package("b").Picture(olm.PictureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(bad.Faults) != 1 || len(bad.Nodes) != 2 || !strings.Contains(bad.DOT(), "replacement chains") || !strings.Contains(bad.Mermaid(), "replacement chains") {
		t.Errorf("a channel in disorder: %+v", bad)
	}
}
