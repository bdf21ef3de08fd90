package sources

import (
	"encoding/json"
	"testing"
	"testing/fstest"

	"github.com/clusterupdate/clusterupdate/olm/install/sources/sourcestest"
)

// Whatever the files of a bundle hold, they are refused, or are objects that can be written
// as JSON, of which exactly one is the operator.
func FuzzReadBundle(f *testing.F) {
	files := sourcestest.Bundle("mesh.v1")
	f.Add(files["metadata/annotations.yaml"], files["manifests/csv.yaml"], "registry+v1", "manifests/")
	f.Add("annotations: {}", `{"kind":"ClusterServiceVersion","apiVersion":"v1","metadata":{"name":"mesh.v1"}}`, "", "/a/../b")
	f.Add("a: &a [*a]", "x: &x {<<: *x}", "registry+v1", "")
	f.Fuzz(func(t *testing.T, annotations, csv, format, dir string) {
		l, err := layoutOf(map[string]string{labelMediaType: format, labelManifests: dir})
		if err != nil {
			return
		}
		fsys := fstest.MapFS{
			l.metadata + "/annotations.yaml": {Data: []byte(annotations)},
			l.manifests + "/csv.yaml":        {Data: []byte(csv)},
		}
		objects, size, err := readBundle(fsys, l, "mesh.v1", 2)
		if err != nil {
			return
		}
		operators := 0
		for _, u := range objects {
			if u.GetKind() == kindCSV && u.GetName() == "mesh.v1" {
				operators++
			}
			if _, err := json.Marshal(u.Object); err != nil {
				t.Error(err)
			}
		}
		if operators != 1 || size < int64(len(csv)) {
			t.Errorf("%d operators, %d bytes", operators, size)
		}
	})
}
