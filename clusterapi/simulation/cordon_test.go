package simulation_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// TestCordonTaint: a cordoned node has the taint of the node life-cycle controller,
// beside its others, from the time of the write until it is uncordoned.
func TestCordonTaint(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := reconcile.NewClock(now)
	cluster, err := simulation.New(simulation.Options{Clock: clock, Release: simulation.Release{Version: "4.20.3"}, ControlPlane: 1, Pools: []simulation.Pool{{Name: "worker", Nodes: 1}}})
	checktest.OK(t, err)
	own := corev1.Taint{Key: "example.com/own", Effect: corev1.TaintEffectNoExecute}
	at := metav1.NewTime(now)
	cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &at}
	for _, step := range []struct {
		name string
		do   func(*corev1.Node)
		want []corev1.Taint
	}{
		{"cordon", func(n *corev1.Node) { n.Spec.Unschedulable = true }, []corev1.Taint{cordon}},
		{"taint", func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, own) }, []corev1.Taint{cordon, own}},
		{"uncordon", func(n *corev1.Node) { n.Spec.Unschedulable = false }, []corev1.Taint{own}},
		{"clear", func(n *corev1.Node) { n.Spec.Taints = nil }, nil},
		{"cordon again", func(n *corev1.Node) { n.Spec.Unschedulable = true }, []corev1.Taint{cordon}},
		{"uncordon again", func(n *corev1.Node) { n.Spec.Unschedulable = false }, nil},
	} {
		node, err := clusterapi.Modify(t.Context(), cluster, clusterapi.Key("", "worker-0"), clusterapi.ModifyOptions{}, func(n *corev1.Node) error {
			step.do(n)
			return nil
		})
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if diff := cmp.Diff(step.want, node.Spec.Taints); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}
