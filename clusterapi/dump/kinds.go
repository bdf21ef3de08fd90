package dump

import "k8s.io/apimachinery/pkg/runtime/schema"

// Kinds returns the kinds that this library reads from a cluster, which [Record]
// writes: sorted by group, kind, and from the newest version to the oldest. The
// result belongs to the caller.
func Kinds() []schema.GroupVersionKind {
	kind := func(group, version, kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
	}
	return []schema.GroupVersionKind{
		kind("", "v1", "ConfigMap"),
		kind("", "v1", "Namespace"),
		kind("", "v1", "Node"),
		kind("", "v1", "Pod"),
		kind("", "v1", "Secret"),
		kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
		kind("apps", "v1", "DaemonSet"),
		kind("apps", "v1", "Deployment"),
		kind("apps", "v1", "ReplicaSet"),
		kind("apps", "v1", "StatefulSet"),
		kind("batch", "v1", "Job"),
		kind("config.openshift.io", "v1", "APIServer"),
		kind("config.openshift.io", "v1", "ClusterImagePolicy"),
		kind("config.openshift.io", "v1alpha1", "ClusterImagePolicy"),
		kind("config.openshift.io", "v1", "ClusterOperator"),
		kind("config.openshift.io", "v1", "ClusterVersion"),
		kind("config.openshift.io", "v1", "FeatureGate"),
		kind("config.openshift.io", "v1", "ImagePolicy"),
		kind("config.openshift.io", "v1alpha1", "ImagePolicy"),
		kind("config.openshift.io", "v1", "Infrastructure"),
		kind("config.openshift.io", "v1", "Proxy"),
		kind("coordination.k8s.io", "v1", "Lease"),
		kind("machineconfiguration.openshift.io", "v1", "ControllerConfig"),
		kind("machineconfiguration.openshift.io", "v1", "MachineConfig"),
		kind("machineconfiguration.openshift.io", "v1", "MachineConfigNode"),
		kind("machineconfiguration.openshift.io", "v1", "MachineConfigPool"),
		kind("machineconfiguration.openshift.io", "v1", "MachineOSBuild"),
		kind("machineconfiguration.openshift.io", "v1", "MachineOSConfig"),
		kind("operators.coreos.com", "v1alpha1", "CatalogSource"),
		kind("operators.coreos.com", "v1alpha1", "ClusterServiceVersion"),
		kind("operators.coreos.com", "v1alpha1", "InstallPlan"),
		kind("operators.coreos.com", "v1", "OperatorGroup"),
		kind("operators.coreos.com", "v1alpha1", "Subscription"),
		kind("policy", "v1", "PodDisruptionBudget"),
		kind("upgrade.managed.openshift.io", "v1alpha1", "UpgradeConfig"),
	}
}
