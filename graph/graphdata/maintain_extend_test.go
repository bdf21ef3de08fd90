package graphdata_test

import (
	"testing"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/graphdata/maintain"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// with changes a blocked edge.
func with(b graphdata.BlockedEdge, change func(*graphdata.BlockedEdge)) graphdata.BlockedEdge {
	change(&b)
	return b
}

func TestExtend(t *testing.T) {
	fixed := func(version string) func(*graphdata.BlockedEdge) {
		return func(b *graphdata.BlockedEdge) { b.FixedIn = version }
	}
	file := func(name string) func(*graphdata.BlockedEdge) {
		return func(b *graphdata.BlockedEdge) { b.File = name }
	}
	extended := func(b graphdata.BlockedEdge) graphdata.BlockedEdge {
		b.Line = 0
		return b
	}
	const from = "1[.]0[.].*"
	for _, c := range []struct {
		name    string
		version string
		edges   []graphdata.BlockedEdge
		want    []graphdata.BlockedEdge
	}{
		{"nothing", "1.1.2", nil, nil},
		{"no version", "1.1", []graphdata.BlockedEdge{risk("A", "1.1.1", from)}, nil},
		{"the first of its minor", "1.2.0", []graphdata.BlockedEdge{risk("A", "1.1.1", from)}, nil},
		{"not of its predecessor", "1.1.2", []graphdata.BlockedEdge{risk("A", "1.1.0", from)}, nil},
		{"a pre-release is a predecessor", "1.1.0-rc.1", []graphdata.BlockedEdge{risk("A", "1.1.0-rc.0", from)}, []graphdata.BlockedEdge{extended(risk("A", "1.1.0-rc.1", from))}},
		{"open", "1.1.2", []graphdata.BlockedEdge{risk("B", "1.1.1", from), risk("A", "1.1.1", from)}, []graphdata.BlockedEdge{extended(risk("A", "1.1.2", from)), extended(risk("B", "1.1.2", from))}},
		{"fixed later", "1.1.2", []graphdata.BlockedEdge{with(risk("A", "1.1.1", from), fixed("1.1.3"))}, []graphdata.BlockedEdge{extended(with(risk("A", "1.1.2", from), fixed("1.1.3")))}},
		{"fixed in it", "1.1.2", []graphdata.BlockedEdge{with(risk("A", "1.1.1", from), fixed("1.1.2"))}, nil},
		{"fixed before", "1.1.2", []graphdata.BlockedEdge{with(risk("A", "1.1.1", from), fixed("1.1.2-rc.0"))}, nil},
		{"there already", "1.1.2", []graphdata.BlockedEdge{risk("A", "1.1.1", from), risk("A", "1.1.2", "other")}, nil},
		{"a drop", "1.1.2", []graphdata.BlockedEdge{drop("1.1.1", from)}, []graphdata.BlockedEdge{extended(drop("1.1.2", from))}},
		{"a drop, there already", "1.1.2", []graphdata.BlockedEdge{drop("1.1.1", from), drop("1.1.2", from)}, nil},
		{"another drop", "1.1.2", []graphdata.BlockedEdge{drop("1.1.1", from), drop("1.1.2", "other")}, []graphdata.BlockedEdge{extended(with(drop("1.1.2", from), file("blocked-edges/1.1.2-2.yaml")))}},
		{"other names of files", "1.1.2", []graphdata.BlockedEdge{with(risk("A", "1.1.1", from), file("blocked-edges/slow.yaml")), with(risk("A", "1.1.1", "x"), file("blocked-edges/slow2.yaml"))},
			[]graphdata.BlockedEdge{extended(risk("A", "1.1.2", from)), extended(with(risk("A", "1.1.2", "x"), file("blocked-edges/1.1.2-A-2.yaml")))}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := &graphdata.Tree{
				Channels: []graphdata.Channel{{Name: "candidate-1.1", Versions: entries("1.1.0-rc.0", "1.1.0", "x", "1.0.9")}},
				Internal: []graphdata.Channel{{Name: "candidate", Versions: entries("1.1.1", "1.1.3")}},
			}
			addEdges(tree, c.edges)
			got := maintain.Extend(tree, c.version)
			checktest.Same(t, c.want, got)
			addEdges(tree, got)
			if again := maintain.Extend(tree, c.version); len(again) > 0 {
				t.Errorf("with the proposals in the tree it still proposes %v", again)
			}
		})
	}
}

func addEdges(tree *graphdata.Tree, edges []graphdata.BlockedEdge) {
	for _, b := range edges {
		if b.Risk != nil {
			tree.Risks = append(tree.Risks, b)
		} else {
			tree.Drops = append(tree.Drops, b)
		}
	}
}

// TestExtendIsACopy: a proposal can be edited.
func TestExtendIsACopy(t *testing.T) {
	tree := &graphdata.Tree{Channels: []graphdata.Channel{{Versions: entries("1.1.1")}}, Risks: []graphdata.BlockedEdge{risk("A", "1.1.1", ".*")}}
	maintain.Extend(tree, "1.1.2")[0].Risk.Message = "changed"
	checktest.Equal(t, "A.", tree.Risks[0].Risk.Message, "the tree says")
}
