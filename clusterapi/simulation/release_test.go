package simulation_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/internal/checktest"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// load reads a payload.
func load(t testing.TB, fsys fs.FS, image string) *manifest.Payload {
	t.Helper()
	p, err := manifest.Load(t.Context(), fsys, manifest.LoadOptions{Image: image, Architecture: "amd64", Filter: manifest.DefaultFilter()})
	checktest.OK(t, err)
	return p
}

// applyAll stores a release's manifests as an update does, in order, apart
// from those that are not simply applied. What typed apply refuses for a field
// that its schema lacks is created.
func applyAll(t *testing.T, c clusterapi.ClusterAPI, r simulation.Release) {
	t.Helper()
	for _, m := range r.Manifests {
		if m.GetKind() == "ClusterOperator" || m.GetAnnotations()["release.openshift.io/delete"] != "" {
			continue
		}
		u := m.DeepCopy()
		unstructured.RemoveNestedField(u.Object, "status")
		if _, err := c.Apply(t.Context(), u, clusterapi.ApplyOptions{FieldManager: clusterapi.ManagerPayload}); err != nil {
			if _, err := c.Create(t.Context(), u, clusterapi.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
				t.Errorf("%s %s: %v", m.GetKind(), m.GetName(), err)
			}
		}
	}
}

// updateWholeCluster takes a cluster from one payload to another, with the
// library's machine-config controller alongside the simulation.
func updateWholeCluster(t *testing.T, from, to *manifest.Payload) {
	one, two := intstr.FromInt32(1), intstr.FromInt32(2)
	target := payload.Release(to)
	c := start(t, simulation.Options{
		Release: payload.Release(from),
		Pools:   []simulation.Pool{{Nodes: 4, MaxUnavailable: &two}, {Name: "infra", Nodes: 2}},
		Workloads: []simulation.Workload{
			{Name: "web", Replicas: 5, MaxUnavailable: &one},
			{Name: "agent", DaemonSet: true},
			{Name: "guard", Namespace: "openshift-etcd", Replicas: 3, MaxUnavailable: &one,
				NodeSelector: map[string]string{"node-role.kubernetes.io/master": ""}},
		},
	})
	c.Expect(target)
	nodes := checktest.Get(rollout.New(rollout.Options{API: c, Mode: rollout.Drive}))(t)
	c.Add(nodes.Process())
	c.pass(10 * time.Minute)
	for _, co := range list[configv1.ClusterOperator](t, c, clusterapi.ListOptions{}) {
		if got := conditions(&co); got != "ATrue PFalse DFalse" || version(&co) != from.Release.Version {
			t.Fatalf("before the update, operator %s: %s %s", co.Name, got, version(&co))
		}
	}
	for _, p := range list[corev1.Pod](t, c, clusterapi.ListOptions{}) {
		if p.Status.Phase != corev1.PodRunning {
			t.Fatalf("before the update, pod %s/%s: %s", p.Namespace, p.Name, p.Status.Phase)
		}
	}
	applyAll(t, c, target)
	c.pass(4 * time.Hour)
	names := make(map[string]bool)
	for _, co := range list[configv1.ClusterOperator](t, c, clusterapi.ListOptions{}) {
		names[co.Name] = true
		if got := conditions(&co); got != "ATrue PFalse DFalse" || version(&co) != to.Release.Version {
			t.Errorf("operator %s: %s %s", co.Name, got, version(&co))
		}
	}
	for _, o := range to.Operators() {
		if !names[o.Name] {
			t.Errorf("operator %s is missing", o.Name)
		}
	}
	kubelet := ""
	for _, n := range list[corev1.Node](t, c, clusterapi.ListOptions{}) {
		config := n.Annotations[mcp.AnnotationCurrentConfig]
		if !strings.Contains(n.Status.NodeInfo.OSImage, to.Release.Version) || n.Annotations[mcp.AnnotationState] != mcp.StateDone || n.Spec.Unschedulable {
			t.Errorf("node %s: %v %s", n.Name, n.Annotations, n.Status.NodeInfo.OSImage)
		}
		mc := get[mcfgv1.MachineConfig](t, c, "", config)
		if mc.Annotations[mcp.AnnotationReleaseImageVersion] != to.Release.Version {
			t.Errorf("node %s: config %s of release %s", n.Name, config, mc.Annotations[mcp.AnnotationReleaseImageVersion])
		}
		kubelet = n.Status.NodeInfo.KubeletVersion
	}
	t.Logf("kubelets %s", kubelet)
	for _, p := range list[mcfgv1.MachineConfigPool](t, c, clusterapi.ListOptions{}) {
		if p.Status.UpdatedMachineCount != p.Status.MachineCount || p.Status.Configuration.Name != p.Spec.Configuration.Name {
			t.Errorf("pool %s: %+v", p.Name, p.Status)
		}
	}
}

func TestUpdateOfSample(t *testing.T) {
	updateWholeCluster(t, load(t, sample.From(), sample.FromImage), load(t, sample.To(), sample.ToImage))
}

// The objects of a simulated cluster stay valid under the CRDs that a real
// release brings.
func TestUpdateOfRealReleases(t *testing.T) {
	dir := testdata.Dir(t)
	from := load(t, os.DirFS(filepath.Join(dir, "payload-4.17.30")), "registry.example/ocp/release@sha256:a")
	to := load(t, os.DirFS(filepath.Join(dir, "payload-4.18.15")), "registry.example/ocp/release@sha256:b")
	updateWholeCluster(t, from, to)
}

// A backend that serves no kind without its definition gets them from the
// release.
func TestStrictBackend(t *testing.T) {
	c := start(t, simulation.Options{Release: payload.Release(load(t, sample.From(), sample.FromImage))})
	c.pass(time.Hour)
	checktest.Equal(t, 2, len(list[mcfgv1.MachineConfigPool](t, c, clusterapi.ListOptions{})), "pools")
}

// An operator does not wait for workloads that an update applies only once the
// operator is done.
func TestWorkloadAfterItsOperator(t *testing.T) {
	co := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator",
		"metadata": map[string]any{"name": "olm"}}}
	to := release("4.21.1", "olm")
	early, late := to.Operators[0].Workloads[0], operatorDeployment("olm-next", "4.21.1")
	to.Operators[0].Workloads = append(to.Operators[0].Workloads, late)
	to.Manifests = []*unstructured.Unstructured{early, co, late}
	c := start(t, simulation.Options{Release: release("4.20.3", "olm")})
	c.Expect(to)
	apply(t, c, early)
	c.pass(time.Hour)
	expectOperator(t, c, "olm", "in the end", "4.21.1")
}
