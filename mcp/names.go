package mcp

// Annotations of nodes, written by the machine-config controller (MCC) or the
// machine-config daemon (MCD), and of rendered MachineConfigs and MachineOSConfigs.
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

// Values of annotations.
const (
	// Of [AnnotationState].
	StateDone           = "Done"
	StateWorking        = "Working"
	StateDegraded       = "Degraded"
	StateUnreconcilable = "Unreconcilable"

	// Before the first "-" of [AnnotationDesiredDrain].
	DrainVerbDrain    = "drain"
	DrainVerbUncordon = "uncordon"

	// Of [AnnotationPostConfigAction].
	PostConfigActionRebooting = "Rebooting"

	// Of [AnnotationControlPlaneTopology].
	TopologySingleReplica          = "SingleReplica"
	TopologyHighlyAvailableArbiter = "HighlyAvailableArbiter"
)

// Names and labels of objects.
const (
	// The built-in pools. They are recognised by name, never by label.
	PoolMaster  = "master"
	PoolWorker  = "worker"
	PoolArbiter = "arbiter"

	// ControllerConfigName is the name of the one ControllerConfig.
	ControllerConfigName = "machine-config-controller"
	// OperatorNamespace is where the machine-config operator, controller and
	// daemons run.
	OperatorNamespace = "openshift-machine-config-operator"

	// LabelApp is a label of their pods, with one of the values that follow.
	LabelApp      = "k8s-app"
	AppOperator   = "machine-config-operator"
	AppController = "machine-config-controller"

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
	// TaintUpdateInProgress is the taint, without value and with effect
	// PreferNoSchedule, of nodes that wait for an update.
	TaintUpdateInProgress = "UpdateInProgress"
)

// Texts of the machine-config controller.
const (
	// TextSelectingAll is about a pool whose selector selects every node.
	TextSelectingAll = "This machineconfigpool is selecting all nodes. A non-empty selector is required."
	// TextDeferring is the format of a text about a node that waits because it runs the
	// machine-config operator; its value is the node's name.
	TextDeferring = "Deferring update of machine config operator node %s"
)
