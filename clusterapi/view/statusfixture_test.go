package view_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/updatetest"
	"github.com/clusterupdate/clusterupdate/runlevel/preview"
)

// updateStart is when the updates of these tests begin.
var updateStart = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)

// after is a time in the update, or before it.
func after(d time.Duration) metav1.Time { return metav1.NewTime(updateStart.Add(d)) }

const mcd = "machineconfiguration.openshift.io/"

// says makes a condition: Type=Status, optionally followed by its reason and
// message.
func says(text string, since metav1.Time, more ...string) configv1.ClusterOperatorStatusCondition {
	t, status, _ := strings.Cut(text, "=")
	c := configv1.ClusterOperatorStatusCondition{Type: configv1.ClusterStatusConditionType(t), Status: configv1.ConditionStatus(status), LastTransitionTime: since}
	if len(more) > 0 {
		c.Reason = more[0]
	}
	if len(more) > 1 {
		c.Message = more[1]
	}
	return c
}

// platformOperator is an operator of the release that is well, but for the
// conditions given.
func platformOperator(name, version string, conditions ...configv1.ClusterOperatorStatusCondition) *configv1.ClusterOperator {
	co := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{
		Name: name, Annotations: map[string]string{"include.release.openshift.io/self-managed-high-availability": "true"},
	}}
	if version != "" {
		co.Status.Versions = []configv1.OperandVersion{{Name: "operator", Version: version}}
	}
	co.Status.Conditions = conditions
	for _, well := range []string{"Available=True", "Progressing=False", "Degraded=False"} {
		c := says(well, after(-24*time.Hour))
		if conditionOf(co, c.Type) == nil {
			co.Status.Conditions = append(co.Status.Conditions, c)
		}
	}
	return co
}

func conditionOf(co *configv1.ClusterOperator, t configv1.ClusterStatusConditionType) *configv1.ClusterOperatorStatusCondition {
	for i := range co.Status.Conditions {
		if co.Status.Conditions[i].Type == t {
			return &co.Status.Conditions[i]
		}
	}
	return nil
}

// dropCondition takes a condition from an operator.
func dropCondition(co *configv1.ClusterOperator, t configv1.ClusterStatusConditionType) *configv1.ClusterOperator {
	var kept []configv1.ClusterOperatorStatusCondition
	for _, c := range co.Status.Conditions {
		if c.Type != t {
			kept = append(kept, c)
		}
	}
	co.Status.Conditions = kept
	return co
}

func partial(version string, from metav1.Time) configv1.UpdateHistory {
	return configv1.UpdateHistory{State: configv1.PartialUpdate, Version: version, Image: "quay.io/release:" + version, StartedTime: from}
}

func complete(version string, from metav1.Time, took time.Duration) configv1.UpdateHistory {
	end := metav1.NewTime(from.Add(took))
	return configv1.UpdateHistory{State: configv1.CompletedUpdate, Version: version, Image: "quay.io/release:" + version, StartedTime: from, CompletionTime: &end}
}

// updating is a cluster on its way from 4.14.0 to 4.14.1 without nodes, two of
// whose four operators are done.
func updating() *view.Objects {
	o := &view.Objects{ClusterVersion: &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}}
	st := &o.ClusterVersion.Status
	st.Desired = configv1.Release{Version: "4.14.1", Image: "quay.io/release:4.14.1"}
	st.History = []configv1.UpdateHistory{partial("4.14.1", after(0)), complete("4.14.0", after(-time.Hour*1000), time.Hour)}
	st.Conditions = []configv1.ClusterOperatorStatusCondition{says("Progressing=True", after(0)), says("Failing=False", after(-time.Hour))}
	o.ClusterOperators = []*configv1.ClusterOperator{
		platformOperator("etcd", "4.14.1"), platformOperator("dns", "4.14.1"),
		platformOperator("network", "4.14.0", says("Progressing=True", after(4*time.Minute), "Deploying", "Rolling out")),
		platformOperator("storage", "4.14.0"),
	}
	return o
}

// withNodes adds configs of both versions, pools that select by their own role,
// and nodes.
func withNodes(o *view.Objects, nodes ...*corev1.Node) *view.Objects {
	o.MachineConfigs = []*mcfgv1.MachineConfig{configOf("old", "4.14.0"), configOf("new", "4.14.1")}
	o.MachineConfigPools = []*mcfgv1.MachineConfigPool{configPool("master"), configPool("worker")}
	o.Nodes = nodes
	return o
}

func configOf(name, version string) *mcfgv1.MachineConfig {
	return &mcfgv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{mcd + "release-image-version": version}}}
}

func configPool(name string) *mcfgv1.MachineConfigPool {
	p := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"role/" + name: ""}}
	p.Spec.Configuration.Name = "new"
	return p
}

// poolNode is a node of a pool that is ready. The annotations are given as
// key=value.
func poolNode(name, pool string, annotations ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"role/" + pool: ""}, Annotations: map[string]string{}}}
	for _, a := range annotations {
		key, value, _ := strings.Cut(a, "=")
		n.Annotations[mcd+key] = value
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

// doneNode runs a config, and oldNode and newNode that of a version.
func doneNode(name, pool, config string, annotations ...string) *corev1.Node {
	return poolNode(name, pool, append([]string{"currentConfig=" + config, "desiredConfig=" + config, "state=Done"}, annotations...)...)
}
func oldNode(name, pool string) *corev1.Node { return doneNode(name, pool, "old") }
func newNode(name, pool string) *corev1.Node { return doneNode(name, pool, "new") }

// changingNode is on its way from the old config to the new one.
func changingNode(name, pool, state string, annotations ...string) *corev1.Node {
	return poolNode(name, pool, append([]string{"currentConfig=old", "desiredConfig=new", "state=" + state}, annotations...)...)
}

// nodeSays adds a condition to a node.
func nodeSays(n *corev1.Node, text string, since metav1.Time, message string) *corev1.Node {
	t, status, _ := strings.Cut(text, "=")
	c := corev1.NodeCondition{Type: corev1.NodeConditionType(t), Status: corev1.ConditionStatus(status), LastTransitionTime: since, Message: message}
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == c.Type {
			n.Status.Conditions[i] = c
			return n
		}
	}
	n.Status.Conditions = append(n.Status.Conditions, c)
	return n
}

// operatorImage makes the deployment of the machine-config operator.
func operatorImage(image string) []*appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-machine-config-operator", Name: "machine-config-operator"}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "kube-rbac-proxy", Image: "proxy"}, {Name: "machine-config-operator", Image: image}}
	return []*appsv1.Deployment{d}
}

// assess assesses at a time in the update.
func assess(t testing.TB, o *view.Objects, at time.Duration) *view.Status {
	t.Helper()
	s := checktest.Get(view.AssessStatus(o, updateStart.Add(at)))(t)
	return s
}

// statusText is what a status prints, and must warn of nothing.
func statusText(t testing.TB, o *view.Objects, at time.Duration, opts view.StatusText) string {
	t.Helper()
	var out, errOut bytes.Buffer
	checktest.OK(t, assess(t, o, at).WriteText(&out, &errOut, opts))
	if errOut.Len() > 0 {
		t.Errorf("warns %q", errOut.String())
	}
	return out.String()
}

// section cuts out what is printed from a line that begins with from, up to the
// first line that begins with to.
func section(t testing.TB, text, from, to string) string {
	t.Helper()
	_, rest, ok := strings.Cut("\n"+text, "\n"+from)
	checktest.FatalIf(t, !ok, "no line %q in:\n%s", from, text)
	rest = from + rest
	if to != "" {
		if body, _, ok := strings.Cut(rest, "\n"+to); ok {
			return body + "\n"
		}
	}
	return rest
}

// same compares texts.
func same(t testing.TB, name, want, got string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// numbered makes n things.
func numbered[T any](n int, one func(name string) T) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = one(fmt.Sprintf("n%05d", i))
	}
	return all
}

// components are those of what newUpdating updates to.
func components(c *updatetest.Cluster) func(*configv1.ClusterVersion) []view.Component {
	return preview.Components(c.Images[1].Payload)
}

// newUpdating returns a cluster that is requested to update, with more processes.
func newUpdating(t *testing.T, o reconcile.VirtualOptions, more ...func(*updatetest.Cluster) reconcile.Process) *updatetest.Cluster {
	t.Helper()
	c := updatetest.New(t, simulation.Options{Pools: []simulation.Pool{{Nodes: 2}}}, o)
	for _, p := range more {
		c.Virtual.Add(p(c))
	}
	c.Advance(t, time.Minute)
	checktest.Get(clusterversion.Submit(t.Context(), c, clusterversion.UpdateRequest{To: sample.ToVersion}))(t)
	return c
}
