package remedy_test

import (
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/preconditions/remedy"
)

var machineSetKind = schema.GroupVersionKind{Group: "machine.openshift.io", Version: "v1", Kind: "ControlPlaneMachineSet"}

func machineSet(ami map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "machine.openshift.io/v1", "kind": "ControlPlaneMachineSet", "metadata": map[string]any{"namespace": "openshift-machine-api", "name": "cluster"},
		"spec": map[string]any{"state": "Active", "replicas": int64(3), "template": map[string]any{"machineType": "machines_v1beta1_machine_openshift_io", "machines_v1beta1_machine_openshift_io": map[string]any{
			"spec": map[string]any{"providerSpec": map[string]any{"value": map[string]any{"kind": "AWSMachineProviderConfig", "instanceType": "m6i.xlarge", "ami": ami, "unknown": "kept"}}},
		}}},
	}}
}

// armCluster is a cluster on AWS with x86 machines.
func armCluster(t testing.TB, f *faults, ami map[string]any) *memory.Cluster {
	i := infrastructure("AWS")
	i.Status.PlatformStatus.AWS = &configv1.AWSPlatformStatus{Region: "eu-west-1"}
	objects := []any{clusterVersion("4.18.5"), i, machineSet(ami), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-machine-config-operator", Name: "coreos-bootimages"},
		Data:       map[string]string{"stream": `{"architectures":{"aarch64":{"images":{"aws":{"regions":{"eu-west-1":{"image":"ami-arm"}}}}},"x86_64":{}}}`},
	}}
	for _, name := range []string{"a", "b", "c"} {
		objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"node-role.kubernetes.io/control-plane": "", corev1.LabelArchStable: "amd64"}}})
	}
	return forkOf(t, f, objects...)
}

func providerOf(t testing.TB, r clusterapi.Reader) map[string]any {
	t.Helper()
	u := checktest.Get(r.Get(t.Context(), machineSetKind, clusterapi.Key("openshift-machine-api", "cluster")))(t)
	spec, _, _ := unstructured.NestedMap(u.Object, "spec", "template", "machines_v1beta1_machine_openshift_io", "spec", "providerSpec", "value")
	return spec
}

func setArch(t testing.TB, api clusterapi.ClusterAPI, nodes ...string) {
	t.Helper()
	for _, name := range nodes {
		checktest.OK(t, checktest.Err(
			clusterapi.Modify(t.Context(), api, clusterapi.Key("", name), clusterapi.ModifyOptions{},
				func(n *corev1.Node) error {
					n.Labels[corev1.LabelArchStable] = "arm64"
					return nil
				})))
	}
}

// left are the steps that are not done, with what was found.
func left(p *remedy.Arm64Plan) string {
	var lines []string
	for _, s := range p.Steps {
		if !s.Done {
			lines = append(lines, s.ID+": "+s.State)
		}
	}
	return strings.Join(lines, "; ")
}

// The whole way, with a fault at each write.
func TestControlPlaneArm64(t *testing.T) {
	a := remedy.ControlPlaneArm64{InstanceType: "m6g.xlarge"}
	eachFault(t, func(t *testing.T, f *faults) {
		api := armCluster(t, f, map[string]any{"id": "ami-x86"})
		var p *remedy.Arm64Plan
		step := func() { again(t, func() (err error) { p, err = a.Step(t.Context(), api); return err }) }
		p = checktest.Get(a.Plan(t.Context(), api))(t)
		if want := "Payload: architecture none; ImageStreams: not visible in the cluster; MachineSet: instance type m6i.xlarge, image ami-x86, state Active; Nodes: 0 of 3"; left(p) != want {
			t.Error(left(p))
		}
		step()
		if next := p.Next(); next == nil || next.ID != "Payload" || versionOf(t, api).Spec.DesiredUpdate.Architecture != multi {
			t.Errorf("next is %+v", next)
		}
		step() // nothing new while the migration goes on
		at := f.at
		f.at = 0
		migrated(t, api, true)
		f.at = at
		step()
		want := map[string]any{"kind": "AWSMachineProviderConfig", "instanceType": "m6g.xlarge", "ami": map[string]any{"id": "ami-arm"}, "unknown": "kept"}
		checktest.Same(t, want, providerOf(t, api))
		if next := p.Next(); next == nil || next.ID != "Nodes" {
			t.Errorf("next is %+v", next)
		}
		f.at = 0
		setArch(t, api, "a", "b")
		step()
		if next := p.Next(); next == nil || next.State != "2 of 3" {
			t.Errorf("next is %+v", next)
		}
		setArch(t, api, "c")
		step()
		if p.Next() != nil {
			t.Errorf("in the end: %s", left(p))
		}
	})
}

func TestControlPlaneArm64Errors(t *testing.T) {
	for _, bad := range []string{"", "m6i.xlarge", "g5.xlarge", "m6g", "M6G.xlarge"} {
		if _, err := (remedy.ControlPlaneArm64{InstanceType: bad}).Plan(t.Context(), armCluster(t, nil, nil)); err == nil || !strings.Contains(err.Error(), "is not an instance type with an arm64 processor") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, good := range []string{"m6g.xlarge", "m7gd.2xlarge", "c6gn.metal", "t4g.medium", "a1.large", "r8g.metal-24xl", "x2gd.large", "im4gn.large"} {
		if _, err := (remedy.ControlPlaneArm64{InstanceType: good}).Plan(t.Context(), armCluster(t, nil, nil)); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	a := remedy.ControlPlaneArm64{InstanceType: "m6g.xlarge"}
	if _, err := a.Plan(t.Context(), forkOf(t, nil, clusterVersion("4.18.5"), infrastructure("GCP"))); err == nil || err.Error() != "control plane on arm64: the cluster is not on AWS" {
		t.Errorf("%v", err)
	}
	elsewhere := armCluster(t, nil, nil)
	checktest.OK(t, checktest.Err(
		clusterapi.Modify(t.Context(), elsewhere,
			clusterapi.Key("openshift-machine-config-operator",
				"coreos-bootimages"), clusterapi.ModifyOptions{}, func(cm *corev1.ConfigMap) error {
				cm.Data["stream"] = "x"
				return nil
			})))
	checktest.ErrorHas(t, "ConfigMap coreos-bootimages, stream", checktest.Err(a.Plan(t.Context(), elsewhere)))
}
