package simulation_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp"
)

func TestNew(t *testing.T) {
	two := intstr.FromInt32(2)
	r := release("4.20.3", "dns")
	r.Image = "registry.example/release@sha256:1"
	r.Manifests = []*unstructured.Unstructured{
		{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "openshift-config-managed", "name": "admin-gates"}, "data": map[string]any{"a": "b"}}},
		{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "x", "name": "gone", "annotations": map[string]any{"release.openshift.io/delete": "true"}}}},
	}
	c := checktest.Get(simulation.New(simulation.Options{
		Release:        r,
		Pools:          []simulation.Pool{{Nodes: 4, MaxUnavailable: &two}, {Name: "infra", Nodes: 2, Paused: true}},
		ClusterVersion: simulation.ClusterVersion{Channel: "stable-4.21", Upstream: "https://updates.example/graph"},
	}))(t)
	cv := get[configv1.ClusterVersion](t, c, "", "version")
	if cv.Spec.Channel != "stable-4.21" || string(cv.Spec.Upstream) != "https://updates.example/graph" || cv.Spec.ClusterID == "" {
		t.Errorf("spec %+v", cv.Spec)
	}
	if h := cv.Status.History; len(h) != 1 || h[0].State != configv1.CompletedUpdate || h[0].Version != "4.20.3" || h[0].Image != r.Image || h[0].CompletionTime == nil {
		t.Errorf("history %+v", h)
	}
	if cv.Status.Desired.Image != r.Image {
		t.Errorf("desired %+v", cv.Status.Desired)
	}
	if co := get[configv1.ClusterOperator](t, c, "", "dns"); conditions(co)+version(co) != "ATrue PFalse DFalse4.20.3" {
		t.Errorf("dns %s %s", conditions(co), version(co))
	}
	var names []string
	for _, n := range list[corev1.Node](t, c, clusterapi.ListOptions{}) {
		names = append(names, n.Name+" "+n.Labels[mcp.LabelZone])
		pool, _, _ := strings.Cut(n.Name, "-")
		config := get[mcfgv1.MachineConfigPool](t, c, "", pool).Spec.Configuration.Name
		if n.Annotations[mcp.AnnotationCurrentConfig] != config || n.Annotations[mcp.AnnotationDesiredConfig] != config || n.Annotations[mcp.AnnotationState] != mcp.StateDone {
			t.Errorf("node %s: %v, pool's config %s", n.Name, n.Annotations, config)
		}
		if _, worker := n.Labels["node-role.kubernetes.io/worker"]; worker == (pool == "master") {
			t.Errorf("node %s: labels %v", n.Name, n.Labels)
		}
		if n.Status.NodeInfo.KubeletVersion != "v1.33.0" {
			t.Errorf("node %s: kubelet %s", n.Name, n.Status.NodeInfo.KubeletVersion)
		}
	}
	want := "infra-0 zone-a,infra-1 zone-b,master-0 zone-a,master-1 zone-b,master-2 zone-c,worker-0 zone-a,worker-1 zone-b,worker-2 zone-c,worker-3 zone-a"
	checktest.Equal(t, want, strings.Join(names, ","), "nodes")
	if p := get[mcfgv1.MachineConfigPool](t, c, "", "worker"); p.Spec.MaxUnavailable == nil || *p.Spec.MaxUnavailable != two || p.Status.MachineCount != 4 {
		t.Errorf("pool worker %+v", p)
	}
	if p := get[mcfgv1.MachineConfigPool](t, c, "", "infra"); !p.Spec.Paused {
		t.Error("pool infra is not paused")
	}
	// Pools select by membership as the library sees it.
	pools := list[mcfgv1.MachineConfigPool](t, c, clusterapi.ListOptions{})
	m, issues := mcp.NewMembership(pools)
	if len(issues) != 0 {
		t.Errorf("membership issues %v", issues)
	}
	for _, n := range list[corev1.Node](t, c, clusterapi.ListOptions{}) {
		pool, _, _ := strings.Cut(n.Name, "-")
		if got := m.Of(n.Labels).Primary; got != pool {
			t.Errorf("node %s is in pool %s", n.Name, got)
		}
	}
	if cm := get[corev1.ConfigMap](t, c, "openshift-config-managed", "admin-gates"); cm.Data["a"] != "b" {
		t.Errorf("a manifest was not stored: %v", cm.Data)
	}
	if cms := list[corev1.ConfigMap](t, c, clusterapi.ListOptions{Namespace: "x"}); len(cms) != 0 {
		t.Errorf("a manifest that deletes was stored")
	}
}

func TestNewRefuses(t *testing.T) {
	one := intstr.FromInt32(1)
	tests := []struct {
		name string
		o    simulation.Options
		want string
	}{
		{"no version", simulation.Options{}, "simulation: Options.Release.Version is empty"},
		{"two pools of a name", simulation.Options{Release: release("4.20.3"), Pools: []simulation.Pool{{}, {Name: "worker"}}}, "simulation: Options.Pools[1], worker: a second pool of that name, or a negative number of nodes"},
		{"both budgets", simulation.Options{Release: release("4.20.3"), Workloads: []simulation.Workload{{Name: "web", MinAvailable: &one, MaxUnavailable: &one}}}, "simulation: workload web: both MinAvailable and MaxUnavailable are set"},
		{"a workload without a name", simulation.Options{Release: release("4.20.3"), Workloads: []simulation.Workload{{}}}, "simulation: Options.Workloads[0] has no name"},
		{"a negative control plane", simulation.Options{Release: release("4.20.3"), ControlPlane: -1}, "simulation.Options: ControlPlane is negative: -1"},
		{"a negative time", simulation.Options{Release: release("4.20.3"), Timing: simulation.Timing{Reboot: -1}}, "simulation.Options: Timing.Reboot is negative: -1ns"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := simulation.New(tt.o); err == nil || err.Error() != tt.want {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}

func TestRunTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := checktest.Get(simulation.New(simulation.Options{Release: release("4.20.3")}))(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		synctest.Wait()
		if err := c.Run(ctx); err == nil || err.Error() != "simulation: the cluster runs already" {
			t.Errorf("a second Run: %v", err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestRunEndsAndLeaksNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 3 {
		c, err := simulation.New(simulation.Options{Release: release("4.20.3", "dns"), Clock: simulation.ScaledClock(1000),
			Workloads: []simulation.Workload{{Name: "web", Replicas: 3}}})
		checktest.OK(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := c.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
		cancel()
	}
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

func TestAtRestNothingIsWritten(t *testing.T) {
	c := start(t, simulation.Options{Release: release("4.20.3", "machine-config", "dns"), Workloads: []simulation.Workload{{Name: "web", Replicas: 2}}})
	c.pass(time.Hour)
	versions := func() string {
		var all []string
		for _, k := range []string{"Node", "Pod"} {
			l := checktest.Get(c.List(t.Context(), corev1.SchemeGroupVersion.WithKind(k), clusterapi.ListOptions{}))(t)
			for _, u := range l.Items {
				all = append(all, k+u.GetName()+u.GetResourceVersion())
			}
		}
		for _, p := range list[mcfgv1.MachineConfigPool](t, c, clusterapi.ListOptions{}) {
			all = append(all, p.Name+p.ResourceVersion)
		}
		for _, co := range list[configv1.ClusterOperator](t, c, clusterapi.ListOptions{}) {
			all = append(all, co.Name+co.ResourceVersion)
		}
		return strings.Join(all, "\n")
	}
	before := versions()
	c.pass(24 * time.Hour)
	if after := versions(); after != before {
		t.Errorf("a day at rest changed objects: before\n%s\nafter\n%s", before, after)
	}
}

// Kubelets have the version that the release names, or its API server, or that of its minor version.
func TestKubeVersion(t *testing.T) {
	apiServer := func(version string) *configv1.ClusterOperator {
		o := &configv1.ClusterOperator{}
		o.Name = "kube-apiserver"
		o.Status.Versions = []configv1.OperandVersion{{Name: "operator", Version: "5.1.0"}, {Name: "kube-apiserver", Version: version}}
		return o
	}
	for _, tt := range []struct {
		version, set, reported, recorded string
		kubelet, fails                   string
	}{
		{version: "4.22.3", kubelet: "v1.35.0"},
		{version: "5.0.0-rc.1", kubelet: "v1.36.0"},
		{version: "4.20.3", reported: "1.33.7", kubelet: "v1.33.7"},
		{version: "4.20.3", reported: "4.20.3-kubernetes", kubelet: "v1.33.0"},
		{version: "5.1.0", reported: "1.37.2", kubelet: "v1.37.2"},
		{version: "5.1.0", set: "v1.38.1", reported: "1.37.2", kubelet: "v1.38.1"},
		{version: "5.1.0", recorded: "1.37.4"},
		{version: "5.1.0", recorded: "?"}, // nodes keep what they have
		{version: "5.1.0", fails: "release 5.1.0: set KubeVersion: the Kubernetes of OpenShift 5.1 is not known"},
		{version: "next", fails: "release next: set KubeVersion, or a version of OpenShift: "},
	} {
		r := release(tt.version, "dns", "kube-apiserver")
		r.KubeVersion = tt.set
		if tt.reported != "" {
			r.Operators[1].Versions = apiServer(tt.reported).Status.Versions
		}
		o := simulation.Options{Release: r}
		if tt.recorded != "" {
			base := memory.NewOpenShift(memory.Options{})
			checktest.OK(t, base.Load(checktest.Get(clusterapi.ToUnstructured(apiServer(tt.recorded)))(t)))
			o.Memory.Base = base
		}
		c, err := simulation.New(o)
		if tt.fails != "" {
			checktest.ErrorHas(t, tt.fails, err)
			continue
		}
		checktest.OK(t, err)
		if tt.recorded == "" {
			n := get[corev1.Node](t, c, "", "worker-0")
			checktest.Equal(t, tt.kubelet, n.Status.NodeInfo.KubeletVersion, "%+v", tt)
		}
		checktest.ErrorHas(t, "release 5.2.0: set KubeVersion", c.Expect(simulation.Release{Version: "5.2.0"}))
	}
}
