package clusterapi_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// sprinkle puts a field that no type knows into every map that has a string
// under "name" or "type", telling that string, and into others by chance, each
// with a number of its own. It returns how many there are.
func sprinkle(t *rapid.T, v any) int {
	n := 0
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(mapKeys(v)) {
				if key != "labels" && key != "annotations" && key != "matchLabels" {
					walk(v[key])
				}
			}
			for _, key := range []string{"name", "type"} {
				if s, ok := v[key].(string); ok {
					v["unknownOf"] = s
					n++
					return
				}
			}
			if rapid.Bool().Draw(t, "sprinkle") {
				v["unknown"] = int64(n)
				n++
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(v)
	return n
}

func mapKeys(m map[string]any) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// surviving counts the sprinkled fields, and complains of those in an element
// of another key.
func surviving(t *rapid.T, v any) int {
	n := 0
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, e := range v {
				switch key {
				case "unknown":
					n++
				case "unknownOf":
					n++
					checktest.FatalIf(t, e != v["name"] && e != v["type"],
						"the unknown field of %v is now in %v", e, v)
				default:
					walk(e)
				}
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(v)
	return n
}

func names(t *rapid.T, label string) []string {
	return rapid.SliceOfNDistinct(rapid.StringMatching(`[a-e]`), 0, 4, func(s string) string { return s }).Draw(t, label)
}

// check runs Modify over an object with unknown fields. change must neither
// remove an element nor change a key.
func check[T any](t *rapid.T, obj *T, o clusterapi.ModifyOptions, change func(*T)) {
	u := checktest.Get(clusterapi.ToUnstructured(obj))(t)
	u.SetName("x")
	var wanted int
	for _, part := range []string{"spec", "status"} {
		if m, ok := u.Object[part].(map[string]any); ok {
			wanted += sprinkle(t, m)
		}
	}
	api := &fake{obj: u}
	var result *T
	got := checktest.Get(clusterapi.Modify(context.Background(), api, clusterapi.KeyOf(u), o, func(typed *T) error {
		change(typed)
		result = typed
		return nil
	}))(t)
	n := surviving(t, any(api.obj.Object))
	checktest.FatalIf(t, n != wanted, "%d of %d unknown fields survive in %v", n, wanted, api.obj.Object)
	// A nil and an empty collection are one thing on the wire where a field is
	// left out when empty.
	for what, other := range map[string]*T{"stored": mustConvert[T](t, api.obj), "returned": got} {
		if diff := cmp.Diff(result, other, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s object is not what the function made (-function +%s):\n%s", what, what, diff)
		}
	}
}

func mustConvert[T any](t *rapid.T, u *unstructured.Unstructured) *T {
	return checktest.Get(clusterapi.FromUnstructured[T](u))(t)
}

// missing returns a name that is not in the list yet.
func missing(t *rapid.T, used []string) string {
	return rapid.StringMatching(`[f-z]{3}`).Filter(func(s string) bool { return !slices.Contains(used, s) }).Draw(t, "new name")
}

func TestModifyKeepsUnknownFieldsAnywhere(t *testing.T) {
	t.Run("Deployment", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			d := &appsv1.Deployment{}
			spec := &d.Spec.Template.Spec
			for _, name := range names(t, "containers") {
				c := corev1.Container{Name: name, Image: rapid.StringMatching(`[a-z]`).Draw(t, "image")}
				for _, env := range names(t, "env") {
					c.Env = append(c.Env, corev1.EnvVar{Name: env})
				}
				spec.Containers = append(spec.Containers, c)
			}
			for range rapid.IntRange(0, 3).Draw(t, "tolerations") {
				spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: rapid.StringMatching(`[ab]`).Draw(t, "key")})
			}
			check(t, d, clusterapi.ModifyOptions{}, func(d *appsv1.Deployment) {
				spec := &d.Spec.Template.Spec
				for i := range spec.Containers {
					c := &spec.Containers[i]
					c.Image = rapid.StringMatching(`[a-z]`).Draw(t, "new image")
					for j := range c.Env {
						c.Env[j].Value = rapid.StringMatching(`[a-z]?`).Draw(t, "value")
					}
					if rapid.Bool().Draw(t, "add env") {
						var used []string
						for _, e := range c.Env {
							used = append(used, e.Name)
						}
						at := rapid.IntRange(0, len(c.Env)).Draw(t, "at")
						c.Env = slices.Insert(c.Env, at, corev1.EnvVar{Name: missing(t, used)})
					}
				}
				if len(spec.Containers) > 1 && rapid.Bool().Draw(t, "reverse") {
					slices.Reverse(spec.Containers)
				}
				if rapid.Bool().Draw(t, "add container") {
					spec.Containers = slices.Insert(spec.Containers, 0, corev1.Container{Name: "new"})
				}
				for i := range spec.Tolerations {
					if rapid.Bool().Draw(t, "tolerate") {
						spec.Tolerations[i].Operator = corev1.TolerationOpExists
					}
				}
				if rapid.Bool().Draw(t, "add toleration") {
					at := rapid.IntRange(0, len(spec.Tolerations)).Draw(t, "at")
					spec.Tolerations = slices.Insert(spec.Tolerations, at, corev1.Toleration{Key: "new"})
				}
				if rapid.Bool().Draw(t, "pause") {
					d.Spec.Paused = !d.Spec.Paused
				}
			})
		})
	})
	t.Run("ClusterVersion", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			cv := &configv1.ClusterVersion{}
			for _, name := range names(t, "conditions") {
				cv.Status.Conditions = append(cv.Status.Conditions, configv1.ClusterOperatorStatusCondition{Type: configv1.ClusterStatusConditionType(name), Status: "True"})
			}
			for i := range rapid.IntRange(0, 4).Draw(t, "history") {
				cv.Status.History = append(cv.Status.History, configv1.UpdateHistory{Image: fmt.Sprint(i), Version: rapid.StringMatching(`4\.[12]`).Draw(t, "version")})
			}
			if rapid.Bool().Draw(t, "updates") {
				cv.Status.AvailableUpdates = []configv1.Release{{Version: "4.3", Image: "x"}}
			}
			check(t, cv, clusterapi.ModifyOptions{Status: true}, func(cv *configv1.ClusterVersion) {
				s := &cv.Status
				for i := range s.Conditions {
					s.Conditions[i].Message = rapid.StringMatching(`[a-z]?`).Draw(t, "message")
				}
				slices.SortFunc(s.Conditions, func(a, b configv1.ClusterOperatorStatusCondition) int {
					return strings.Compare(string(b.Type), string(a.Type))
				})
				if len(s.History) > 0 {
					s.History[0].State = configv1.CompletedUpdate
				}
				if rapid.Bool().Draw(t, "begin") {
					s.History = slices.Insert(s.History, 0, configv1.UpdateHistory{State: configv1.PartialUpdate, Image: "new", Version: "4.9"})
				}
				s.VersionHash = rapid.StringMatching(`[a-z]?`).Draw(t, "hash")
				s.ObservedGeneration = rapid.Int64Range(0, 3).Draw(t, "generation")
			})
		})
	})
}
