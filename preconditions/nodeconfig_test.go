package preconditions_test

import (
	"errors"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/preconditions"
)

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
