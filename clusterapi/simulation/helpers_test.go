package simulation_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// cluster is a simulated cluster in virtual time.
type cluster struct {
	*simulation.Cluster
	*reconcile.Virtual
}

// errBroken is an error that a test makes calls fail with.
var errBroken = errors.New("broken")

// The annotations by which the simulation remembers what a host has.
const (
	annotationDisk = clusterapi.AnnotationPrefix + "simulated-disk"
	annotationBoot = clusterapi.AnnotationPrefix + "simulated-boot"
)

// made makes a cluster. Nothing happens on it before run.
func made(t testing.TB, o simulation.Options) *cluster {
	t.Helper()
	clock := reconcile.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	o.Clock = clock
	c := checktest.Get(simulation.New(o))(t)
	return &cluster{c, reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: c, Clock: clock, Observe: func(e clusterapi.Event) {
		if e.Type == reconcile.EventFailed && !errors.Is(e.Err, errBroken) {
			t.Errorf("%s failed: %v", e.Subject, e.Err)
		}
	}})}
}

// start makes a cluster and runs it.
func start(t testing.TB, o simulation.Options) *cluster {
	t.Helper()
	c := made(t, o)
	c.run(t)
	return c
}

// run lets the cluster's behaviours act; the returned function stops them.
func (c *cluster) run(testing.TB) (stop func()) {
	p := c.Process()
	c.Add(p)
	return func() { c.Stop(p.Name) }
}

// pass lets time pass, and what is due then take place.
func (c *cluster) pass(d time.Duration) {
	if err := c.RunUntil(c.Now().Add(d)); err != nil {
		panic(err)
	}
}

func get[T any](t *testing.T, c clusterapi.Reader, namespace, name string) *T {
	t.Helper()
	obj := checktest.Get(clusterapi.Get[T](t.Context(), c, clusterapi.Key(namespace, name)))(t)
	return obj
}

// expectOperator wants an operator to show something: conditions, version or both.
func expectOperator(t *testing.T, c *cluster, name, when, want string) {
	t.Helper()
	co := get[configv1.ClusterOperator](t, c, "", name)
	if got := conditions(co) + " " + version(co); !strings.Contains(got, want) {
		t.Errorf("%s %s: %s, want %s", name, when, got, want)
	}
}

func list[T any](t *testing.T, c clusterapi.Reader, o clusterapi.ListOptions) []T {
	t.Helper()
	objs := checktest.Get(clusterapi.List[T](t.Context(), c, o))(t)
	return objs
}

func modify[T any](t *testing.T, c clusterapi.ClusterAPI, namespace, name string, f func(*T)) {
	t.Helper()
	checktest.Get(clusterapi.Modify(t.Context(), c, clusterapi.Key(namespace, name), clusterapi.ModifyOptions{}, func(obj *T) error {
		f(obj)
		return nil
	}))(t)
}

func apply(t *testing.T, c clusterapi.ClusterAPI, u *unstructured.Unstructured) {
	t.Helper()
	checktest.Get(c.Apply(t.Context(), u, clusterapi.ApplyOptions{FieldManager: clusterapi.ManagerPayload}))(t)
}

// conditions writes the three main conditions of an operator as "ATrue PFalse
// DFalse".
func conditions(co *configv1.ClusterOperator) string {
	var out []string
	for _, t := range []configv1.ClusterStatusConditionType{configv1.OperatorAvailable, configv1.OperatorProgressing, configv1.OperatorDegraded} {
		status := "none"
		for _, c := range co.Status.Conditions {
			if c.Type == t {
				status = string(c.Status)
			}
		}
		out = append(out, string(t[:1])+status)
	}
	return strings.Join(out, " ")
}

func coCondition(co *configv1.ClusterOperator, t configv1.ClusterStatusConditionType) configv1.ClusterOperatorStatusCondition {
	for _, c := range co.Status.Conditions {
		if c.Type == t {
			return c
		}
	}
	return configv1.ClusterOperatorStatusCondition{}
}

func version(co *configv1.ClusterOperator) string {
	for _, v := range co.Status.Versions {
		if v.Name == "operator" {
			return v.Version
		}
	}
	return ""
}

// operatorDeployment is the workload of an operator in a release.
func operatorDeployment(name, release string) *unstructured.Unstructured {
	labels := map[string]string{"app": name}
	one := int32(1)
	u, err := clusterapi.ToUnstructured(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-" + name, Name: name},
		Spec: appsv1.DeploymentSpec{Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "operator", Image: "registry.example/" + name + ":" + release,
					Env: []corev1.EnvVar{{Name: "RELEASE_VERSION", Value: release}}}}}}},
	})
	if err != nil {
		panic(err)
	}
	return u
}

// release is a small release with the named operators.
func release(version string, operators ...string) simulation.Release {
	r := simulation.Release{Version: version}
	for _, name := range operators {
		r.Operators = append(r.Operators, simulation.Operator{Name: name,
			Workloads: []*unstructured.Unstructured{operatorDeployment(name, version)}})
	}
	return r
}

// drainer fulfils drain and uncordon requests as the machine-config controller
// does, by evicting pods, and never gives up.
func drainer(t testing.TB, c *cluster) {
	t.Helper()
	c.Add(drainerProcess())
}

func drainerProcess() reconcile.Process {
	return reconcile.Process{Name: "drainer", New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
		return []reconcile.Reconciler{drains{api}}
	}}
}

type drains struct{ api clusterapi.ClusterAPI }

func (drains) Name() string               { return "drains" }
func (drains) Watches() []reconcile.Watch { return nil }
func (drains) Keys() []reconcile.Key      { return []reconcile.Key{{}} }

func (d drains) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	nodes, err := clusterapi.ReadAll[corev1.Node](ctx, d.api, clusterapi.ListOptions{})
	if err == nil {
		for _, n := range nodes {
			drainOnce(ctx, d.api, n)
		}
	}
	return reconcile.Result{At: r.Now.Add(2 * time.Second)}, nil
}

func drainOnce(ctx context.Context, c clusterapi.ClusterAPI, n *corev1.Node) {
	asked := n.Annotations[mcp.AnnotationDesiredDrain]
	if asked == n.Annotations[mcp.AnnotationLastAppliedDrain] {
		return
	}
	drain := strings.HasPrefix(asked, "drain-")
	change := func(f func(*corev1.Node)) {
		_, _ = clusterapi.Modify(ctx, c, clusterapi.Key("", n.Name), clusterapi.ModifyOptions{}, func(n *corev1.Node) error {
			f(n)
			return nil
		})
	}
	change(func(n *corev1.Node) { n.Spec.Unschedulable = drain })
	if drain {
		pods, err := clusterapi.ReadAll[corev1.Pod](ctx, c, clusterapi.ListOptions{NodeName: n.Name})
		if err != nil {
			return
		}
		left := 0
		for _, p := range pods {
			if owner := metav1.GetControllerOf(p); owner != nil && owner.Kind == "DaemonSet" {
				continue
			}
			left++
			if p.DeletionTimestamp == nil {
				_ = c.Evict(ctx, clusterapi.Key(p.Namespace, p.Name), clusterapi.EvictOptions{})
			}
		}
		if left > 0 {
			return
		}
	}
	change(func(n *corev1.Node) { n.Annotations[mcp.AnnotationLastAppliedDrain] = asked })
}

// retarget makes a pool's nodes go to the pool's config, all at once.
func retarget(t *testing.T, c *cluster, pool string, nodes ...string) string {
	t.Helper()
	config := get[mcfgv1.MachineConfigPool](t, c, "", pool).Spec.Configuration.Name
	for _, name := range nodes {
		modify(t, c, "", name, func(n *corev1.Node) { n.Annotations[mcp.AnnotationDesiredConfig] = config })
	}
	return config
}

// addMachineConfig gives a role a MachineConfig more.
func addMachineConfig(t *testing.T, c *cluster, name, role, content string) {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
		"metadata": map[string]any{"name": name, "labels": map[string]any{mcp.LabelRole: role}},
		"spec": map[string]any{"config": map[string]any{
			"ignition": map[string]any{"version": "3.4.0"},
			"storage":  map[string]any{"files": []any{map[string]any{"path": "/etc/" + name, "contents": map[string]any{"source": "data:," + content}}}},
		}},
	}}
	checktest.OK(t, checktest.Err(c.Create(t.Context(), u, clusterapi.CreateOptions{})))
}
