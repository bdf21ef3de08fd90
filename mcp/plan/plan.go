package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Format is the version of the format of plans that this package writes. It
// reads that one and older ones.
const Format = 1

// Plan is a rollout as data: steps that are run strictly one after another. It
// may be edited by hand until it is started. Steps that repeat for nodes may be written
// once in JSON, as [Encode] writes them for more than 50: {"each": ["worker-{0-99}"],
// "steps": [...]} has them done to one node after the other, whose name stands for {node}.
type Plan struct {
	// Version is the format's: [Format].
	Version int `json:"version"`
	// ID names the plan in the cluster: its record is the ConfigMap
	// rollout-<id>. A DNS label.
	ID string `json:"id"`
	// Kind is Canary, Windows, ControlPlaneOnly, RHEL, VSphereHardware, or Custom for
	// a plan that was written by hand. It is for readers; steps decide.
	Kind string `json:"kind"`
	// Steps have different IDs.
	Steps []Step `json:"steps"`
}

// The kinds of plans that the builders make.
const (
	kindCanary           = "Canary"
	kindWindows          = "Windows"
	kindControlPlaneOnly = "ControlPlaneOnly"
	kindRHEL             = "RHEL"
	kindVSphereHardware  = "VSphereHardware"
	kindCustom           = "Custom" // written by hand
)

// Step is one thing to do, and how to see that it is done.
type Step struct {
	// ID distinguishes the steps of a plan: letters, digits, "-", "_" and ".".
	ID   string   `json:"id"`
	Kind StepKind `json:"kind"`
	Args Args     `json:"args,omitzero"`
	// Needs must hold before a step that is not done starts, and each time before it
	// changes something; else the step fails.
	Needs []Check `json:"needs,omitempty"`
	// Done must hold before the next step starts, besides what Kind itself asks
	// for. Its zero value asks for nothing.
	Done Check `json:"done,omitzero"`
	// Timeout is how long the step may take since it was started; zero: for ever,
	// though waits for pools end as stalled if nothing moves.
	Timeout metav1.Duration `json:"timeout,omitzero"`
	// OnFailure describes what follows a failure: with Continue the next step starts.
	// Stop, or empty, ends the plan and undoes nothing.
	OnFailure string `json:"onFailure,omitempty"`
}

const (
	stopPlan     = "Stop"
	continuePlan = "Continue"
)

// StepKind describes what a step does.
type StepKind string

// The kinds of steps, with what makes each of them done.
const (
	// CheckAll asks all of Args.Checks, and the action if there is one. It fails
	// when one does not hold, with a timeout only after that.
	CheckAll StepKind = "CheckAll"
	// SetPaused pauses pools, or unpauses those of them that this plan paused.
	SetPaused StepKind = "SetPaused"
	// SetHealthChecksPaused pauses the MachineHealthChecks that would replace nodes
	// while they reboot, or resumes those that this plan paused.
	SetHealthChecksPaused StepKind = "SetHealthChecksPaused"
	// SetMaxUnavailable sets the field of pools.
	SetMaxUnavailable StepKind = "SetMaxUnavailable"
	// CreatePool creates a custom pool that selects the nodes of the role of its
	// name and inherits the MachineConfigs of Args.Roles. It is done when a
	// configuration was rendered for it.
	CreatePool StepKind = "CreatePool"
	// DeletePool deletes a pool that this plan created, when it has no nodes and no
	// node has its configuration any more.
	DeletePool StepKind = "DeletePool"
	// LabelNodes adds and removes labels of each node in one write. It is done
	// when Args.Pool is the nodes' primary pool, counts them, and is updated
	// unless it is paused. Nodes that do not exist are left out.
	LabelNodes StepKind = "LabelNodes"
	// SetChannel sets the cluster's channel.
	SetChannel StepKind = "SetChannel"
	// UpdateCluster is an action that starts an update. It is done when the
	// newest entry of the cluster's history is the version, Completed.
	UpdateCluster StepKind = "UpdateCluster"
	// UpdateOperators is an action that brings OLM's operators to what the
	// version needs.
	UpdateOperators StepKind = "UpdateOperators"
	// WaitPools is done when all pools are on their configuration, and that is
	// the present release's.
	WaitPools StepKind = "WaitPools"
	// WaitCluster is done as UpdateCluster is, and starts nothing.
	WaitCluster StepKind = "WaitCluster"
	// Gate is an action that holds up the plan: until a window opens, somebody
	// approves, or workloads are healthy.
	Gate StepKind = "Gate"
	// Cordon makes a node unschedulable. It waits until the node's pool may lose it, and
	// while its machine-config daemon updates it; so does Drain.
	Cordon StepKind = "Cordon"
	// Drain evicts the pods of a node, within what budgets allow. It never
	// forces.
	Drain StepKind = "Drain"
	// Uncordon makes a node that this plan cordoned schedulable.
	Uncordon StepKind = "Uncordon"
	// Hook is an action of the caller's. Its failure stops the plan, and it is
	// called again when the plan continues.
	Hook StepKind = "Hook"
	// Manual is done by a person, who confirms it: see [Confirm].
	Manual StepKind = "Manual"
	// ApplyObject creates an object, or makes the fields that Args.Object names
	// true.
	ApplyObject StepKind = "ApplyObject"
)

// Args are the arguments of a step. A kind takes these, the optional ones in brackets;
// others are refused:
//
//	CheckAll               checks, [action, parameters]
//	SetPaused              pools, paused, [until, unfinished]
//	SetHealthChecksPaused  paused
//	SetMaxUnavailable      pools, maxUnavailable
//	CreatePool             pool, roles, [maxUnavailable]
//	DeletePool             pool
//	LabelNodes             pool, nodes, add or remove
//	SetChannel             channel
//	UpdateCluster          version, [image, action, parameters]
//	UpdateOperators        version, [action, parameters]
//	WaitPools              pools, [until]
//	WaitCluster            version
//	Gate                   action, [parameters, pools, nodes]
//	Cordon, Drain          node
//	Uncordon               node
//	Hook                   action, [node, parameters]
//	Manual                 text, [node]
//	ApplyObject            object
type Args struct {
	Pool  string   `json:"pool,omitempty"`
	Pools []string `json:"pools,omitempty"`
	Node  string   `json:"node,omitempty"`
	Nodes []string `json:"nodes,omitempty"`
	// Paused is for SetPaused and SetHealthChecksPaused.
	Paused *bool `json:"paused,omitempty"`
	// Unfinished lets SetPaused pause only those of the pools that are not updated.
	Unfinished bool `json:"unfinished,omitempty"`
	// MaxUnavailable is for SetMaxUnavailable and CreatePool.
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// Roles are those whose MachineConfigs a pool inherits; one is worker.
	Roles []string `json:"roles,omitempty"`
	// Add and Remove are labels of nodes.
	Add    map[string]string `json:"add,omitempty"`
	Remove []string          `json:"remove,omitempty"`
	// Channel is for SetChannel.
	Channel string `json:"channel,omitempty"`
	// Version is a release's, as in 4.20.3, and Image its pull spec if the
	// action needs one.
	Version string `json:"version,omitempty"`
	Image   string `json:"image,omitempty"`
	// Action names a function of [Options.Actions]. For UpdateCluster and
	// UpdateOperators it may be left out: their kinds are the names then. Four are
	// built in:
	//
	//	window         opens at the parameter "from" and fails after "until", both as
	//	               RFC 3339 and each optional
	//	approval       waits until somebody confirms the step: see [Confirm]
	//	health         holds while a pool that the step names, or if it names none any
	//	               pool, is Degraded, or a node of these pools or of Nodes is not Ready
	//	UpdateCluster  requests the update in the ClusterVersion, and waits while the
	//	               cluster does not offer it yet or is not ready for one:
	//	               [Options.Update] has what else it may request
	//
	// New returns an error for parameters that a built-in action does not know.
	Action string `json:"action,omitempty"`
	// Parameters are for the action.
	Parameters map[string]string `json:"parameters,omitempty"`
	// Checks are for CheckAll.
	Checks []Check `json:"checks,omitempty"`
	// Until is when a window closes. SetPaused and WaitPools that have not started
	// by then are skipped, SetPaused changes nothing more, and a wait under way ends
	// as one whose timeout has passed.
	Until *metav1.Time `json:"until,omitempty"`
	// Text tells a person what to do.
	Text string `json:"text,omitempty"`
	// Object is for ApplyObject: apiVersion, kind, metadata with name, namespace,
	// labels and annotations, and other fields than status.
	Object map[string]any `json:"object,omitempty"`
}

// action is the name of the step's action, empty if it has none.
func (s *Step) action() string {
	if s.Args.Action == "" && (s.Kind == UpdateCluster || s.Kind == UpdateOperators) {
		return string(s.Kind)
	}
	return s.Args.Action
}

// stops reports whether a failure of the step ends the plan.
func (s *Step) stops() bool { return s.OnFailure != continuePlan }

// Check is a question about the cluster. The zero value asks nothing and always
// holds.
type Check struct {
	// Kind describes what is asked:
	//
	//	PoolsUpdated      as [WaitPools]
	//	PoolsHealthy      none of the pools is Degraded
	//	PoolsPaused       all of the pools are paused
	//	PoolsUnpaused     none of the pools is paused
	//	PoolsSameContent  the configurations of the pools have one content, by
	//	                  their names
	//	ClusterAt         the newest update is to Version, and is complete
	//	ClusterIdle       the newest update is complete
	//	NodesReady        all of the nodes are Ready, cordoned or not
	//	KubeletsAtLeast   the kubelets of the nodes are of the minor version of
	//	                  Version, as in v1.33, or newer
	Kind    string   `json:"kind"`
	Pools   []string `json:"pools,omitempty"`
	Nodes   []string `json:"nodes,omitempty"`
	Version string   `json:"version,omitempty"`
}

// The kinds of a [Check].
const (
	poolsUpdated     = "PoolsUpdated"
	poolsHealthy     = "PoolsHealthy"
	poolsPaused      = "PoolsPaused"
	poolsUnpaused    = "PoolsUnpaused"
	poolsSameContent = "PoolsSameContent"
	clusterAt        = "ClusterAt"
	clusterIdle      = "ClusterIdle"
	nodesReady       = "NodesReady"
	kubeletsAtLeast  = "KubeletsAtLeast"
)

// recordNamespace is where the records of plans are.
const recordNamespace = "openshift-config"
