package simulation_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
)

// Whatever is cordoned and evicted, a budget holds; and once all nodes are
// back, so are all pods.
func TestBudgetHolds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			const nodes = 4
			replicas := rapid.IntRange(1, nodes).Draw(rt, "replicas")
			allowed := rapid.IntRange(0, replicas).Draw(rt, "maxUnavailable")
			budget := intstr.FromInt32(int32(allowed))
			c, err := simulation.New(simulation.Options{
				Release:   simulation.Release{Version: "4.20.3"},
				Pools:     []simulation.Pool{{Nodes: nodes}},
				Workloads: []simulation.Workload{{Name: "web", Replicas: replicas, MaxUnavailable: &budget}},
			})
			if err != nil {
				rt.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- c.Run(ctx) }()
			defer func() { cancel(); <-done }()

			healthy := func() (n int) {
				pods, err := clusterapi.List[corev1.Pod](ctx, c, clusterapi.ListOptions{Namespace: "default"})
				if err != nil {
					rt.Fatal(err)
				}
				for i := range pods {
					for _, cond := range pods[i].Status.Conditions {
						if cond.Type == corev1.PodReady && cond.Status == corev1.ConditionTrue && pods[i].DeletionTimestamp == nil {
							n++
						}
					}
				}
				return n
			}
			schedulable := func(node int, on bool) {
				key := clusterapi.Key("", fmt.Sprintf("worker-%d", node))
				if _, err := clusterapi.Modify(ctx, c, key, clusterapi.ModifyOptions{}, func(n *corev1.Node) error {
					n.Spec.Unschedulable = !on
					return nil
				}); err != nil {
					rt.Fatal(err)
				}
			}
			pass(time.Minute)
			if got := healthy(); got != replicas {
				rt.Fatalf("%d of %d pods at first", got, replicas)
			}
			for range rapid.IntRange(1, 12).Draw(rt, "steps") {
				node := rapid.IntRange(0, nodes-1).Draw(rt, "node")
				switch rapid.SampledFrom([]string{"cordon", "uncordon", "evict", "pass"}).Draw(rt, "step") {
				case "cordon":
					schedulable(node, false)
				case "uncordon":
					schedulable(node, true)
				case "evict":
					pods, err := clusterapi.List[corev1.Pod](ctx, c, clusterapi.ListOptions{NodeName: fmt.Sprintf("worker-%d", node)})
					if err != nil {
						rt.Fatal(err)
					}
					for _, p := range pods {
						err := c.Evict(ctx, clusterapi.Key(p.Namespace, p.Name), clusterapi.EvictOptions{})
						if err != nil && !apierrors.IsTooManyRequests(err) && !apierrors.IsNotFound(err) {
							rt.Fatal(err)
						}
					}
				case "pass":
					pass(time.Duration(rapid.IntRange(1, 30).Draw(rt, "seconds")) * time.Second)
				}
				synctest.Wait()
				if got := healthy(); got < replicas-allowed {
					rt.Fatalf("%d healthy pods, want %d - %d", got, replicas, allowed)
				}
			}
			for node := range nodes {
				schedulable(node, true)
			}
			pass(10 * time.Minute)
			if got := healthy(); got != replicas {
				rt.Fatalf("%d of %d pods in the end", got, replicas)
			}
			pods, err := clusterapi.List[corev1.Pod](ctx, c, clusterapi.ListOptions{Namespace: "default"})
			if err != nil || len(pods) != replicas {
				rt.Fatalf("%d pods in the end, %v", len(pods), err)
			}
		})
	})
}
