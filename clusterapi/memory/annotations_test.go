package memory_test

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// TestAnnotationKeys: an update takes the annotations that a new object may
// have, and no others.
func TestAnnotationKeys(t *testing.T) {
	for key, good := range map[string]bool{
		"a": true, "A1": true, "a.b/C-d": true, "a_b": true, "x--y": true, "Example.com/x": true, strings.Repeat("a", 63): true,
		"": false, "/a": false, "a/": false, "a/b/c": false, "-a": false, "a-": false, "a..b/c": false, "a b": false, "é": false,
		strings.Repeat("a", 64): false, "a./b": false, "a_b/c": false,
	} {
		c := memory.New(memory.Options{})
		annotated := func(name string) *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
				"namespace": "ns", "name": name, "annotations": map[string]any{key: "x"}}}}
		}
		plain := annotated("updated")
		plain.SetAnnotations(nil)
		stored := checktest.Must(c.Create(context.Background(), plain, clusterapi.CreateOptions{}))
		stored.SetAnnotations(map[string]string{key: "x"})
		if _, err := c.Update(context.Background(), stored, clusterapi.UpdateOptions{}); (err == nil) != good {
			t.Errorf("%q: an update returned %v", key, err)
		}
		if _, err := c.Create(context.Background(), annotated("created"), clusterapi.CreateOptions{}); (err == nil) != good {
			t.Errorf("%q: a create returned %v", key, err)
		}
	}
}
