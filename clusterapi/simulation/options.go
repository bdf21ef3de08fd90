package simulation

import (
	"cmp"
	"errors"
	"log/slog"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
)

// Options describe a simulated cluster. Only Release.Version is required.
type Options struct {
	// Clock is the simulation's time; nil means real time. For a run in virtual
	// time it is the driver's [reconcile.Clock]; see also [ScaledClock].
	Clock clock.WithTicker

	// Release is what the cluster runs when it starts: an update to it is
	// complete.
	Release Release

	// ControlPlane is the number of control-plane nodes; zero means 3. With
	// one node the topology is SingleReplica, else HighlyAvailable.
	ControlPlane int

	// Zones are the values of the zone label that the nodes of each pool get
	// in turn; nil means zone-a, zone-b, zone-c. An empty, non-nil slice
	// leaves the label away.
	Zones []string

	// Pools are the machine config pools other than master; nil means one, worker,
	// of 3 nodes. A pool of another name than worker is a custom pool: its
	// nodes have the worker role too.
	Pools []Pool

	// ClusterVersion sets fields of the ClusterVersion object.
	ClusterVersion ClusterVersion

	// Workloads run on the cluster in addition to its operators, with pods.
	Workloads []Workload

	// Expected are releases that the cluster is on its way to, or has come from; nil
	// means none. See [Cluster.Expect] for those to come.
	Expected []Release

	// Timing describes how long things take; zero fields mean the defaults
	// documented there.
	Timing Timing

	// Draw returns how long a piece of work takes, the same for the same work; zero
	// means as Timing says, and so does nil.
	Draw func(Work) time.Duration

	// Memory are options of the backend. Its Clock is set to the simulation's
	// where nil, and GracefulPods is always on. Its Intercept can make calls of
	// the API fail; see [FromSimulation].
	//
	// With a Base the cluster is a fork of that, for instance of a recording. Nothing
	// is added then: of the fields above only Clock, Release, Expected, Timing and
	// Draw are used. See [Cluster.Assumed].
	Memory memory.Options

	// Logger hears of behaviours that fail while Run drives them; nil means
	// silence.
	Logger *slog.Logger
}

// Release is a release as far as its operators and nodes show it.
type Release struct {
	// Version is the release's version, for instance 4.20.3; required.
	Version string
	// Image is its pull spec; empty means one that is made up from Version.
	Image string
	// KubeVersion is what kubelets report once they run the release's
	// operating system, for instance v1.33.5; empty means what operator
	// kube-apiserver of the release, or of a recorded cluster, reports of the API
	// server, else the first one of the release's minor version, v1.33.0 of 4.20. A
	// release of which neither is known needs it.
	KubeVersion string
	// OSImage is the pull spec of the operating system that machine config
	// pools roll out; empty means one that is made up from Version.
	OSImage string
	// Controller is the commit of its machine-config operator, which rendered configs
	// name; empty means one that is made up from Version.
	Controller string
	// Operators are the ClusterOperators.
	Operators []Operator
	// Manifests are all objects of the release, in its order. [New] stores
	// those of Options.Release, but for ClusterOperators and manifests that
	// delete. Operators' workloads are stored whether listed here or not.
	Manifests []*unstructured.Unstructured
}

// Break gives an operator of the release, named as its ClusterOperator, a fault. It
// fails if there is no such operator.
func (r *Release) Break(operator string, f Fault) error {
	for i := range r.Operators {
		if r.Operators[i].Name == operator {
			r.Operators[i].Fault = &f
			return nil
		}
	}
	return errors.New("the release has no such operator")
}

// Operator is a ClusterOperator and what it reports on. It reports Versions when
// each of Workloads has been stored in the form given here (see [Applied]) and
// After has passed.
type Operator struct {
	// Name is the ClusterOperator's. An operator named machine-config does
	// more than others: it renders machine configs and awaits pools.
	Name string
	// Workloads are the operator's own workloads, as the release has them.
	// Manifests that delete do not count, nor those after the ClusterOperator in
	// Release.Manifests: an update that waits for an operator applies nothing after
	// it. An operator without any, or with the same ones in two releases, follows
	// ClusterVersion's status.desired.
	Workloads []*unstructured.Unstructured
	// Versions are what it reports; nil means "operator" at the release's
	// version.
	Versions []configv1.OperandVersion
	// After is how long it works once its workloads are there; zero means
	// Timing.Operator.
	After time.Duration
	// Fault, if not nil, happens as it goes to this release.
	Fault *Fault
}

// Pool is a machine config pool and its nodes, which are named after it:
// worker-0, worker-1 and so on.
type Pool struct {
	// Name is the pool's; empty means worker.
	Name string
	// Nodes is the number of nodes.
	Nodes int
	// MaxUnavailable is the field of the pool; nil leaves it away.
	MaxUnavailable *intstr.IntOrString
	// Paused is the field of the pool.
	Paused bool
}

// ClusterVersion holds fields of the ClusterVersion object.
type ClusterVersion struct {
	// Channel and Upstream are spec fields; empty leaves them away.
	Channel, Upstream string
	// ClusterID is spec.clusterID; empty means a fixed one.
	ClusterID string
}

// Workload is something that runs on the cluster, with pods.
type Workload struct {
	// Namespace of the workload; empty means "default".
	Namespace string
	// Name of the workload, and value of the label app of its pods.
	Name string
	// DaemonSet makes it a DaemonSet, with a pod on every node that
	// NodeSelector matches; else it is a Deployment.
	DaemonSet bool
	// Replicas of the Deployment.
	Replicas int
	// NodeSelector of the pods; nil means the worker role.
	NodeSelector map[string]string
	// Apart keeps the Deployment's pods on nodes of their own, by required
	// anti-affinity.
	Apart bool
	// VolumeZone, if not empty, gives the pods a persistent volume that only nodes
	// with this value of the zone label reach.
	VolumeZone string
	// MinAvailable or MaxUnavailable, at most one of them, makes a
	// PodDisruptionBudget of the workload's name.
	MinAvailable, MaxUnavailable *intstr.IntOrString
	// Fault, if not nil, is a fault of every pod of the workload.
	Fault *Fault
}

// What takes the same time on every cluster.
const (
	rolloutTime = 20 * time.Second // of a workload without pods
	jobTime     = 30 * time.Second
	renderTime  = 5 * time.Second // from a change to the rendered machine config
)

// Timing describes how long things take. A zero field means its default; [New]
// refuses a negative one.
type Timing struct {
	// Operator is how long an operator works on a new version; 2 min.
	Operator time.Duration
	// PodStart is from a pod's placement, or its node's return, to Ready; 10 s.
	PodStart time.Duration
	// PodStop is how long a pod takes to end when it is deleted, unless its grace
	// period is shorter; 5 s.
	PodStop time.Duration
	// Daemon is from a change of a node's annotations to the machine-config
	// daemon's reaction; 1 s.
	Daemon time.Duration
	// DrainPoll is how often the daemon looks whether a drain or uncordon it
	// asked for is done; 10 s.
	DrainPoll time.Duration
	// DrainLimit is after how long of waiting for a drain the daemon reports
	// Degraded; 1 h. It continues waiting.
	DrainLimit time.Duration
	// UncordonLimit is the same for an uncordon; 10 min.
	UncordonLimit time.Duration
	// Apply is how long it takes to write files and stage the operating
	// system; 1 min.
	Apply time.Duration
	// Reboot is how long a node is NotReady; 3 min.
	Reboot time.Duration
	// PoolLimit is, per machine of the pools that an update waits for, how
	// long the machine-config operator waits before it reports Degraded;
	// 10 min.
	PoolLimit time.Duration
}

func (t Timing) withDefaults() Timing {
	for _, f := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&t.Operator, 2 * time.Minute},
		{&t.PodStart, 10 * time.Second},
		{&t.PodStop, 5 * time.Second},
		{&t.Daemon, time.Second},
		{&t.DrainPoll, 10 * time.Second},
		{&t.DrainLimit, time.Hour},
		{&t.UncordonLimit, 10 * time.Minute},
		{&t.Apply, time.Minute},
		{&t.Reboot, 3 * time.Minute},
		{&t.PoolLimit, 10 * time.Minute},
	} {
		*f.field = cmp.Or(*f.field, f.value)
	}
	return t
}
