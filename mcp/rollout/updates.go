package rollout

import (
	"context"
	"fmt"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// updatesReconciler steps a NodeUpdater. Its keys are nodes.
type updatesReconciler struct {
	run   *run
	nodes map[string]*nodeUpdate
}

// nodeUpdate is how far a node has been stepped.
type nodeUpdate struct {
	target mcp.Target
	phase  mcp.Phase
	step   stepID
	at     time.Time     // of the next step
	wait   time.Duration // until then, when it was planned
	busy   bool
}

// stepID distinguishes the steps of a node.
type stepID struct {
	target mcp.Target
	n      int
}

func nodeKey(name string) reconcile.Key { return reconcile.Key{Kind: "node", Name: name} }

func (r *updatesReconciler) Name() string { return updatesName }

func (r *updatesReconciler) Watches() []reconcile.Watch {
	return r.run.sources(false, map[string]func(time.Time, *clusterapi.Object, *clusterapi.Object) []reconcile.Wake{
		"Node": func(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake {
			if new == nil {
				delete(r.nodes, old.Name())
				return nil
			}
			return []reconcile.Wake{{Key: nodeKey(new.Name()), After: r.run.o.Delays.PoolQueue}}
		},
	})
}

// Reconcile steps a node that is targeted and not done.
func (r *updatesReconciler) Reconcile(ctx context.Context, q reconcile.Request) (res reconcile.Result, err error) {
	r.run.lock(q.Now)
	defer r.run.release()
	if ok, res := r.run.permitted(ctx, q.Now); !ok {
		return res, nil
	}
	name := q.Key.Name
	n, assign, ok := r.run.state.Node(name)
	// One that is to be given another target finishes what it has started first, as
	// with a daemon: it cannot be given that while it is down.
	if !ok || r.run.state.Pool(assign.Primary) == nil || n.Done() || n.DesiredConfig == "" || !n.Managed() {
		delete(r.nodes, name)
		return res, nil
	}
	u, to := r.nodes[name], mcp.Target{Config: n.DesiredConfig, Image: n.DesiredImage}
	if u == nil || u.target != to {
		phase, _ := r.run.state.Phase(name)
		u = &nodeUpdate{target: to, phase: phase, step: stepID{target: to}}
		r.nodes[name] = u
	}
	if left := u.at.Sub(q.Now); !u.busy && left > 0 && left <= u.wait { // else the clock was set back
		return reconcile.Result{At: u.at}, nil
	}
	if !u.busy {
		u.busy = true
		u.step.n++
	}
	return reconcile.Result{Jobs: []reconcile.Job{r.job(name, assign.Primary, u)}}, nil
}

// job is one step of a node.
func (r *updatesReconciler) job(name, pool string, u *nodeUpdate) reconcile.Job {
	type stepped struct {
		next  mcp.Phase
		after time.Duration
	}
	phase := u.phase
	return reconcile.Job{
		ID: u.step,
		Run: func(ctx context.Context, _ func(any)) (any, error) {
			next, after, err := r.run.rollout.o.NodeUpdater.Step(ctx, name, u.target, phase)
			return stepped{next, after}, err
		},
		Done: func(out any, err error) []reconcile.Wake {
			r.run.mu.Lock()
			defer r.run.release()
			wake := reconcile.Wake{Key: nodeKey(name)}
			u.busy, u.at = false, time.Time{}
			if err != nil {
				r.run.rollout.logPanic("rollout: the node updater failed", err)
				wake.After = r.run.o.Delays.RetryMax
				r.run.emit(EventNodeFailed, EventData{Pool: pool, Node: name, Phase: mcp.PhaseFailed, Warning: true}, "", err)
			} else {
				s := out.(stepped)
				if s.next != "" && s.next != u.phase {
					u.phase = s.next
					d := EventData{Pool: pool, Node: name, Phase: s.next}
					r.run.emit(EventNodePhase, d, fmt.Sprintf("node %s: %s", name, s.next), nil)
				}
				wake.After = s.after
				if s.after <= 0 {
					return nil // the node's change wakes
				}
			}
			u.at, u.wait = r.run.now.Add(wake.After), wake.After
			return []reconcile.Wake{wake}
		},
	}
}
