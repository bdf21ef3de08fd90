// Package mcptest makes pools and nodes for the tests of mcp and what drives it.
package mcptest

import (
	"fmt"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/mcp"
)

var Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Pool returns a pool that selects the nodes of its role.
func Pool(name, config string, change ...func(*mcfgv1.MachineConfigPool)) mcfgv1.MachineConfigPool {
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

func Paused(p *mcfgv1.MachineConfigPool) { p.Spec.Paused = true }

func MaxUnavailable(v intstr.IntOrString) func(*mcfgv1.MachineConfigPool) {
	return func(p *mcfgv1.MachineConfigPool) { p.Spec.MaxUnavailable = &v }
}

func AtMost(n int) func(*mcfgv1.MachineConfigPool) { return MaxUnavailable(intstr.FromInt32(int32(n))) }

type Change = func(*corev1.Node)

// Node returns a Ready node of a role on a config, Done.
func Node(name, role, config string, changes ...Change) corev1.Node {
	n := corev1.Node{}
	n.Name = name
	n.CreationTimestamp = metav1.NewTime(Epoch)
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

func Annotate(kv ...string) Change {
	return func(n *corev1.Node) {
		for i := 0; i < len(kv); i += 2 {
			n.Annotations[kv[i]] = kv[i+1]
		}
	}
}

func Without(keys ...string) Change {
	return func(n *corev1.Node) {
		for _, k := range keys {
			delete(n.Annotations, k)
		}
	}
}

func State(s string) Change    { return Annotate(mcp.AnnotationState, s) }
func Desired(s string) Change  { return Annotate(mcp.AnnotationDesiredConfig, s) }
func Reason(s string) Change   { return Annotate(mcp.AnnotationReason, s) }
func Cordoned(n *corev1.Node)  { n.Spec.Unschedulable = true }
func Zone(z string) Change     { return Label(mcp.LabelZone, z) }
func Label(k, v string) Change { return func(n *corev1.Node) { n.Labels[k] = v } }
func Unlabel(k string) Change  { return func(n *corev1.Node) { delete(n.Labels, k) } }
func Deleting(n *corev1.Node)  { t := metav1.NewTime(Epoch); n.DeletionTimestamp = &t }
func Age(hours int) Change {
	return func(n *corev1.Node) {
		n.CreationTimestamp = metav1.NewTime(Epoch.Add(-time.Duration(hours) * time.Hour))
	}
}

func Condition(t corev1.NodeConditionType, s corev1.ConditionStatus) Change {
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

func Taint(n *corev1.Node) {
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: mcp.TaintUpdateInProgress, Effect: corev1.TaintEffectPreferNoSchedule})
}

func Pools(p ...mcfgv1.MachineConfigPool) []mcfgv1.MachineConfigPool { return p }

func Snapshot(ps []mcfgv1.MachineConfigPool, nodes ...corev1.Node) mcp.Snapshot {
	return mcp.Snapshot{Objects: mcp.Objects{Pools: ps, Nodes: nodes}, Now: metav1.NewTime(Epoch)}
}

func Topology(t string) *mcfgv1.ControllerConfig {
	c := &mcfgv1.ControllerConfig{}
	c.Name = mcp.ControllerConfigName
	c.Spec.Infra = Infra(t)
	return c
}

func Infra(topology string) *configv1.Infrastructure {
	i := &configv1.Infrastructure{}
	i.Status.ControlPlaneTopology = configv1.TopologyMode(topology)
	return i
}

func Worker(name string, changes ...Change) corev1.Node { return Node(name, "worker", "O", changes...) }

func Master(name string, changes ...Change) corev1.Node { return Node(name, "master", "O", changes...) }

func Updated(n corev1.Node) corev1.Node {
	Annotate(mcp.AnnotationCurrentConfig, "N", mcp.AnnotationDesiredConfig, "N")(&n)
	return n
}

func OperatorPod(name, node string) corev1.Pod {
	p := corev1.Pod{}
	p.Namespace, p.Name = mcp.OperatorNamespace, name
	p.Labels = map[string]string{mcp.LabelApp: mcp.AppOperator}
	p.Spec.NodeName = node
	return p
}

func ConditionOf(st mcfgv1.MachineConfigPoolStatus, t mcfgv1.MachineConfigPoolConditionType) mcfgv1.MachineConfigPoolCondition {
	for _, c := range st.Conditions {
		if c.Type == t {
			return c
		}
	}
	return mcfgv1.MachineConfigPoolCondition{}
}

// Brief prints counts and conditions.
func Brief(st mcfgv1.MachineConfigPoolStatus) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d updated %d ready %d unavailable %d degraded %d", st.MachineCount, st.UpdatedMachineCount,
		st.ReadyMachineCount, st.UnavailableMachineCount, st.DegradedMachineCount)
	if st.Configuration.Name != "" {
		b.WriteString(" " + st.Configuration.Name)
	}
	b.WriteByte('\n')
	for _, c := range st.Conditions {
		fmt.Fprintf(&b, "%s=%s", c.Type, c.Status)
		if c.Reason != "" {
			fmt.Fprintf(&b, " (%s)", c.Reason)
		}
		if c.Message != "" {
			fmt.Fprintf(&b, " %s", c.Message)
		}
		b.WriteByte('\n')
	}
	return strings.TrimSpace(b.String())
}

func Mcn(name string, conditions ...metav1.Condition) mcfgv1.MachineConfigNode {
	m := mcfgv1.MachineConfigNode{}
	m.Name = name
	m.Spec.Pool.Name = "worker"
	m.Status.Conditions = conditions
	m.Status.ConfigVersion = &mcfgv1.MachineConfigNodeStatusMachineConfigVersion{Current: "N", Desired: "N"}
	return m
}

func Says(t, message string) metav1.Condition {
	return metav1.Condition{Type: t, Status: metav1.ConditionTrue, Message: message}
}

func Layered(in *mcp.Snapshot, image string, conditions ...string) {
	c := mcfgv1.MachineOSConfig{}
	c.Name = "mosc"
	c.Spec.MachineConfigPool.Name = "worker"
	c.Status.CurrentImagePullSpec = mcfgv1.ImageDigestFormat(image)
	in.MachineOSConfigs = []mcfgv1.MachineOSConfig{c}
	if conditions == nil {
		return
	}
	b := mcfgv1.MachineOSBuild{}
	b.Name = "mosb"
	b.Spec.MachineConfig.Name, b.Spec.MachineOSConfig.Name = "N", "mosc"
	b.Status.DigestedImagePushSpec = "i"
	for _, t := range conditions {
		if t != "" {
			b.Status.Conditions = append(b.Status.Conditions, Says(t, ""))
		}
	}
	in.MachineOSBuilds = []mcfgv1.MachineOSBuild{b}
}
