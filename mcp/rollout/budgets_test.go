package rollout_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// Two of three nodes may go: budgets choose those that can be drained, and of these
// first the one that takes fewer waves. They are read when the choice is made.
func TestOrderByBudgets(t *testing.T) {
	for _, tt := range []struct {
		name      string
		byBudgets bool
		fails     int // how often budgets cannot be listed
		want      []string
	}{
		{name: "by the usual order", want: []string{"w1", "w2"}},
		{name: "by budgets", byBudgets: true, want: []string{"w3", "w2"}},
		{name: "by budgets that cannot be listed at first", byBudgets: true, fails: 3, want: []string{"w3", "w2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fails := tt.fails
				c := memory.NewOpenShift(memory.Options{Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
					if call.GVK.Kind == "PodDisruptionBudget" && call.Verb == "List" && fails > 0 {
						fails--
						return errors.New("not now")
					}
					return do(ctx)
				}})
				p := mcptest.Pool("worker", "N")
				p.Spec.MaxUnavailable = new(intstr.FromInt32(2))
				w1, w2, w3 := mcptest.Worker("w1"), mcptest.Worker("w2"), mcptest.Worker("w3")
				load(t, c, mcptest.Topology("HighlyAvailable"), &p, &w1, &w2, &w3,
					budgetOf("db", 0), ofBudget("db-0", "w1"), budgetOf("web", 1), ofBudget("web-0", "w2"), ofBudget("web-1", "w2"), ofBudget("web-2", "w3"))
				r := start(t, rollout.Options{API: c, Mode: rollout.Drive, OrderByBudgets: tt.byBudgets})
				time.Sleep(2 * time.Minute)
				if diff := cmp.Diff(tt.want, r.nodes(rollout.EventNodeTargeted, "worker")); diff != "" || fails != 0 {
					t.Errorf("%s, %d times not failed", diff, fails)
				}
				r.stop()
			})
		})
	}
}

// budgetOf is a budget of three pods that are named after it, and allows so many to
// go.
func budgetOf(name string, allowed int32) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: name, Generation: 1}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	b.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, ExpectedPods: 3, DesiredHealthy: 3 - allowed, CurrentHealthy: 3, DisruptionsAllowed: allowed}
	return b
}

func ofBudget(name, node string) *corev1.Pod {
	p := &corev1.Pod{}
	p.Namespace, p.Name = "app", name
	p.Labels = map[string]string{"app": name[:len(name)-2]}
	p.Spec.NodeName = node
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return p
}

func TestOrderByBudgetsOptions(t *testing.T) {
	view := mcp.Options{Order: mcp.Order{Budgets: func() mcp.DrainView { return mcp.DrainView{} }}}
	for _, o := range []rollout.Options{{OrderByBudgets: true}, {Mode: rollout.Drive, OrderByBudgets: true, Options: view}} {
		if _, err := rollout.New(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}
