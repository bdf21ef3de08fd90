package simulation_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// start makes a cluster and runs it until the test ends. Call it in a bubble.
func start(t *testing.T, o simulation.Options) *simulation.Cluster {
	t.Helper()
	c, err := simulation.New(o)
	if err != nil {
		t.Fatal(err)
	}
	run(t, c)
	return c
}

// run runs the cluster; the returned function stops it, as the test's end does.
func run(t *testing.T, c *simulation.Cluster) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run returned %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// pass lets time pass and the cluster come to rest.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func get[T any](t *testing.T, c *simulation.Cluster, namespace, name string) *T {
	t.Helper()
	obj, err := clusterapi.Get[T](t.Context(), c, clusterapi.Key(namespace, name))
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

func list[T any](t *testing.T, c *simulation.Cluster, o clusterapi.ListOptions) []T {
	t.Helper()
	objs, err := clusterapi.List[T](t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	return objs
}

func modify[T any](t *testing.T, c *simulation.Cluster, namespace, name string, f func(*T)) {
	t.Helper()
	if _, err := clusterapi.Modify(t.Context(), c, clusterapi.Key(namespace, name), clusterapi.ModifyOptions{}, func(obj *T) error {
		f(obj)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func apply(t *testing.T, c *simulation.Cluster, u *unstructured.Unstructured) {
	t.Helper()
	if _, err := c.Apply(t.Context(), u, clusterapi.ApplyOptions{FieldManager: clusterapi.ManagerPayload}); err != nil {
		t.Fatal(err)
	}
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
// does, by evicting pods, and never gives up. It runs until the test ends.
func drainer(t *testing.T, c *simulation.Cluster) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			nodes, err := c.List(ctx, corev1.SchemeGroupVersion.WithKind("Node"), clusterapi.ListOptions{})
			if err == nil {
				for i := range nodes.Items {
					drainOnce(ctx, c, &nodes.Items[i])
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(2 * time.Second):
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

func drainOnce(ctx context.Context, c *simulation.Cluster, n *unstructured.Unstructured) {
	asked := n.GetAnnotations()[mcp.AnnotationDesiredDrain]
	if asked == n.GetAnnotations()[mcp.AnnotationLastAppliedDrain] {
		return
	}
	drain := strings.HasPrefix(asked, "drain-")
	change := func(f func(*corev1.Node)) {
		_, _ = clusterapi.Modify(ctx, c, clusterapi.Key("", n.GetName()), clusterapi.ModifyOptions{}, func(n *corev1.Node) error {
			f(n)
			return nil
		})
	}
	change(func(n *corev1.Node) { n.Spec.Unschedulable = drain })
	if drain {
		pods, err := clusterapi.List[corev1.Pod](ctx, c, clusterapi.ListOptions{NodeName: n.GetName()})
		if err != nil {
			return
		}
		left := 0
		for i := range pods {
			if owner := metav1.GetControllerOf(&pods[i]); owner != nil && owner.Kind == "DaemonSet" {
				continue
			}
			left++
			if pods[i].DeletionTimestamp == nil {
				_ = c.Evict(ctx, clusterapi.Key(pods[i].Namespace, pods[i].Name), clusterapi.EvictOptions{})
			}
		}
		if left > 0 {
			return
		}
	}
	change(func(n *corev1.Node) { n.Annotations[mcp.AnnotationLastAppliedDrain] = asked })
}

// retarget makes a pool's nodes go to the pool's config, all at once.
func retarget(t *testing.T, c *simulation.Cluster, pool string, nodes ...string) string {
	t.Helper()
	config := get[mcfgv1.MachineConfigPool](t, c, "", pool).Spec.Configuration.Name
	for _, name := range nodes {
		modify(t, c, "", name, func(n *corev1.Node) { n.Annotations[mcp.AnnotationDesiredConfig] = config })
	}
	return config
}

// addMachineConfig gives a role a MachineConfig more.
func addMachineConfig(t *testing.T, c *simulation.Cluster, name, role, content string) {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
		"metadata": map[string]any{"name": name, "labels": map[string]any{mcp.LabelRole: role}},
		"spec": map[string]any{"config": map[string]any{
			"ignition": map[string]any{"version": "3.4.0"},
			"storage":  map[string]any{"files": []any{map[string]any{"path": "/etc/" + name, "contents": map[string]any{"source": "data:," + content}}}},
		}},
	}}
	if _, err := c.Create(t.Context(), u, clusterapi.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
