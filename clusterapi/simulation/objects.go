package simulation

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/mcp"
)

// labelWorker and labelMaster are roles of nodes.
const (
	labelWorker       = mcp.LabelNodeRolePrefix + "worker"
	labelMaster       = mcp.LabelNodeRolePrefix + "master"
	labelControlPlane = mcp.LabelNodeRolePrefix + "control-plane"
)

// node is the i-th node of a pool, up and done with its config.
func (b *builder) node(pool string, i int, config string) *corev1.Node {
	name := fmt.Sprintf("%s-%d", pool, i)
	labels := map[string]string{
		corev1.LabelHostname:   name,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: "amd64",
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	switch pool {
	case mcp.PoolMaster:
		labels[labelMaster], labels[labelControlPlane] = "", ""
		n.Spec.Taints = []corev1.Taint{{Key: labelMaster, Effect: corev1.TaintEffectNoSchedule}}
	default:
		labels[labelWorker] = ""
		labels[mcp.LabelNodeRolePrefix+pool] = ""
	}
	if len(b.options.Zones) > 0 {
		labels[mcp.LabelZone] = b.options.Zones[i%len(b.options.Zones)]
	}
	n.Annotations = map[string]string{
		mcp.AnnotationCurrentConfig:        config,
		mcp.AnnotationDesiredConfig:        config,
		mcp.AnnotationState:                mcp.StateDone,
		mcp.AnnotationReason:               "",
		mcp.AnnotationDesiredDrain:         mcp.DrainVerbUncordon + "-" + config,
		mcp.AnnotationLastAppliedDrain:     mcp.DrainVerbUncordon + "-" + config,
		mcp.AnnotationControlPlaneTopology: string(b.topology()),
	}
	at := metav1.NewTime(b.now.Add(-age + time.Hour).Truncate(time.Second))
	for _, c := range []struct {
		t       corev1.NodeConditionType
		status  corev1.ConditionStatus
		reason  string
		message string
	}{
		{corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"},
		{corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"},
		{corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available"},
		{corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status"},
	} {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: c.t, Status: c.status,
			Reason: c.reason, Message: c.message, LastHeartbeatTime: at, LastTransitionTime: at})
	}
	n.Status.NodeInfo = corev1.NodeSystemInfo{
		MachineID: digest("machine " + name)[:32], SystemUUID: nextBootID(name, "system"), BootID: nextBootID(name, ""),
		KubeletVersion: b.release.KubeVersion, OSImage: osName(b.release), OperatingSystem: "linux", Architecture: "amd64",
		ContainerRuntimeVersion: "cri-o://1.0.0", KernelVersion: "5.14.0",
	}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}}
	n.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"),
		corev1.ResourceMemory: resource.MustParse("32Gi"), corev1.ResourcePods: resource.MustParse("250")}
	n.Status.Allocatable = n.Status.Capacity.DeepCopy()
	return n
}

// machineConfig is a MachineConfig of a role that writes one file.
func machineConfig(name, role, file, content string) *unstructured.Unstructured {
	u := object(kindMachineConfig, "", name, map[string]any{"spec": map[string]any{
		"config": map[string]any{
			"ignition": map[string]any{"version": "3.4.0"},
			"storage": map[string]any{"files": []any{map[string]any{
				"path": file, "mode": int64(0o644), "overwrite": true,
				"contents": map[string]any{"source": "data:," + content},
			}}},
		},
	}})
	u.SetLabels(map[string]string{mcp.LabelRole: role})
	return u
}

func (w *Workload) namespace() string {
	if w.Namespace == "" {
		return "default"
	}
	return w.Namespace
}

// volume is the workload's claim and the volume that is bound to it.
func (w *Workload) volume() []any {
	name := w.namespace() + "-" + w.Name
	zone := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: mcp.LabelZone, Operator: corev1.NodeSelectorOpIn, Values: []string{w.VolumeZone}}}}
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	return []any{
		&corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace(), Name: w.Name},
			Spec: corev1.PersistentVolumeClaimSpec{AccessModes: modes, VolumeName: name,
				Resources: corev1.VolumeResourceRequirements{Requests: size}},
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
		},
		&corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PersistentVolumeSpec{Capacity: size, AccessModes: modes,
				ClaimRef:               &corev1.ObjectReference{Namespace: w.namespace(), Name: w.Name},
				PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/data"}},
				NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{zone}}}},
			Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
		},
	}
}

// objects are the objects that make up a workload.
func (w *Workload) objects() []any {
	labels := map[string]string{labelApp: w.Name}
	meta := metav1.ObjectMeta{Namespace: w.namespace(), Name: w.Name, Labels: labels,
		Annotations: map[string]string{annotationPods: "true"}}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	nodes := w.NodeSelector
	if nodes == nil {
		nodes = map[string]string{labelWorker: ""}
	}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec: corev1.PodSpec{
			NodeSelector: nodes,
			Containers:   []corev1.Container{{Name: "main", Image: "registry.example/simulated/" + w.Name + ":1"}},
		},
	}
	if _, onControlPlane := nodes[labelMaster]; onControlPlane {
		template.Spec.Tolerations = []corev1.Toleration{{Key: labelMaster, Operator: corev1.TolerationOpExists}}
	}
	var out []any
	if w.Apart {
		template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				LabelSelector: selector, TopologyKey: corev1.LabelHostname}}}}
	}
	if w.VolumeZone != "" {
		data := corev1.Volume{Name: "data"}
		data.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: w.Name}
		template.Spec.Volumes = []corev1.Volume{data}
		out = append(out, w.volume()...)
	}
	if w.DaemonSet {
		template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		out = append(out, &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}})
	} else {
		replicas := int32(w.Replicas)
		out = append(out, &appsv1.Deployment{ObjectMeta: meta,
			Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector, Template: template}})
	}
	if w.MinAvailable != nil || w.MaxUnavailable != nil {
		out = append(out, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace(), Name: w.Name},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: selector, MinAvailable: w.MinAvailable, MaxUnavailable: w.MaxUnavailable},
		})
	}
	return out
}
