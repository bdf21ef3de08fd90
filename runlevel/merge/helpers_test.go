package merge_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/runlevel/merge"
)

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return u
}

// clause is one clause of a rule: what an object becomes by a manifest.
type clause struct {
	name               string
	existing, required string
	// want are values of the merged object by path, as JSON; "" is none. None at
	// all: nothing changes.
	want map[string]string
	// again says that merging the manifest once more is a change as well.
	again bool
}

// checkClauses runs cases; wrap makes an object of their texts.
func checkClauses(t *testing.T, wrap func(string) string, cases []clause) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			existing, required := object(t, wrap(c.existing)), object(t, wrap(c.required))
			existing.SetResourceVersion("7")
			merged := mergeOnce(t, existing, required, c.want != nil)
			for path, want := range c.want {
				if got := at(t, merged.Object, path); got != want {
					t.Errorf("%s: %s, want %s", path, got, want)
				}
			}
			if merged.GetResourceVersion() != "7" {
				t.Errorf("resourceVersion %q", merged.GetResourceVersion())
			}
			mergeOnce(t, merged, required, c.again)
		})
	}
}

// mergeOnce merges and checks that the inputs are as they were.
func mergeOnce(t testing.TB, existing, required *unstructured.Unstructured, want bool) *unstructured.Unstructured {
	t.Helper()
	beforeE, beforeR := existing.DeepCopy(), required.DeepCopy()
	merged, changed, err := merge.Merge(existing, required)
	checktest.OK(t, err)
	if diff := cmp.Diff([]any{beforeE.Object, beforeR.Object}, []any{existing.Object, required.Object}); diff != "" {
		t.Errorf("an input was written to: %s", diff)
	}
	if changed != want {
		t.Errorf("changed %t: %s", changed, cmp.Diff(existing.Object, merged.Object))
	}
	if !changed && merged != existing {
		t.Error("unchanged, and not the object itself")
	}
	return merged
}

// at returns the value at a path such as spec.ports[0].port as JSON. Keys with dots
// stand in brackets: metadata.labels[a.b/c].
func at(t testing.TB, value any, path string) string {
	t.Helper()
	steps := strings.FieldsFunc(path, func(r rune) bool { return r == '.' })
	if i := strings.Index(path, "[\""); i >= 0 {
		steps = append(strings.Split(path[:i], "."), strings.Trim(path[i:], "[]\""))
	}
	for _, step := range steps {
		name, index, list := strings.Cut(step, "[")
		m, _ := value.(map[string]any)
		var ok bool
		if value, ok = m[name]; !ok {
			return ""
		}
		if list {
			i, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			l, _ := value.([]any)
			if i >= len(l) {
				return ""
			}
			value = l[i]
		}
	}
	raw := checktest.Get(json.Marshal(value))(t)
	return string(raw)
}

// of wraps the fields beside metadata of an object.
func of(apiVersion, kind string) func(string) string {
	return func(fields string) string {
		if fields != "" {
			fields = ", " + fields
		}
		return fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: o, namespace: ns}%s}", apiVersion, kind, fields)
	}
}

// deploymentOf wraps fields of a Deployment's spec.
func deploymentOf(fields string) string {
	return of("apps/v1", "Deployment")(fmt.Sprintf("spec: {selector: {matchLabels: {a: b}}, template: {}, %s}", fields))
}

// podsOf wraps fields of a pod's spec.
func podsOf(fields string) string {
	return of("apps/v1", "Deployment")(fmt.Sprintf("spec: {selector: {matchLabels: {a: b}}, template: {spec: {%s}}}", fields))
}

// containerOf wraps fields of a container.
func containerOf(fields string) string {
	return podsOf(fmt.Sprintf("containers: [{name: c, %s}]", fields))
}

// replaced fills in the one place of a text.
func replaced(text, by string) string { return strings.Replace(text, "%s", by, 1) }
