package kubernetes_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/internal/testserver"
)

// UpdateStatus writes the status, also a null in it, and nothing else.
func TestUpdateStatus(t *testing.T) {
	t.Parallel()
	s := testserver.Start(t)
	testUpdateStatus(t, newAPI(t, s, kubernetes.Options{}))
}

func testUpdateStatus(t *testing.T, api clusterapi.ClusterAPI) {
	create(t, api, object(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: parts.status.clusterupdate.github.io}
spec:
  group: status.clusterupdate.github.io
  names: {kind: Part, plural: parts}
  scope: Cluster
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status:
            type: object
            properties:
              phase: {type: string}
              left: {type: array, nullable: true, items: {type: string}}
`))
	part := object(t, `{apiVersion: status.clusterupdate.github.io/v1, kind: Part, metadata: {name: a, labels: {l: one}}, spec: {size: 1}}`)
	awaitKind(t, api, part.GroupVersionKind())
	for _, tc := range []struct {
		object *unstructured.Unstructured
		status map[string]any
	}{
		{part, map[string]any{"phase": "On", "left": nil}},
		{object(t, `{apiVersion: v1, kind: Node, metadata: {name: a, labels: {l: one}}, spec: {podCIDR: 10.1.0.0/24}}`),
			map[string]any{"phase": "Running"}},
		{object(t, `{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: default, labels: {l: one}}, spec: {containers: [{name: a, image: a}]}}`),
			map[string]any{"phase": "Running"}},
		{object(t, `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a, namespace: default, labels: {l: one}}, spec: {maxUnavailable: 1, selector: {matchLabels: {a: b}}}}`),
			map[string]any{"disruptionsAllowed": int64(3), "currentHealthy": int64(1), "desiredHealthy": int64(1), "expectedPods": int64(1)}},
		{object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: default, labels: {l: one}}, spec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}}`),
			map[string]any{"replicas": int64(7)}},
		{object(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: default, labels: {l: one}}, spec: {template: {metadata: {labels: {a: b}}, spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}`),
			map[string]any{"active": int64(1)}},
	} {
		t.Run(tc.object.GetKind(), func(t *testing.T) {
			tc.object.SetFinalizers([]string{"clusterupdate.github.io/stays"})
			tc.object.SetAnnotations(map[string]string{"a": "one"})
			before := create(t, api, tc.object)
			write := before.DeepCopy()
			write.SetLabels(map[string]string{"l": "two", "more": "too"})
			write.SetAnnotations(map[string]string{"a": "two", "more": "too"})
			write.SetFinalizers([]string{"clusterupdate.github.io/another"})
			write.SetOwnerReferences(nil)
			write.Object["spec"] = map[string]any{"size": int64(2)}
			write.Object["status"] = tc.status
			after, err := api.UpdateStatus(t.Context(), write, clusterapi.UpdateOptions{FieldManager: "test"})
			if err != nil {
				t.Fatal(err)
			}
			got, _, _ := unstructured.NestedMap(after.Object, "status")
			for field, want := range tc.status {
				value, ok := got[field]
				if !ok || !cmp.Equal(value, want) {
					t.Errorf("status.%s is %v (there: %t), not %v", field, value, ok, want)
				}
			}
			if after.GetResourceVersion() == before.GetResourceVersion() {
				t.Error("the resourceVersion did not move")
			}
			managed := after.GetManagedFields()
			if last := managed[len(managed)-1]; last.Manager != "test" || last.Subresource != "status" {
				t.Errorf("the status is owned by %s of %q", last.Manager, last.Subresource)
			}
			for _, u := range []*unstructured.Unstructured{before, after} {
				delete(u.Object, "status")
				u.SetResourceVersion("")
				u.SetManagedFields(nil)
			}
			if diff := cmp.Diff(before.Object, after.Object); diff != "" {
				t.Errorf("more than the status has changed (-before +after):\n%s", diff)
			}
			if _, err := api.UpdateStatus(t.Context(), write, clusterapi.UpdateOptions{}); !apierrors.IsConflict(err) {
				t.Errorf("with an old resourceVersion: %v", err)
			}
			write.SetResourceVersion("")
			if _, err := api.UpdateStatus(t.Context(), write, clusterapi.UpdateOptions{}); !apierrors.IsInvalid(err) {
				t.Errorf("without a resourceVersion: %v", err)
			}
		})
	}
	// No status is one, too.
	stored, err := api.Get(t.Context(), part.GroupVersionKind(), types.NamespacedName{Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	delete(stored.Object, "status")
	for range 2 {
		if stored, err = api.UpdateStatus(t.Context(), stored, clusterapi.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if status, ok := stored.Object["status"]; ok {
			t.Errorf("the status is %v", status)
		}
	}
}
