package graphdata_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
)

// realTree is that of the maintainers.
func realTree(tb testing.TB) fs.FS {
	return os.DirFS(filepath.Join(testdata.Dir(tb), "graph-data"))
}

// counts are what a tree holds.
type counts struct {
	Channels, Internal, Drops, Risks, Raw, Suggestions, Entries   int
	Feeders, Tombstoned, Expressions, Targets, Names, PromQL, All int
}

func count(tree *graphdata.Tree) counts {
	c := counts{Channels: len(tree.Channels), Internal: len(tree.Internal), Drops: len(tree.Drops), Risks: len(tree.Risks), Raw: len(tree.Raw), Suggestions: len(tree.Suggestions)}
	for _, list := range [][]graphdata.Channel{tree.Channels, tree.Internal} {
		for _, ch := range list {
			c.Entries += len(ch.Versions)
			if ch.Feeder != nil {
				c.Feeders++
			}
			if len(ch.Tombstones) > 0 {
				c.Tombstoned++
			}
		}
	}
	from, to, names := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, list := range [][]graphdata.BlockedEdge{tree.Drops, tree.Risks} {
		for _, b := range list {
			from[b.From], to[b.To] = true, true
			if b.Risk == nil {
				continue
			}
			names[b.Risk.Name] = true
			for _, r := range b.Risk.MatchingRules {
				if c.All++; r.Type == "PromQL" {
					c.PromQL++
				}
			}
		}
	}
	c.Expressions, c.Targets, c.Names = len(from), len(to), len(names)
	return c
}

// TestRealTree: the whole tree loads, strictly and as an update service loads it,
// and nothing in it is a problem.
func TestRealTree(t *testing.T) {
	want := counts{Channels: 76, Internal: 3, Drops: 116, Risks: 1601, Raw: 4, Suggestions: 21, Entries: 11956,
		Feeders: 66, Tombstoned: 7, Expressions: 109, Targets: 660, Names: 124, PromQL: 1023, All: 1601}
	for _, compat := range []bool{false, true} {
		tree, err := graphdata.Load(t.Context(), realTree(t), graphdata.LoadOptions{Compat: compat, InternalChannels: true})
		checktest.OK(t, err)
		for _, p := range tree.Problems {
			t.Errorf("compat %v: %v", compat, p)
		}
		checktest.SameIn(t, fmt.Sprintf("compat %v", compat), want, count(tree))
		checktest.Equal(t, "1.1.0", tree.SchemaVersion, "schema")
	}
}

func BenchmarkLoad(b *testing.B) {
	tree := realTree(b)
	b.ReportAllocs()
	for b.Loop() {
		checktest.Must(graphdata.Load(b.Context(), tree, graphdata.LoadOptions{InternalChannels: true}))
	}
}
