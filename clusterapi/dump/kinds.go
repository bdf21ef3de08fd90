package dump

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// kindsRead are the kinds that this library reads from a cluster.
var kindsRead = []struct{ group, version, kinds string }{
	{"", "v1", "ConfigMap Namespace Node PersistentVolume PersistentVolumeClaim Pod Secret"},
	{"apiextensions.k8s.io", "v1", "CustomResourceDefinition"},
	{"apiserver.openshift.io", "v1", "APIRequestCount"},
	{"apps", "v1", "DaemonSet Deployment ReplicaSet StatefulSet"},
	{"batch", "v1", "Job"},
	{"config.openshift.io", "v1", "APIServer Authentication ClusterImagePolicy ClusterOperator ClusterVersion FeatureGate " +
		"ImageDigestMirrorSet ImagePolicy ImageTagMirrorSet Infrastructure Network Node Proxy"},
	{"config.openshift.io", "v1alpha1", "ClusterImagePolicy ImagePolicy"},
	{"coordination.k8s.io", "v1", "Lease"},
	{"imageregistry.operator.openshift.io", "v1", "Config"},
	{"kmm.sigs.x-k8s.io", "v1beta1", "Module PreflightValidationOCP"},
	{"kmm.sigs.x-k8s.io", "v1beta2", "PreflightValidationOCP"},
	{"kubevirt.io", "v1", "VirtualMachineInstance"},
	{"machine.openshift.io", "v1beta1", "MachineHealthCheck"},
	{"machineconfiguration.openshift.io", "v1", "ContainerRuntimeConfig ControllerConfig MachineConfig MachineConfigNode " +
		"MachineConfigPool MachineOSBuild MachineOSConfig OSImageStream"},
	{"machineconfiguration.openshift.io", "v1alpha1", "OSImageStream"},
	{"operator.openshift.io", "v1", "Authentication CSISnapshotController CloudCredential ClusterCSIDriver Config Console " +
		"Etcd IngressController InsightsOperator KubeAPIServer KubeControllerManager " +
		"KubeScheduler KubeStorageVersionMigrator MachineConfiguration Network OLM " +
		"OpenShiftAPIServer OpenShiftControllerManager ServiceCA Storage"},
	{"operator.openshift.io", "v1alpha1", "ImageContentSourcePolicy"},
	{"operators.coreos.com", "v1alpha1", "CatalogSource ClusterServiceVersion InstallPlan Subscription"},
	{"operators.coreos.com", "v1", "OperatorGroup"},
	{"policy", "v1", "PodDisruptionBudget"},
	{"snapshot.storage.k8s.io", "v1", "VolumeSnapshot"},
	{"upgrade.managed.openshift.io", "v1alpha1", "UpgradeConfig"},
}

// Kinds returns the kinds that this library reads from a cluster, which [Record]
// writes: sorted by group, kind, and from the newest version to the oldest. The
// result belongs to the caller.
func Kinds() []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for _, row := range kindsRead {
		for _, kind := range strings.Fields(row.kinds) {
			out = append(out, schema.GroupVersionKind{Group: row.group, Version: row.version, Kind: kind})
		}
	}
	slices.SortFunc(out, func(a, b schema.GroupVersionKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), version.CompareKubeAwareVersionStrings(b.Version, a.Version))
	})
	return out
}
