package view

import (
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Objects are what the status of an update is computed from. They are only read.
// Nil elements are passed over. Objects are plain data, as safe for concurrent use
// as what they hold.
type Objects struct {
	ClusterVersion     *configv1.ClusterVersion
	ClusterOperators   []*configv1.ClusterOperator
	MachineConfigPools []*mcfgv1.MachineConfigPool
	// MachineConfigs are those that nodes name at least. Only their names and
	// annotations are read.
	MachineConfigs []*mcfgv1.MachineConfig
	Nodes          []*corev1.Node
	// Deployments and DaemonSets are what components consist of: where they are
	// given, chains name those that are not ready. The deployment of the
	// machine-config operator also shows which image of it runs.
	Deployments []*appsv1.Deployment
	DaemonSets  []*appsv1.DaemonSet
	// Pods and PodDisruptionBudgets make chains end at what holds a drain: the pods are
	// those of the nodes that are drained at least.
	Pods                 []*corev1.Pod
	PodDisruptionBudgets []*policyv1.PodDisruptionBudget
	Alerts               []clusterapi.Alert
	// Components are those of the release that the cluster updates to; without them
	// chains start at the ClusterOperator.
	Components []Component
	// Missing are the kinds that could not be read, or not in full. What depends
	// on them is unknown, and the views say so.
	Missing []Missing
	// Assumed are the kinds of which a recording is assumed to have all objects.
	Assumed []string
}

// Component is a part of a release: what the manifests of one name and runlevel
// are. It is plain data.
type Component struct {
	Runlevel string     `json:"runlevel"` // as file names have it, compared as text
	Name     string     `json:"name"`
	Objects  []Resource `json:"objects,omitempty"`
}

// Missing is a kind of which not all objects could be read. It is plain data.
type Missing struct {
	Kind   string // as Deployment; Alert for alerts
	Reason string // why, as an error says it
}

// Resource names an object. It is plain data.
type Resource struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// Kinds of objects that a status mentions.
const (
	kindVersion  = "ClusterVersion"
	kindOperator = "ClusterOperator"
	kindPool     = "MachineConfigPool"
	kindConfig   = "MachineConfig"
	kindNode     = "Node"
	kindDeploy   = "Deployment"
	kindDaemon   = "DaemonSet"
	kindPod      = "Pod"
	kindBudget   = "PodDisruptionBudget"
	kindAlert    = "Alert"
)

// String is the object as messages name it: its kind, then its name behind its
// namespace.
func (r Resource) String() string { return r.Kind + " " + r.path() }

// path is the name behind the namespace.
func (r Resource) path() string {
	if r.Namespace != "" {
		return r.Namespace + "/" + r.Name
	}
	return r.Name
}

func versionResource(cv *configv1.ClusterVersion) Resource {
	return Resource{Group: configv1.GroupName, Kind: kindVersion, Name: cv.Name}
}

func operatorResource(name string) Resource {
	return Resource{Group: configv1.GroupName, Kind: kindOperator, Name: name}
}

func poolResource(name string) Resource {
	return Resource{Group: mcfgv1.GroupName, Kind: kindPool, Name: name}
}

func nodeResource(name string) Resource { return Resource{Kind: kindNode, Name: name} }

// missing returns why a kind could not be read in full, "" if it was.
func (o *Objects) missing(kind string) string {
	for _, m := range o.Missing {
		if m.Kind == kind {
			return m.Reason
		}
	}
	return ""
}
