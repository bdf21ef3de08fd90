package graphdata_test

import (
	"testing"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

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
