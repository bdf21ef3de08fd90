package mcp_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
)

type podEdit = func(*corev1.Pod)

// drainedPod is a Ready pod of a ReplicaSet on a node, labelled app=APP.
func drainedPod(name, node, app string, edits ...podEdit) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app": app}}}
	p.Spec.NodeName = node
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	ownedBy("ReplicaSet", app)(p)
	for _, edit := range edits {
		edit(p)
	}
	return p
}

func ownedBy(kind, name string) podEdit {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: kind, Name: name, UID: types.UID(kind + "-" + name), Controller: new(true)}}
	}
}

func bare(p *corev1.Pod)   { p.OwnerReferences = nil }
func mirror(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }
func unready(p *corev1.Pod) {
	p.Status.Conditions[0].Status = corev1.ConditionFalse
}
func phase(ph corev1.PodPhase) podEdit { return func(p *corev1.Pod) { p.Status.Phase = ph } }
func scratch(p *corev1.Pod) {
	p.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
}
func grace(seconds int64) podEdit {
	return func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = &seconds }
}
func endsAt(d time.Duration, finalizers ...string) podEdit {
	return func(p *corev1.Pod) {
		at := metav1.NewTime(mcptest.Epoch.Add(d))
		p.DeletionTimestamp, p.Finalizers = &at, finalizers
	}
}
func asks(cpu string) podEdit {
	return func(p *corev1.Pod) {
		p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}
	}
}

type budgetEdit = func(*policyv1.PodDisruptionBudget)

// drainBudget selects app=APP in ns. Its status follows: pods that it expects,
// that must be healthy, and that are.
func drainBudget(name, app string, expected, desired, healthy int32, edits ...budgetEdit) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Generation: 1}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	b.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, ExpectedPods: expected, DesiredHealthy: desired, CurrentHealthy: healthy, DisruptionsAllowed: max(healthy-desired, 0)}
	for _, edit := range edits {
		edit(b)
	}
	return b
}

func alwaysAllow(b *policyv1.PodDisruptionBudget) {
	p := policyv1.AlwaysAllow
	b.Spec.UnhealthyPodEvictionPolicy = &p
}

func drainView(o mcp.DrainObjects) mcp.DrainView {
	if o.Now.IsZero() {
		o.Now = mcptest.Epoch
	}
	return mcp.NewDrainView(o)
}

// told renders a drain, a pod a line.
func told(d mcp.Drain) string {
	var lines []string
	for _, p := range d.Pods {
		line := p.Pod.Name + " " + string(p.Verdict)
		if p.Kind != "" {
			line += " " + string(p.Kind)
		}
		if p.Verdict == mcp.DrainEvictsAfter {
			line += fmt.Sprintf(" %d of %s", p.Before, strings.Join(p.Budgets, ","))
		}
		for _, n := range p.Notes {
			line += " (" + string(n.Kind) + ")"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// TestDrainPlan: one pod of each kind on node a.
func TestDrainPlan(t *testing.T) {
	one := intstr.FromInt32(1)
	for _, tt := range []struct {
		name    string
		objects mcp.DrainObjects
		want    string
		texts   []string // what the first pod's Text and Fix contain
	}{
		// 1. Which pods, and how.
		{"of a DaemonSet", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x", ownedBy("DaemonSet", "d"))}, DaemonSets: []types.NamespacedName{{Namespace: "ns", Name: "d"}}}, "p Stays", []string{"ignoring DaemonSet-managed Pods"}},
		{"of a DaemonSet, finished", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x", ownedBy("DaemonSet", "d"), phase(corev1.PodFailed))}, DaemonSets: []types.NamespacedName{{Namespace: "ns", Name: "d"}}}, "p Evicts", nil},
		{"of a DaemonSet that is gone", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x", ownedBy("DaemonSet", "d"))}, DaemonSets: []types.NamespacedName{{Namespace: "other", Name: "d"}}}, "p Evicts", nil},
		{"of a DaemonSet that may exist", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x", ownedBy("DaemonSet", "d"))}, DaemonSetsErr: errors.New("boom")}, "p Blocked DaemonSetUnknown", []string{"ns/d", "boom", "make DaemonSets readable"}},
		{"nothing goes while a DaemonSet may exist", mcp.DrainObjects{Pods: []*corev1.Pod{
			drainedPod("p", "a", "x", ownedBy("DaemonSet", "d")), drainedPod("q", "a", "x"), drainedPod("r", "a", "y"), drainedPod("s", "a", "x", mirror)},
			Budgets: []*policyv1.PodDisruptionBudget{drainBudget("b", "y", 1, 1, 1)}, DaemonSetsErr: errors.New("boom")},
			"p Blocked DaemonSetUnknown\nq Blocked DaemonSetUnknown\nr Blocked NeverAllows\ns Stays", nil},
		{"static", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x", mirror)}, Budgets: []*policyv1.PodDisruptionBudget{drainBudget("b", "x", 1, 1, 1)}}, "p Stays", []string{"static"}},
		{"with local data", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x", scratch)}}, "p Evicts (DataLoss)", nil},
		{"without a controller", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x", bare)}}, "p Evicts (NotRecreated)", nil},
		{"succeeded", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x", bare, scratch, grace(600), phase(corev1.PodSucceeded))}}, "p Evicts", []string{"Succeeded"}},
		{"terminating", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x", endsAt(time.Second))}}, "p Evicts", []string{"terminating"}},
		{"terminating, not overdue", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x", endsAt(-90*time.Second, "f"))}}, "p Evicts", nil},
		{"terminating, overdue", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x", endsAt(-91*time.Second))}}, "p Blocked Terminating", []string{"2025-12-31T23:58:29Z", "kubelet"}},
		{"terminating, with finalizers", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x", endsAt(-91*time.Second, "y/f", "x/f"))}}, "p Blocked Terminating", []string{"x/f, y/f", "finalizers are not removed"}},
		{"terminating for long", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x", endsAt(100*time.Second))}}, "p Evicts (Slow)", nil},
		{"on another node", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "b", "x")}}, "", nil},
		{"single node", mcp.DrainObjects{Topology: mcp.TopologySingleReplica, Pods: []*corev1.Pod{drainedPod("p", "a", "x", bare), drainedPod("q", "a", "x", ownedBy("DaemonSet", "d"))}, DaemonSetsErr: errors.New("boom"), Budgets: []*policyv1.PodDisruptionBudget{drainBudget("b", "x", 1, 1, 1)}}, "p Stays\nq Stays", []string{"Drain not required, skipping"}},

		// 2. Eviction and budgets.
		{"pending", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x", phase(corev1.PodPending))}, Budgets: []*policyv1.PodDisruptionBudget{drainBudget("b", "x", 1, 1, 1)}}, "p Evicts", []string{"Pending"}},
		{"terminating, two budgets", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x", endsAt(0))}, Budgets: []*policyv1.PodDisruptionBudget{drainBudget("b", "x", 1, 1, 1), drainBudget("c", "x", 1, 1, 1)}}, "p Evicts", nil},
		{"two budgets", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x")}, Budgets: []*policyv1.PodDisruptionBudget{drainBudget("c", "x", 3, 1, 3), drainBudget("b", "x", 3, 1, 3)}}, "p Blocked TwoBudgets", []string{"budgets b, c select it", "more than one PodDisruptionBudget", "merge"}},
		{"no budget", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x")}, Budgets: []*policyv1.PodDisruptionBudget{drainBudget("b", "y", 1, 1, 1)}}, "p Evicts", []string{"no disruption budget"}},
		{"budget of another namespace", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x")}, Budgets: []*policyv1.PodDisruptionBudget{drainBudget("b", "x", 1, 1, 1, func(b *policyv1.PodDisruptionBudget) { b.Namespace = "other" })}}, "p Evicts", nil},
		{"selector of all", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x")}, Budgets: []*policyv1.PodDisruptionBudget{drainBudget("b", "x", 1, 1, 1, func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = &metav1.LabelSelector{} })}}, "p Blocked NeverAllows", nil},
		{"no selector", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x")}, Budgets: []*policyv1.PodDisruptionBudget{drainBudget("b", "x", 1, 1, 1, func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = nil })}}, "p Evicts", nil},
		{"invalid selector", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x")}, Budgets: []*policyv1.PodDisruptionBudget{drainBudget("b", "x", 1, 1, 1, func(b *policyv1.PodDisruptionBudget) {
			b.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Odd"}}
		})}}, "p Evicts", nil},
		{"one of some labels, one of them twice", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x"), drainedPod("q", "a", "z")}, Budgets: []*policyv1.PodDisruptionBudget{drainBudget("b", "x", 1, 1, 1, func(b *policyv1.PodDisruptionBudget) {
			b.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"x", "x", "y"}}}}
		})}}, "p Blocked NeverAllows\nq Evicts", nil},
		{"none of some labels", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x"), drainedPod("q", "a", "z")}, Budgets: []*policyv1.PodDisruptionBudget{drainBudget("b", "x", 1, 1, 1, func(b *policyv1.PodDisruptionBudget) {
			b.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"z"}}}}
		})}}, "p Blocked NeverAllows\nq Evicts", nil},
		{"not Ready, AlwaysAllow", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x", unready)}, Budgets: []*policyv1.PodDisruptionBudget{drainBudget("b", "x", 1, 1, 0, alwaysAllow)}}, "p Evicts", []string{"not Ready"}},
		{"Ready, AlwaysAllow", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x")}, Budgets: []*policyv1.PodDisruptionBudget{drainBudget("b", "x", 1, 1, 1, alwaysAllow)}}, "p Blocked NeverAllows", nil},
		{"not Ready, enough others are", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x", unready)}, Budgets: []*policyv1.PodDisruptionBudget{drainBudget("b", "x", 3, 2, 2)}}, "p Evicts", nil},
		{"not Ready, none need be", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x", unready)}, Budgets: []*policyv1.PodDisruptionBudget{drainBudget("b", "x", 1, 0, 0)}}, "p Blocked Unhealthy", []string{"needs 0 healthy pods and has 0 currently"}},
		{"not Ready, stale budget, AlwaysAllow", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x", unready)}, Budgets: []*policyv1.PodDisruptionBudget{drainBudget("b", "x", 1, 1, 1, alwaysAllow, func(b *policyv1.PodDisruptionBudget) { b.Generation = 2 })}}, "p Evicts", nil},
		{"stale", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x")}, Budgets: []*policyv1.PodDisruptionBudget{drainBudget("b", "x", 3, 1, 3, func(b *policyv1.PodDisruptionBudget) { b.Generation = 2 })}}, "p Blocked Stale", []string{"The disruption budget b is still being processed by the server.", "disruption controller"}},
		{"negative", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x")}, Budgets: []*policyv1.PodDisruptionBudget{drainBudget("b", "x", 3, 1, 3, func(b *policyv1.PodDisruptionBudget) { b.Status.DisruptionsAllowed = -1 })}}, "p Blocked Stale", []string{"negative"}},
		{"too many unconfirmed", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x")}, Budgets: []*policyv1.PodDisruptionBudget{drainBudget("b", "x", 3, 1, 3, crowd(2001))}}, "p Blocked Stale", []string{"too many evictions not confirmed"}},
		{"as many unconfirmed as may be", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x"), drainedPod("q", "a", "x")}, Budgets: []*policyv1.PodDisruptionBudget{drainBudget("b", "x", 3, 1, 3, crowd(2000))}}, "p Evicts\nq EvictsAfter 1 of b", nil},
		{"status could not be worked out", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x")}, Budgets: []*policyv1.PodDisruptionBudget{drainBudget("b", "x", 3, 3, 0, func(b *policyv1.PodDisruptionBudget) {
			b.Status.Conditions = []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason, Message: "found no controllers"}}
		})}}, "p Blocked Stale", []string{"found no controllers"}},
		{"never allows", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x")}, Budgets: []*policyv1.PodDisruptionBudget{drainBudget("b", "x", 1, 1, 1)}}, "p Blocked NeverAllows", []string{"needs 1 healthy pods and has 1 currently", "1 pods expected, 1 must be healthy, 1 are", "raise the replicas", "budget b"}},
		{"never allows, whether healthy or not", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x", unready)}, Budgets: []*policyv1.PodDisruptionBudget{drainBudget("b", "x", 1, 1, 0)}}, "p Blocked NeverAllows", nil},
		{"one at a time", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("q", "a", "x"), drainedPod("p", "a", "x")}, Budgets: []*policyv1.PodDisruptionBudget{drainBudget("b", "x", 3, 2, 3)}}, "p Evicts\nq EvictsAfter 1 of b", nil},
		{"more allowed than there are", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x"), drainedPod("q", "a", "x")}, Budgets: []*policyv1.PodDisruptionBudget{drainBudget("b", "x", 9, 2, 9)}}, "p Evicts\nq Evicts", nil},
		{"scales go before the status", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x", unready)}, Scales: map[types.UID]mcp.WorkloadScale{"ReplicaSet-x": {Replicas: 3}},
			Budgets: []*policyv1.PodDisruptionBudget{drainBudget("b", "x", 1, 1, 0, func(b *policyv1.PodDisruptionBudget) { b.Spec.MaxUnavailable = &one })}}, "p Blocked Unhealthy", []string{"3 pods expected, 2 must be healthy, 0 are"}},
		{"scales of other controllers", mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x", unready)}, Scales: map[types.UID]mcp.WorkloadScale{"ReplicaSet-y": {Replicas: 3}},
			Budgets: []*policyv1.PodDisruptionBudget{drainBudget("b", "x", 1, 1, 0, func(b *policyv1.PodDisruptionBudget) { b.Spec.MaxUnavailable = &one })}}, "p Blocked NeverAllows", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := mcp.DrainPlan("a", drainView(tt.objects))
			if diff := cmp.Diff(tt.want, told(d)); diff != "" {
				t.Fatal(diff)
			}
			for _, p := range d.Pods {
				if p.Text == "" || (p.Verdict == mcp.DrainBlocked) != (p.Fix != "") {
					t.Errorf("incomplete: %+v", p)
				}
			}
			for _, text := range tt.texts {
				if got := d.Pods[0].Text + "; " + d.Pods[0].Fix; !strings.Contains(got, text) {
					t.Errorf("%q is not in %q", text, got)
				}
			}
		})
	}
}

// crowd has n evictions that nobody has confirmed.
func crowd(n int) budgetEdit {
	return func(b *policyv1.PodDisruptionBudget) {
		b.Status.DisruptedPods = map[string]metav1.Time{}
		for i := range n {
			b.Status.DisruptedPods[fmt.Sprint("gone", i)] = metav1.NewTime(mcptest.Epoch)
		}
	}
}

// TestDrainPlanWhole: a node with pods of every sort, and the whole of what is told.
func TestDrainPlanWhole(t *testing.T) {
	d := mcp.DrainPlan("a", drainView(mcp.DrainObjects{
		Pods: []*corev1.Pod{
			drainedPod("web-1", "a", "web"), drainedPod("web-2", "a", "web"), drainedPod("web-3", "b", "web"),
			drainedPod("db-0", "a", "db"), drainedPod("agent", "a", "agent", ownedBy("DaemonSet", "agent")),
			drainedPod("etcd-x", "a", "etcd", bare, mirror), drainedPod("job", "a", "job", phase(corev1.PodSucceeded)), drainedPod("tmp", "a", "tmp", bare, scratch),
		},
		Budgets:    []*policyv1.PodDisruptionBudget{drainBudget("web", "web", 3, 2, 3), drainBudget("db", "db", 1, 1, 1)},
		DaemonSets: []types.NamespacedName{{Namespace: "ns", Name: "agent"}},
	}))
	want := `agent Stays
db-0 Blocked NeverAllows
etcd-x Stays
job Evicts
tmp Evicts (DataLoss) (NotRecreated)
web-1 Evicts
web-2 EvictsAfter 1 of web`
	checktest.Same(t, want, told(d))
	if d.Succeeds() || len(d.Blocked()) != 1 || d.Blocked()[0].Text != "The disruption budget db needs 1 healthy pods and has 1 currently" {
		t.Errorf("%+v", d.Blocked())
	}
	name := func(s string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: s} }
	checktest.Same(t, [][]types.NamespacedName{{name("job"), name("tmp"), name("web-1")}, {name("web-2")}}, d.Waves)
}

// TestDrainPlanUnhealthy: the pods to repair are named.
func TestDrainPlanUnhealthy(t *testing.T) {
	d := mcp.DrainPlan("a", drainView(mcp.DrainObjects{
		Pods:    []*corev1.Pod{drainedPod("p1", "a", "x"), drainedPod("p3", "c", "x", unready), drainedPod("p2", "b", "x", endsAt(time.Second)), drainedPod("other", "b", "y", unready)},
		Budgets: []*policyv1.PodDisruptionBudget{drainBudget("b", "x", 3, 2, 1)},
	}))
	p := d.Pods[0]
	if p.Kind != mcp.DrainUnhealthy || !strings.Contains(p.Fix, "repair") || !strings.Contains(p.Fix, "unhealthyPodEvictionPolicy: AlwaysAllow") {
		t.Errorf("%+v", p)
	}
	checktest.Same(t, []types.NamespacedName{{Namespace: "ns", Name: "p2"}, {Namespace: "ns", Name: "p3"}}, p.Unhealthy)
}

// TestDrainPlans: nodes that are drained together share what budgets allow.
func TestDrainPlans(t *testing.T) {
	v := drainView(mcp.DrainObjects{
		Pods: []*corev1.Pod{
			drainedPod("p1", "b", "x"), drainedPod("p2", "a", "x"), drainedPod("p3", "a", "x"), drainedPod("p4", "b", "x"), drainedPod("p5", "a", "x"), drainedPod("free", "b", "y"),
			drainedPod("p0", "c", "x"), drainedPod("z", "c", "z", ownedBy("DaemonSet", "d")),
		},
		Budgets:       []*policyv1.PodDisruptionBudget{drainBudget("b", "x", 9, 7, 9)},
		DaemonSetsErr: errors.New("boom"),
	})
	var got []string
	for _, d := range mcp.DrainPlans([]string{"a", "b", "c", "a"}, v) {
		got = append(got, fmt.Sprintf("%s %v\n%s", d.Node, d.Waves, told(d)))
	}
	want := []string{
		"a [[ns/p2] [ns/p3] [ns/p5]]\np2 Evicts\np3 EvictsAfter 2 of b\np5 EvictsAfter 4 of b",
		"b [[ns/free ns/p1] [ns/p4]]\nfree Evicts\np1 Evicts\np4 EvictsAfter 3 of b",
		"c []\np0 Blocked DaemonSetUnknown\nz Blocked DaemonSetUnknown", // its pods do not take what the others may have
		"a [[ns/p2] [ns/p3] [ns/p5]]\np2 Evicts\np3 EvictsAfter 2 of b\np5 EvictsAfter 4 of b",
	}
	checktest.Same(t, want, got)
	if d := mcp.DrainPlan("b", v); told(d) != "free Evicts\np1 Evicts\np4 Evicts" {
		t.Errorf("alone: %s", told(d))
	}
	if d := mcp.DrainPlan("a", mcp.DrainView{}); !d.Succeeds() || d.Node != "a" || d.NotRequired {
		t.Errorf("without a view: %+v", d)
	}
	if d := mcp.DrainPlan("a", mcp.NewDrainView(mcp.DrainObjects{Topology: mcp.TopologySingleReplica})); !d.NotRequired {
		t.Errorf("single node: %+v", d)
	}
	checktest.Same(t, []string{"a", "b", "c"}, v.Nodes())
}

// TestDrainSlow: how long a drain waits for one pod.
func TestDrainSlow(t *testing.T) {
	for _, tt := range []struct{ grace, want, failed int64 }{
		{90, 0, 0}, {91, 91, 1}, {180, 180, 1}, {181, 181, 2}, {810, 810, 8},
		{811, 1020, 9}, {1020, 1020, 9}, {1110, 1110, 9}, {1111, 1410, 10}, {1410, 1410, 10}, {1500, 1500, 10}, {1501, 1800, 11},
		{1 << 62, 100 * 365 * 24 * 3600, 8086160}, {-5, 0, 0},
	} {
		d := mcp.DrainPlan("a", drainView(mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "a", "x", grace(tt.grace))}}))
		notes := d.Pods[0].Notes
		if tt.want == 0 {
			if len(notes) != 0 {
				t.Errorf("%d: %+v", tt.grace, notes)
			}
			continue
		}
		if len(notes) != 1 || notes[0].Kind != mcp.DrainSlow {
			t.Fatalf("%d: %+v", tt.grace, notes)
		}
		if got := int64(notes[0].Expected / time.Second); got < tt.want || got > tt.want+390 || got > tt.want && tt.grace < 1<<62 || !strings.Contains(notes[0].Text, fmt.Sprintf(": %d fail", tt.failed)) {
			t.Errorf("grace %d: %d s, %s", tt.grace, got, notes[0].Text)
		}
	}
}

// What replaces the pods of nodes that are drained together is placed together.
func TestDrainPlacesTogether(t *testing.T) {
	node := func(name, cpu string, changes ...mcptest.Change) *corev1.Node {
		n := mcptest.Worker(name, changes...)
		n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourcePods: resource.MustParse("10")}
		return &n
	}
	tainted := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
	}
	tolerates := func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}
	}
	zone := func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": "z"} }
	never := allowsNone(t)
	for _, tt := range []struct {
		name    string
		nodes   []*corev1.Node
		pods    []*corev1.Pod
		budgets []*policyv1.PodDisruptionBudget
		drained []string // default a
		want    string   // pods without a place
	}{
		{name: "each alone, but not together", nodes: []*corev1.Node{node("b", "3")}, pods: []*corev1.Pod{drainedPod("p", "a", "x", asks("2")), drainedPod("q", "a", "x", asks("2"))}, want: "q"},
		{name: "on two nodes", nodes: []*corev1.Node{node("b", "3"), node("c", "3")}, pods: []*corev1.Pod{drainedPod("p", "a", "x", asks("2")), drainedPod("q", "a", "x", asks("2"))}},
		{name: "the sum would do", nodes: []*corev1.Node{node("b", "3"), node("c", "3")}, pods: []*corev1.Pod{drainedPod("p", "a", "x", asks("2")), drainedPod("q", "a", "x", asks("2")), drainedPod("r", "a", "x", asks("2"))}, want: "r"},
		{name: "the sum would do, but for a taint", nodes: []*corev1.Node{node("b", "1"), node("c", "9", tainted)}, pods: []*corev1.Pod{drainedPod("p", "a", "x", asks("2"))}, want: "p"},
		{name: "the taint is tolerated", nodes: []*corev1.Node{node("b", "1"), node("c", "9", tainted)}, pods: []*corev1.Pod{drainedPod("p", "a", "x", asks("2"), tolerates)}},
		{name: "the choosy first", nodes: []*corev1.Node{node("b", "2", mcptest.Label("zone", "z")), node("c", "2")}, pods: []*corev1.Pod{drainedPod("p", "a", "x", asks("2")), drainedPod("q", "a", "x", asks("1"), zone)}},
		{name: "the large first", nodes: []*corev1.Node{node("b", "2"), node("c", "3")}, pods: []*corev1.Pod{drainedPod("p", "a", "x", asks("1")), drainedPod("q", "a", "x", asks("1")), drainedPod("r", "a", "x", asks("3"))}},
		{name: "a budget keeps one", nodes: []*corev1.Node{node("b", "3")}, pods: []*corev1.Pod{drainedPod("p", "a", "kept", asks("2")), drainedPod("q", "a", "x", asks("2"))}, budgets: never},
		{name: "of two nodes", nodes: []*corev1.Node{node("a", "9"), node("b", "9"), node("c", "3")}, drained: []string{"a", "b"}, pods: []*corev1.Pod{drainedPod("p", "a", "x", asks("2")), drainedPod("q", "b", "x", asks("2"))}, want: "q"},
		{name: "of two nodes, one by one", nodes: []*corev1.Node{node("a", "9"), node("b", "9"), node("c", "3")}, pods: []*corev1.Pod{drainedPod("p", "a", "x", asks("2")), drainedPod("q", "b", "x", asks("2"))}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.drained == nil {
				tt.drained = []string{"a"}
			}
			if got := lost(mcp.DrainPlans(tt.drained, drainView(mcp.DrainObjects{Pods: tt.pods, Nodes: tt.nodes, Budgets: tt.budgets}))); got != tt.want {
				t.Errorf("without a place: %q, want %q", got, tt.want)
			}
		})
	}
}

// allowsNone is a budget of the app kept that allows no disruption.
func allowsNone(t *testing.T) []*policyv1.PodDisruptionBudget {
	t.Helper()
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b", Generation: 1}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "kept"}}
	b.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, ExpectedPods: 1, DesiredHealthy: 1, CurrentHealthy: 1}
	return []*policyv1.PodDisruptionBudget{b}
}

// lost names the pods whose replacement has no place.
func lost(drains []mcp.Drain) string {
	var names []string
	for _, d := range drains {
		for _, p := range d.Pods {
			if slices.ContainsFunc(p.Notes, func(n mcp.DrainNote) bool { return n.Kind == mcp.DrainNowhereToGo }) {
				names = append(names, p.Pod.Name)
			}
		}
	}
	return strings.Join(names, " ")
}

// Where every pod is said to have a place, all have one together. Of pods that ask for the
// same that is so wherever it can be.
func TestDrainPlacesExist(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var nodes []*corev1.Node
		var free []int
		for i := range rapid.IntRange(1, 3).Draw(t, "nodes") {
			n := mcptest.Worker(fmt.Sprint("n", i))
			cpu := rapid.IntRange(0, 6).Draw(t, "cpu")
			n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(fmt.Sprint(cpu))}
			nodes, free = append(nodes, &n), append(free, cpu)
		}
		var pods []*corev1.Pod
		var sizes []int
		same := rapid.IntRange(0, 4).Draw(t, "the same")
		for i := range rapid.IntRange(0, 5).Draw(t, "pods") {
			size := same
			if size == 0 {
				size = rapid.IntRange(1, 4).Draw(t, "size")
			}
			pods, sizes = append(pods, drainedPod(fmt.Sprint("p", i), "a", "x", asks(fmt.Sprint(size)))), append(sizes, size)
		}
		all := lost(mcp.DrainPlans([]string{"a"}, drainView(mcp.DrainObjects{Pods: pods, Nodes: nodes}))) == ""
		switch exists := packs(sizes, free); {
		case all && !exists:
			t.Errorf("pods %v do not fit %v, and none is without a place", sizes, free)
		case !all && exists && same > 0:
			t.Errorf("pods %v fit %v, and one is without a place", sizes, free)
		}
	})
}

// packs reports whether all sizes fit into the rooms.
func packs(sizes, free []int) bool {
	if len(sizes) == 0 {
		return true
	}
	for i := range free {
		if free[i] < sizes[0] {
			continue
		}
		free[i] -= sizes[0]
		ok := packs(sizes[1:], free)
		free[i] += sizes[0]
		if ok {
			return true
		}
	}
	return false
}

// TestDrainNowhereToGo: a pod leaves node a; b is the only other place.
func TestDrainNowhereToGo(t *testing.T) {
	has := func(cpu string) mcptest.Change {
		return func(n *corev1.Node) {
			n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourcePods: resource.MustParse("2")}
		}
	}
	tainted := func(effect corev1.TaintEffect) mcptest.Change {
		return func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k", Value: "v", Effect: effect}} }
	}
	tolerates := func(o corev1.Toleration) podEdit {
		return func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{o} }
	}
	selects := func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": "z"} }
	prefers := func(terms ...corev1.NodeSelectorTerm) podEdit {
		return func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
		}
	}
	expression := func(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: op, Values: values}}}
	}
	field := func(name string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{name}}}}
	}
	always := corev1.ContainerRestartPolicyAlways
	starting := func(restart *corev1.ContainerRestartPolicy) podEdit {
		return func(p *corev1.Pod) {
			asks("1")(p)
			p.Spec.InitContainers = []corev1.Container{{RestartPolicy: restart, Resources: p.Spec.Containers[0].Resources}}
		}
	}
	for _, tt := range []struct {
		name   string
		pod    podEdit
		node   mcptest.Change
		others []*corev1.Pod
		fits   bool
	}{
		{name: "any node", fits: true},
		{name: "cordoned", node: mcptest.Cordoned},
		{name: "not Ready", node: mcptest.Condition(corev1.NodeReady, corev1.ConditionUnknown)},
		{name: "Windows", node: mcptest.Label(mcp.LabelOS, "windows")},
		{name: "deleted", node: mcptest.Deleting},
		{name: "node selector", pod: selects},
		{name: "node selector, met", pod: selects, node: mcptest.Label("zone", "z"), fits: true},
		{name: "affinity to this node", pod: prefers(expression("kubernetes.io/hostname", corev1.NodeSelectorOpIn, "a"))},
		{name: "affinity to this node by field", pod: prefers(field("a"))},
		{name: "affinity to the other node by field", pod: prefers(field("b")), fits: true},
		{name: "one of two terms", pod: prefers(field("a"), expression("node-role.kubernetes.io/worker", corev1.NodeSelectorOpExists)), fits: true},
		{name: "without terms", pod: prefers()},
		{name: "empty term", pod: prefers(corev1.NodeSelectorTerm{})},
		{name: "not in", pod: prefers(expression("zone", corev1.NodeSelectorOpNotIn, "z")), node: mcptest.Label("zone", "z")},
		{name: "absent", pod: prefers(expression("zone", corev1.NodeSelectorOpDoesNotExist)), fits: true},
		{name: "more than", pod: prefers(expression("gen", corev1.NodeSelectorOpGt, "3")), node: mcptest.Label("gen", "4"), fits: true},
		{name: "less than", pod: prefers(expression("gen", corev1.NodeSelectorOpLt, "3")), node: mcptest.Label("gen", "4")},
		{name: "unknown operator", pod: prefers(expression("zone", "Odd", "z")), node: mcptest.Label("zone", "z")},
		{name: "tainted", node: tainted(corev1.TaintEffectNoSchedule)},
		{name: "tainted, executing", node: tainted(corev1.TaintEffectNoExecute)},
		{name: "tainted softly", node: tainted(corev1.TaintEffectPreferNoSchedule), fits: true},
		{name: "tolerated", node: tainted(corev1.TaintEffectNoSchedule), pod: tolerates(corev1.Toleration{Key: "k", Value: "v"}), fits: true},
		{name: "another value", node: tainted(corev1.TaintEffectNoSchedule), pod: tolerates(corev1.Toleration{Key: "k", Operator: corev1.TolerationOpEqual, Value: "w"})},
		{name: "another effect", node: tainted(corev1.TaintEffectNoSchedule), pod: tolerates(corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute})},
		{name: "everything tolerated", node: tainted(corev1.TaintEffectNoSchedule), pod: tolerates(corev1.Toleration{Operator: corev1.TolerationOpExists}), fits: true},
		{name: "another key", node: tainted(corev1.TaintEffectNoSchedule), pod: tolerates(corev1.Toleration{Key: "l", Operator: corev1.TolerationOpExists})},
		{name: "unknown toleration", node: tainted(corev1.TaintEffectNoSchedule), pod: tolerates(corev1.Toleration{Key: "k", Operator: "Odd", Value: "v"})},
		{name: "enough", node: has("1"), pod: asks("1"), fits: true},
		{name: "too much", node: has("1"), pod: asks("1001m")},
		{name: "huge", node: has("1"), pod: asks("1e30")},
		{name: "negative", node: has("1"), pod: asks("-1"), fits: true},
		{name: "taken by another", node: has("1"), pod: asks("600m"), others: []*corev1.Pod{drainedPod("o", "b", "o", asks("500m"))}},
		{name: "another that has ended", node: has("1"), pod: asks("600m"), others: []*corev1.Pod{drainedPod("o", "b", "o", asks("500m"), phase(corev1.PodSucceeded))}, fits: true},
		{name: "as many pods as may be", node: has("1"), others: []*corev1.Pod{drainedPod("o", "b", "o"), drainedPod("o2", "b", "o")}},
		{name: "a node that has none of it", node: has("1"), pod: func(p *corev1.Pod) {
			p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}}}
		}},
		{name: "a node that does not say how much of it", pod: asks("1"), fits: true, node: func(n *corev1.Node) {
			n.Status.Allocatable = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
		}},
		{name: "a container that ends before", node: has("1"), pod: starting(nil), fits: true},
		{name: "a sidecar", node: has("1"), pod: starting(&always)},
		{name: "overhead", node: has("1"), pod: func(p *corev1.Pod) {
			asks("1")(p)
			p.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m")}
		}},
		{name: "requests of the pod", node: has("1"), pod: func(p *corev1.Pod) {
			asks("100m")(p)
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}
		}},
		{name: "a node that does not say what it has", pod: asks("100"), fits: true},
		{name: "nobody creates it again", node: mcptest.Cordoned, pod: bare, fits: true},
		{name: "it is going already", node: mcptest.Cordoned, pod: endsAt(time.Second), fits: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b := mcptest.Worker("a", mcptest.Label("kubernetes.io/hostname", "a")), mcptest.Worker("b")
			if tt.node != nil {
				tt.node(&b)
			}
			p := drainedPod("p", "a", "x")
			if tt.pod != nil {
				tt.pod(p)
			}
			v := drainView(mcp.DrainObjects{Pods: append(tt.others, p), Nodes: []*corev1.Node{&b, &a}})
			for range 2 { // the second time it is known
				d := mcp.DrainPlan("a", v)
				if got := !strings.Contains(told(d), "(NowhereToGo)"); got != tt.fits || !d.Succeeds() {
					t.Errorf("fits %v: %s", got, told(d))
				}
			}
			if d := mcp.DrainPlans([]string{"a", "b"}, v); p.DeletionTimestamp == nil && len(p.OwnerReferences) > 0 && !strings.Contains(told(d[0]), "(NowhereToGo)") {
				t.Errorf("the other node is drained, too: %s", told(d[0]))
			}
		})
	}
}
