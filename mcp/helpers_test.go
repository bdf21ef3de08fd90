package mcp_test

import (
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/mcp"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// pool returns a pool that selects the nodes of its role.
func pool(name, config string, change ...func(*mcfgv1.MachineConfigPool)) mcfgv1.MachineConfigPool {
	p := mcfgv1.MachineConfigPool{}
	p.Name = name
	p.Generation = 1
	p.Spec.Configuration.Name = config
	p.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{mcp.LabelNodeRolePrefix + name: ""}}
	for _, f := range change {
		f(&p)
	}
	return p
}

func paused(p *mcfgv1.MachineConfigPool) { p.Spec.Paused = true }

func maxUnavailable(v intstr.IntOrString) func(*mcfgv1.MachineConfigPool) {
	return func(p *mcfgv1.MachineConfigPool) { p.Spec.MaxUnavailable = &v }
}

func atMost(n int) func(*mcfgv1.MachineConfigPool) { return maxUnavailable(intstr.FromInt32(int32(n))) }

type change = func(*corev1.Node)

// node returns a Ready node of a role on a config, Done.
func node(name, role, config string, changes ...change) corev1.Node {
	n := corev1.Node{}
	n.Name = name
	n.CreationTimestamp = metav1.NewTime(epoch)
	n.Labels = map[string]string{mcp.LabelNodeRolePrefix + role: "", mcp.LabelOS: "linux"}
	n.Annotations = map[string]string{
		mcp.AnnotationCurrentConfig: config,
		mcp.AnnotationDesiredConfig: config,
		mcp.AnnotationState:         mcp.StateDone,
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, f := range changes {
		f(&n)
	}
	return n
}

func annotate(kv ...string) change {
	return func(n *corev1.Node) {
		for i := 0; i < len(kv); i += 2 {
			n.Annotations[kv[i]] = kv[i+1]
		}
	}
}

func without(keys ...string) change {
	return func(n *corev1.Node) {
		for _, k := range keys {
			delete(n.Annotations, k)
		}
	}
}

func state(s string) change    { return annotate(mcp.AnnotationState, s) }
func desired(s string) change  { return annotate(mcp.AnnotationDesiredConfig, s) }
func reason(s string) change   { return annotate(mcp.AnnotationReason, s) }
func cordoned(n *corev1.Node)  { n.Spec.Unschedulable = true }
func zone(z string) change     { return label(mcp.LabelZone, z) }
func label(k, v string) change { return func(n *corev1.Node) { n.Labels[k] = v } }
func unlabel(k string) change  { return func(n *corev1.Node) { delete(n.Labels, k) } }
func deleting(n *corev1.Node)  { t := metav1.NewTime(epoch); n.DeletionTimestamp = &t }
func age(hours int) change {
	return func(n *corev1.Node) {
		n.CreationTimestamp = metav1.NewTime(epoch.Add(-time.Duration(hours) * time.Hour))
	}
}

func condition(t corev1.NodeConditionType, s corev1.ConditionStatus) change {
	return func(n *corev1.Node) {
		for i := range n.Status.Conditions {
			if n.Status.Conditions[i].Type == t {
				n.Status.Conditions[i].Status = s
				return
			}
		}
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: t, Status: s})
	}
}

func taint(n *corev1.Node) {
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: mcp.TaintUpdateInProgress, Effect: corev1.TaintEffectPreferNoSchedule})
}

func pools(p ...mcfgv1.MachineConfigPool) []mcfgv1.MachineConfigPool { return p }

func snapshot(ps []mcfgv1.MachineConfigPool, nodes ...corev1.Node) mcp.Snapshot {
	return mcp.Snapshot{Objects: mcp.Objects{Pools: ps, Nodes: nodes}, Now: metav1.NewTime(epoch)}
}

func topology(t string) *mcfgv1.ControllerConfig {
	c := &mcfgv1.ControllerConfig{}
	c.Name = mcp.ControllerConfigName
	c.Spec.Infra = infra(t)
	return c
}
