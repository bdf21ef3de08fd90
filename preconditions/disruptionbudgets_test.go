package preconditions_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/preconditions"
)

// replica is a Ready pod of a ReplicaSet on a node, labelled app=APP.
func replica(name, node, app string, edits ...func(*corev1.Pod)) *corev1.Pod {
	yes := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app": app},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app, Controller: &yes}}}}
	p.Spec.NodeName = node
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	for _, edit := range edits {
		edit(p)
	}
	return p
}

func crashing(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }

// budgetFor selects app=APP; its status says how many pods it expects, how many
// must be healthy and how many are.
func budgetFor(name, app string, expected, desired, healthy int32, edits ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Generation: 1}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	b.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, ExpectedPods: expected, DesiredHealthy: desired, CurrentHealthy: healthy, DisruptionsAllowed: max(healthy-desired, 0)}
	for _, edit := range edits {
		edit(b)
	}
	return b
}

func stale(b *policyv1.PodDisruptionBudget) { b.Generation = 2 }

func unsynced(b *policyv1.PodDisruptionBudget) {
	b.Status.Conditions = []metav1.Condition{{Type: "DisruptionAllowed", Status: "False", Reason: "SyncFailed", Message: "no controllers"}}
}

func ofMachine(name string) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) {
		b.OwnerReferences = []metav1.OwnerReference{{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachineInstance", Name: name}}
	}
}

func machine(name, liveMigratable string) *unstructured.Unstructured {
	status := map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}, map[string]any{"type": "LiveMigratable", "status": liveMigratable}}}
	if liveMigratable == "" {
		status = map[string]any{}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": map[string]any{"namespace": "ns", "name": name}, "status": status,
	}}
}

func TestDisruptionBudgets(t *testing.T) {
	// Three masters and workers a, b and c, with objects.
	cluster := func(objects ...any) []any {
		all := []any{infrastructure(), poolOf("master"), poolOf("worker"), node("m0", "master"), node("m1", "master"), node("a", "worker"), node("b", "worker"), node("c", "worker")}
		return append(all, objects...)
	}
	const (
		never     = "BudgetAllowsNoDisruption: PodDisruptionBudgets never allow a disruption, so the nodes of their pods are never drained: "
		exhausted = "BudgetExhausted: PodDisruptionBudgets allow no disruption now, since pods of theirs are not healthy: "
		several   = "MultipleBudgets: More than one PodDisruptionBudget selects a pod, so the API server refuses to evict it and the node is never drained: "
		unknown   = "UnknownError: what PodDisruptionBudgets allow is not known, see to it that the disruption controller runs: "
		migrates  = "VirtualMachineMigrates: Virtual machines are migrated to other nodes when theirs are drained: "
		fixed     = "BudgetAllowsNoDisruption: Virtual machines cannot be migrated to another node, so the nodes that they run on are never drained: "
		needs     = "The disruption budget p needs 1 healthy pods and has 1 currently"
	)
	vm := []any{replica("vm1", "a", "vm1"), budgetFor("p", "vm1", 1, 1, 1, ofMachine("vm1"))}
	runCases(t, checkNamed(t, "DisruptionBudgets"), []checkCase{
		// The examples of the documentation.
		{name: "room of one, all on one node", objects: cluster(replica("p1", "a", "x"), replica("p2", "a", "x"), replica("p3", "a", "x"), budgetFor("p", "x", 3, 2, 3)), want: "Passed"},
		{name: "one of one", objects: cluster(replica("p1", "b", "x"), replica("o1", "a", "o"), budgetFor("p", "x", 1, 1, 1)),
			want: "Failed\nWarning " + never + "node b (budget ns/p of pods ns/p1: " + needs + ")"},
		{name: "one of three crashes", objects: cluster(replica("p1", "a", "x"), replica("p2", "b", "x"), replica("p3", "c", "x", crashing), budgetFor("p", "x", 3, 2, 2)),
			want: "Failed\nWarning " + exhausted + "node a (budget ns/p of pods ns/p1: The disruption budget p needs 2 healthy pods and has 2 currently; not healthy: p3), " +
				"node b (budget ns/p of pods ns/p2: The disruption budget p needs 2 healthy pods and has 2 currently; not healthy: p3)"},
		{name: "without pods", objects: cluster(replica("p1", "a", "x"), budgetFor("p", "y", 0, 0, 0)), want: "Passed"},

		// Severities.
		{name: "control plane", objects: cluster(replica("p1", "m0", "x"), budgetFor("p", "x", 1, 1, 1)), want: "Failed\nBlocking " + never + "node m0 (budget ns/p of pods ns/p1: " + needs + ")"},
		{name: "both", objects: cluster(replica("p1", "m1", "x"), replica("p2", "a", "x"), budgetFor("p", "x", 2, 2, 2)),
			want: "Failed\nBlocking " + never + "node m1 (budget ns/p of pods ns/p1: The disruption budget p needs 2 healthy pods and has 2 currently)" +
				"\nWarning " + never + "node a (budget ns/p of pods ns/p2: The disruption budget p needs 2 healthy pods and has 2 currently)"},
		{name: "control plane, exhausted", objects: cluster(replica("p1", "m0", "x"), budgetFor("p", "x", 3, 2, 2)),
			want: "Failed\nWarning " + exhausted + "node m0 (budget ns/p of pods ns/p1: The disruption budget p needs 2 healthy pods and has 2 currently)"},
		{name: "patch", target: "4.18.6@T", objects: cluster(replica("p1", "m0", "x"), budgetFor("p", "x", 1, 1, 1)), want: "Failed\nBlocking " + never + "node m0 (budget ns/p of pods ns/p1: " + needs + ")"},
		{name: "two budgets", objects: cluster(replica("p1", "m0", "x"), replica("p2", "a", "x"), budgetFor("p", "x", 3, 1, 3), budgetFor("q", "x", 3, 1, 3)),
			want: "Failed\nBlocking " + several + "node m0 (budget ns/p and ns/q of pods ns/p1)\nWarning " + several + "node a (budget ns/p and ns/q of pods ns/p2)"},
		{name: "crashing, always allowed", objects: cluster(replica("p1", "a", "x", crashing), budgetFor("p", "x", 1, 1, 0, func(b *policyv1.PodDisruptionBudget) {
			always := policyv1.AlwaysAllow
			b.Spec.UnhealthyPodEvictionPolicy = &always
		})), want: "Passed"},
		{name: "pods of DaemonSets stay", objects: cluster(replica("p1", "a", "x", func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" }), budgetFor("p", "x", 1, 1, 1)), want: "Passed"},
		{name: "several budgets on a node", objects: cluster(replica("q1", "a", "y"), replica("p1", "a", "x"), replica("p0", "a", "x"), budgetFor("q", "y", 1, 1, 1), budgetFor("p", "x", 1, 1, 1)),
			want: "Failed\nWarning " + never + "node a (budget ns/p of pods ns/p0, ns/p1: " + needs + "; budget ns/q of pods ns/q1: The disruption budget q needs 1 healthy pods and has 1 currently)"},

		// Not known.
		{name: "stale", objects: cluster(replica("p1", "a", "x"), budgetFor("p", "x", 1, 1, 1, stale)), want: "Unknown\nWarning " + unknown + "ns/p (The disruption budget p is still being processed by the server.)"},
		{name: "not worked out", objects: cluster(replica("p1", "a", "x"), budgetFor("p", "x", 1, 1, 1, unsynced)), want: "Unknown\nWarning " + unknown + "ns/p (" + needs + ", and its status could not be worked out: no controllers)"},
		{name: "not worked out, allows", objects: cluster(replica("p1", "a", "x"), budgetFor("p", "x", 3, 1, 3, unsynced)), want: "Unknown\nWarning " + unknown + "ns/p (its status could not be worked out)"},
		{name: "stale beside another", objects: cluster(replica("p1", "a", "x"), replica("q1", "b", "y"), budgetFor("p", "x", 1, 1, 1), budgetFor("q", "y", 1, 1, 1, stale)),
			want: "Failed\nWarning " + never + "node a (budget ns/p of pods ns/p1: " + needs + ")\nWarning " + unknown + "ns/q (The disruption budget q is still being processed by the server.)"},
		{name: "stale without pods", objects: cluster(budgetFor("p", "x", 1, 1, 1, stale)), want: "Passed"},

		// Other kinds.
		{name: "notes", objects: cluster(replica("p1", "a", "x", func(p *corev1.Pod) {
			seconds := int64(600)
			p.OwnerReferences, p.Spec.TerminationGracePeriodSeconds = nil, &seconds
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		})), want: "Passed\nInfo Slow: Pods may take longer to end than an attempt to drain lasts, so attempts fail before one succeeds: node a (pods ns/p1: up to 10m0s)\n" +
			"Info DataLoss: Pods lose what they keep in emptyDir volumes when they are evicted: node a (1 pods)\n" +
			"Info NotRecreated: Pods have no controller, so nobody creates them again after they are evicted: node a (1 pods)"},
		{name: "terminating", input: func(in *preconditions.Input) { in.Now = time.Date(2026, 1, 1, 0, 2, 0, 0, time.UTC) }, objects: cluster(replica("p1", "m0", "x", func(p *corev1.Pod) {
			at := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
			p.DeletionTimestamp, p.Finalizers = &at, []string{"f"}
		})), want: "Passed\nInfo Terminating: Pods should have ended, and a drain waits for them: node m0 (pods ns/p1: it should have ended at 2026-01-01T00:00:00Z, and has the finalizers f)"},

		// Virtual machines.
		{name: "migratable", objects: cluster(append(vm, machine("vm1", "True"))...), want: "Passed\nInfo " + migrates + "node a (budget ns/p of pods ns/vm1: virtual machine vm1)"},
		{name: "not migratable", objects: cluster(append(vm, machine("vm1", "False"))...), want: "Failed\nWarning " + fixed + "node a (budget ns/p of pods ns/vm1: virtual machine vm1 is not LiveMigratable)"},
		{name: "not migratable, control plane", objects: cluster(replica("vm1", "m0", "vm1"), budgetFor("p", "vm1", 1, 1, 1, ofMachine("vm1")), machine("vm1", "Unknown")),
			want: "Failed\nBlocking " + fixed + "node m0 (budget ns/p of pods ns/vm1: virtual machine vm1 is not LiveMigratable)"},
		{name: "does not say whether it is migratable", objects: cluster(append(vm, machine("vm1", ""))...), want: "Failed\nWarning " + fixed + "node a (budget ns/p of pods ns/vm1: virtual machine vm1 is not LiveMigratable)"},
		{name: "machine is gone", objects: cluster(append(vm, machine("vm2", "True"))...), want: "Failed\nWarning " + fixed + "node a (budget ns/p of pods ns/vm1: virtual machine vm1 is not LiveMigratable)"},
		{name: "machine, stale budget", objects: cluster(replica("vm1", "a", "vm1"), budgetFor("p", "vm1", 1, 1, 1, ofMachine("vm1"), stale), machine("vm1", "True")), want: "Passed\nInfo " + migrates + "node a (budget ns/p of pods ns/vm1: virtual machine vm1)"},
		{name: "machine is malformed", objects: cluster(append(vm, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": map[string]any{"namespace": "ns", "name": "vm1"}, "status": map[string]any{"conditions": "x"}}})...),
			want: "Unknown\nWarning UnknownError: VirtualMachineInstance ns/vm1: .status.conditions accessor error: x is of the type string, expected []interface{}"},
		{name: "machines are unreadable", objects: cluster(vm...), fail: map[string]error{"VirtualMachineInstance": errors.New("boom")}, want: "Unknown\nWarning UnknownError: boom"},
		{name: "machines are not asked for", objects: cluster(replica("p1", "a", "x"), budgetFor("p", "x", 3, 1, 3)), fail: map[string]error{"VirtualMachineInstance": errors.New("boom")}, want: "Passed"},
		{name: "machines are not served", objects: cluster(vm...), fail: map[string]error{"VirtualMachineInstance": noKind("VirtualMachineInstance")}, want: "Unknown\nWarning UnknownError: " + noKind("VirtualMachineInstance").Error()},

		// Which nodes.
		{name: "paused", objects: []any{poolOf("master"), poolOf("worker", paused), node("m", "master"), node("a", "worker"), replica("p1", "a", "x"), budgetFor("p", "x", 1, 1, 1)}, want: "Passed"},
		{name: "no pool", objects: cluster(replica("p1", "elsewhere", "x"), budgetFor("p", "x", 1, 1, 1)), want: "Passed"},
		{name: "maxUnavailable is not valid", objects: []any{poolOf("worker", atMost("-1")), node("a", "worker"), node("b", "worker"), replica("p1", "a", "x"), budgetFor("p", "x", 1, 1, 1)},
			want: "Failed\nWarning " + never + "node a (budget ns/p of pods ns/p1: " + needs + ")"},
		{name: "single node", objects: []any{infrastructure(singleReplica), poolOf("master"), node("m", "master"), node("w", "worker"), replica("p1", "m", "x"), budgetFor("p", "x", 1, 1, 1)},
			want: "NotApplicable\nInfo NotApplicable: the cluster has a single control plane node: no node is drained"},
		{name: "one node in all", objects: []any{infrastructure(), poolOf("master"), node("m", "master"), replica("p1", "m", "x"), budgetFor("p", "x", 1, 1, 1)},
			want: "NotApplicable\nInfo NotApplicable: the cluster has a single control plane node: no node is drained"},

		// Reads.
		{name: "no pools served", fail: map[string]error{"MachineConfigPool": noKind("MachineConfigPool")}, want: "NotApplicable\nInfo NotApplicable: the cluster has no machine config pools"},
		{name: "topology unreadable", objects: cluster(replica("p1", "a", "x"), budgetFor("p", "x", 1, 1, 1)), fail: map[string]error{"Infrastructure": errors.New("boom")},
			want: "Failed\nWarning " + never + "node a (budget ns/p of pods ns/p1: " + needs + ")\nWarning UnknownError: boom"},
		{name: "a malformed budget", objects: cluster(replica("p1", "a", "x"), budgetFor("p", "x", 1, 1, 1), malformed("policy/v1", "PodDisruptionBudget", "bad")),
			want: "Failed\nWarning " + never + "node a (budget ns/p of pods ns/p1: " + needs + ")\nWarning UnknownError: PodDisruptionBudget bad: spec: got a JSON string, want v1.PodDisruptionBudgetSpec"},
		{name: "a malformed pod", objects: cluster(malformed("v1", "Pod", "bad")), want: "Unknown\nWarning UnknownError: Pod bad: spec: got a JSON string, want v1.PodSpec"},
		{name: "a malformed node may take replacements", objects: []any{poolOf("worker"), node("a", "worker"), malformed("v1", "Node", "bad"), replica("p1", "a", "x")}, want: "Unknown\nWarning UnknownError: Node bad: spec: got a JSON string, want v1.NodeSpec"},
	})
}

// TestDisruptionBudgetsObjects: node, budget and pods, in this order.
func TestDisruptionBudgetsObjects(t *testing.T) {
	cv := clusterVersion("4.18.5")
	r := reader(t, cv, poolOf("worker"), node("b", "worker"), node("a", "worker"), replica("p2", "b", "x"), replica("p1", "b", "x"), replica("p3", "a", "x"), budgetFor("p", "x", 3, 3, 3))
	result := run(t, []preconditions.Check{checkNamed(t, "DisruptionBudgets")}, input(r, cv, "4.18.6")).Results[0]
	checktest.FatalIf(t, len(result.Findings) != 1, "%+v", result)
	var got []string
	for _, o := range result.Findings[0].Objects {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s/%s %s=%s %s", o.GVK.Kind, o.Namespace, o.Name, o.FieldPath, o.Value, o.Note)))
	}
	const budget = "PodDisruptionBudget ns/p status.disruptionsAllowed=0 The disruption budget p needs 3 healthy pods and has 3 currently"
	want := []string{"Node /a = pool worker", budget, "Pod ns/p3 =", "Node /b = pool worker", budget, "Pod ns/p1 =", "Pod ns/p2 ="}
	checktest.Same(t, want, got)
	checktest.FailIf(t, result.Findings[0].Remedy == "" || result.Findings[0].Source == "", "%+v", result.Findings[0])
}

// TestDrainOrder: nodes go by zone, then by age; the node of the
// operator last. So which of them are drained together is told by who lacks a place.
func TestDrainOrder(t *testing.T) {
	zone := func(z string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Labels["topology.kubernetes.io/zone"] = z }
	}
	// Pods of pair p fit only two nodes: if these go together, there is no place.
	pair := func(p string, z string) func(*corev1.Node) {
		return func(n *corev1.Node) { zone(z)(n); n.Labels["pair"] = p }
	}
	bound := func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"pair": p.Labels["app"]} }
	operator := func(node string) *corev1.Pod {
		p := replica("mco-"+node, node, "mco")
		p.Namespace, p.Labels = "openshift-machine-config-operator", map[string]string{"k8s-app": "machine-config-operator"}
		return p
	}
	for _, tt := range []struct {
		name    string
		role    string
		objects []any
		fails   bool
	}{
		{"neighbours by zone", "worker", []any{node("n1", "worker", pair("p", "z1")), node("n2", "worker", zone("z2")), node("n3", "worker", pair("p", "z1")), node("n4", "worker", zone("z2"))}, true},
		{"not neighbours", "worker", []any{node("n1", "worker", pair("p", "z1")), node("n2", "worker", zone("z1")), node("n3", "worker", pair("p", "z2")), node("n4", "worker", zone("z2"))}, false},
		{"the operator's node is last", "master", []any{node("n1", "master", pair("p", "z1")), node("n2", "master", zone("z1")), node("n3", "master", pair("p", "z1")), node("n4", "master", zone("z1")), operator("n2")}, true},
		{"not in other pools", "worker", []any{node("n1", "worker", pair("p", "z1")), node("n2", "worker", zone("z1")), node("n3", "worker", pair("p", "z1")), node("n4", "worker", zone("z1")), operator("n2")}, false},
		{"two operators", "master", []any{node("n1", "master", pair("p", "z1")), node("n2", "master", zone("z1")), node("n3", "master", pair("p", "z1")), node("n4", "master", zone("z1")), operator("n2"), operator("n4")}, false},
	} {
		cv := clusterVersion("4.18.5")
		objects := append(tt.objects, cv, poolOf(tt.role, atMost("2")), replica("p1", "n1", "p", bound), budgetFor("b", "p", 3, 1, 3))
		result := run(t, []preconditions.Check{checkNamed(t, "SpareCapacity")}, input(reader(t, objects...), cv, "4.18.6")).Results[0]
		checktest.Equal(t, tt.fails, result.State == preconditions.Failed, "%s: %s", tt.name, brief(result))
	}
}

// partly lists a kind and says that there may be more.
type partly struct {
	*fakeReader
	kind string
}

func (r partly) List(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	list, err := r.fakeReader.List(ctx, gvk, opts)
	if err == nil && gvk.Kind == r.kind {
		err = clusterapi.ErrNotCollected
	}
	return list, err
}

// TestDisruptionBudgetsPartly: what is known of a list still fails, and never passes.
func TestDisruptionBudgetsPartly(t *testing.T) {
	cv := clusterVersion("4.18.5")
	never := []any{replica("p1", "a", "x"), budgetFor("p", "x", 1, 1, 1)}
	machines := []any{replica("v1", "a", "v1"), budgetFor("v1", "v1", 1, 1, 1, ofMachine("v1")), machine("v1", "False"), replica("v2", "a", "v2"), budgetFor("v2", "v2", 1, 1, 1, ofMachine("v2"))}
	for _, tt := range []struct {
		kind    string
		objects []any
		want    string // reasons
	}{
		{"Pod", never, "Failed BudgetAllowsNoDisruption NotCollected"},
		{"Node", never, "Failed BudgetAllowsNoDisruption NotCollected"},
		{"MachineConfigPool", never, "Failed BudgetAllowsNoDisruption NotCollected"},
		{"PodDisruptionBudget", never, "Failed BudgetAllowsNoDisruption NotCollected"},
		{"VirtualMachineInstance", machines, "Failed BudgetAllowsNoDisruption NotCollected"},
		{"PodDisruptionBudget", nil, "Unknown NotCollected"},
	} {
		objects := append([]any{cv, infrastructure(), poolOf("worker"), node("a", "worker"), node("b", "worker")}, tt.objects...)
		result := run(t, []preconditions.Check{checkNamed(t, "DisruptionBudgets")}, input(partly{reader(t, objects...), tt.kind}, cv, "4.18.6")).Results[0]
		got := string(result.State)
		for _, f := range result.Findings {
			got += " " + f.Reason
			if f.Reason == "BudgetAllowsNoDisruption" && len(f.Objects) != 3 {
				t.Errorf("%s: %+v", tt.kind, f.Objects)
			}
		}
		checktest.Equal(t, tt.want, got, "%s", tt.kind)
	}
}
