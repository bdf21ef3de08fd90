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
		checktest.OK(rt, checkBudget(t, nodes, replicas, allowed, steps))
	})
}

func checkBudget(t *testing.T, nodes, replicas, allowed int, steps []budgetStep) error {
	budget := intstr.FromInt32(int32(allowed))
	c := made(t, simulation.Options{
		Release:   simulation.Release{Version: "4.20.3"},
		Pools:     []simulation.Pool{{Nodes: nodes}},
		Workloads: []simulation.Workload{{Name: "web", Replicas: replicas, MaxUnavailable: &budget}},
	})
	c.run(t)
	ctx := t.Context()
	c.pass(time.Minute)
	if got, err := healthyPods(ctx, c, "web"); err != nil || got != replicas {
		return fmt.Errorf("%d of %d pods at first, error %v", got, replicas, err)
	}
	schedulable := func(node int, on bool) error {
		key := clusterapi.Key("", fmt.Sprintf("worker-%d", node))
		_, err := clusterapi.Modify(ctx, c, key, clusterapi.ModifyOptions{}, func(n *corev1.Node) error {
			n.Spec.Unschedulable = !on
			return nil
		})
		return err
	}
	for i, s := range steps {
		var err error
		switch s.action {
		case "cordon", "uncordon":
			err = schedulable(s.node, s.action == "uncordon")
		case "evict":
			var pods []corev1.Pod
			pods, err = clusterapi.List[corev1.Pod](ctx, c, clusterapi.ListOptions{NodeName: fmt.Sprintf("worker-%d", s.node)})
			for _, p := range pods {
				if e := c.Evict(ctx, clusterapi.Key(p.Namespace, p.Name), clusterapi.EvictOptions{}); e != nil && !apierrors.IsTooManyRequests(e) {
					err = e
				}
			}
		case "pass":
			c.pass(time.Duration(s.seconds) * time.Second)
		}
		if err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		c.pass(0)
		if got, err := healthyPods(ctx, c, "web"); err != nil || got < replicas-allowed {
			return fmt.Errorf("step %d: %d healthy pods, want %d - %d, error %v", i, got, replicas, allowed, err)
		}
	}
	for node := range nodes {
		if err := schedulable(node, true); err != nil {
			return err
		}
	}
	c.pass(10 * time.Minute)
	pods, err := clusterapi.List[corev1.Pod](ctx, c, clusterapi.ListOptions{Namespace: "default"})
	if err != nil {
		return err
	}
	if got, err := healthyPods(ctx, c, "web"); err != nil || got != replicas || len(pods) != replicas {
		return fmt.Errorf("in the end %d pods, %d of %d healthy, error %v", len(pods), got, replicas, err)
	}
	return nil
}

// healthyPods counts the pods of an app that are Ready and stay.
func healthyPods(ctx context.Context, c clusterapi.Reader, app string) (n int, err error) {
	pods, err := clusterapi.List[corev1.Pod](ctx, c, clusterapi.ListOptions{Namespace: "default"})
	for i := range pods {
		for _, cond := range pods[i].Status.Conditions {
			if pods[i].Labels["app"] == app && cond.Type == corev1.PodReady && cond.Status == corev1.ConditionTrue && pods[i].DeletionTimestamp == nil {
				n++
			}
		}
	}
	return n, err
}
