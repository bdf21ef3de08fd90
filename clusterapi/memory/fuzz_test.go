package memory_test

import (
	"encoding/json"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// FuzzDefinition stores definitions with any schema, and objects of any form
// of their kinds. Whatever comes of it, nothing panics, and what was applied
// can be applied again without a change.
func FuzzDefinition(f *testing.F) {
	f.Add(`{"type":"object","properties":{"spec":{"type":"object"}}}`, `{"spec":{"a":1}}`)
	f.Fuzz(func(t *testing.T, schema, content string) {
		var tree, fields map[string]any
		if json.Unmarshal([]byte(schema), &tree) != nil || json.Unmarshal([]byte(content), &fields) != nil {
			return
		}
		c := memory.New(memory.Options{})
		crd := object(t, benchDefinition)
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		versions[0].(map[string]any)["schema"] = map[string]any{"openAPIV3Schema": tree}
		if err := unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"); err != nil {
			return
		}
		if _, err := c.Apply(t.Context(), crd, manager); apierrors.IsInvalid(err) {
			c = memory.New(memory.Options{Lenient: true})
			_, err = c.Apply(t.Context(), crd, manager)
			checktest.OK(t, err)
		} else if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{Object: fields}
		if fields == nil {
			return
		}
		fields["apiVersion"], fields["kind"] = "example.com/v1", "Widget"
		fields["metadata"] = map[string]any{"name": "x", "namespace": "ns"}
		if first, err := c.Apply(t.Context(), u, manager); err == nil {
			again := checktest.Get(c.Apply(t.Context(), u, manager))(t)
			checktest.Equal(t, first.GetResourceVersion(), again.GetResourceVersion(),
				"again.GetResourceVersion() of %v", again)
		}
		u.SetName("y")
		_, _ = c.Create(t.Context(), u, clusterapi.CreateOptions{})
	})
}
