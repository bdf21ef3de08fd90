package memory_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// TestGenerationCountsAnnotations: the API server counts annotations of
// Deployments, and of no other kind.
func TestGenerationCountsAnnotations(t *testing.T) {
	for kind, want := range map[string]int64{"Deployment": 2, "DaemonSet": 1} {
		c := memory.New(memory.Options{})
		obj := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": kind, "metadata": map[string]any{"name": "x", "namespace": "ns"},
			"spec": object(t, benchDeployment).Object["spec"],
		}}
		delete(obj.Object["spec"].(map[string]any), "replicas")
		stored, err := c.Create(t.Context(), obj, clusterapi.CreateOptions{})
		checktest.OK(t, err)
		stored.SetAnnotations(map[string]string{"a": "b"})
		stored.SetLabels(map[string]string{"a": "b"})
		if stored, err = c.Update(t.Context(), stored, clusterapi.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		checktest.Equal(t, want, stored.GetGeneration(), "%s: generation", kind)
	}
}
