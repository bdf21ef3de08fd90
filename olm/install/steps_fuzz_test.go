package install_test

import (
	"encoding/base64"
	"encoding/json"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
	"github.com/clusterupdate/clusterupdate/olm/install"
)

// Whatever a bundle holds, its steps are an error or JSON objects, CSV first.
func FuzzBundleSteps(f *testing.F) {
	f.Add([]byte(fullCSV))
	f.Add([]byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}`))
	f.Add([]byte("kind: ClusterServiceVersion\napiVersion: operators.coreos.com/v1alpha1\nmetadata: {name: a.v1}\n"))
	f.Add([]byte("- &a [*a]"))
	f.Add([]byte(`{"kind":1,"metadata":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		value := checktest.Get(json.Marshal(map[string]string{"data": base64.StdEncoding.EncodeToString(data)}))(t)
		csv := base64.StdEncoding.EncodeToString([]byte(`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"a.v1"}}`))
		for _, props := range [][]olm.Property{
			{{Type: olm.PropertyBundleObject, Value: value}},
			{{Type: olm.PropertyBundleObject, Value: value}, {Type: olm.PropertyBundleObject, Value: json.RawMessage(`{"data":"` + csv + `"}`)}},
		} {
			b := checktest.Get(olm.NewBundle("a", "a.v1", "1.0.0", props))(t)
			s := snapshot(nil, nil, sub("a", ""))
			c, err := install.NewChanges(&s, &olm.Generation{Operators: []olm.Operator{operator(b, "")}})
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
