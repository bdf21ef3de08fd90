package mcp

// Annotations of nodes, written by the machine-config controller (MCC) or the
// machine-config daemon (MCD).
const (
	// AnnotationCurrentConfig (MCD) names the rendered config on disk.
	AnnotationCurrentConfig = annotationPrefix + "currentConfig"
	// AnnotationDesiredConfig (MCC) names the rendered config to reach.
	AnnotationDesiredConfig = annotationPrefix + "desiredConfig"
	// AnnotationCurrentImage (MCD) is the OS image on disk, layered pools only.
	AnnotationCurrentImage = annotationPrefix + "currentImage"
	// AnnotationDesiredImage (MCC) is the OS image to reach, layered pools only.
	AnnotationDesiredImage = annotationPrefix + "desiredImage"
	// AnnotationState (MCD) is one of the State constants.
	AnnotationState = annotationPrefix + "state"
	// AnnotationReason (MCD) explains StateDegraded and StateUnreconcilable.
	AnnotationReason = annotationPrefix + "reason"
	// AnnotationDesiredDrain (MCD) asks for a drain: "drain-<config>" or
	// "uncordon-<config>".
	AnnotationDesiredDrain = annotationPrefix + "desiredDrain"
	// AnnotationLastAppliedDrain (MCC) is the request that was fulfilled last.
	AnnotationLastAppliedDrain = annotationPrefix + "lastAppliedDrain"
	// AnnotationControlPlaneTopology (MCC) is the cluster's topology.
	AnnotationControlPlaneTopology = annotationPrefix + "controlPlaneTopology"
	// AnnotationPostConfigAction (MCD) is PostConfigActionRebooting from just
	// before a reboot until the MCD is back.
	AnnotationPostConfigAction = annotationPrefix + "post-config-action"
	// AnnotationFirstPivotConfig (MCD) is the config that the node booted into.
	AnnotationFirstPivotConfig = annotationPrefix + "firstPivotConfig"
	// AnnotationCustomPoolLabelsApplied (MCC) reports that a node that booted into
	// a custom pool has that pool's labels.
	AnnotationCustomPoolLabelsApplied = annotationPrefix + "customPoolLabelsApplied"
	// AnnotationLastSyncedControllerConfig (MCD) is the ControllerConfig whose
	// certificates are on the node.
	AnnotationLastSyncedControllerConfig = annotationPrefix + "lastSyncedControllerConfigResourceVersion"
)

// Annotations of rendered MachineConfigs and of MachineOSConfigs.
const (
	// AnnotationGeneratedByControllerVersion is the commit of the operator
	// that rendered a MachineConfig.
	AnnotationGeneratedByControllerVersion = annotationPrefix + "generated-by-controller-version"
	// AnnotationReleaseImageVersion is the release that a MachineConfig was
	// rendered for.
	AnnotationReleaseImageVersion = annotationPrefix + "release-image-version"
	// AnnotationOSImageURLOverridden is "true" when a user set the OS image.
	AnnotationOSImageURLOverridden = annotationPrefix + "os-image-url-overridden"
	// AnnotationCurrentMachineOSBuild names the MachineOSBuild that is current
	// for a MachineOSConfig.
	AnnotationCurrentMachineOSBuild = annotationPrefix + "current-machine-os-build"
)

const annotationPrefix = "machineconfiguration.openshift.io/"

// Labels.
const (
	// LabelRole is the label of MachineConfigs that pools select by.
	LabelRole = "machineconfiguration.openshift.io/role"
	// LabelBuiltIn marks the pools master, worker and arbiter.
	LabelBuiltIn = "machineconfiguration.openshift.io/mco-built-in"
	// LabelRequiredForUpgrade marks pools that an update of the cluster waits
	// for: master and arbiter.
	LabelRequiredForUpgrade = "operator.machineconfiguration.openshift.io/required-for-upgrade"
	// LabelPoolPrefix before a pool's name is a label of the built-in pools.
	LabelPoolPrefix = "pools.operator.machineconfiguration.openshift.io/"
	// LabelNodeRolePrefix before a role's name is the label of its nodes.
	LabelNodeRolePrefix = "node-role.kubernetes.io/"
	// LabelOS is "windows" on nodes that no pool takes.
	LabelOS = "kubernetes.io/os"
	// LabelZone orders the nodes of a pool.
	LabelZone = "topology.kubernetes.io/zone"
)

// Names of the built-in pools: pools are recognised by name, never by label.
const (
	PoolMaster  = "master"
	PoolWorker  = "worker"
	PoolArbiter = "arbiter"
)

// Values of [AnnotationState].
const (
	StateDone           = "Done"
	StateWorking        = "Working"
	StateDegraded       = "Degraded"
	StateUnreconcilable = "Unreconcilable"
)

// Verbs before the first "-" of [AnnotationDesiredDrain].
const (
	DrainVerbDrain    = "drain"
	DrainVerbUncordon = "uncordon"
)

// PostConfigActionRebooting is a value of [AnnotationPostConfigAction].
const PostConfigActionRebooting = "Rebooting"

// Values of [AnnotationControlPlaneTopology].
const (
	topologyHighlyAvailable        = "HighlyAvailable"
	TopologySingleReplica          = "SingleReplica"
	TopologyHighlyAvailableArbiter = "HighlyAvailableArbiter"
	topologyDualReplica            = "DualReplica"
	topologyExternal               = "External"
)

// The taint, without value and with effect PreferNoSchedule, of nodes that
// wait for an update.
const TaintUpdateInProgress = "UpdateInProgress"

// ControllerConfigName is the name of the one ControllerConfig.
const ControllerConfigName = "machine-config-controller"

// OperatorNamespace is where the machine-config operator, controller and
// daemons run.
const OperatorNamespace = "openshift-machine-config-operator"

// Values of the label LabelApp of the pods that matter here.
const (
	LabelApp      = "k8s-app"
	AppOperator   = "machine-config-operator"
	AppController = "machine-config-controller"
	appDaemon     = "machine-config-daemon"
)
