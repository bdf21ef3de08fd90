package rules

import (
	"context"
	"slices"
	"time"

	apiserverv1 "github.com/openshift/api/apiserver/v1"
	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	operatorv1alpha1 "github.com/openshift/api/operator/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/internal/facts"
	"github.com/clusterupdate/clusterupdate/preconditions/internal/operators"
)

// Options adjust checks. The zero value works.
type Options struct {
	// BackupAge and SnapshotAge are how old the newest backup of etcd (EtcdBackup) and
	// the snapshot of a volume claim (VolumeSnapshots) may be; 0: 24 hours.
	BackupAge, SnapshotAge time.Duration
	// PlatformAlerts makes CriticalAlerts judge as the managed-upgrade operator does: only
	// critical alerts of the platform's own namespaces (openshift.*, kube-.*, default)
	// count, and they block.
	PlatformAlerts bool
}

// Default returns all checks: those of [preconditions.Operator], ReleasePrevious,
// SkipsMinors and ReleaseNewer of [preconditions.AtLoad], then those of [Documented].
func Default(o Options) []preconditions.Check {
	atLoad := slices.DeleteFunc(preconditions.AtLoad(), func(c preconditions.Check) bool { return c.Name() == multiArch })
	return append(atLoad, Documented(o)...)
}

// Documented returns the checks that the documentation asks an administrator to
// make, and that the operator does not make itself.
func Documented(o Options) []preconditions.Check {
	var checks []preconditions.Check
	for _, d := range documented(o) {
		if d.judge == nil {
			checks = append(checks, atLoad(d.rule.Name))
		} else {
			checks = append(checks, preconditions.NewCheck(d.rule, d.judge))
		}
	}
	return checks
}

// atLoad returns a check of [preconditions.AtLoad].
func atLoad(name string) preconditions.Check {
	all := preconditions.AtLoad()
	return all[slices.IndexFunc(all, func(c preconditions.Check) bool { return c.Name() == name })]
}

// multiArch is the documented check that [preconditions.AtLoad] makes too.
const multiArch = "MultiArch"

// judgeFunc judges an input by a rule. Its results are those of Run of a
// [preconditions.Check].
type judgeFunc func(context.Context, *preconditions.Input) ([]preconditions.Finding, error)

// rule is a rule with what judges by it; nil: the check of [preconditions.AtLoad].
type rule struct {
	rule  preconditions.Rule
	judge judgeFunc
}

// Where the documentation is.
const (
	docs418           = facts.Docs + "4.18/html/"
	docsUnderstanding = docs418 + "updating_clusters/understanding-openshift-updates-1"
	docsPreparing     = docs418 + "updating_clusters/preparing-to-update-a-cluster"
	docsPerforming    = docs418 + "updating_clusters/performing-a-cluster-update"
)

// Kinds that have no Go type here.
var (
	crdKind            = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	virtualMachineKind = schema.GroupVersionKind{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachineInstance"}
)

// documented is the table of the documented rules.
func documented(o Options) []rule {
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

		minors   = []preconditions.Kind{preconditions.Minor, preconditions.Major}
		notes    = []preconditions.Severity{preconditions.Info}
		warns    = []preconditions.Severity{preconditions.Warning}
		blocks   = []preconditions.Severity{preconditions.Blocking}
		orBlocks = []preconditions.Severity{preconditions.Warning, preconditions.Blocking}
		any      = []preconditions.Severity{preconditions.Info, preconditions.Warning, preconditions.Blocking}
	)
	return []rule{
		{preconditions.Rule{Name: "PoolsPaused", Severities: any, Reads: kinds{pools},
			Source: "Preparing to update a cluster", Link: docsPreparing}, poolsPaused},
		{preconditions.Rule{Name: "PoolsDegraded", Severities: orBlocks, Reads: kinds{pools},
			Source: "Performing a Control Plane Only update", Link: docsPerforming}, poolsDegraded},
		{preconditions.Rule{Name: "PoolsUpdating", Severities: orBlocks, Reads: kinds{pools},
			Source: "Performing a Control Plane Only update", Link: docsPerforming}, poolsUpdating},
		{preconditions.Rule{Name: "KubeletSkew", Kinds: minors, Severities: orBlocks, Reads: kinds{clusterOps, nodes, pools}, Needs: []string{"CurrentPayload"},
			Source: "Performing a Control Plane Only update", Link: docsPerforming}, kubeletSkew},
		{preconditions.Rule{Name: "NodesUnavailable", Severities: orBlocks, Reads: kinds{nodes, pools},
			Source: "Understanding OpenShift updates, How updates are applied", Link: docsUnderstanding}, nodesUnavailable},
		{preconditions.Rule{Name: "SpareCapacity", Severities: warns, Reads: kinds{nodes, pods, pools, budgets, infrastructure},
			Source: "Understanding OpenShift updates, Factors affecting update duration", Link: docsUnderstanding}, spareCapacity},
		{preconditions.Rule{Name: "MaxUnavailable", Severities: orBlocks, Reads: kinds{nodes, pools},
			Source: "Understanding OpenShift updates, Factors affecting update duration", Link: docsUnderstanding}, maxUnavailable},
		{preconditions.Rule{Name: "DisruptionBudgets", Severities: any, Reads: kinds{nodes, pods, pools, budgets, infrastructure, virtualMachineKind},
			Source: "Preparing to update a cluster", Link: docsPreparing}, disruptionBudgets},
		{preconditions.Rule{Name: "CloudCredentials", Kinds: minors, Severities: orBlocks,
			Reads:  kinds{infrastructure, cloud, gvkOf[configv1.Authentication](), configMaps, secrets, version},
			Source: "Preparing to update a cluster with manually maintained credentials", Link: docsPreparing}, cloudCredentials},
		{preconditions.Rule{Name: "CredentialsRequests", Kinds: minors, Severities: orBlocks, Needs: []string{"TargetPayload", "CurrentPayload"},
			Reads:  kinds{infrastructure, cloud, configMaps, version, gvkOf[corev1.Namespace](), secrets},
			Source: "Preparing to update a cluster with manually maintained credentials, CredentialsRequests", Link: docsPreparing}, credentialsRequests},
		{preconditions.Rule{Name: "NetworkPlugin", Crossing: "4.17", Severities: orBlocks, Reads: kinds{gvkOf[configv1.Network]()},
			Source: "Preparing to update a cluster, migrating from OpenShift SDN", Link: docsPreparing}, networkPlugin},
		{preconditions.Rule{Name: "RHELNodes", Severities: orBlocks, Reads: kinds{nodes},
			Source: "Updating a cluster that includes RHEL compute machines", Link: docsPerforming}, rhelNodes},
		{preconditions.Rule{Name: "SingleNode", Severities: notes, Reads: kinds{infrastructure, nodes},
			Source: "Performing a cluster update, Updating a single-node cluster", Link: docsPerforming}, singleNode},
		{preconditions.Rule{Name: "ClusterOperators", Severities: orBlocks, Reads: kinds{clusterOps},
			Source: "Understanding cluster Operator condition types", Link: docsUnderstanding}, clusterOperators},
		{preconditions.Rule{Name: "CriticalAlerts", Severities: orBlocks, Needs: []string{"Alerts"},
			Source: "Preparing to update a cluster, Critical alerts", Link: docsPreparing}, criticalAlerts(o.PlatformAlerts)},
		{preconditions.Rule{Name: "DeprecatedAPIs", Kinds: minors, Severities: orBlocks, Needs: []string{"TargetPayload", "CurrentPayload"},
			Reads:  kinds{gvkOf[apiserverv1.APIRequestCount](), clusterOps, configMaps, version},
			Source: "Preparing to update a cluster, Kubernetes API removals", Link: docsPreparing}, deprecatedAPIs},
		{preconditions.Rule{Name: "AdminAcks", Kinds: minors, Severities: blocks, Reads: kinds{configMaps, version},
			Source: "Preparing to update a cluster, Providing the administrator acknowledgment", Link: docsPreparing}, adminAcks},
		{preconditions.Rule{Name: "GatewayAPI", Crossing: "4.19", Severities: orBlocks, Reads: kinds{crdKind, configMaps},
			Source: "Preparing to update a cluster, Gateway API management", Link: docsPreparing}, gatewayAPI},
		{preconditions.Rule{Name: "UnsupportedOverrides", Severities: orBlocks, Reads: overridableGVKs(),
			Source: "Performing a cluster update, Before updating", Link: docsPerforming}, unsupportedOverrides},
		{preconditions.Rule{Name: "VersionOverrides", Severities: orBlocks, Reads: kinds{version},
			Source: "Config APIs, ClusterVersion, spec.overrides", Link: docs418 + "config_apis/clusterversion-config-openshift-io-v1"}, versionOverrides},
		{preconditions.Rule{Name: "MachineHealthChecks", Severities: warns, Reads: kinds{gvkOf[machinev1beta1.MachineHealthCheck](), nodes},
			Source: "Performing a cluster update, Pausing a MachineHealthCheck resource", Link: docsPerforming}, machineHealthChecks},
		{preconditions.Rule{Name: "EtcdBackup", Severities: warns, Reads: kinds{clusterOps}, Needs: []string{"Backups", "Now"},
			Source: "Preparing to update a cluster, Creating an etcd backup", Link: docsPreparing}, etcdBackup(o.BackupAge)},
		{preconditions.Rule{Name: "VolumeSnapshots", Severities: notes, Reads: kinds{gvkOf[corev1.PersistentVolumeClaim](), gvkOf[volumeSnapshot]()}, Needs: []string{"Now"},
			Source: "Performing a cluster update, Before updating", Link: docsPerforming}, volumeSnapshots(o.SnapshotAge)},
		{preconditions.Rule{Name: "OperatorCompatibility", Kinds: minors, Severities: orBlocks,
			Reads:  kinds{version, gvkOf[olmapi.ClusterServiceVersion](), gvkOf[olmapi.InstallPlan]()},
			Source: "Performing a cluster update, Before updating", Link: docsPerforming}, operatorCompatibility},
		{preconditions.Rule{Name: "VSphere", Severities: orBlocks, Reads: kinds{infrastructure, gvkOf[corev1.PersistentVolume]()}, Needs: []string{"VSphere"},
			Source: "Updating hardware on nodes running on vSphere", Link: docsPerforming}, vSphere},
		{preconditions.Rule{Name: "KernelModules", Severities: any, Needs: []string{"TargetKernel"},
			Reads:  kinds{gvkOf[operators.KernelModule](), gvkOf[operators.PreflightValidation](), gvkOf[operators.PreflightV1beta1]()},
			Source: "Preflight validation for Kernel Module Management (KMM) Modules", Link: docsPreparing}, kernelModules},
		{preconditions.Rule{Name: "Channel", Severities: []preconditions.Severity{preconditions.Info, preconditions.Warning}, Reads: kinds{version},
			Source: "Understanding update channels and releases", Link: docsUnderstanding}, updateChannel},
		{preconditions.Rule{Name: "Disconnected", Severities: orBlocks, Needs: []string{"Signatures"},
			Reads: kinds{version, gvkOf[configv1.Proxy](), configMaps, gvkOf[configv1.ImageDigestMirrorSet](),
				gvkOf[configv1.ImageTagMirrorSet](), gvkOf[operatorv1alpha1.ImageContentSourcePolicy]()},
			Source: "Performing a cluster update in a disconnected environment", Link: docsPerforming}, disconnected},
		{preconditions.Rule{Name: multiArch}, nil},
		{preconditions.Rule{Name: "FeatureSet", Severities: orBlocks, Reads: kinds{gvkOf[configv1.FeatureGate]()},
			Source: "Nodes, Enabling features using feature gates", Link: docs418 + "nodes/working-with-clusters"}, featureSet},
		{preconditions.Rule{Name: "CgroupV1", Crossing: "4.19", Severities: blocks, Reads: kinds{gvkOf[configv1.Node]()},
			Source: "OpenShift Container Platform 4.19 release notes, Deprecated and removed features",
			Link:   facts.Docs + "4.19/html/release_notes/ocp-4-19-release-notes"}, cgroupV1},
		{preconditions.Rule{Name: "Runc", Kinds: minors, Severities: orBlocks,
			Reads:  append(kinds{gvkOf[mcfgv1.ContainerRuntimeConfig](), pools, version}, osImageStreamKinds()...),
			Source: "Machine configuration, Configuring the container runtime", Link: docs418 + "machine_configuration/machine-configs-custom"}, runc},
		{preconditions.Rule{Name: "UpdateInProgress", Severities: orBlocks, Reads: kinds{version},
			Source: "Understanding cluster Operator condition types", Link: docsUnderstanding}, updateInProgress},
		{preconditions.Rule{Name: "BootLoader", Severities: notes, Reads: kinds{version},
			Source: "Updating the boot loader on RHCOS nodes using bootupd", Link: docsPerforming}, bootLoader},
	}
}
