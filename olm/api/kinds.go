package api

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Group is the API group of OLM's kinds.
const Group = "operators.coreos.com"

func olmKind(version, kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: Group, Version: version, Kind: kind}
}

// Subscription asks for an operator from a catalog's package, and for its
// updates. The fields are those of operators.coreos.com/v1alpha1.
type Subscription struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              SubscriptionSpec   `json:"spec"`
	Status            SubscriptionStatus `json:"status,omitempty"`
}

// APIKind returns v1alpha1, Subscription.
func (*Subscription) APIKind() schema.GroupVersionKind { return olmKind("v1alpha1", "Subscription") }

// SubscriptionSpec describes what is wanted.
type SubscriptionSpec struct {
	// Source and SourceNamespace name the CatalogSource; both empty means any.
	Source          string `json:"source"`
	SourceNamespace string `json:"sourceNamespace"`
	Package         string `json:"name"`
	// Channel empty means any, the default channel first.
	Channel string `json:"channel,omitempty"`
	// StartingCSV counts only while nothing is installed.
	StartingCSV string `json:"startingCSV,omitempty"`
	// InstallPlanApproval is ApprovalManual; anything else means automatic.
	InstallPlanApproval Approval `json:"installPlanApproval,omitempty"`
}

// Takes reports whether the Subscription may take operators from a CatalogSource.
func (s *SubscriptionSpec) Takes(source types.NamespacedName) bool {
	anyOf := s.Source == "" && s.SourceNamespace == ""
	return anyOf || s.Source == source.Name && s.SourceNamespace == source.Namespace
}

// Approval says who approves an InstallPlan.
type Approval string

// The approvals of a Subscription and of an InstallPlan.
const (
	ApprovalAutomatic Approval = "Automatic"
	ApprovalManual    Approval = "Manual"
)

// SubscriptionState is the state of a Subscription.
type SubscriptionState string

// The states of a Subscription.
const (
	StateNone           SubscriptionState = ""
	StateUpgradePending SubscriptionState = "UpgradePending"
	StateAtLatestKnown  SubscriptionState = "AtLatestKnown"
	// StateUpgradeFailed occurs only where an OperatorGroup lets updates fail
	// forward.
	StateUpgradeFailed SubscriptionState = "UpgradeFailed"
)

// SubscriptionStatus describes how far the Subscription has come.
type SubscriptionStatus struct {
	// CurrentCSV is the CSV that is being progressed to, InstalledCSV the one
	// that is there.
	CurrentCSV   string            `json:"currentCSV,omitempty"`
	InstalledCSV string            `json:"installedCSV,omitempty"`
	State        SubscriptionState `json:"state,omitempty"`
	Reason       string            `json:"reason,omitempty"`

	InstallPlanRef        *corev1.ObjectReference `json:"installPlanRef,omitempty"`
	InstallPlan           *InstallPlanReference   `json:"installplan,omitempty"` // deprecated on the wire
	InstallPlanGeneration int64                   `json:"installPlanGeneration,omitempty"`

	CatalogHealth []CatalogHealth `json:"catalogHealth,omitempty"`
	Conditions    []Condition     `json:"conditions,omitempty" patchMergeKey:"type"`
	LastUpdated   metav1.Time     `json:"lastUpdated"`
}

// InstallPlanReference is the deprecated form of the reference to a plan.
type InstallPlanReference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UUID       string `json:"uuid"`
}

// CatalogHealth reports whether a CatalogSource that a Subscription can see
// answers.
type CatalogHealth struct {
	CatalogSourceRef *corev1.ObjectReference `json:"catalogSourceRef"`
	LastUpdated      *metav1.Time            `json:"lastUpdated"`
	Healthy          bool                    `json:"healthy"`
}

// Condition is a condition of a Subscription, of an InstallPlan or of a
// [BundleLookup]. Most of a Subscription are bad when True, and have a heartbeat
// instead of an update.
type Condition struct {
	Type               string                 `json:"type"`
	Status             corev1.ConditionStatus `json:"status"`
	Reason             string                 `json:"reason,omitempty"`
	Message            string                 `json:"message,omitempty"`
	LastHeartbeatTime  *metav1.Time           `json:"lastHeartbeatTime,omitempty"`
	LastUpdateTime     *metav1.Time           `json:"lastUpdateTime,omitempty"`
	LastTransitionTime *metav1.Time           `json:"lastTransitionTime,omitempty"`
}

// ClusterServiceVersion is an operator version, installed or in a bundle: the
// fields that decisions need. The fields are those of
// operators.coreos.com/v1alpha1.
type ClusterServiceVersion struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              ClusterServiceVersionSpec   `json:"spec"`
	Status            ClusterServiceVersionStatus `json:"status,omitempty"`
}

// APIKind returns v1alpha1, ClusterServiceVersion.
func (*ClusterServiceVersion) APIKind() schema.GroupVersionKind {
	return olmKind("v1alpha1", "ClusterServiceVersion")
}

// ClusterServiceVersionSpec describes what an operator version is and needs.
type ClusterServiceVersionSpec struct {
	// Version is a semantic version; empty counts as 0.0.0.
	Version  string   `json:"version,omitempty"`
	Replaces string   `json:"replaces,omitempty"`
	Skips    []string `json:"skips,omitempty"`

	CustomResourceDefinitions APIs            `json:"customresourcedefinitions,omitempty"`
	APIServiceDefinitions     APIs            `json:"apiservicedefinitions,omitempty"` // aggregated APIs
	Install                   InstallStrategy `json:"install,omitempty"`
}

// APIs are those that an operator owns and requires.
type APIs struct {
	Owned    []APIDescription `json:"owned,omitempty"`
	Required []APIDescription `json:"required,omitempty"`
}

// APIDescription names an API.
type APIDescription struct {
	// Name is the plural of an aggregated API, PLURAL.GROUP for a definition.
	Name    string `json:"name"`
	Group   string `json:"group,omitempty"` // of an aggregated API
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

// InstallStrategy describes how an operator is installed; of its details only the
// permissions are read.
type InstallStrategy struct {
	Strategy string                 `json:"strategy"`
	Spec     InstallStrategyDetails `json:"spec,omitempty"`
}

// InstallStrategyDetails are the permissions of strategy "deployment".
type InstallStrategyDetails struct {
	Permissions        []Permission `json:"permissions,omitempty"`
	ClusterPermissions []Permission `json:"clusterPermissions,omitempty"`
}

// Permission is what a service account of an operator may do. Its JSON is part
// of the names of roles.
type Permission struct {
	ServiceAccountName string              `json:"serviceAccountName"`
	Rules              []rbacv1.PolicyRule `json:"rules"`
}

// Phases and reasons of a ClusterServiceVersion that decisions look at.
const (
	CSVPhaseReplacing = "Replacing"
	CSVPhaseDeleting  = "Deleting"
	CSVPhaseFailed    = "Failed"
	CSVPhaseSucceeded = "Succeeded"
	csvReasonCopied   = "Copied"
)

// AnnotationProperties on a ClusterServiceVersion holds the properties of the
// bundle that it came from, as {"properties":[{"type":T,"value":V},...]}.
const AnnotationProperties = "operatorframework.io/properties"

// LabelCopiedFrom is the label of a ClusterServiceVersion that is a copy of
// one in another namespace, whose name is the value.
const LabelCopiedFrom = "olm.copiedFrom"

// IsCopied reports whether the ClusterServiceVersion is a copy that OLM made
// of one in another namespace.
func (csv *ClusterServiceVersion) IsCopied() bool {
	if _, ok := csv.Labels[LabelCopiedFrom]; ok || csv.Status.Reason == csvReasonCopied {
		return true
	}
	home, ok := csv.Annotations["olm.operatorNamespace"]
	return ok && csv.Namespace != "" && home != csv.Namespace
}

// ClusterServiceVersionStatus describes how far an operator version has come.
type ClusterServiceVersionStatus struct {
	Phase   string `json:"phase,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// LastTransitionTime is when the phase began; nil if it is not recorded.
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
}

// CatalogSource is a catalog of operators in the cluster. The fields are those
// of operators.coreos.com/v1alpha1.
type CatalogSource struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              CatalogSourceSpec   `json:"spec"`
	Status            CatalogSourceStatus `json:"status,omitempty"`
}

// APIKind returns v1alpha1, CatalogSource.
func (*CatalogSource) APIKind() schema.GroupVersionKind { return olmKind("v1alpha1", "CatalogSource") }

// CatalogSourceSpec says where a catalog's content is.
type CatalogSourceSpec struct {
	SourceType string `json:"sourceType"`
	// Priority orders catalogs, the highest first; it may be negative.
	Priority    int    `json:"priority,omitempty"`
	Address     string `json:"address,omitempty"`
	Image       string `json:"image,omitempty"`
	ConfigMap   string `json:"configMap,omitempty"`
	DisplayName string `json:"displayName,omitempty"`
	Publisher   string `json:"publisher,omitempty"`
}

// CatalogSourceStatus reports whether a catalog answers.
type CatalogSourceStatus struct {
	Message         string                  `json:"message,omitempty"`
	Reason          string                  `json:"reason,omitempty"`
	ConnectionState *CatalogConnectionState `json:"connectionState,omitempty"`
}

// CatalogConnectionState is the state of the connection to a catalog.
type CatalogConnectionState struct {
	Address string `json:"address,omitempty"`
	// LastObservedState is READY when the catalog answers.
	LastObservedState string `json:"lastObservedState"`
	// LastConnect is when the connection was last attempted; nil if it is not recorded.
	LastConnect *metav1.Time `json:"lastConnect,omitempty"`
}

// OperatorGroup determines which namespaces the operators of its own serve. The
// fields are those of operators.coreos.com/v1.
type OperatorGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              OperatorGroupSpec `json:"spec,omitempty"`
}

// APIKind returns v1, OperatorGroup.
func (*OperatorGroup) APIKind() schema.GroupVersionKind { return olmKind("v1", "OperatorGroup") }

// OperatorGroupSpec describes how the operators of a namespace are treated.
type OperatorGroupSpec struct {
	TargetNamespaces []string `json:"targetNamespaces,omitempty"`
	UpgradeStrategy  string   `json:"upgradeStrategy,omitempty"`
	// ServiceAccountName is the account whose rights bound what InstallPlans
	// of the namespace may do; empty means that nothing does.
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// AnnotationExcludeGlobal on an OperatorGroup, when exactly "true", hides the
// catalogs of the global catalog namespace.
const AnnotationExcludeGlobal = "olm.operatorframework.io/exclude-global-namespace-resolution"

// InstallPlan is a set of operators to be installed together. The fields are
// those of operators.coreos.com/v1alpha1.
type InstallPlan struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              InstallPlanSpec   `json:"spec"`
	Status            InstallPlanStatus `json:"status,omitempty"`
}

// APIKind returns v1alpha1, InstallPlan.
func (*InstallPlan) APIKind() schema.GroupVersionKind { return olmKind("v1alpha1", "InstallPlan") }

// InstallPlanSpec describes what a plan installs, and whether it may.
type InstallPlanSpec struct {
	ClusterServiceVersionNames []string `json:"clusterServiceVersionNames"`
	Approval                   Approval `json:"approval"`
	Approved                   bool     `json:"approved"`
	Generation                 int64    `json:"generation,omitempty"`
}

// InstallPlanPhase is the phase of an InstallPlan.
type InstallPlanPhase string

// The phases of an InstallPlan.
const (
	PlanPhaseNone             InstallPlanPhase = ""
	PlanPhaseRequiresApproval InstallPlanPhase = "RequiresApproval"
	PlanPhaseInstalling       InstallPlanPhase = "Installing"
	PlanPhaseComplete         InstallPlanPhase = "Complete"
	PlanPhaseFailed           InstallPlanPhase = "Failed"
)

// InstallPlanStatus holds the steps of a plan and how far they are.
type InstallPlanStatus struct {
	Phase          InstallPlanPhase `json:"phase"`
	Conditions     []Condition      `json:"conditions,omitempty" patchMergeKey:"type"`
	CatalogSources []string         `json:"catalogSources"`
	Plan           []*Step          `json:"plan,omitempty"`
	BundleLookups  []BundleLookup   `json:"bundleLookups,omitempty"`
	StartTime      *metav1.Time     `json:"startTime,omitempty"`
	Message        string           `json:"message,omitempty"`
}

// StepStatus describes how far a step is.
type StepStatus string

// The statuses of a [Step].
const (
	StepUnknown             StepStatus = "Unknown"
	StepNotPresent          StepStatus = "NotPresent"
	StepPresent             StepStatus = "Present"
	StepCreated             StepStatus = "Created"
	StepWaitingForAPI       StepStatus = "WaitingForApi"
	StepUnsupportedResource StepStatus = "UnsupportedResource"
)

// Step is one object that an InstallPlan creates or updates.
type Step struct {
	// Resolving is the name of the CSV that the step belongs to.
	Resolving string       `json:"resolving"`
	Resource  StepResource `json:"resource"`
	Optional  bool         `json:"optional,omitempty"`
	Status    StepStatus   `json:"status"`
}

// StepResource is the object of a [Step] and the catalog that it comes from.
type StepResource struct {
	CatalogSource          string `json:"sourceName"`
	CatalogSourceNamespace string `json:"sourceNamespace"`
	Group                  string `json:"group"`
	Version                string `json:"version"`
	Kind                   string `json:"kind"`
	Name                   string `json:"name"`
	// Manifest is the object as JSON.
	Manifest string `json:"manifest,omitempty"`
}

// BundleLookup is a bundle image that must be unpacked before its steps are
// known.
type BundleLookup struct {
	// Path is the image, Identifier the name of its CSV.
	Path       string `json:"path"`
	Identifier string `json:"identifier"`
	Replaces   string `json:"replaces"`
	// CatalogSourceRef is the catalog that the bundle comes from.
	CatalogSourceRef *corev1.ObjectReference `json:"catalogSourceRef"`
	Conditions       []Condition             `json:"conditions,omitempty" patchMergeKey:"type"`
	// Properties is the JSON of {"properties":[...]}.
	Properties string `json:"properties,omitempty"`
}
