package clusterversion_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func requestOf(t testing.TB, desired string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	if desired == "" {
		return u
	}
	var value any
	checktest.OK(t, yaml.Unmarshal([]byte(desired), &value))
	u.Object["spec"].(map[string]any)["desiredUpdate"] = value
	return u
}

func TestNotUnderstood(t *testing.T) {
	const unknown = ": Forbidden: not understood by this version"
	for name, tt := range map[string]struct {
		desired string
		want    []string
	}{
		"no request":           {"", nil},
		"null":                 {"null", nil},
		"empty":                {"{}", nil},
		"all that is known":    {"{architecture: Multi, version: 4.19.1, image: i, force: true, acceptRisks: [{name: A}], mode: ''}", nil},
		"preflight":            {"{version: 4.19.1, mode: Preflight}", nil},
		"another mode":         {"{version: 4.19.1, mode: DryRun}", []string{"spec.desiredUpdate.mode" + unknown}},
		"mode in another case": {"{version: 4.19.1, Mode: Preflight}", []string{"spec.desiredUpdate.Mode" + unknown}},
		"another architecture": {"{version: 4.19.1, architecture: arm64}", []string{"spec.desiredUpdate.architecture" + unknown}},
		"unknown fields":       {"{version: 4.19.1, window: x, after: {at: 1}}", []string{"spec.desiredUpdate.after" + unknown, "spec.desiredUpdate.window" + unknown}},
		"unknown and null":     {"{version: 4.19.1, window: null}", []string{"spec.desiredUpdate.window" + unknown}},
		"unknown in a list":    {"{version: 4.19.1, acceptRisks: [{name: A}, {name: B, until: x}]}", []string{"spec.desiredUpdate.acceptRisks[1].until" + unknown}},
		"all kinds":            {"{mode: Preflight, architecture: s390x, x: 1}", []string{"spec.desiredUpdate.architecture" + unknown, "spec.desiredUpdate.x" + unknown}},
		"control characters":   {`{"a\u001b[1mb": 1}`, []string{`spec.desiredUpdate."a\x1b[1mb"` + unknown}},
		"long name":            {"{" + strings.Repeat("n", 500) + ": 1}", []string{"spec.desiredUpdate." + strings.Repeat("n", 80) + "... (420 more bytes)" + unknown}},
	} {
		t.Run(name, func(t *testing.T) {
			cv := requestOf(t, tt.desired)
			before := cv.DeepCopy()
			var got []string
			for _, err := range clusterversion.NotUnderstood(cv) {
				got = append(got, err.Error())
			}
			checktest.Same(t, tt.want, got)
			if diff := cmp.Diff(before.Object, cv.Object); diff != "" {
				t.Errorf("the object was changed: %s", diff)
			}
		})
	}
}

// TestNotUnderstoodTypes: what is not an object, or has a field of another type, is not
// understood either, and many faults are cut.
func TestNotUnderstoodTypes(t *testing.T) {
	for _, desired := range []string{"4.19.1", "[]", "{version: 4}", "{force: yes please}", "{acceptRisks: A}"} {
		faults := clusterversion.NotUnderstood(requestOf(t, desired))
		if len(faults) != 1 || !strings.HasPrefix(faults[0].Error(), "spec.desiredUpdate: Forbidden: not understood by this version") {
			t.Errorf("%s: %v", desired, faults)
		}
	}
	many := "{"
	for i := range 50 {
		many += fmt.Sprintf("f%02d: x, ", i)
	}
	if faults := clusterversion.NotUnderstood(requestOf(t, many+"}")); len(faults) != 10 || faults[0].Field != "spec.desiredUpdate.f00" {
		t.Errorf("%d faults: %v", len(faults), faults)
	}
}

// TestUpdateFields fails when openshift/api has a new field of a request: somebody
// must decide what it means before it counts as understood.
func TestUpdateFields(t *testing.T) {
	var got []string
	for f := range reflect.TypeFor[configv1.Update]().Fields() {
		got = append(got, strings.Split(f.Tag.Get("json"), ",")[0])
	}
	checktest.Same(t, []string{"architecture", "version", "image", "force", "acceptRisks", "mode"}, got)
}

func FuzzNotUnderstood(f *testing.F) {
	for _, seed := range []string{`{}`, `{"mode":"Preflight"}`, `{"version":"4.19.1","x":{"y":[1,null]}}`, `{"acceptRisks":[{"name":"a","b":1}]}`, `"x"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var desired any
		if json.Unmarshal(data, &desired) != nil {
			return
		}
		cv := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"desiredUpdate": desired}}}
		faults := clusterversion.NotUnderstood(cv)
		if len(faults) > 10 {
			t.Errorf("%d faults", len(faults))
		}
		for _, err := range faults {
			if text := err.Error(); len(text) > 1000 || strings.ContainsAny(text, "\x00\x1b\n") {
				t.Errorf("fault %q", text)
			}
		}
		if fields, ok := desired.(map[string]any); ok && len(faults) == 0 {
			for name := range fields {
				switch name {
				case "architecture", "version", "image", "force", "acceptRisks", "mode":
				default:
					t.Errorf("field %q counts as understood", name)
				}
			}
		}
	})
}
