package preconditions_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/preconditions"
)

// node is a node of a role that is done with its configuration.
func node(name, role string, edits ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"node-role.kubernetes.io/" + role: ""},
		Annotations: map[string]string{
			"machineconfiguration.openshift.io/currentConfig": "c", "machineconfiguration.openshift.io/desiredConfig": "c", "machineconfiguration.openshift.io/state": "Done",
		},
	}}
	n.Status.NodeInfo.KubeletVersion = "v1.31.4"
	n.Status.NodeInfo.OSImage = "Red Hat Enterprise Linux CoreOS 418.94.202501221327-0"
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, edit := range edits {
		edit(n)
	}
	return n
}

func kubelet(v string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Status.NodeInfo.KubeletVersion = v }
}

func notReady(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }
func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

// update is a cordoned node that the machine-config operator is taking to config n.
func update(state, desiredDrain, lastDrain string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		drains(desiredDrain, lastDrain)(n)
		n.Annotations["machineconfiguration.openshift.io/desiredConfig"], n.Annotations["machineconfiguration.openshift.io/state"] = "n", state
	}
}

// drains is a cordoned node with what is asked of the drain controller and what it did.
func drains(desired, last string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		cordoned(n)
		n.Annotations["machineconfiguration.openshift.io/desiredDrain"], n.Annotations["machineconfiguration.openshift.io/lastAppliedDrain"] = desired, last
	}
}

func working(n *corev1.Node) {
	n.Annotations["machineconfiguration.openshift.io/state"] = "Working"
}

// osImage is the operating system that the kubelet reports.
func osImage(name string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Status.NodeInfo.OSImage = name }
}

func rhel(version string) func(*corev1.Node) { return osImage("Red Hat Enterprise Linux " + version) }

func has(cpu, memory string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
}

// poolOf is a pool that selects the nodes of its role and is updated.
func poolOf(role string, edits ...func(*mcfgv1.MachineConfigPool)) *mcfgv1.MachineConfigPool {
	p := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: role}}
	p.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/" + role: ""}}
	p.Spec.Configuration.Name = "c"
	p.Status.MachineCount = 3
	poolIs(false, true, 3)(p)
	for _, edit := range edits {
		edit(p)
	}
	return p
}

func poolIs(updating, updated bool, count int32) func(*mcfgv1.MachineConfigPool) {
	status := map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}
	return func(p *mcfgv1.MachineConfigPool) {
		p.Status.UpdatedMachineCount = count
		p.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{
			{Type: mcfgv1.MachineConfigPoolUpdating, Status: status[updating]}, {Type: mcfgv1.MachineConfigPoolUpdated, Status: status[updated]},
		}
	}
}

func paused(p *mcfgv1.MachineConfigPool) { p.Spec.Paused = true }

func atMost(v string) func(*mcfgv1.MachineConfigPool) {
	return func(p *mcfgv1.MachineConfigPool) {
		m := intstr.Parse(v)
		p.Spec.MaxUnavailable = &m
	}
}

func infrastructure(edits ...func(*configv1.Infrastructure)) *configv1.Infrastructure {
	i := &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	i.Status.ControlPlaneTopology = configv1.HighlyAvailableTopologyMode
	i.Status.PlatformStatus = &configv1.PlatformStatus{Type: configv1.AWSPlatformType}
	for _, edit := range edits {
		edit(i)
	}
	return i
}

func singleReplica(i *configv1.Infrastructure) {
	i.Status.ControlPlaneTopology = configv1.SingleReplicaTopologyMode
}

// malformed is an object of a kind with a spec and a status that are no objects.
func malformed(apiVersion, kind, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}, "spec": "x", "status": []any{int64(1)},
	}}
}

func TestPoolsUpdating(t *testing.T) {
	busy := poolIs(true, false, 1)
	runCases(t, checkNamed(t, "PoolsUpdating"), []checkCase{
		{name: "updated", objects: []any{poolOf("master"), poolOf("worker")}, want: "Passed"},
		{name: "control plane, minor", objects: []any{poolOf("master", busy)}, want: "Failed\nBlocking PoolUpdating: Machine config pools are being updated, which this update has to wait for: master (1 of 3 machines updated)"},
		{name: "control plane, major", target: "5.0.0@T", objects: []any{poolOf("master", busy)}, want: "Failed\nBlocking PoolUpdating: Machine config pools are being updated, which this update has to wait for: master (1 of 3 machines updated)"},
		{name: "control plane, patch", target: "4.18.6@T", objects: []any{poolOf("master", busy)}, want: "Failed\nWarning PoolUpdating: Machine config pools are being updated: master (1 of 3 machines updated)"},
		{name: "control plane, rollback", target: "4.18.4@T", objects: []any{poolOf("master", busy)}, want: "Failed\nWarning PoolUpdating: Machine config pools are being updated: master (1 of 3 machines updated)"},
		{name: "workers", objects: []any{poolOf("master"), poolOf("worker", busy), poolOf("infra", busy)}, want: "Failed\nWarning PoolUpdating: Machine config pools are being updated: infra (1 of 3 machines updated), worker (1 of 3 machines updated)"},
		{name: "workers, control plane only", plan: preconditions.ControlPlaneOnly, objects: []any{poolOf("worker", busy)}, want: "Failed\nBlocking PoolUpdating: Machine config pools are being updated, which this update has to wait for: worker (1 of 3 machines updated)"},
		{name: "workers, control plane only, patch", target: "4.18.6@T", plan: preconditions.ControlPlaneOnly, objects: []any{poolOf("worker", busy)}, want: "Failed\nWarning PoolUpdating: Machine config pools are being updated: worker (1 of 3 machines updated)"},
		{name: "workers, canary", plan: preconditions.Canary, objects: []any{poolOf("worker", busy)}, want: "Failed\nWarning PoolUpdating: Machine config pools are being updated: worker (1 of 3 machines updated)"},
		{name: "not updated, not updating", objects: []any{poolOf("worker", poolIs(false, false, 0))}, want: "Failed\nWarning PoolUpdating: Machine config pools are being updated: worker (0 of 3 machines updated)"},
		{name: "updated and updating", objects: []any{poolOf("worker", poolIs(true, true, 3))}, want: "Failed\nWarning PoolUpdating: Machine config pools are being updated: worker (3 of 3 machines updated)"},
		{name: "no condition", objects: []any{poolOf("worker", func(p *mcfgv1.MachineConfigPool) { p.Status.Conditions = nil })}, want: "Failed\nWarning PoolUpdating: Machine config pools are being updated: worker (3 of 3 machines updated)"},
		{name: "paused", objects: []any{poolOf("master", busy, paused), poolOf("worker", busy, paused)}, want: "Passed"},
		{name: "version not known", target: "x", objects: []any{poolOf("master", busy)}, want: "Failed\nBlocking PoolUpdating: Machine config pools are being updated, which this update has to wait for: master (1 of 3 machines updated)"},
		{name: "malformed", objects: []any{poolOf("worker", busy), malformed("machineconfiguration.openshift.io/v1", "MachineConfigPool", "x")},
			want: "Failed\nWarning PoolUpdating: Machine config pools are being updated: worker (1 of 3 machines updated)\nWarning UnknownError: MachineConfigPool x: spec: got a JSON string, want v1.MachineConfigPoolSpec"},
		{name: "not served", fail: map[string]error{"MachineConfigPool": noKind("MachineConfigPool")}, want: "NotApplicable\nInfo NotApplicable: the cluster has no machine config pools"},
	})
}

// apiServer is the operator of an API server of a version.
func apiServer(version string) *configv1.ClusterOperator {
	co := clusterOperator("kube-apiserver")
	co.Status.Versions = []configv1.OperandVersion{{Name: "operator", Version: "4.18.5"}, {Name: "kube-apiserver", Version: version}}
	return co
}

func TestKubeletSkew(t *testing.T) {
	const next = "will not be supported in the next OpenShift minor version upgrade."
	workers := func(versions ...string) []any {
		objects := []any{poolOf("worker")}
		for i, v := range versions {
			objects = append(objects, node(fmt.Sprintf("w%d", i), "worker", kubelet(v)))
		}
		return objects
	}
	runCases(t, checkNamed(t, "KubeletSkew"), []checkCase{
		{name: "even, the same", objects: workers("v1.31.4", "1.31.0"), want: "Passed"},
		{name: "even, one behind", objects: workers("v1.30.4"), want: "Failed\nBlocking KubeletMinorVersionUnsupportedNextUpgrade: Kubelet minor version (1.30.4) on node w0 " + next + " w0 (kubelet 1.30.4, pool worker)"},
		{name: "two nodes", objects: workers("v1.30.4", "v1.30.5"), want: "Failed\nBlocking KubeletMinorVersionUnsupportedNextUpgrade: Kubelet minor versions on nodes w0 and w1 " + next + " w0 (kubelet 1.30.4, pool worker), w1 (kubelet 1.30.5, pool worker)"},
		{name: "three nodes", objects: workers("v1.30.4", "v1.30.5", "v1.29.0"), want: "Failed\nBlocking KubeletMinorVersionUnsupportedNextUpgrade: Kubelet minor versions on nodes w0, w1, and w2 " + next + " w0 (kubelet 1.30.4, pool worker), w1 (kubelet 1.30.5, pool worker), w2 (kubelet 1.29.0, pool worker)"},
		{name: "four nodes", objects: workers("v1.30.4", "v1.30.4", "v1.30.4", "v1.30.4"), want: "Failed\nBlocking KubeletMinorVersionUnsupportedNextUpgrade: Kubelet minor versions on 4 nodes " + next + " w0 (kubelet 1.30.4, pool worker), w1 (kubelet 1.30.4, pool worker), w2 (kubelet 1.30.4, pool worker), w3 (kubelet 1.30.4, pool worker)"},
		{name: "even, three behind", objects: workers("v1.28.4"), want: "Failed\nBlocking KubeletMinorVersionUnsupported: Kubelet minor version (1.28.4) on node w0 is too far behind the API server (1.31). w0 (kubelet 1.28.4, pool worker)"},
		{name: "odd, one behind", current: "4.19.3@A", target: "4.20.1@T", objects: workers("v1.31.4"), want: "Passed"},
		{name: "odd, two behind", current: "4.19.3@A", target: "4.20.1@T", objects: workers("v1.30.4"), want: "Failed\nBlocking KubeletMinorVersionUnsupported: Kubelet minor version (1.30.4) on node w0 is too far behind the API server (1.32). w0 (kubelet 1.30.4, pool worker)"},
		{name: "two steps from even", target: "4.20.1@T", objects: workers("v1.31.4"), want: "Passed"},
		{name: "two steps from odd", current: "4.19.3@A", target: "4.21.1@T", objects: workers("v1.32.4"), want: "Failed\nBlocking KubeletMinorVersionUnsupportedNextUpgrade: Kubelet minor version (1.32.4) on node w0 " + next + " w0 (kubelet 1.32.4, pool worker)"},
		{name: "ahead, and others", objects: workers("v1.32.4", "x", "v1.30.1", ""), want: "Failed\nWarning KubeletMinorVersionAhead: Kubelet minor version (1.32.4) on node w0 is ahead of the API server (1.31). w0 (kubelet 1.32.4, pool worker)\n" +
			"Warning KubeletVersionUnknown: Kubelet minor versions on nodes w1 and w3 are not versions. w1 (kubelet x, pool worker), w3 (no kubelet version, pool worker)\n" +
			"Blocking KubeletMinorVersionUnsupportedNextUpgrade: Kubelet minor version (1.30.1) on node w2 " + next + " w2 (kubelet 1.30.1, pool worker)"},
		{name: "what the API server reports counts", objects: append(workers("v1.31.4"), apiServer("1.32.0")), want: "Failed\nBlocking KubeletMinorVersionUnsupportedNextUpgrade: Kubelet minor version (1.31.4) on node w0 " + next + " w0 (kubelet 1.31.4, pool worker)"},
		{name: "it reports none", objects: append(workers("v1.31.4"), apiServer("x")), want: "Passed"},
		{name: "another major", current: "4.22.5@A", target: "5.0.1@T", objects: workers("v1.35.1", "v1.34.1"), want: "Failed\nBlocking KubeletMinorVersionUnsupportedNextUpgrade: Kubelet minor version (1.34.1) on node w1 " + next + " w1 (kubelet 1.34.1, pool worker)"},
		{name: "5.0", current: "5.0.1@A", target: "5.1.1@T", objects: workers("v1.36.1", "v1.35.1"), want: "Passed"},
		{name: "5.2 not known", current: "5.2.1@A", target: "5.3.1@T", objects: workers("v1.38.1"), want: "Unknown\nWarning UnknownError: the version of the API server in OpenShift 5.2.1 is not known: the ClusterOperator kube-apiserver does not report it"},
		{name: "5.2 by table", current: "5.2.1@A", target: "5.3.1@T", objects: workers("v1.38.1", "v1.37.1"), input: func(in *preconditions.Input) { in.KubernetesMinors = map[string]uint64{"5.2": 38} },
			want: "Failed\nBlocking KubeletMinorVersionUnsupportedNextUpgrade: Kubelet minor version (1.37.1) on node w1 " + next + " w1 (kubelet 1.37.1, pool worker)"},
		{name: "control plane only to 5.2", current: "4.22.5@A", target: "5.2.1@T", objects: workers("v1.35.1"), want: "Passed"},
		{name: "and no further", current: "4.22.5@A", target: "5.3.1@T", objects: workers("v1.35.1"), want: "Failed\nBlocking KubeletMinorVersionUnsupportedNextUpgrade: Kubelet minor version (1.35.1) on node w0 " + next + " w0 (kubelet 1.35.1, pool worker)"},
		{name: "no pools", objects: workers("v1.30.4"), fail: map[string]error{"MachineConfigPool": noKind("MachineConfigPool")}, want: "Failed\nBlocking KubeletMinorVersionUnsupportedNextUpgrade: Kubelet minor version (1.30.4) on node w0 " + next + " w0 (kubelet 1.30.4)"},
		{name: "pools not known", objects: workers("v1.30.4"), fail: map[string]error{"MachineConfigPool": errors.New("boom")}, want: "Failed\nBlocking KubeletMinorVersionUnsupportedNextUpgrade: Kubelet minor version (1.30.4) on node w0 " + next + " w0 (kubelet 1.30.4)\nWarning UnknownError: boom"},
		{name: "malformed", objects: append(workers("v1.31.4"), malformed("v1", "Node", "x")), want: "Unknown\nWarning UnknownError: Node x: spec: got a JSON string, want v1.NodeSpec"},
		{name: "patch", target: "4.18.6@T", objects: workers("v1.20.0"), want: "NotApplicable"},
	})
}

// The classes by a direct reading of their table.
func TestKubeletSkewClasses(t *testing.T) {
	check := checkNamed(t, "KubeletSkew")
	reason := func(minor, steps int, version string) string {
		cv := clusterVersion(fmt.Sprintf("4.%d.3", minor))
		r := reader(t, cv, poolOf("worker"), node("w0", "worker", kubelet(version)))
		report, err := preconditions.Run(context.Background(), []preconditions.Check{check}, input(r, cv, fmt.Sprintf("4.%d.1", minor+steps)), preconditions.Options{})
		checktest.FatalIf(t, err != nil || len(report.Results[0].Findings) > 1, "%+v, %v", report, err)
		for _, f := range report.Results[0].Findings {
			return f.Reason
		}
		return ""
	}
	rapid.Check(t, func(t *rapid.T) {
		minor := rapid.IntRange(10, 21).Draw(t, "OpenShift minor")
		skew := rapid.IntRange(-5, 3).Draw(t, "skew")
		lowest := func(minor int) int { return map[bool]int{true: -2, false: -1}[minor%2 == 0] }
		want := ""
		switch {
		case skew < lowest(minor):
			want = "KubeletMinorVersionUnsupported"
		case skew > 0:
			want = "KubeletMinorVersionAhead"
		case skew-1 < lowest(minor+1):
			want = "KubeletMinorVersionUnsupportedNextUpgrade"
		}
		version := fmt.Sprintf("v1.%d.3+abc", minor+13+skew)
		checktest.Equal(t, want, reason(minor, 1, version), "4.%d, kubelet %s", minor, version)
		// From even to even a node may skip, and no further.
		if minor%2 == 0 && skew == 0 && minor <= 14 {
			checktest.Equal(t, "", reason(minor, 2, version), "two steps from 4.%d", minor)
			checktest.Equal(t, "KubeletMinorVersionUnsupportedNextUpgrade", reason(minor, 9, version),
				"more steps from 4.%d", minor)
		}
	})
}

func TestNodesUnavailable(t *testing.T) {
	three := func(role string, edits ...func(*corev1.Node)) []any {
		var objects []any
		for i := range 3 {
			var edit []func(*corev1.Node)
			if i < len(edits) && edits[i] != nil {
				edit = append(edit, edits[i])
			}
			objects = append(objects, node(fmt.Sprintf("%s%d", role, i), role, edit...))
		}
		return objects
	}
	with := func(objects []any, more ...any) []any { return append(objects, more...) }
	runCases(t, checkNamed(t, "NodesUnavailable"), []checkCase{
		{name: "all there", objects: with(three("master"), poolOf("master"), poolOf("worker"), infrastructure()), want: "Passed"},
		{name: "control plane", objects: with(three("master", notReady), poolOf("master")), want: "Failed\nBlocking NoRoomToUpdate: Not one node of pool master would be updated: 1 are unavailable, and 1 may be: master0 (node master0 is reporting NotReady=Unknown)"},
		{name: "workers", objects: with(three("worker", nil, cordoned), poolOf("worker")), want: "Failed\nWarning NoRoomToUpdate: Not one node of pool worker would be updated: 1 are unavailable, and 1 may be: worker1 (unschedulable)"},
		{name: "with room", objects: with(three("worker", working), poolOf("worker", atMost("2"))), want: "Failed\nWarning NodesUnavailable: 1 of 3 nodes of pool worker are unavailable, of which 2 may be: worker0 (its machine config daemon is not done)"},
		{name: "never more than a warning for a patch", target: "4.18.6@T", objects: with(three("master", cordoned), poolOf("master")), want: "Failed\nWarning NoRoomToUpdate: Not one node of pool master would be updated: 1 are unavailable, and 1 may be: master0 (unschedulable)"},
		{name: "percent rounded down", objects: with(three("worker", cordoned, cordoned), poolOf("worker", atMost("70%"))), want: "Failed\nWarning NoRoomToUpdate: Not one node of pool worker would be updated: 2 are unavailable, and 2 may be: worker0 (unschedulable), worker1 (unschedulable)"},
		{name: "negative", objects: with(three("master"), poolOf("master", atMost("-1"))), want: "Failed\nBlocking NoRoomToUpdate: Not one node of pool master would be updated: maxUnavailable: -1 is negative: the pool would never update: master"},
		{name: "negative, patch", target: "4.18.6@T", objects: with(three("master"), poolOf("master", atMost("-1"))), want: "Failed\nWarning NoRoomToUpdate: Not one node of pool master would be updated: maxUnavailable: -1 is negative: the pool would never update: master"},
		{name: "drained by the operator", objects: with(three("master", update("Working", "drain-n", "uncordon-c"), nil, nil), poolOf("master")), want: "Passed"},
		{name: "drained for the same configuration", objects: with(three("master", drains("drain-c", "uncordon-c"), nil, nil), poolOf("master")), want: "Passed"},
		{name: "uncordoned by the operator", objects: with(three("master", drains("uncordon-c", "drain-c"), nil, nil), poolOf("master")), want: "Passed"},
		{name: "rebooting", objects: with(three("master", update("Rebooting", "drain-n", "drain-n"), nil, nil), poolOf("master")), want: "Passed"},
		{name: "on its way to an image", objects: with(three("worker", func(n *corev1.Node) {
			cordoned(n)
			n.Annotations["machineconfiguration.openshift.io/currentImage"], n.Annotations["machineconfiguration.openshift.io/desiredImage"] = "i", "j"
		}), poolOf("worker")), want: "Passed"},
		{name: "degraded on its way", objects: with(three("master", update("Degraded", "drain-n", "drain-n")), poolOf("master")), want: "Failed\nBlocking NoRoomToUpdate: Not one node of pool master would be updated: 1 are unavailable, and 1 may be: master0 (unschedulable)"},
		{name: "unreconcilable on its way", objects: with(three("master", update("Unreconcilable", "drain-n", "drain-n")), poolOf("master")), want: "Failed\nBlocking NoRoomToUpdate: Not one node of pool master would be updated: 1 are unavailable, and 1 may be: master0 (unschedulable)"},
		{name: "one of each", objects: with(three("master", update("Working", "drain-n", "uncordon-c"), cordoned), poolOf("master")), want: "Failed\nBlocking NoRoomToUpdate: Not one node of pool master would be updated: 1 are unavailable, and 1 may be: master1 (unschedulable)"},
		{name: "paused", objects: with(three("worker", cordoned), poolOf("worker", paused)), want: "Passed"},
		{name: "single node", objects: []any{node("m", "master", cordoned), poolOf("master"), infrastructure(singleReplica)}, want: "NotApplicable\nInfo NotApplicable: the cluster has a single node"},
		{name: "single node with workers", objects: with(three("worker", cordoned), node("m", "master"), poolOf("master"), poolOf("worker"), infrastructure(singleReplica)), want: "Failed\nWarning NoRoomToUpdate: Not one node of pool worker would be updated: 1 are unavailable, and 1 may be: worker0 (unschedulable)"},
		{name: "another pool's selector is invalid", objects: with(three("worker", cordoned), poolOf("worker"), poolOf("bad", func(p *mcfgv1.MachineConfigPool) {
			p.Spec.NodeSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}}
		})), want: "Failed\nWarning NoRoomToUpdate: Not one node of pool worker would be updated: 1 are unavailable, and 1 may be: worker0 (unschedulable)\nWarning UnknownError: pool bad: invalid label selector: \"Is\" is not a valid label selector operator"},
		{name: "no pools", fail: map[string]error{"MachineConfigPool": noKind("MachineConfigPool")}, want: "NotApplicable\nInfo NotApplicable: the cluster has no machine config pools"},
	})
}

func TestMaxUnavailable(t *testing.T) {
	masters := func(n int, more ...any) []any {
		for i := range n {
			more = append(more, node(fmt.Sprintf("m%d", i), "master"))
		}
		return more
	}
	runCases(t, checkNamed(t, "MaxUnavailable"), []checkCase{
		{name: "absent", objects: masters(3, poolOf("master")), want: "Passed"},
		{name: "0", objects: masters(3, poolOf("master", atMost("0"))), want: "Passed"},
		{name: "1", objects: masters(3, poolOf("master", atMost("1"))), want: "Passed"},
		{name: "34%", objects: masters(3, poolOf("master", atMost("34%"))), want: "Passed"},
		{name: "2", objects: masters(3, poolOf("master", atMost("2"))), want: "Failed\nWarning ControlPlaneMaxUnavailable: 2 of the 3 nodes of the control plane may be updated at a time: master (maxUnavailable 2)"},
		{name: "3", objects: masters(3, poolOf("master", atMost("3"))), want: "Failed\nBlocking ControlPlaneMaxUnavailable: 3 of the 3 nodes of the control plane may be updated at a time: master (maxUnavailable 3)"},
		{name: "100%", objects: masters(3, poolOf("master", atMost("100%"))), want: "Failed\nBlocking ControlPlaneMaxUnavailable: 3 of the 3 nodes of the control plane may be updated at a time: master (maxUnavailable 100%)"},
		{name: "3 of 5", objects: masters(5, poolOf("master", atMost("3"))), want: "Failed\nWarning ControlPlaneMaxUnavailable: 3 of the 5 nodes of the control plane may be updated at a time: master (maxUnavailable 3)"},
		{name: "one node", objects: masters(1, poolOf("master", atMost("100%"))), want: "Passed"},
		{name: "3 with one node", objects: masters(1, poolOf("master", atMost("3"))), want: "Failed\nWarning ControlPlaneMaxUnavailable: 3 of the 1 nodes of the control plane may be updated at a time: master (maxUnavailable 3)"},
		{name: "workers may", objects: masters(3, poolOf("master"), poolOf("worker", atMost("50"))), want: "Passed"},
		{name: "not a number", objects: masters(3, poolOf("master", atMost("abc%"))), want: "Unknown\nWarning UnknownError: pool master: maxUnavailable: invalid value for IntOrString: invalid value \"abc%\": strconv.Atoi: parsing \"abc\": invalid syntax"},
		{name: "nodes not known", objects: []any{poolOf("master", atMost("3"))}, fail: map[string]error{"Node": errors.New("boom")}, want: "Failed\nWarning ControlPlaneMaxUnavailable: 3 of the 0 nodes of the control plane may be updated at a time: master (maxUnavailable 3)\nWarning UnknownError: boom"},
	})
}

func TestRHELNodes(t *testing.T) {
	const lost = "Blocking PackageModeNodes: Nodes with package-based RHEL are not supported by this release: "
	const apart = "Warning PackageModeNodes: Nodes with package-based RHEL are not updated with the cluster: "
	const rhel8 = " (Red Hat Enterprise Linux 8.6 (Ootpa))"
	label := func(id, version string) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Labels["node.openshift.io/os_id"], n.Labels["node.openshift.io/os_version"] = id, version
		}
	}
	runCases(t, checkNamed(t, "RHELNodes"), []checkCase{
		{name: "none", objects: []any{node("a", "worker")}, want: "Passed"},
		{name: "to 4.19", objects: []any{node("b", "worker", rhel("8.6 (Ootpa)")), node("a", "worker", rhel("9.4 (Plow)"))}, want: "Failed\n" + lost + "a (Red Hat Enterprise Linux 9.4 (Plow)), b" + rhel8},
		{name: "to 4.20", current: "4.17.1@A", target: "4.20.0@T", objects: []any{node("a", "worker", rhel("8.6 (Ootpa)"))}, want: "Failed\n" + lost + "a" + rhel8},
		{name: "to 5.0", current: "4.18.1@A", target: "5.0.0@T", objects: []any{node("a", "worker", rhel("8.6 (Ootpa)"))}, want: "Failed\n" + lost + "a" + rhel8},
		{name: "patch of 4.18", target: "4.18.6@T", objects: []any{node("a", "worker", rhel("8.6 (Ootpa)"))}, want: "Failed\n" + apart + "a" + rhel8},
		{name: "to 4.18", current: "4.17.1@A", target: "4.18.6@T", objects: []any{node("a", "worker", rhel("8.6 (Ootpa)"))}, want: "Failed\n" + apart + "a" + rhel8},
		{name: "from 4.19", current: "4.19.1@A", target: "4.20.6@T", objects: []any{node("a", "worker", rhel("8.6 (Ootpa)"))}, want: "Failed\n" + apart + "a" + rhel8},
		{name: "RHEL 7", target: "4.18.6@T", objects: []any{node("a", "worker", osImage("Red Hat Enterprise Linux Server 7.9 (Maipo)")), node("b", "worker", rhel("8.6 (Ootpa)"))},
			want: "Failed\n" + lost + "a (Red Hat Enterprise Linux Server 7.9 (Maipo))\n" + apart + "b" + rhel8},
		{name: "RHEL 7 by its label", target: "4.18.6@T", objects: []any{node("a", "worker", osImage("Red Hat Enterprise Linux"), label("rhel", "7.9"))}, want: "Failed\n" + lost + "a (Red Hat Enterprise Linux)"},
		{name: "RHCOS", objects: []any{node("a", "worker", label("rhcos", "4.18"))}, want: "Passed"},
		{name: "RHCOS that calls itself rhel", current: "4.19.3@A", target: "4.20.1@T", objects: []any{node("a", "worker", label("rhel", "9.6"), osImage("Red Hat Enterprise Linux CoreOS 9.6.20250523-0 (Plow)"))}, want: "Passed"},
		{name: "RHCOS that calls itself rhel, of a candidate", current: "4.18.9@A", objects: []any{node("a", "worker", label("rhel", "9.6"), osImage("Red Hat Enterprise Linux CoreOS 9.6.20250523-0 (Plow)"))}, want: "Passed"},
		{name: "other systems", objects: []any{node("a", "worker", osImage("CentOS Stream CoreOS 9.0.20250827-0")), node("b", "worker", osImage("Fedora CoreOS 39.20231101.3.0")), node("c", "worker", osImage("Windows Server 2022 Datacenter"))}, want: "Passed"},
		{name: "system not known", objects: []any{node("b", "worker", osImage("")), node("a", "worker", osImage(""), label("rhel", "9.6"))},
			want: "Unknown\nWarning UnknownError: the operating system of nodes is not known, since status.nodeInfo.osImage is empty: a, b"},
		{name: "partly known", objects: []any{node("a", "worker", rhel("8.6 (Ootpa)")), malformed("v1", "Node", "x")}, want: "Failed\n" + lost + "a" + rhel8 + "\nWarning UnknownError: Node x: spec: got a JSON string, want v1.NodeSpec"},
	})
}

func TestSingleNode(t *testing.T) {
	const info = "Passed\nInfo SingleNode: The cluster has a single control plane node: it is down while that is updated, and no node is drained"
	runCases(t, checkNamed(t, "SingleNode"), []checkCase{
		{name: "three", objects: []any{infrastructure(), node("a", "master"), node("b", "master"), node("c", "master")}, want: "Passed"},
		{name: "topology", objects: []any{infrastructure(singleReplica), node("a", "master"), node("b", "worker")}, want: info},
		{name: "one node", objects: []any{infrastructure(), node("a", "master")}, want: info},
		{name: "no Infrastructure", objects: []any{node("a", "master"), node("b", "master")}, want: "Passed"},
		{name: "no such kind", objects: []any{node("a", "master")}, fail: map[string]error{"Infrastructure": noKind("Infrastructure")}, want: info},
		{name: "the topology is enough", objects: []any{infrastructure(singleReplica)}, fail: map[string]error{"Node": errors.New("boom")}, want: info},
	})
}

// podOn is a pod that is running on a node.
func podOn(node, name, cpu, memory string, edits ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app": "a"}}}
	p.Spec.NodeName = node
	yes := true
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", Controller: &yes}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}}}}
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	for _, edit := range edits {
		edit(p)
	}
	return p
}

func ofDaemonSet(p *corev1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" }
func mirror(p *corev1.Pod)      { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }
func finished(p *corev1.Pod)    { p.Status.Phase = corev1.PodSucceeded }

func TestSpareCapacity(t *testing.T) {
	lacks := func(together int, nodes string) string {
		return fmt.Sprintf("Failed\nWarning NoSpareCapacity: What replaces the pods of nodes of pool worker, of which %d may be drained together, does not all fit the other schedulable nodes, "+
			"by node selectors, node affinity, taints and requests. Affinity between pods, topology spread and volumes are not looked at, and may leave less room. The nodes: %s", together, nodes)
	}
	nodes := func(more ...any) []any {
		return append([]any{infrastructure(), poolOf("worker"), node("w0", "worker", has("4", "8Gi")), node("w1", "worker", has("4", "8Gi"))}, more...)
	}
	tainted := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "only", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	}
	tolerates := func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: "only", Operator: corev1.TolerationOpExists}}
	}
	selects := func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": "z"} }
	runCases(t, checkNamed(t, "SpareCapacity"), []checkCase{
		{name: "no pods", objects: nodes(), want: "Passed"},
		{name: "it fits", objects: nodes(podOn("w0", "a", "2", "1Gi"), podOn("w1", "b", "2", "1Gi")), want: "Passed"},
		{name: "no cpu", objects: nodes(podOn("w0", "a", "2", "1Gi"), podOn("w1", "b", "2500m", "1Gi")), want: lacks(1, "w0 (pods ns/a), w1 (pods ns/b)")},
		{name: "no memory", objects: nodes(podOn("w0", "a", "1", "5Gi"), podOn("w1", "b", "1", "4Gi")), want: lacks(1, "w0 (pods ns/a), w1 (pods ns/b)")},
		// What sums do not see, and what pods alone do not see.
		{name: "the sum fits, no node does", objects: nodes(podOn("w0", "a", "3", "1Gi"), node("w2", "worker", has("2", "8Gi")), podOn("w1", "b", "2", "1Gi")), want: lacks(1, "w0 (pods ns/a)")},
		{name: "each pod fits, all do not", objects: nodes(podOn("w0", "a", "2", "1Gi"), podOn("w0", "b", "2", "1Gi"), podOn("w1", "c", "1", "1Gi", ofDaemonSet)), want: lacks(1, "w0 (pods ns/b)")},
		{name: "room on a tainted node", objects: nodes(node("g", "gpu", has("8", "8Gi"), tainted), podOn("w0", "a", "3", "1Gi"), podOn("w1", "b", "2", "1Gi")), want: lacks(1, "w0 (pods ns/a), w1 (pods ns/b)")},
		{name: "the taint is tolerated", objects: nodes(node("g", "gpu", has("8", "8Gi"), tainted), podOn("w0", "a", "3", "1Gi", tolerates), podOn("w1", "b", "2", "1Gi", tolerates)), want: "Passed"},
		{name: "a selector", objects: nodes(podOn("w0", "a", "1", "1Gi", selects)), want: lacks(1, "w0 (pods ns/a)")},
		{name: "a budget keeps the pod", objects: nodes(podOn("w0", "a", "3", "1Gi"), podOn("w1", "b", "2", "1Gi", ofDaemonSet), budgetFor("p", "a", 1, 1, 1)), want: "Passed"},
		{name: "an unschedulable node is not free", objects: []any{infrastructure(), poolOf("worker"), node("w0", "worker", has("4", "8Gi")), node("w1", "worker", has("4", "8Gi"), cordoned), podOn("w0", "a", "1", "1Gi")},
			want: lacks(1, "w0 (pods ns/a)")},
		{name: "pods that stay", objects: nodes(podOn("w0", "a", "3", "1Gi", ofDaemonSet), podOn("w0", "b", "1", "1Gi", mirror), podOn("w1", "c", "3", "1Gi", ofDaemonSet)), want: "Passed"},
		{name: "pods that nobody replaces", objects: nodes(podOn("w0", "a", "3", "1Gi", func(p *corev1.Pod) { p.OwnerReferences = nil }), podOn("w1", "c", "3", "1Gi", ofDaemonSet)), want: "Passed"},
		{name: "finished pods", objects: nodes(podOn("w0", "a", "4", "1Gi", finished), podOn("w1", "b", "4", "1Gi")), want: "Passed"},
		{name: "two at a time", objects: append(nodes(podOn("w0", "a", "2", "1Gi"), podOn("w1", "b", "2", "1Gi"), node("w2", "worker", has("3", "8Gi")))[2:], infrastructure(), poolOf("worker", atMost("2"))),
			want: lacks(2, "w1 (pods ns/b)")},
		{name: "two at a time, the fullest", objects: []any{infrastructure(), poolOf("worker", atMost("2")), node("w0", "worker", has("4", "8Gi")), node("w1", "worker", has("3", "8Gi")), node("w2", "worker", has("4", "8Gi")),
			podOn("w0", "a", "2", "1Gi"), podOn("w2", "b", "2", "1Gi")}, want: lacks(2, "w2 (pods ns/b)")},
		{name: "init containers and overhead", objects: nodes(podOn("w0", "a", "1", "1Gi", func(p *corev1.Pod) {
			always := corev1.ContainerRestartPolicyAlways
			request := func(cpu string) corev1.ResourceRequirements {
				return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
			}
			p.Spec.InitContainers = []corev1.Container{{Resources: request("500m"), RestartPolicy: &always}, {Resources: request("3")}}
			p.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}
		}), podOn("w1", "b", "1", "1Gi", ofDaemonSet)), want: lacks(1, "w0 (pods ns/a)")},
		{name: "huge", objects: nodes(podOn("w0", "a", "99999999999999999999", "1")), want: lacks(1, "w0 (pods ns/a)")},
		{name: "paused", objects: append(nodes(podOn("w0", "a", "9", "1Gi"))[2:], infrastructure(), poolOf("worker", paused)), want: "Passed"},
		{name: "maxUnavailable is not valid", objects: append(nodes(podOn("w0", "a", "9", "1Gi"))[2:], infrastructure(), poolOf("worker", atMost("-1"))), want: "Passed"},
		{name: "single node", objects: append(nodes(podOn("w0", "a", "9", "1Gi"))[1:], infrastructure(singleReplica)), want: "NotApplicable\nInfo NotApplicable: the cluster has a single control plane node: no node is drained"},
		{name: "no pools", fail: map[string]error{"MachineConfigPool": noKind("MachineConfigPool")}, want: "NotApplicable\nInfo NotApplicable: the cluster has no machine config pools"},
	})
}

// More room never makes a finding of capacity appear.
func TestSpareCapacityMonotone(t *testing.T) {
	check := []preconditions.Check{checkNamed(t, "SpareCapacity")}
	rapid.Check(t, func(rt *rapid.T) {
		objects := []any{poolOf("worker", atMost(fmt.Sprint(rapid.IntRange(1, 3).Draw(rt, "limit"))))}
		var nodes []*corev1.Node
		for i := range rapid.IntRange(2, 5).Draw(rt, "nodes") {
			n := node(fmt.Sprintf("w%d", i), "worker", has(fmt.Sprint(rapid.IntRange(0, 6).Draw(rt, "cpu")), "8Gi"))
			nodes = append(nodes, n)
			objects = append(objects, n)
			for j := range rapid.IntRange(0, 3).Draw(rt, "pods") {
				objects = append(objects, podOn(n.Name, fmt.Sprintf("p%d-%d", i, j), fmt.Sprint(rapid.IntRange(0, 4).Draw(rt, "request")), "1Gi"))
			}
		}
		cv := clusterVersion("4.18.5@A")
		failed := func() bool {
			return run(t, check, input(reader(t, objects...), cv, "4.19.1")).Results[0].State == preconditions.Failed
		}
		before := failed()
		n := nodes[rapid.IntRange(0, len(nodes)-1).Draw(rt, "grows")]
		n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("100")
		if !before && failed() {
			rt.Errorf("node %s has grown, and now there is not enough", n.Name)
		}
	})
}

func TestCgroupV1(t *testing.T) {
	nodes := func(mode string) any {
		n := &configv1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
		n.Spec.CgroupMode = configv1.CgroupMode(mode)
		return n
	}
	const v1 = "Failed\nBlocking CgroupV1: The nodes use cgroup v1, which the target does not have: cluster (spec.cgroupMode v1)"
	runCases(t, checkNamed(t, "CgroupV1"), []checkCase{
		{name: "v1", objects: []any{nodes("v1")}, want: v1},
		{name: "v1, over 4.19", current: "4.17.9@A", target: "4.20.1@T", objects: []any{nodes("v1")}, want: v1},
		{name: "v1, target not known", target: "x", objects: []any{nodes("v1")}, want: v1},
		{name: "v2", objects: []any{nodes("v2")}, want: "Passed"},
		{name: "the default", objects: []any{nodes("")}, want: "Passed"},
		{name: "no object", want: "Passed"},
		{name: "a node of this name", objects: []any{node("cluster", "worker")}, want: "Passed"},
		{name: "to 4.18", current: "4.17.9@A", target: "4.18.1@T", objects: []any{nodes("v1")}, want: "NotApplicable"},
		{name: "from 4.19", current: "4.19.9@A", target: "4.20.1@T", objects: []any{nodes("v1")}, want: "NotApplicable"},
		{name: "not served", fail: map[string]error{"Node": noKind("Node")}, want: "NotApplicable\nInfo NotApplicable: the cluster has no configuration of nodes"},
	})
}

func TestRunc(t *testing.T) {
	labelled := func(p *mcfgv1.MachineConfigPool) { p.Labels = map[string]string{"pool": p.Name} }
	stream := func(name string) func(*mcfgv1.MachineConfigPool) {
		return func(p *mcfgv1.MachineConfigPool) { p.Spec.OSImageStream.Name = name }
	}
	kept := func(p *mcfgv1.MachineConfigPool) {
		role := p.Name
		if role != "master" {
			role = "worker"
		}
		p.Spec.Configuration.Source = []corev1.ObjectReference{{Name: "00-" + role}, {Name: "00-override-" + role + "-generated-crio-default-container-runtime"}}
	}
	config := func(name, runtime, pool string, created int) *mcfgv1.ContainerRuntimeConfig {
		c := &mcfgv1.ContainerRuntimeConfig{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(checkTime.Add(time.Duration(created) * time.Hour))}}
		c.Spec.ContainerRuntimeConfig = &mcfgv1.ContainerRuntimeConfiguration{DefaultRuntime: mcfgv1.ContainerRuntimeDefaultRuntime(runtime)}
		c.Spec.MachineConfigPoolSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"pool": pool}}
		return c
	}
	streams := func(version, name string) any {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "machineconfiguration.openshift.io/" + version, "kind": "OSImageStream", "metadata": map[string]any{"name": "cluster"},
			"status": map[string]any{"defaultStream": name},
		}}
	}
	const (
		old     = "Failed\nWarning RuncDeprecated: The container runtime runc is deprecated, and RHCOS 10 does not have it: "
		lost    = "Failed\nBlocking RuncNotAvailable: Pools are to have RHCOS 10, which does not have the container runtime runc that they use: "
		byC     = " (ContainerRuntimeConfig)"
		byKept  = " (MachineConfig 00-override-worker-generated-crio-default-container-runtime)"
		onRHEL  = "worker (OS image stream rhel-10, runc by ContainerRuntimeConfig c)"
		keptOn  = "worker (OS image stream rhel-10, runc by MachineConfig 00-override-worker-generated-crio-default-container-runtime)"
		reading = "Unknown\nWarning UnknownError: boom"
	)
	runCases(t, checkNamed(t, "Runc"), []checkCase{
		{name: "crun", objects: []any{poolOf("master", labelled), poolOf("worker", labelled), config("c", "crun", "worker", 0), config("d", "", "worker", 0)}, want: "Passed"},
		{name: "runc", objects: []any{poolOf("worker", labelled), config("c", "runc", "worker", 0)}, want: old + "c" + byC},
		{name: "runc for no pool", objects: []any{poolOf("worker"), config("c", "runc", "worker", 0)}, want: old + "c" + byC},
		{name: "kept by the update to 4.18", objects: []any{poolOf("worker", labelled, kept), poolOf("infra", kept)}, want: old + "infra" + byKept + ", worker" + byKept},
		{name: "kept, and overruled", objects: []any{poolOf("worker", labelled, kept), poolOf("infra", kept), config("c", "crun", "worker", 0)}, want: "Passed"},
		{name: "kept for the control plane", objects: []any{poolOf("master", labelled, kept), poolOf("worker", labelled), config("c", "crun", "worker", 0)},
			want: old + "master (MachineConfig 00-override-master-generated-crio-default-container-runtime)"},
		{name: "RHCOS 10", objects: []any{poolOf("worker", labelled, stream("rhel-10")), config("c", "runc", "worker", 0)}, want: lost + onRHEL},
		{name: "RHCOS 10, kept", objects: []any{poolOf("worker", stream("rhel-10"), kept)}, want: lost + keptOn},
		{name: "RHCOS 10 with crun, another with runc", objects: []any{poolOf("worker", labelled, stream("rhel-10")), poolOf("master", labelled), config("c", "runc", "master", 0)}, want: old + "c" + byC},
		{name: "RHCOS 10, the newest decides", objects: []any{poolOf("worker", labelled, stream("rhel-10")), config("c", "runc", "worker", 1), config("b", "crun", "worker", 0)}, want: lost + onRHEL},
		{name: "RHCOS 10, the newest is crun", objects: []any{poolOf("worker", labelled, stream("rhel-10")), config("c", "runc", "worker", 0), config("b", "crun", "worker", 1)}, want: old + "c" + byC},
		{name: "RHCOS 10, a custom pool gets what workers get", objects: []any{poolOf("worker", labelled), poolOf("infra", stream("rhel-10")), config("c", "runc", "worker", 0)},
			want: lost + "infra (OS image stream rhel-10, runc by ContainerRuntimeConfig c)"},
		{name: "RHCOS 9", objects: []any{poolOf("worker", labelled, stream("rhel-9")), streams("v1", "rhel-10"), config("c", "runc", "worker", 0)}, want: old + "c" + byC},
		{name: "RHCOS 10 of the cluster", objects: []any{poolOf("worker", labelled), streams("v1", "rhel-10"), config("c", "runc", "worker", 0)}, want: lost + onRHEL},
		{name: "RHCOS 10 of the cluster, preview", objects: []any{poolOf("worker", labelled), streams("v1alpha1", "rhel-10"), config("c", "runc", "worker", 0)}, want: lost + onRHEL},
		{name: "RHCOS 9 of the cluster", objects: []any{poolOf("worker", labelled), streams("v1", "rhel-9"), config("c", "runc", "worker", 0)}, want: old + "c" + byC},
		{name: "patch", target: "4.18.6@T", objects: []any{poolOf("worker", labelled), config("c", "runc", "worker", 0)}, want: "NotApplicable"},
		{name: "selector not valid", objects: []any{poolOf("worker", labelled, stream("rhel-10")), func() any {
			c := config("c", "runc", "worker", 0)
			c.Spec.MachineConfigPoolSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}}
			return c
		}()}, want: old + "c" + byC},
		{name: "configs not served", objects: []any{poolOf("worker", labelled)}, fail: map[string]error{"ContainerRuntimeConfig": noKind("ContainerRuntimeConfig")}, want: "Passed"},
		{name: "no pools", fail: map[string]error{"MachineConfigPool": noKind("MachineConfigPool")}, want: "NotApplicable\nInfo NotApplicable: the cluster has no machine config pools"},
		{name: "streams unreadable", objects: []any{poolOf("worker", labelled), config("c", "runc", "worker", 0)}, fail: map[string]error{"OSImageStream": errors.New("boom")},
			want: old + "c" + byC + "\nWarning UnknownError: boom"},
		{name: "streams not served", objects: []any{poolOf("worker", labelled), config("c", "runc", "worker", 0)}, fail: map[string]error{"OSImageStream": noKind("OSImageStream")}, want: old + "c" + byC},
	})
	// Without a stream of its own a cluster has that of the release that installed it.
	for _, tt := range []struct{ installed, want string }{
		{"5.0.1@Z C", lost + onRHEL}, {"4.22.3@Z C", old + "c" + byC}, {"x@Z C", old + "c" + byC},
	} {
		cv := clusterVersion("5.0.5@A", history("5.0.5@A C", tt.installed))
		in := input(reader(t, cv, poolOf("worker", labelled), config("c", "runc", "worker", 0)), cv, "5.1.0@T")
		checktest.Equal(t, tt.want, brief(run(t, []preconditions.Check{checkNamed(t, "Runc")}, in).Results[0]),
			"installed with %s", tt.installed)
	}
}

const targetImage = "quay.io/ocp/release@sha256:2222222222222222222222222222222222222222222222222222222222222222"

func TestKernelModules(t *testing.T) {
	module := func(namespace, name string) *unstructured.Unstructured {
		return object("kmm.sigs.x-k8s.io/v1beta1", "Module", namespace, name, nil)
	}
	preflight := func(version, name string, created int, spec, status map[string]any) *unstructured.Unstructured {
		u := object("kmm.sigs.x-k8s.io/"+version, "PreflightValidationOCP", "", name, map[string]any{"spec": spec, "status": status})
		u.SetCreationTimestamp(metav1.Unix(int64(created), 0))
		return u
	}
	result := func(namespace, name, stage, status, why string) map[string]any {
		return map[string]any{"namespace": namespace, "name": name, "verificationStage": stage, "verificationStatus": status, "statusReason": why}
	}
	modules := func(all ...any) map[string]any { return map[string]any{"modules": all} }
	byImage := map[string]any{"releaseImage": targetImage}
	byKernel := map[string]any{"kernelVersion": "5.14.0-570", "dtkImage": "d"}
	kernel := func(in *preconditions.Input) { in.TargetKernel = "5.14.0-570" }
	const done = "Passed\nInfo PreflightDone: Out-of-tree kernel modules are verified for the target"
	const notRun = "Failed\nWarning PreflightNotRun: Out-of-tree kernel modules have not been verified for the target: "
	const failed = "Failed\nBlocking ModuleNotVerified: Out-of-tree kernel modules failed to verify for the target: "
	target := "4.19.1@" + targetImage
	cases := []checkCase{
		{name: "no modules", want: "NotApplicable\nInfo NotApplicable: the cluster has no out-of-tree kernel modules"},
		{name: "no such kind", fail: map[string]error{"Module": noKind("Module")}, want: "NotApplicable\nInfo NotApplicable: the cluster has no out-of-tree kernel modules"},
		{name: "no preflight", objects: []any{module("b", "x"), module("a", "y")}, want: notRun + "a/y, b/x"},
		{name: "preflight not served", objects: []any{module("b", "x")}, fail: map[string]error{"PreflightValidationOCP": noKind("PreflightValidationOCP")}, want: notRun + "b/x"},
		{name: "for another image", objects: []any{module("b", "x"), preflight("v1beta2", "p", 1, map[string]any{"releaseImage": "quay.io/ocp/release@sha256:1"}, nil)}, want: notRun + "b/x"},
		{name: "verified", objects: []any{module("b", "x"), module("a", "x"), preflight("v1beta2", "p", 1, byImage, modules(result("a", "x", "image", "true", ""), result("b", "x", "sign", "True", "")))}, want: done},
		{name: "the image elsewhere", objects: []any{module("b", "x"), preflight("v1beta2", "p", 1, map[string]any{"releaseImage": "mirror.local/r@" + targetImage[len("quay.io/ocp/release@"):]}, modules(result("b", "x", "image", "true", "")))}, want: done},
		{name: "by kernel", input: kernel, objects: []any{module("b", "x"), preflight("v1beta2", "p", 1, byKernel, modules(result("b", "x", "Done", "Success", "")))}, want: done},
		{name: "kernel not given", objects: []any{module("b", "x"), preflight("v1beta2", "p", 1, byKernel, modules(result("b", "x", "Done", "Success", "")))},
			want: "Unknown\nWarning KernelVersionUnknown: the kernel version of the target is not given, by which preflight validations are told apart here"},
		{name: "another kernel", input: func(in *preconditions.Input) { in.TargetKernel = "6" }, objects: []any{module("b", "x"), preflight("v1beta2", "p", 1, byKernel, nil)}, want: notRun + "b/x"},
		{name: "failed", objects: []any{module("b", "x"), module("a", "x"), module("a", "y"), preflight("v1beta2", "p", 1, byImage, modules(result("a", "x", "build", "false", "no compiler"), result("b", "x", "sign", "ERROR", ""), result("a", "y", "image", "true", "")))},
			want: failed + "a/x (stage build: no compiler), b/x (stage sign)"},
		{name: "failed, new words", input: kernel, objects: []any{module("b", "x"), preflight("v1beta2", "p", 1, byKernel, modules(result("b", "x", "Image", "Failure", "m")))}, want: failed + "b/x (stage Image: m)"},
		{name: "pending", objects: []any{module("b", "x"), preflight("v1beta2", "p", 1, byImage, modules(result("b", "x", "build", "unknown", "")))},
			want: "Unknown\nWarning PreflightPending: preflight validation p has not verified yet: b/x (unknown, stage build)"},
		{name: "in progress", input: kernel, objects: []any{module("b", "x"), preflight("v1beta2", "p", 1, byKernel, modules(result("b", "x", "Image", "InProgress", "")))},
			want: "Unknown\nWarning PreflightPending: preflight validation p has not verified yet: b/x (InProgress, stage Image)"},
		{name: "another word", objects: []any{module("b", "x"), preflight("v1beta2", "p", 1, byImage, modules(result("b", "x", "Requeued", "later", "")))},
			want: "Unknown\nWarning PreflightPending: preflight validation p has not verified yet: b/x (later, stage Requeued)"},
		{name: "not reported", objects: []any{module("b", "x"), preflight("v1beta2", "p", 1, byImage, nil)},
			want: "Unknown\nWarning PreflightPending: preflight validation p has not verified yet: b/x (not reported)"},
		{name: "one failed, one pending", objects: []any{module("b", "x"), module("b", "y"), preflight("v1beta2", "p", 1, byImage, modules(result("b", "x", "build", "false", "")))},
			want: failed + "b/x (stage build)\nWarning PreflightPending: preflight validation p has not verified yet: b/y (not reported)"},
		{name: "the newest counts", objects: []any{module("b", "x"), preflight("v1beta2", "a", 1, byImage, modules(result("b", "x", "build", "false", ""))), preflight("v1beta2", "b", 2, byImage, modules(result("b", "x", "image", "true", "")))}, want: done},
		{name: "preflights not known", objects: []any{module("b", "x")}, fail: map[string]error{"PreflightValidationOCP": errors.New("boom")}, want: "Unknown\nWarning UnknownError: boom"},
		{name: "malformed preflight", objects: []any{module("b", "x"), malformed("kmm.sigs.x-k8s.io/v1beta2", "PreflightValidationOCP", "p")},
			want: "Unknown\nWarning UnknownError: PreflightValidationOCP p: spec: got a JSON string, want operators.PreflightSpec"},
	}
	for i := range cases {
		cases[i].target = target
	}
	runCases(t, checkNamed(t, "KernelModules"), cases)

	// The older version of the API, which alone is served.
	for name, status := range map[string]map[string]any{
		"by namespace and name": {"crStatuses": map[string]any{"b/x": map[string]any{"verificationStage": "Image", "verificationStatus": "True"}}},
		"by name":               {"crStatuses": map[string]any{"x": map[string]any{"verificationStage": "Image", "verificationStatus": "True"}}},
	} {
		r := onlyVersion{reader(t, clusterVersion("4.18.5@A"), module("b", "x"), preflight("v1beta1", "p", 1, byImage, status))}
		got := brief(run(t, []preconditions.Check{checkNamed(t, "KernelModules")}, input(r, clusterVersion("4.18.5@A"), target)).Results[0])
		checktest.Equal(t, done, got, "%s", name)
	}
}
