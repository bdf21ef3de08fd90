package olm_test

import (
	"encoding/base64"
	"encoding/json"
	"testing"

	"github.com/clusterupdate/clusterupdate/olm"
)

// Whatever a bundle holds, its steps are an error or JSON objects, CSV first.
func FuzzBundleSteps(f *testing.F) {
	f.Add([]byte(fullCSV))
	f.Add([]byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}`))
	f.Add([]byte("kind: ClusterServiceVersion\napiVersion: operators.coreos.com/v1alpha1\nmetadata: {name: a.v1}\n"))
	f.Add([]byte("- &a [*a]"))
	f.Add([]byte(`{"kind":1,"metadata":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		value, err := json.Marshal(map[string]string{"data": base64.StdEncoding.EncodeToString(data)})
		if err != nil {
			t.Fatal(err)
		}
		csv := base64.StdEncoding.EncodeToString([]byte(`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"a.v1"}}`))
		for _, props := range [][]olm.Property{
			{{Type: olm.PropertyBundleObject, Value: value}},
			{{Type: olm.PropertyBundleObject, Value: value}, {Type: olm.PropertyBundleObject, Value: json.RawMessage(`{"data":"` + csv + `"}`)}},
		} {
			b, err := olm.NewBundle("a", "a.v1", "1.0.0", props)
			if err != nil {
				t.Fatal(err)
			}
			s := snapshot(nil, nil, sub("a", ""))
			c, err := olm.NewChanges(&s, &olm.Generation{Operators: []olm.Operator{operator(b, "")}})
			if err != nil {
				continue
			}
			if len(c.Steps) == 0 || c.Steps[0].Resource.Kind != "ClusterServiceVersion" {
				t.Fatalf("steps of %q: %v", data, stepTexts(c.Steps))
			}
			for _, s := range c.Steps {
				var object map[string]any
				if err := json.Unmarshal([]byte(s.Resource.Manifest), &object); err != nil {
					t.Errorf("%q gives the manifest %q: %v", data, s.Resource.Manifest, err)
				}
			}
		}
	})
}

// Whatever the annotation of an operator says, it is read or refused by name.
func FuzzInstalledAnnotation(f *testing.F) {
	for _, seed := range []string{`{}`, `{"properties":[{"type":"olm.gvk","value":{"group":"g","version":"v1","kind":"K"}}]}`, `{"properties":[{"type":"olm.constraint","value":{"all":{"constraints":[{}]}}}]}`, `{`, `[]`, `{"properties":[{"value":1}]}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, annotation string) {
		csv := newCSV("a.v1", withAnnotation(olm.AnnotationProperties, annotation))
		in, err := olm.ReadInstalled(ns, []olm.ClusterServiceVersion{csv}, nil, nil)
		if err != nil {
			return
		}
		if len(in.Operators) != 1 || in.Operators[0].Bundle.Name != "a.v1" {
			t.Errorf("%q: %+v", annotation, in)
		}
		if _, _, err := csv.MaxOpenShiftVersion(); err != nil && err.Error() == "" {
			t.Errorf("%q: an error without text", annotation)
		}
	})
}
