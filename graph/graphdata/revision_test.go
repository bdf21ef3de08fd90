package graphdata_test

import (
	"slices"
	"testing"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// TestRevision: a revision stays whatever the order of the input, and changes with
// anything that is served.
func TestRevision(t *testing.T) {
	tree, releases := worked()
	s := build(t, tree, releases, graphdata.BuildOptions{})
	first := s.Revision()
	if len(first) != 32 || s.Nodes() != 4 {
		t.Errorf("%q, %d nodes", first, s.Nodes())
	}
	tree, releases = worked()
	slices.Reverse(releases)
	slices.Reverse(tree.Channels)
	checktest.Equal(t, first, build(t, tree, releases, graphdata.BuildOptions{}).Revision(), "in another order")
	for name, change := range map[string]func(*graphdata.Tree, []graphdata.Release){
		"image":       func(_ *graphdata.Tree, r []graphdata.Release) { r[0].Image = "other" },
		"metadata":    func(_ *graphdata.Tree, r []graphdata.Release) { r[0].Metadata["a"] = "b" },
		"predecessor": func(_ *graphdata.Tree, r []graphdata.Release) { r[1].Previous = nil },
		"version":     func(_ *graphdata.Tree, r []graphdata.Release) { r[0].Version = "1.0.0-rc.0" },
		"arch":        func(_ *graphdata.Tree, r []graphdata.Release) { r[3].Arch = "arm64" },
		"channel":     func(tree *graphdata.Tree, _ []graphdata.Release) { tree.Channels[0].Name = "stable-1.1" },
		"drop":        func(tree *graphdata.Tree, _ []graphdata.Release) { tree.Drops = nil },
		"risk":        func(tree *graphdata.Tree, _ []graphdata.Release) { tree.Risks[0].Risk.Message = "other" },
	} {
		tree, releases := worked()
		change(tree, releases)
		if build(t, tree, releases, graphdata.BuildOptions{}).Revision() == first {
			t.Errorf("%s: one revision", name)
		}
	}
}
