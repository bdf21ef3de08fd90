package rollout

import (
	"context"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
)

// NodeDrain empties one node that its caller has cordoned, as a [Rollout] does
// for a machine-config daemon: by evictions, which honour PodDisruptionBudgets,
// in attempts of limited time, again and again. It never gives up and never
// forces. It is for reconcilers that take nodes out of service for another
// reason than a configuration; it writes nothing to the node. It is not safe
// for concurrent use.
type NodeDrain struct {
	run     *run
	state   nodeDrain
	node    string
	since   time.Time
	drained bool
}

// NewNodeDrain returns a drain of a node that has been asked for since a time,
// by which attempts slow down. A zero field of delays means its default. observe
// is told of pods that may not go and of attempts that failed; nil: nobody is. It
// fails for a delay below zero.
func NewNodeDrain(api clusterapi.ClusterAPI, node string, since time.Time, delays Delays, observe func(clusterapi.Event)) (*NodeDrain, error) {
	r, err := New(Options{Delays: delays, Observe: observe})
	if err != nil {
		return nil, err
	}
	return &NodeDrain{run: newRun(r, api), node: node, since: since}, nil
}

// Step does what is due and reports whether no pod that has to leave is left.
// If there are some, it says when to step again; a pod that goes, of which
// [NodeDrain.Watch] tells, may be earlier. Its errors are those of the cluster
// which are to be tried again soon, as a [reconcile.Reconciler] returns them.
func (d *NodeDrain) Step(ctx context.Context, now time.Time) (drained bool, at time.Time, err error) {
	d.run.lock(now)
	d.run.release()
	if d.drained {
		return true, time.Time{}, nil
	}
	x := &drainer{run: d.run, ctx: ctx, now: now, node: d.node, nodeDrain: &d.state, alone: d}
	if x.attempt == nil {
		if !x.o.Delays.isDue(x.due, now) {
			return false, x.due, nil
		}
		x.due = time.Time{}
		x.beginAttempt("", now.Sub(d.since))
	}
	at, err = x.proceed()
	if err == nil && x.attempt == nil && !d.drained {
		at = x.due
	}
	return d.drained, at, err
}

// Watch tells a key of the reconciler that makes the drain of pods that are gone.
func (d *NodeDrain) Watch(key reconcile.Key) reconcile.Watch {
	return podsOf(d.node, key)
}
