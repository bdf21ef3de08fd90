package olm_test

import (
	"testing"

	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

// Whatever the annotation of an operator says, it is read or refused by name.
func FuzzInstalledAnnotation(f *testing.F) {
	for _, seed := range []string{`{}`, `{"properties":[{"type":"olm.gvk","value":{"group":"g","version":"v1","kind":"K"}}]}`, `{"properties":[{"type":"olm.constraint","value":{"all":{"constraints":[{}]}}}]}`, `{`, `[]`, `{"properties":[{"value":1}]}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, annotation string) {
		csv := newCSV("a.v1", withAnnotation(olmapi.AnnotationProperties, annotation))
		in, _, err := olm.ReadInstalled(ns, []olmapi.ClusterServiceVersion{csv}, nil, nil)
		if err != nil {
			return
		}
		if len(in) != 1 || in[0].Name != "a.v1" {
			t.Errorf("%q: %+v", annotation, in)
		}
		if _, _, err := olm.MaxOpenShiftVersion(&csv); err != nil && err.Error() == "" {
			t.Errorf("%q: an error without text", annotation)
		}
	})
}
