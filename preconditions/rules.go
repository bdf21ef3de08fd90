package preconditions

import (
	"slices"

	apiserverv1 "github.com/openshift/api/apiserver/v1"
	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	operatorv1alpha1 "github.com/openshift/api/operator/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/preconditions/internal/operators"
)

// Documented returns the checks that the documentation asks an administrator to
// make, and that the operator does not make itself.
func Documented() []Check {
	var checks []Check
	for _, c := range documented() {
		checks = append(checks, c)
	}
	return checks
}

// documentedBy returns a check of [Documented] with another judge.
func documentedBy(name string, judge judgeFunc) Check {
	all := documented()
	c := all[slices.IndexFunc(all, func(c check) bool { return c.rule.Name == name })]
	c.judge = judge
	return c
}

// Where the documentation is.
const (
	docs418           = docs + "4.18/html/"
	docsUnderstanding = docs418 + "updating_clusters/understanding-openshift-updates-1"
	docsPreparing     = docs418 + "updating_clusters/preparing-to-update-a-cluster"
	docsPerforming    = docs418 + "updating_clusters/performing-a-cluster-update"
)

// Kinds that have no Go type here.
var (
	crdKind            = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	virtualMachineKind = schema.GroupVersionKind{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachineInstance"}
)

// gvkOf returns the kind of a Go type; an unregistered one has none.
func gvkOf[T any]() schema.GroupVersionKind {
	gvk, _ := clusterapi.KindOf[T]()
	return gvk
}

// documented is the table of the documented rules.
func documented() []check {
	type kinds = []schema.GroupVersionKind
	var (
		version        = gvkOf[configv1.ClusterVersion]()
		clusterOps     = gvkOf[configv1.ClusterOperator]()
		infrastructure = gvkOf[configv1.Infrastructure]()
		cloud          = gvkOf[operatorv1.CloudCredential]()
		configMaps     = gvkOf[corev1.ConfigMap]()
		secrets        = gvkOf[corev1.Secret]()
		nodes          = gvkOf[corev1.Node]()
		pods           = gvkOf[corev1.Pod]()
		pools          = gvkOf[mcfgv1.MachineConfigPool]()
		budgets        = gvkOf[policyv1.PodDisruptionBudget]()

		minors   = []Kind{Minor, Major}
		notes    = []Severity{Info}
		warns    = []Severity{Warning}
		blocks   = []Severity{Blocking}
		orBlocks = []Severity{Warning, Blocking}
		any      = []Severity{Info, Warning, Blocking}
	)
	return []check{
		{Rule{Name: "PoolsPaused", Severities: any, Reads: kinds{pools},
			Source: "Preparing to update a cluster", Link: docsPreparing}, poolsPaused},
		{Rule{Name: "PoolsDegraded", Severities: orBlocks, Reads: kinds{pools},
			Source: "Performing a Control Plane Only update", Link: docsPerforming}, poolsDegraded},
		{Rule{Name: "PoolsUpdating", Severities: orBlocks, Reads: kinds{pools},
			Source: "Performing a Control Plane Only update", Link: docsPerforming}, poolsUpdating},
		{Rule{Name: "KubeletSkew", Kinds: minors, Severities: orBlocks, Reads: kinds{clusterOps, nodes, pools}, Needs: []string{"CurrentPayload"},
			Source: "Performing a Control Plane Only update", Link: docsPerforming}, kubeletSkew},
		{Rule{Name: "NodesUnavailable", Severities: orBlocks, Reads: kinds{nodes, pools},
			Source: "Understanding OpenShift updates, How updates are applied", Link: docsUnderstanding}, nodesUnavailable},
		{Rule{Name: "SpareCapacity", Severities: warns, Reads: kinds{nodes, pods, pools, budgets, infrastructure},
			Source: "Understanding OpenShift updates, Factors affecting update duration", Link: docsUnderstanding}, spareCapacity},
		{Rule{Name: "MaxUnavailable", Severities: orBlocks, Reads: kinds{nodes, pools},
			Source: "Understanding OpenShift updates, Factors affecting update duration", Link: docsUnderstanding}, maxUnavailable},
		{Rule{Name: "DisruptionBudgets", Severities: any, Reads: kinds{nodes, pods, pools, budgets, infrastructure, virtualMachineKind},
			Source: "Preparing to update a cluster", Link: docsPreparing}, disruptionBudgets},
		{Rule{Name: "CloudCredentials", Kinds: minors, Severities: orBlocks,
			Reads:  kinds{infrastructure, cloud, gvkOf[configv1.Authentication](), configMaps, secrets, version},
			Source: "Preparing to update a cluster with manually maintained credentials", Link: docsPreparing}, cloudCredentials},
		{Rule{Name: "CredentialsRequests", Kinds: minors, Severities: orBlocks, Needs: []string{"TargetPayload", "CurrentPayload"},
			Reads:  kinds{infrastructure, cloud, configMaps, version, gvkOf[corev1.Namespace](), secrets},
			Source: "Preparing to update a cluster with manually maintained credentials, CredentialsRequests", Link: docsPreparing}, credentialsRequests},
		{Rule{Name: "NetworkPlugin", Crossing: "4.17", Severities: orBlocks, Reads: kinds{gvkOf[configv1.Network]()},
			Source: "Preparing to update a cluster, migrating from OpenShift SDN", Link: docsPreparing}, networkPlugin},
		{Rule{Name: "RHELNodes", Severities: orBlocks, Reads: kinds{nodes},
			Source: "Updating a cluster that includes RHEL compute machines", Link: docsPerforming}, rhelNodes},
		{Rule{Name: "SingleNode", Severities: notes, Reads: kinds{infrastructure, nodes},
			Source: "Performing a cluster update, Updating a single-node cluster", Link: docsPerforming}, singleNode},
		{Rule{Name: "ClusterOperators", Severities: orBlocks, Reads: kinds{clusterOps},
			Source: "Understanding cluster Operator condition types", Link: docsUnderstanding}, clusterOperators},
		{Rule{Name: "CriticalAlerts", Severities: orBlocks, Needs: []string{"Alerts"},
			Source: "Preparing to update a cluster, Critical alerts", Link: docsPreparing}, criticalAlerts(false)},
		{Rule{Name: "DeprecatedAPIs", Kinds: minors, Severities: orBlocks, Needs: []string{"TargetPayload", "CurrentPayload"},
			Reads:  kinds{gvkOf[apiserverv1.APIRequestCount](), configMaps, version},
			Source: "Preparing to update a cluster, Kubernetes API removals", Link: docsPreparing}, deprecatedAPIs},
		{Rule{Name: "AdminAcks", Kinds: minors, Severities: blocks, Reads: kinds{configMaps, version},
			Source: "Preparing to update a cluster, Providing the administrator acknowledgment", Link: docsPreparing}, adminAcks},
		{Rule{Name: "GatewayAPI", Crossing: "4.19", Severities: orBlocks, Reads: kinds{crdKind, configMaps},
			Source: "Preparing to update a cluster, Gateway API management", Link: docsPreparing}, gatewayAPI},
		{Rule{Name: "UnsupportedOverrides", Severities: orBlocks, Reads: overridableGVKs(),
			Source: "Performing a cluster update, Before updating", Link: docsPerforming}, unsupportedOverrides},
		{Rule{Name: "VersionOverrides", Severities: orBlocks, Reads: kinds{version},
			Source: "Config APIs, ClusterVersion, spec.overrides", Link: docs418 + "config_apis/clusterversion-config-openshift-io-v1"}, versionOverrides},
		{Rule{Name: "MachineHealthChecks", Severities: warns, Reads: kinds{gvkOf[machinev1beta1.MachineHealthCheck](), nodes},
			Source: "Performing a cluster update, Pausing a MachineHealthCheck resource", Link: docsPerforming}, machineHealthChecks},
		{Rule{Name: "EtcdBackup", Severities: warns, Reads: kinds{clusterOps}, Needs: []string{"Backups", "Now"},
			Source: "Preparing to update a cluster, Creating an etcd backup", Link: docsPreparing}, etcdBackup(0)},
		{Rule{Name: "VolumeSnapshots", Severities: notes, Reads: kinds{gvkOf[corev1.PersistentVolumeClaim](), gvkOf[volumeSnapshot]()}, Needs: []string{"Now"},
			Source: "Performing a cluster update, Before updating", Link: docsPerforming}, volumeSnapshots(0)},
		{Rule{Name: "OperatorCompatibility", Kinds: minors, Severities: orBlocks,
			Reads:  kinds{version, gvkOf[olmapi.ClusterServiceVersion](), gvkOf[olmapi.InstallPlan]()},
			Source: "Performing a cluster update, Before updating", Link: docsPerforming}, operatorCompatibility},
		{Rule{Name: "VSphere", Severities: orBlocks, Reads: kinds{infrastructure, gvkOf[corev1.PersistentVolume]()}, Needs: []string{"VSphere"},
			Source: "Updating hardware on nodes running on vSphere", Link: docsPerforming}, vSphere},
		{Rule{Name: "KernelModules", Severities: any, Needs: []string{"TargetKernel"},
			Reads:  kinds{gvkOf[operators.KernelModule](), gvkOf[operators.PreflightValidation](), gvkOf[operators.PreflightV1beta1]()},
			Source: "Preflight validation for Kernel Module Management (KMM) Modules", Link: docsPreparing}, kernelModules},
		{Rule{Name: "Channel", Severities: []Severity{Info, Warning}, Reads: kinds{version},
			Source: "Understanding update channels and releases", Link: docsUnderstanding}, updateChannel},
		{Rule{Name: "Disconnected", Severities: orBlocks, Needs: []string{"Signatures"},
			Reads: kinds{version, gvkOf[configv1.Proxy](), configMaps, gvkOf[configv1.ImageDigestMirrorSet](),
				gvkOf[configv1.ImageTagMirrorSet](), gvkOf[operatorv1alpha1.ImageContentSourcePolicy]()},
			Source: "Performing a cluster update in a disconnected environment", Link: docsPerforming}, disconnected},
		{Rule{Name: "MultiArch", ArchitectureChange: true, Severities: orBlocks, Needs: []string{"TargetPayload", "CurrentPayload"},
			Reads:  kinds{version, infrastructure, nodes},
			Source: "Migrating to a cluster with multi-architecture compute machines", Link: docsPerforming}, multiArch},
		{Rule{Name: "FeatureSet", Severities: orBlocks, Reads: kinds{gvkOf[configv1.FeatureGate]()},
			Source: "Nodes, Enabling features using feature gates", Link: docs418 + "nodes/working-with-clusters"}, featureSet},
		{Rule{Name: "CgroupV1", Crossing: "4.19", Severities: blocks, Reads: kinds{gvkOf[configv1.Node]()},
			Source: "OpenShift Container Platform 4.19 release notes, Deprecated and removed features",
			Link:   docs + "4.19/html/release_notes/ocp-4-19-release-notes"}, cgroupV1},
		{Rule{Name: "Runc", Kinds: minors, Severities: orBlocks,
			Reads:  append(kinds{gvkOf[mcfgv1.ContainerRuntimeConfig](), pools, version}, osImageStreamKinds()...),
			Source: "Machine configuration, Configuring the container runtime", Link: docs418 + "machine_configuration/machine-configs-custom"}, runc},
		{Rule{Name: "UpdateInProgress", Severities: orBlocks, Reads: kinds{version},
			Source: "Understanding cluster Operator condition types", Link: docsUnderstanding}, updateInProgress},
		{Rule{Name: "BootLoader", Severities: notes, Reads: kinds{version},
			Source: "Updating the boot loader on RHCOS nodes using bootupd", Link: docsPerforming}, bootLoader},
	}
}
