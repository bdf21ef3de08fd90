package upgradeconfig

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The one object that counts, its namespace, and the configuration of its
// operator.
const (
	// Name of the UpgradeConfig. Objects of other names are neither read
	// nor deleted.
	Name = "managed-upgrade-config"
	// DefaultNamespace is where the managed-upgrade operator runs.
	DefaultNamespace = "openshift-managed-upgrade-operator"
	// configMapName is the operator's configuration, in its namespace.
	configMapName = "managed-upgrade-operator-config"
	// configMapKey is the key of the ConfigMap that holds it.
	configMapKey = "config.yaml"
)

var gvk = schema.GroupVersionKind{Group: "upgrade.managed.openshift.io", Version: "v1alpha1", Kind: "UpgradeConfig"}

// UpgradeConfig says to what a cluster is to be upgraded and when, and how far
// that has come: upgrade.managed.openshift.io/v1alpha1, resource
// upgradeconfigs, namespaced, with a status subresource. It is what the
// managed-upgrade operator reads.
type UpgradeConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status,omitzero"`
}

// APIKind implements [clusterapi.Kinder].
func (*UpgradeConfig) APIKind() schema.GroupVersionKind { return gvk }

// Spec is what is wanted.
type Spec struct {
	// Desired release. The field is required, but may be empty.
	Desired Update `json:"desired"`
	// UpgradeAt is when the upgrade starts, in RFC 3339. Validation checks that
	// it is a time; the schema does not.
	UpgradeAt string `json:"upgradeAt"`
	// PDBForceDrainTimeout is after how many minutes a node is drained by
	// force, 0 or more.
	PDBForceDrainTimeout int32 `json:"PDBForceDrainTimeout"`
	// Type of the upgrade procedure.
	Type UpgradeType `json:"type"`
	// CapacityReservation asks for extra worker nodes during the upgrade.
	CapacityReservation bool `json:"capacityReservation,omitempty"`
}

// Update names a release: by its image, which wins, or by version and channel.
type Update struct {
	// Version is a semantic version without a leading v.
	Version string `json:"version,omitempty"`
	// Channel such as stable-4.18.
	Channel string `json:"channel,omitempty"`
	// Image is a pull spec by digest.
	Image string `json:"image,omitempty"`
}

// UpgradeType names an upgrade procedure.
type UpgradeType string

// The upgrade procedures: OpenShift Dedicated and its kin, and Azure Red Hat
// OpenShift.
const (
	OSD UpgradeType = "OSD"
	ARO UpgradeType = "ARO"
)

// Status is what has been done.
type Status struct {
	// History has one entry per version, newest first.
	History []HistoryEntry `json:"history,omitempty"`
}

// HistoryEntry is the upgrade to one version. Times have whole seconds.
type HistoryEntry struct {
	Version            string       `json:"version,omitempty"`
	PrecedingVersion   string       `json:"precedingVersion,omitempty"`
	Phase              Phase        `json:"phase"`
	StartTime          *metav1.Time `json:"startTime,omitempty"`
	CompleteTime       *metav1.Time `json:"completeTime,omitempty"`
	WorkerStartTime    *metav1.Time `json:"workerStartTime,omitempty"`
	WorkerCompleteTime *metav1.Time `json:"workerCompleteTime,omitempty"`
	// Conditions, one per type, the step that was reached last first.
	Conditions []Condition `json:"conditions,omitempty"`
}

// Phase of an upgrade.
type Phase string

// The phases. PhaseUnknown means that the history has no entry of the version;
// it is never written.
const (
	PhaseNew       Phase = "New"
	PhasePending   Phase = "Pending"
	PhaseUpgrading Phase = "Upgrading"
	PhaseUpgraded  Phase = "Upgraded"
	PhaseFailed    Phase = "Failed"
	PhaseUnknown   Phase = "Unknown"
)

// Condition is a step of an upgrade.
type Condition struct {
	Type               ConditionType          `json:"type"`
	Status             metav1.ConditionStatus `json:"status"`
	LastProbeTime      *metav1.Time           `json:"lastProbeTime,omitempty"`
	LastTransitionTime *metav1.Time           `json:"lastTransitionTime,omitempty"`
	StartTime          *metav1.Time           `json:"startTime,omitempty"`
	CompleteTime       *metav1.Time           `json:"completeTime,omitempty"`
	Reason             string                 `json:"reason,omitempty"`
	Message            string                 `json:"message,omitempty"`
}

// ConditionType names a step of an upgrade.
type ConditionType string

// The condition types in the order of the OSD procedure. The ARO procedure has
// no IsClusterUpgradable and no PostUpgradeTasksCompleted.
const (
	StartedNotificationSent              ConditionType = "StartedNotificationSent"
	IsClusterUpgradable                  ConditionType = "IsClusterUpgradable"
	ClusterHealthyBeforeUpgrade          ConditionType = "ClusterHealthyBeforeUpgrade"
	ExternalDependenciesAvailable        ConditionType = "ExternalDependenciesAvailable"
	ComputeCapacityReserved              ConditionType = "ComputeCapacityReserved"
	ControlPlaneMaintenanceWindowCreated ConditionType = "ControlPlaneMaintenanceWindowCreated"
	UpgradeCommenced                     ConditionType = "UpgradeCommenced"
	ControlPlaneUpgraded                 ConditionType = "ControlPlaneUpgraded"
	ControlPlaneMaintenanceWindowRemoved ConditionType = "ControlPlaneMaintenanceWindowRemoved"
	WorkersMaintenanceWindowCreated      ConditionType = "WorkersMaintenanceWindowCreated"
	WorkerNodesUpgraded                  ConditionType = "WorkerNodesUpgraded"
	ComputeCapacityRemoved               ConditionType = "ComputeCapacityRemoved"
	WorkersMaintenanceWindowRemoved      ConditionType = "WorkersMaintenanceWindowRemoved"
	ClusterHealthyAfterUpgrade           ConditionType = "ClusterHealthyAfterUpgrade"
	PostUpgradeTasksCompleted            ConditionType = "PostUpgradeTasksCompleted"
	CompletedNotificationSent            ConditionType = "CompletedNotificationSent"

	// FailedUpgrade reports that the upgrade was given up, and whether the provider
	// knows.
	FailedUpgrade ConditionType = "FailedUpgrade"
)
