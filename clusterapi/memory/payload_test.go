package memory_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
)

// payloadObjects reads the documents of a release payload, definitions first.
// Files with Go templates that were not filled in do not all parse; those are
// left out.
func payloadObjects(t testing.TB, name string) []*unstructured.Unstructured {
	t.Helper()
	files := checktest.Must(filepath.Glob(filepath.Join(testdata.Dir(t), name, "release-manifests", "*.y*ml")))
	var definitions, others []*unstructured.Unstructured
	separator := regexp.MustCompile(`(?m)^---([ \t].*)?$`)
	for _, file := range files {
		data := checktest.Must(os.ReadFile(file))
		for _, doc := range separator.Split(string(data), -1) {
			content, err := yaml.YAMLToJSON([]byte(doc))
			if err != nil || bytes.Equal(content, []byte("null")) {
				continue
			}
			u := &unstructured.Unstructured{}
			if err := u.UnmarshalJSON(content); err != nil {
				continue
			}
			if u.GetKind() == "CustomResourceDefinition" {
				definitions = append(definitions, u)
			} else {
				others = append(others, u)
			}
		}
	}
	return append(definitions, others...)
}

var fieldNotDeclared = regexp.MustCompile(`(\.\S+): field not declared in schema`)

// removePath removes what an error of a typed apply names, such as
// .spec.containers[name="x"].foo.
func removePath(t *testing.T, u *unstructured.Unstructured, path string) {
	t.Helper()
	var walk func(v any, rest string) bool
	walk = func(v any, rest string) bool {
		if strings.HasPrefix(rest, "[") {
			end := strings.Index(rest, "]")
			list, ok := v.([]any)
			if end < 0 || !ok {
				return false
			}
			for _, e := range list {
				if walk(e, rest[end+1:]) {
					return true
				}
			}
			return false
		}
		m, ok := v.(map[string]any)
		if !ok {
			return false
		}
		rest = strings.TrimPrefix(rest, ".")
		if _, ok := m[rest]; ok {
			delete(m, rest)
			return true
		}
		for k, e := range m {
			if tail, ok := strings.CutPrefix(rest, k); ok && (strings.HasPrefix(tail, ".") || strings.HasPrefix(tail, "[")) && walk(e, tail) {
				return true
			}
		}
		return false
	}
	checktest.FatalIf(t, !walk(u.Object, path), "%s %s has no %s", u.GetKind(), u.GetName(), path)
}

func TestPayload(t *testing.T) {
	for _, name := range []string{"payload-4.17.30", "payload-4.18.15"} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			c := memory.NewOpenShift(memory.Options{})
			if name == "payload-4.17.30" { // later a kind of v1
				olm := schema.GroupVersionKind{Group: "operator.openshift.io", Version: "v1alpha1", Kind: "OLM"}
				checktest.Must(c.Apply(t.Context(), memory.Definition(olm, "Cluster"), manager))
			}
			type stored struct {
				obj      *unstructured.Unstructured
				revision string
			}
			byKey := map[string]stored{}
			seen := map[schema.GroupKind]int{}
			removed := 0
			for _, u := range payloadObjects(t, name) {
				if u.GetAnnotations()["release.openshift.io/delete"] == "true" {
					continue // says what is to go, and no more
				}
				switch {
				case u.GetKind() == "ClusterOperator":
					u.Object["spec"] = map[string]any{} // as its type writes it
				case u.GetKind() == "FeatureGate":
					continue // one object for each profile, all of one name
				}
				for {
					got, err := c.Apply(ctx, u, clusterapi.ApplyOptions{FieldManager: clusterapi.ManagerPayload})
					if err == nil {
						key := u.GroupVersionKind().GroupKind().String() + " " + got.GetNamespace() + "/" + got.GetName()
						byKey[key] = stored{u, got.GetResourceVersion()}
						seen[u.GroupVersionKind().GroupKind()]++
						break
					}
					if strings.Contains(err.Error(), "an empty namespace") {
						break // for a hosted control plane, in a namespace that is added there
					}
					m := fieldNotDeclared.FindStringSubmatch(err.Error())
					if m == nil {
						data, _ := json.Marshal(u)
						t.Errorf("%s %s/%s: %v\n%.300s", u.GetKind(), u.GetNamespace(), u.GetName(), err, data)
						break
					}
					t.Logf("%s %s/%s: %v", u.GetKind(), u.GetNamespace(), u.GetName(), err)
					removed++
					removePath(t, u, m[1])
				}
			}
			for key, s := range byKey {
				got, err := c.Apply(ctx, s.obj, clusterapi.ApplyOptions{FieldManager: clusterapi.ManagerPayload})
				if err != nil {
					t.Errorf("%s again: %v", key, err)
				} else if got.GetResourceVersion() != s.revision {
					t.Errorf("%s: the resourceVersion moved from %s to %s without a change", key, s.revision, got.GetResourceVersion())
				}
			}
			for _, gk := range []schema.GroupKind{
				{Group: "apps", Kind: "Deployment"},
				{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
				{Group: "config.openshift.io", Kind: "ClusterOperator"}, {Kind: "ConfigMap"},
			} {
				checktest.FailIf(t, seen[gk] == 0, "no %s was applied", gk)
			}
			t.Logf("%d objects of %d kinds, %d unknown fields removed", len(byKey), len(seen), removed)
		})
	}
}
