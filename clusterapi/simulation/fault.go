package simulation

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
)

// FaultKind describes what goes wrong.
type FaultKind string

// Faults of operators.
const (
	// FaultDegraded: Degraded=True instead of the new versions.
	FaultDegraded FaultKind = "Degraded"
	// FaultUnavailable: Available=False instead of the new versions.
	FaultUnavailable FaultKind = "Unavailable"
	// FaultStuck: Progressing=True forever, the new versions never come.
	FaultStuck FaultKind = "Stuck"
	// FaultFlaps: the new versions are reported, and Degraded changes between
	// True and False every Fault.Every.
	FaultFlaps FaultKind = "Flaps"
)

// Faults of nodes. Each happens when the node is next updated, but
// FaultNodeDegraded also strikes a node at rest, as drift does.
const (
	// FaultNodeDegraded: the daemon fails to apply the config and reports
	// Degraded with Fault.Message as reason.
	FaultNodeDegraded FaultKind = "NodeDegraded"
	// FaultNodeUnreconcilable: the daemon refuses the new config.
	FaultNodeUnreconcilable FaultKind = "NodeUnreconcilable"
	// FaultNodeStaysNotReady: the node does not return from its reboot.
	FaultNodeStaysNotReady FaultKind = "NodeStaysNotReady"
	// FaultNodeReturnsOld: the node returns with the old config on disk, and the
	// daemon reports Degraded.
	FaultNodeReturnsOld FaultKind = "NodeReturnsOld"
	// FaultNodeVanishes: the Node object is deleted during the reboot; Fault.For
	// does not bring it back.
	FaultNodeVanishes FaultKind = "NodeVanishes"
)

// Faults of pods.
const (
	// FaultPodStays: the pod refuses to end.
	FaultPodStays FaultKind = "PodStays"
	// FaultPodUnready: the pod is never Ready.
	FaultPodUnready FaultKind = "PodUnready"
)

// Fault is something that goes wrong in one part of the cluster.
type Fault struct {
	Kind FaultKind
	// Reason and Message are what the part reports; empty means texts that
	// say it is a simulated fault.
	Reason, Message string
	// For is how long the fault lasts from when it first shows; zero means
	// until it is removed.
	For time.Duration
	// Every is the time between two changes of FaultFlaps; zero means 1 min.
	Every time.Duration
}

func (f *Fault) reason() string  { return cmp.Or(f.Reason, "SimulatedFault") }
func (f *Fault) message() string { return cmp.Or(f.Message, "a simulated fault: "+string(f.Kind)) }

// is reports whether f, which may be nil, is of the given kind.
func (f *Fault) is(kind FaultKind) bool { return f != nil && f.Kind == kind }

// SetOperatorFault makes an operator faulty whatever release it is at, or with nil
// ends its fault, including one that its release brought.
func (c *Cluster) SetOperatorFault(name string, f *Fault) {
	c.faults.set("operator/"+name, f)
	c.notify(partOperators, reconcile.Key{Name: name})
}

// SetNodeFault makes a node faulty, or with nil repairs it.
func (c *Cluster) SetNodeFault(name string, f *Fault) {
	c.faults.set("node/"+name, f)
	c.notify(partNodes, reconcile.Key{Name: name})
}

// SetPodFault makes a pod faulty, or with nil repairs it. A fault of its
// workload counts only while the pod has none.
func (c *Cluster) SetPodFault(namespace, name string, f *Fault) {
	c.faults.set("pod/"+namespace+"/"+name, f)
	c.notify(partPods, reconcile.Key{Namespace: namespace, Name: name})
}

// faults holds the faults of all parts.
type faults struct {
	mu    sync.Mutex
	parts map[string]*Fault
	began map[*Fault]time.Time
}

func (s *faults) set(part string, f *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f != nil {
		copied := *f
		f = &copied
	}
	if s.parts == nil {
		s.parts = make(map[string]*Fault)
	}
	s.parts[part] = f
}

// of returns the fault of a part, or own where the part was never given one;
// nil when there is none or it is over.
func (s *faults) of(part string, own *Fault, now time.Time) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.parts[part]
	if !ok {
		f = own
	}
	if f == nil {
		return nil
	}
	if began, ok := s.began[f]; ok && f.For > 0 && !now.Before(began.Add(f.For)) {
		return nil
	}
	return f
}

// shows notes that f has an effect from now on, if it had none before, and
// returns how long it will last; zero means without end.
func (s *faults) shows(f *Fault, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.began == nil {
		s.began = make(map[*Fault]time.Time)
	}
	began, ok := s.began[f]
	if !ok {
		began = now
		s.began[f] = now
	}
	if f.For <= 0 {
		return 0
	}
	return max(began.Add(f.For).Sub(now), 1)
}

// FromSimulation reports whether ctx, as an Intercept function of the backend gets
// it, belongs to a call of the simulation itself.
func FromSimulation(ctx context.Context) bool {
	own, _ := ctx.Value(simulationKey{}).(bool)
	return own
}

type simulationKey struct{}
