package simulation_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

type budgetStep struct {
	action  string
	node    int
	seconds int
}

// Whatever is cordoned and evicted, a budget holds; and once all nodes are
// back, so are all pods.
func TestBudgetHolds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const nodes = 4
		replicas := rapid.IntRange(1, nodes).Draw(rt, "replicas")
		allowed := rapid.IntRange(0, replicas).Draw(rt, "maxUnavailable")
		steps := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) budgetStep {
			return budgetStep{
				action:  rapid.SampledFrom([]string{"cordon", "uncordon", "evict", "pass"}).Draw(rt, "action"),
				node:    rapid.IntRange(0, nodes-1).Draw(rt, "node"),
				seconds: rapid.IntRange(1, 30).Draw(rt, "seconds"),
			}
		}), 1, 12).Draw(rt, "steps")
		checkBudget(t, rt, nodes, replicas, allowed, steps)
	})
}

func checkBudget(t *testing.T, rt *rapid.T, nodes, replicas, allowed int, steps []budgetStep) {
	budget := intstr.FromInt32(int32(allowed))
	c := made(t, simulation.Options{
		Release:   simulation.Release{Version: "4.20.3"},
		Pools:     []simulation.Pool{{Nodes: nodes}},
		Workloads: []simulation.Workload{{Name: "web", Replicas: replicas, MaxUnavailable: &budget}},
	})
	c.run(t)
	ctx := t.Context()
	c.pass(time.Minute)
	checktest.Equal(rt, replicas, healthyPods(ctx, c, "web"), "pods at first")
	schedulable := func(node int, on bool) {
		modify(t, c, "", fmt.Sprintf("worker-%d", node), func(n *corev1.Node) { n.Spec.Unschedulable = !on })
	}
	for i, s := range steps {
		switch s.action {
		case "cordon", "uncordon":
			schedulable(s.node, s.action == "uncordon")
		case "evict":
			for _, p := range list[corev1.Pod](t, c, clusterapi.ListOptions{NodeName: fmt.Sprintf("worker-%d", s.node)}) {
				err := c.Evict(ctx, clusterapi.Key(p.Namespace, p.Name), clusterapi.EvictOptions{})
				if !apierrors.IsTooManyRequests(err) {
					checktest.OK(rt, err)
				}
			}
		case "pass":
			c.pass(time.Duration(s.seconds) * time.Second)
		}
		c.pass(0)
		if got := healthyPods(ctx, c, "web"); got < replicas-allowed {
			rt.Errorf("step %d: %d healthy pods, want %d - %d", i, got, replicas, allowed)
		}
	}
	for node := range nodes {
		schedulable(node, true)
	}
	c.pass(10 * time.Minute)
	checktest.Equal(rt, replicas, healthyPods(ctx, c, "web"), "healthy pods in the end")
	checktest.Equal(rt, replicas, len(list[corev1.Pod](t, c, clusterapi.ListOptions{Namespace: "default"})), "pods in the end")
}

// healthyPods counts the pods of an app that are Ready and stay.
func healthyPods(ctx context.Context, c clusterapi.Reader, app string) (n int) {
	for _, p := range checktest.Must(clusterapi.List[corev1.Pod](ctx, c, clusterapi.ListOptions{Namespace: "default"})) {
		for _, cond := range p.Status.Conditions {
			if p.Labels["app"] == app && cond.Type == corev1.PodReady && cond.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil {
				n++
			}
		}
	}
	return n
}
