package graphdata_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// TestWhy: each cause, down to the file and line.
func TestWhy(t *testing.T) {
	tree, releases := worked()
	tree.Raw = []graphdata.RawEntry{
		{Line: 3, Version: "1.0.1", Key: graph.MetadataPreviousRemoveRegex, Value: "0[.]0[+]"},
		{Line: 4, Version: "1.1.0", Key: graph.MetadataPreviousAdd, Value: "1.0.1, 1.0.0"},
		{Line: 5, Version: "1.0.1", Key: graph.MetadataPreviousRemove, Value: "*"},
		{Line: 6, Version: "1.0.0", Key: graph.MetadataNextRemove, Value: "1.0.1"},
		{Line: 7, Version: "1.1.0", Key: graph.MetadataPreviousAdd, Value: "1.0.1"},
	}
	for i := range releases {
		switch r := &releases[i]; {
		case r.Version == "1.1.0" && r.Arch == "s390x":
			r.Metadata = map[string]string{graph.MetadataPreviousAdd: "1.0.1", graph.MetadataPreviousRemoveRegex: `\Q0[.]1\E`}
		case r.Version == "1.0.1":
			r.Source = "" // not known
			r.Metadata = map[string]string{graph.MetadataNextRemove: "1.1.0"}
		}
	}
	s := build(t, tree, releases, graphdata.BuildOptions{})
	for _, c := range []struct {
		from, to, arch string
		want           []string
	}{
		{"1.0.0", "1.1.0", "amd64", []string{
			"1.1.0-amd64: Declared by previous",
			"raw/metadata.json:4: Declared by io.openshift.upgrades.graph.previous.add 1.0.1, 1.0.0",
			"blocked-edges/1.1.0.yaml:2: Removed by from ^1[.]0[.]0[+].*$",
			"blocked-edges/1.1.0-R.yaml:2: Conditional by from 1[.]0[.].*: R",
		}},
		{"1.0.1+amd64", "1.1.0+amd64", "amd64", []string{
			"1.1.0-amd64: Declared by previous",
			"raw/metadata.json:4: Declared by io.openshift.upgrades.graph.previous.add 1.0.1, 1.0.0",
			"raw/metadata.json:7: Declared by io.openshift.upgrades.graph.previous.add 1.0.1",
			"1.0.1+amd64: Removed by io.openshift.upgrades.graph.next.remove 1.1.0",
			"blocked-edges/1.1.0-R.yaml:2: Conditional by from 1[.]0[.].*: R",
		}},
		{"1.0.1", "1.1.0", "s390x", []string{
			"1.1.0-s390x: Declared by previous",
			"1.1.0-s390x: Declared by io.openshift.upgrades.graph.previous.add 1.0.1",
			"raw/metadata.json:4: Declared by io.openshift.upgrades.graph.previous.add 1.0.1, 1.0.0",
			"raw/metadata.json:7: Declared by io.openshift.upgrades.graph.previous.add 1.0.1",
			"blocked-edges/1.1.0-R.yaml:2: Conditional by from 1[.]0[.].*: R",
		}},
		{"1.1.0", "1.2.0", "amd64", []string{"1.1.0-amd64: Declared by next"}},
		{"1.0.0", "1.0.1", "amd64", []string{
			"1.0.1+amd64: Declared by previous",
			"raw/metadata.json:3: Removed by io.openshift.upgrades.graph.previous.remove_regex 0[.]0[+]",
			"raw/metadata.json:5: Removed by io.openshift.upgrades.graph.previous.remove *",
			"raw/metadata.json:6: Removed by io.openshift.upgrades.graph.next.remove 1.0.1",
		}},
		{"1.0.0", "1.2.0", "amd64", nil},
		{"1.0.0", "1.1.0", "arm64", nil},
		{"9.0.0", "1.1.0", "amd64", nil},
	} {
		var got []string
		for _, cause := range s.Why(c.from, c.to, c.arch) {
			got = append(got, cause.String())
		}
		checktest.SameIn(t, fmt.Sprintf("%s → %s on %s", c.from, c.to, c.arch), c.want, got)
	}
}

// TestWhyProperties: in both modes, Why says of each update what is served.
func TestWhyProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree, releases := input(t)
		compat := rapid.Bool().Draw(t, "compat")
		s := checktest.Must(graphdata.Build(tree, releases, graphdata.BuildOptions{Compat: compat}))
		for _, arch := range s.Arches() {
			g := s.Graph("candidate-1.1", arch)
			served := updates(g)
			for _, from := range g.Nodes() {
				for _, to := range g.Nodes() {
					pair := [2]string{from.Version.Original(), to.Version.Original()}
					causes := s.Why(pair[0], pair[1], arch)
					has := func(e string) bool {
						return slices.ContainsFunc(causes, func(c graphdata.Cause) bool { return c.Effect == e })
					}
					conditional := has("Conditional") && (compat || !has("Removed"))
					free, ok := served[pair]
					if want := conditional || has("Declared") && !has("Removed"); ok != want || ok && free == conditional {
						t.Fatalf("compat %v: %v is served: %v, without condition: %v, and Why says %v", compat, pair, ok, free, causes)
					}
				}
			}
		}
	})
}

// TestReport: what each cause is about.
func TestReport(t *testing.T) {
	tree := blocked(drop("1.1.0", "1[.]0[.]0"), risk("A", "1.1.0", "1[.]0[.]"), risk("A", "1.1.0", "2[.]"), drop("2.0.0", ".*"), drop("1.2.0", ".*"))
	last := release("1.1.0", "amd64", []string{"1.0.0", "1.0.0", "1.0.1", "1.0.2"}, graph.MetadataPreviousRemove, "1.0.2", graph.MetadataPreviousAdd, "1.0.3,1.0.2", graph.MetadataPreviousRemoveRegex, "3[+]", graph.MetadataNextRemove, "1.2.0", graph.MetadataNextAdd, "1.2.0")
	last.Next = []string{"1.2.0", "1.2.0"}
	releases := []graphdata.Release{release("1.0.0", "amd64", nil), release("1.0.1", "amd64", nil), release("1.0.2", "amd64", nil), release("1.0.3", "amd64", nil), last}
	want := &graphdata.Report{
		Edges: 0, Conditional: 1, Removed: 4,
		Pairs: map[string]int{
			"previous": 3, "next": 1, graph.MetadataPreviousAdd: 2, graph.MetadataNextAdd: 1,
			graph.MetadataPreviousRemove: 1, graph.MetadataPreviousRemoveRegex: 1, graph.MetadataNextRemove: 1,
			"blocked-edges/a.yaml": 1, "blocked-edges/b.yaml": 4,
		},
		UnknownTargets: []string{"blocked-edges/d.yaml", "blocked-edges/e.yaml"},
		Unmatched:      []string{"blocked-edges/c.yaml"},
		Abstract:       []string{"1.2.0+amd64"},
	}
	checktest.Same(t, want, build(t, tree, releases, graphdata.BuildOptions{}).Report())
	want.UnknownTargets, want.Unmatched = nil, nil
	checktest.SameIn(t, "partial", want, build(t, tree, releases, graphdata.BuildOptions{Partial: true}).Report())
	want.Conditional, want.Removed = 4, 1
	delete(want.Pairs, graph.MetadataPreviousRemoveRegex) // a drop undoes it
	checktest.SameIn(t, "compat", want, build(t, tree, releases, graphdata.BuildOptions{Partial: true, Compat: true}).Report())
}
