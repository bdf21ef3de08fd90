package catalog_test

import (
	"testing"

	"github.com/clusterupdate/clusterupdate/olm/catalog"
)

// Every package can be drawn.
func TestRealPictures(t *testing.T) {
	for _, p := range community(t).Packages() {
		for _, all := range []bool{false, true} {
			picture, err := catalog.NewPicture(p, catalog.PictureOptions{AllEdges: all})
			if err != nil {
				t.Fatalf("%s: %v", p.Name, err)
			}
			names := map[string]bool{}
			for _, n := range picture.Nodes {
				names[n.Name] = true
			}
			if len(picture.Nodes) > 40 || len(names) != len(picture.Nodes) {
				t.Errorf("%s: %d nodes, %d names", p.Name, len(picture.Nodes), len(names))
			}
			for _, e := range picture.Edges {
				if !names[e.From] || !names[e.To] || e.From == e.To || e.Kind == "" {
					t.Errorf("%s: edge %+v", p.Name, e)
				}
			}
		}
	}
}
