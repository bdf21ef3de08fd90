package memory_test

import (
	"fmt"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// Evictions at the same time spend a budget once each.
func TestEvictAtOnce(t *testing.T) {
	c := memory.New(memory.Options{})
	const n, allowed = 8, 3
	for i := range n {
		mustLoad(t, c, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: p%d, namespace: ns}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`, i))
	}
	mustLoad(t, c, fmt.Sprintf(`{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b, namespace: ns, generation: 1}, spec: {selector: {}}, status: {disruptionsAllowed: %d, observedGeneration: 1, currentHealthy: 8, desiredHealthy: 5, expectedPods: 8}}`, allowed))
	results := make(chan error, n)
	for i := range n {
		go func() {
			results <- c.Evict(t.Context(), clusterapi.Key("ns", fmt.Sprintf("p%d", i)), clusterapi.EvictOptions{})
		}()
	}
	evicted := 0
	for range n {
		switch err := <-results; {
		case err == nil:
			evicted++
		case !apierrors.IsTooManyRequests(err):
			t.Error(err)
		}
	}
	checktest.Equal(t, allowed, evicted, "pods were evicted")
}

// What happens between the look at a budget and the write of it counts.
func TestEvictMeetsAnotherWriter(t *testing.T) {
	const pod = `{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: ns}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`
	for _, tc := range []struct {
		name  string
		other func(*testing.T, *memory.Cluster) // while the budget is being written
		want  func(error) bool
	}{
		{"who spends the budget", func(t *testing.T, c *memory.Cluster) {
			_, err := clusterapi.Modify(t.Context(), c, clusterapi.Key("ns", "b"), clusterapi.ModifyOptions{Status: true}, func(b *policyv1.PodDisruptionBudget) error {
				b.Status.DisruptionsAllowed = 0
				return nil
			})
			checktest.Good(t, err)
		}, apierrors.IsTooManyRequests},
		{"who replaces the pod", func(t *testing.T, c *memory.Cluster) {
			checktest.Good(t, c.Delete(t.Context(), podGVK, clusterapi.Key("ns", "p"), clusterapi.DeleteOptions{}))
			mustLoad(t, c, pod)
		}, apierrors.IsNotFound},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var c *memory.Cluster
			met := false
			c = memory.New(memory.Options{Validate: func(_, u *unstructured.Unstructured) error {
				if u.GetKind() == "PodDisruptionBudget" && !met {
					met = true
					tc.other(t, c)
				}
				return nil
			}})
			mustLoad(t, c, pod, `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b, namespace: ns, generation: 1}, spec: {selector: {}}, status: {disruptionsAllowed: 1, observedGeneration: 1, currentHealthy: 2, desiredHealthy: 1, expectedPods: 2}}`)
			if err := c.Evict(t.Context(), clusterapi.Key("ns", "p"), clusterapi.EvictOptions{}); !tc.want(err) || !met {
				t.Errorf("got %v", err)
			}
			mustGet(t, c, podGVK, "ns", "p")
		})
	}
}
