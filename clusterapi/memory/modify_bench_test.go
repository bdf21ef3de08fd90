package memory_test

import (
	"fmt"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

const benchNode = `
apiVersion: v1
kind: Node
metadata:
  name: worker-0
  labels:
    beta.kubernetes.io/arch: amd64
    beta.kubernetes.io/os: linux
    kubernetes.io/arch: amd64
    kubernetes.io/hostname: worker-0
    kubernetes.io/os: linux
    node-role.kubernetes.io/worker: ""
    node.openshift.io/os_id: rhel
    topology.kubernetes.io/zone: a
  annotations:
    machineconfiguration.openshift.io/controlPlaneTopology: HighlyAvailable
    machineconfiguration.openshift.io/currentConfig: rendered-worker-0123456789abcdef0123456789abcdef
    machineconfiguration.openshift.io/desiredConfig: rendered-worker-0123456789abcdef0123456789abcdef
    machineconfiguration.openshift.io/desiredDrain: uncordon-rendered-worker-0123456789abcdef0123456789abcdef
    machineconfiguration.openshift.io/lastAppliedDrain: uncordon-rendered-worker-0123456789abcdef0123456789abcdef
    machineconfiguration.openshift.io/reason: ""
    machineconfiguration.openshift.io/state: Done
    volumes.kubernetes.io/controller-managed-attach-detach: "true"
spec: {providerID: "aws:///a/i-0"}
status:
  addresses: [{type: InternalIP, address: 10.0.0.1}, {type: Hostname, address: worker-0}]
  allocatable: {cpu: 3500m, ephemeral-storage: 100Gi, memory: 15Gi, pods: "250"}
  capacity: {cpu: "4", ephemeral-storage: 120Gi, memory: 16Gi, pods: "250"}
  conditions:
  - {type: MemoryPressure, status: "False", reason: KubeletHasSufficientMemory, message: kubelet has sufficient memory available, lastHeartbeatTime: "2026-01-02T03:04:05Z", lastTransitionTime: "2026-01-02T03:04:05Z"}
  - {type: DiskPressure, status: "False", reason: KubeletHasNoDiskPressure, message: kubelet has no disk pressure, lastHeartbeatTime: "2026-01-02T03:04:05Z", lastTransitionTime: "2026-01-02T03:04:05Z"}
  - {type: PIDPressure, status: "False", reason: KubeletHasSufficientPID, message: kubelet has sufficient PID available, lastHeartbeatTime: "2026-01-02T03:04:05Z", lastTransitionTime: "2026-01-02T03:04:05Z"}
  - {type: Ready, status: "True", reason: KubeletReady, message: kubelet is posting ready status, lastHeartbeatTime: "2026-01-02T03:04:05Z", lastTransitionTime: "2026-01-02T03:04:05Z"}
  nodeInfo: {architecture: amd64, bootID: "", containerRuntimeVersion: cri-o, kernelVersion: "5.14", kubeProxyVersion: "", kubeletVersion: v1.33.0, machineID: "", operatingSystem: linux, osImage: Red Hat Enterprise Linux CoreOS, systemUUID: ""}
`

const benchPod = `
apiVersion: v1
kind: Pod
metadata:
  name: web-0
  namespace: example
  labels: {app: web, pod-template-hash: "1"}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: "1", controller: true, blockOwnerDeletion: true}]
spec:
  nodeName: worker-0
  containers: [{name: c, image: registry.example/web, resources: {requests: {cpu: 10m, memory: 50Mi}}}]
`

const benchPool = `
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigPool
metadata: {name: worker, labels: {machineconfiguration.openshift.io/mco-built-in: ""}}
spec:
  machineConfigSelector: {matchLabels: {machineconfiguration.openshift.io/role: worker}}
  nodeSelector: {matchLabels: {node-role.kubernetes.io/worker: ""}}
  configuration: {name: rendered-worker-0123456789abcdef0123456789abcdef, source: [{apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfig, name: 00-worker}, {apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfig, name: 01-worker}]}
`

const benchOperator = `
apiVersion: config.openshift.io/v1
kind: ClusterOperator
metadata: {name: dns, annotations: {include.release.openshift.io/self-managed-high-availability: "true"}}
spec: {}
`

// BenchmarkModify changes objects as controllers do, each time to another state.
func BenchmarkModify(b *testing.B) {
	by := func(name string) clusterapi.ModifyOptions { return clusterapi.ModifyOptions{FieldManager: name} }
	status := func(name string) clusterapi.ModifyOptions {
		return clusterapi.ModifyOptions{FieldManager: name, Status: true}
	}
	b.Run("node/metadata", func(b *testing.B) {
		benchModify(b, by("controller"), func(n *corev1.Node, i int) {
			n.Annotations["machineconfiguration.openshift.io/desiredConfig"] = fmt.Sprint("rendered-worker-", i)
		})
	})
	b.Run("node/spec", func(b *testing.B) {
		benchModify(b, by("controller"), func(n *corev1.Node, i int) { n.Spec.Unschedulable = i%2 == 0 })
	})
	b.Run("node/status", func(b *testing.B) {
		benchModify(b, status("kubelet"), func(n *corev1.Node, i int) { n.Status.Conditions[3].Message = fmt.Sprint(i) })
	})
	b.Run("node/unchanged", func(b *testing.B) {
		benchModify(b, status("kubelet"), func(n *corev1.Node, i int) { n.Status.Conditions[3].Reason = "KubeletReady" })
	})
	b.Run("pod/status", func(b *testing.B) {
		benchModify(b, status("kubelet"), func(p *corev1.Pod, i int) {
			p.Status.Phase = corev1.PodRunning
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, Message: fmt.Sprint(i), LastTransitionTime: metav1.Now()}}
		})
	})
	b.Run("pool/status", func(b *testing.B) {
		benchModify(b, status("controller"), func(p *mcfgv1.MachineConfigPool, i int) {
			p.Status.MachineCount, p.Status.UpdatedMachineCount = 1000, int32(i%1000)
			p.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{{Type: mcfgv1.MachineConfigPoolUpdating, Status: corev1.ConditionTrue, Message: fmt.Sprint(i)}}
		})
	})
	b.Run("operator/status", func(b *testing.B) {
		benchModify(b, status("operator"), func(o *configv1.ClusterOperator, i int) {
			o.Status.Versions = []configv1.OperandVersion{{Name: "operator", Version: fmt.Sprint(i)}}
		})
	})
}

func benchModify[T any](b *testing.B, o clusterapi.ModifyOptions, f func(*T, int)) {
	c := memory.NewOpenShift(memory.Options{})
	for _, text := range []string{benchNode, benchPod, benchPool, benchOperator} {
		checktest.Must(c.Create(b.Context(), object(b, text), clusterapi.CreateOptions{FieldManager: "install"}))
	}
	gvk, _ := clusterapi.KindOf[T]()
	key := map[string]types.NamespacedName{"Node": clusterapi.Key("", "worker-0"), "Pod": clusterapi.Key("example", "web-0"),
		"MachineConfigPool": clusterapi.Key("", "worker"), "ClusterOperator": clusterapi.Key("", "dns")}[gvk.Kind]
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		checktest.Must(clusterapi.Modify(b.Context(), c, key, o, func(t *T) error { f(t, i); return nil }))
	}
}

// BenchmarkPods makes pods and deletes them.
func BenchmarkPods(b *testing.B) {
	c := memory.New(memory.Options{})
	obj := object(b, benchPod)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		obj.SetName(fmt.Sprint("web-", i))
		checktest.Must(c.Create(b.Context(), obj, clusterapi.CreateOptions{FieldManager: "controller"}))
		checktest.OK(b, c.Delete(b.Context(), obj.GroupVersionKind(), clusterapi.KeyOf(obj), clusterapi.DeleteOptions{}))
	}
}
