package memory_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/objects"
)

// Each embedded definition is one that the cluster itself takes, and serves
// its kind, before and after another one replaces it.
func TestOpenShiftDefinitions(t *testing.T) {
	c := memory.NewOpenShift(memory.Options{})
	fresh := memory.New(memory.Options{})
	all, err := c.List(t.Context(), schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, clusterapi.ListOptions{})
	checktest.FatalIf(t, err != nil || len(all.Items) < 60, "%d definitions, %v", len(all.Items), err)
	for i := range all.Items {
		d := objects.WithoutServerFields(&all.Items[i])
		if _, err := fresh.Create(t.Context(), d, clusterapi.CreateOptions{}); err != nil {
			t.Errorf("%s: %v", d.GetName(), err)
		}
		if d.GetName() == "consoleplugins.console.openshift.io" {
			continue // converts between versions by a webhook
		}
		group, _, _ := unstructured.NestedString(d.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(d.Object, "spec", "names", "kind")
		scope, _, _ := unstructured.NestedString(d.Object, "spec", "scope")
		versions, _, _ := unstructured.NestedSlice(d.Object, "spec", "versions")
		version, _ := versions[0].(map[string]any)["name"].(string)
		gvk := schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
		for range 2 {
			if _, err := c.List(t.Context(), gvk, clusterapi.ListOptions{}); err != nil {
				t.Errorf("%s: %v", d.GetName(), err)
			}
			if _, err := c.Apply(t.Context(), memory.Definition(gvk, scope), manager); err != nil {
				t.Errorf("%s: %v", d.GetName(), err)
			}
		}
	}
}
