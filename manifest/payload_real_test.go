package manifest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
)

func edges(g *manifest.Graph) (nodes, withTasks, edges int) {
	for _, n := range g.Nodes {
		if len(n.Tasks) > 0 {
			withTasks++
		}
		edges += len(n.Out)
	}
	return len(g.Nodes), withTasks, edges
}

// TestLoadRealPayloads holds the figures that the cluster-version operator
// gives for the same payloads.
func TestLoadRealPayloads(t *testing.T) {
	tests := []struct {
		dir, featureSet               string
		included, excluded, operators int
		hash                          string
		updating, flat                [3]int
	}{
		{"payload-4.17.30", "", 794, 106, 33, "seB0BzE37qY=", [3]int{69, 63, 97}, [3]int{65, 64, 64}},
		{"payload-4.18.15", "", 806, 124, 34, "QYbuCLFiWFk=", [3]int{78, 74, 115}, [3]int{76, 75, 75}},
		{"payload-4.18.15", "TechPreviewNoUpgrade", 827, 103, 34, "qJfCJwq1M-g=", [3]int{80, 76, 119}, [3]int{78, 77, 77}},
	}
	for _, tt := range tests {
		t.Run(tt.dir+tt.featureSet, func(t *testing.T) {
			f := manifest.DefaultFilter()
			f.FeatureSet = &tt.featureSet
			p := checktest.Get(manifest.Load(t.Context(), os.DirFS(filepath.Join(testdata.Dir(t), tt.dir)),
				manifest.LoadOptions{Image: "example.com/release@sha256:abc", Filter: f}))(t)
			if len(p.Manifests) != tt.included || len(p.Excluded) != tt.excluded || p.Hash != tt.hash {
				t.Errorf("%d included, %d excluded, hash %s", len(p.Manifests), len(p.Excluded), p.Hash)
			}
			checktest.Equal(t, tt.operators, len(p.Operators()), "operators")
			for _, c := range []struct {
				graph func([]*manifest.Task) *manifest.Graph
				want  [3]int
			}{{manifest.UpdateGraph, tt.updating}, {manifest.FlatGraph, tt.flat}} {
				g := c.graph(p.Tasks())
				checktest.Good(t, g.Validate())
				n, w, e := edges(g)
				checktest.Equal(t, c.want, [3]int{n, w, e}, "nodes, with tasks, edges")
			}
		})
	}
}
