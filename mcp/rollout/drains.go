package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// annotationDrainSince on a node records since when a [Rollout] drains it, so that
// another that takes over knows how long the drain has been failing. It goes with
// the drain. [Uninstall] removes it.
const annotationDrainSince = clusterapi.AnnotationPrefix + "drain-since"

// drainSince is the value of clusterupdate.github.io/drain-since, as JSON.
type drainSince struct {
	Version int       `json:"version"`
	Since   time.Time `json:"since"`
}

const drainSinceVersion = 1

// drainsReconciler fulfils the requests of nodes to be drained and uncordoned.
// Its keys are nodes. Each waits for itself alone.
type drainsReconciler struct {
	run   *run
	nodes map[string]*nodeDrain // guarded by run.mu; what is in them belongs to their key
}

// drainAttempt is an attempt at what a node asked for.
type drainAttempt struct {
	asked   string
	failing time.Duration // how long the drain had been failing when it began
	drain   *Drain
}

// nodeDrain is what is remembered of a node's requests.
//
// A node that is queued while an attempt for it is under way is attempted again
// at once after that: this is why attempts follow each other back to back at
// first, since cordoning a node is a change that queues it.
type nodeDrain struct {
	due     time.Time // when it is queued next; zero: when it changes. Guarded by run.mu
	dirty   bool      // it was queued during the attempt
	errors  int       // in a row, other than of the drain itself
	cordons int       // tries of the cordon under way
	attempt *drainAttempt
	hook    *nodeHook
}

func (r *drainsReconciler) Name() string { return drainsName }

// Workers implements [reconcile.Concurrent].
func (r *drainsReconciler) Workers() int { return r.run.o.DrainWorkers }

func (r *drainsReconciler) Watches() []reconcile.Watch {
	return r.run.sources(false, map[string]func(time.Time, *clusterapi.Object, *clusterapi.Object) []reconcile.Wake{"Node": r.nodeChanged})
}

// nodeChanged queues a node that asks for something, or was cordoned or
// uncordoned.
func (r *drainsReconciler) nodeChanged(now time.Time, old, new *clusterapi.Object) []reconcile.Wake {
	var before, after mcp.NodeState
	if n, err := clusterapi.As[corev1.Node](old); err == nil {
		before = mcp.NodeStateOf(n)
	}
	n, err := clusterapi.As[corev1.Node](new)
	if err != nil {
		return nil // gone, or reported by the reconciler of pools
	}
	after = mcp.NodeStateOf(n)
	asks := after.DesiredDrain != after.LastAppliedDrain
	if old != nil {
		asks = before.DesiredDrain != after.DesiredDrain || before.Unschedulable != after.Unschedulable
	}
	asks = asks || r.run.o.Hooks.PostUpgrade != nil && after.Done() && n.Annotations[annotationHooks] != ""
	if !asks {
		return nil
	}
	r.run.lock(now)
	defer r.run.release()
	d := r.of(n.Name)
	d.enqueue(now.Add(r.run.o.Delays.PoolQueue))
	return []reconcile.Wake{{Key: nodeKey(n.Name), After: r.run.o.Delays.PoolQueue}}
}

// of returns what is remembered of a node.
func (r *drainsReconciler) of(node string) *nodeDrain {
	d := r.nodes[node]
	if d == nil {
		d = &nodeDrain{}
		r.nodes[node] = d
	}
	return d
}

// enqueue queues the node at a time, unless it is to be earlier.
func (d *nodeDrain) enqueue(at time.Time) {
	if d.due.IsZero() || at.Before(d.due) {
		d.due = at
	}
}

// Reconcile does what is due for a node.
func (r *drainsReconciler) Reconcile(ctx context.Context, q reconcile.Request) (res reconcile.Result, err error) {
	x, res := r.take(ctx, q)
	if x == nil {
		return res, nil
	}
	d, name := x.d, x.node
	var at time.Time
	err = panics.Isolate(func() (err error) {
		at, err = x.advance()
		return err
	})
	r.run.lock(q.Now)
	defer r.run.release()
	if err != nil && (ctx.Err() != nil || apierrors.IsConflict(err)) {
		d.dirty = d.dirty || d.attempt == nil // it continues from there
		return res, err
	}
	if err != nil {
		if caught := new(panics.Error); errors.As(err, &caught) {
			d.attempt = nil
			err = &DrainError{Node: name, Kind: drainPods, Err: fmt.Errorf("draining node %s: %w", name, err)}
		}
		d.errors++
		r.run.fail("", name, err)
		d.enqueue(q.Now.Add(r.run.o.Delays.backoff(d.errors)))
	}
	res.At = at
	if !d.due.IsZero() && (at.IsZero() || d.due.Before(at)) {
		res.At = d.due
	}
	if d.attempt != nil {
		res.Watches = []reconcile.Watch{PodsOf(name, q.Key)}
	}
	if d.hook != nil {
		res.Jobs = []reconcile.Job{r.job(name, d, d.hook)}
	}
	if d.attempt == nil && d.due.IsZero() && d.errors == 0 && !d.dirty && d.hook == nil {
		delete(r.nodes, name)
	}
	return res, nil
}

// take returns what looks at a node; nil while nothing may be done.
func (r *drainsReconciler) take(ctx context.Context, q reconcile.Request) (*drainer, reconcile.Result) {
	r.run.lock(q.Now)
	defer r.run.release()
	if ok, res := r.run.permitted(ctx, q.Now); !ok {
		return nil, res
	}
	d := r.of(q.Key.Name)
	if !d.due.IsZero() && r.run.o.Delays.isDue(d.due, q.Now) {
		d.due, d.dirty = time.Time{}, true
	}
	_, assign, _ := r.run.state.Node(q.Key.Name)
	x := &drainer{run: r.run, d: d, ctx: ctx, now: q.Now, node: q.Key.Name, pool: assign.Primary, placeErr: assign.Err}
	return x, reconcile.Result{}
}

// drainer looks at one node.
type drainer struct {
	run        *run
	d          *nodeDrain // of the node
	ctx        context.Context
	now        time.Time
	node, pool string
	placeErr   error // why the node is in no pool
}

// advance continues with the attempt under way, and starts one where the node is
// queued. It returns when to look again. An error is one of something else than the
// drain, which is tried again soon.
func (x *drainer) advance() (at time.Time, err error) {
	for {
		if x.d.attempt == nil {
			if !x.d.dirty {
				return time.Time{}, nil
			}
			x.d.dirty = false
			at, err = x.begin()
			if err != nil || x.d.attempt == nil {
				return at, err
			}
		}
		at, err = x.proceed()
		if err != nil || x.d.attempt != nil {
			return at, err
		}
	}
}

// begin looks at what the node asks for. It fulfils a request to be uncordoned, and
// starts an attempt for one to be drained.
func (x *drainer) begin() (at time.Time, err error) {
	node, err := clusterapi.Read[corev1.Node](x.ctx, x.run.api, clusterapi.Key("", x.node))
	if apierrors.IsNotFound(err) {
		x.d.hook = nil
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	asked := node.Annotations[mcp.AnnotationDesiredDrain]
	if asked == node.Annotations[mcp.AnnotationLastAppliedDrain] {
		return time.Time{}, x.afterUpdate(node)
	}
	if x.placeErr != nil {
		return time.Time{}, x.placeErr
	}
	switch verb, config, _ := strings.Cut(asked, "-"); verb {
	case mcp.DrainVerbUncordon:
		if ran, err := x.hooked(node, HookPreUncordon, config); !ran {
			return time.Time{}, err
		}
		return x.cordon(asked, func(n *corev1.Node) {
			n.Spec.Unschedulable = false
			setAnnotation(n, mcp.AnnotationLastAppliedDrain, asked)
			delete(n.Annotations, annotationDrainSince)
			x.oweLast(n, config)
		}, "uncordon")
	case mcp.DrainVerbDrain:
		if ran, err := x.hooked(node, HookPreCordon, config); !ran {
			return time.Time{}, err
		}
		return x.beginDrain(node, asked)
	default:
		return time.Time{}, fmt.Errorf("node %s: non-recognized drain verb detected %s", x.node, verb)
	}
}

// beginDrain cordons the node if need be and starts an attempt to empty it. A drain
// never gives up and never forces.
func (x *drainer) beginDrain(node *corev1.Node, asked string) (at time.Time, err error) {
	since, err := drainingSince(node)
	if err != nil {
		return time.Time{}, err
	}
	var failing time.Duration // when the attempt begins
	if !since.IsZero() {
		failing = x.now.Sub(since)
	}
	if since.IsZero() || !node.Spec.Unschedulable {
		// If somebody uncordoned the node, its drain counts as new from the
		// attempt after this one on.
		at, err = x.cordon(asked, func(n *corev1.Node) {
			n.Spec.Unschedulable = true
			value, _ := json.Marshal(drainSince{drainSinceVersion, x.now.UTC()})
			setAnnotation(n, annotationDrainSince, string(value))
		}, "cordon")
		if err != nil || !at.IsZero() {
			return at, err
		}
	}
	x.beginAttempt(asked, failing)
	return time.Time{}, nil
}

// beginAttempt starts to empty the node, which is cordoned.
func (x *drainer) beginAttempt(asked string, failing time.Duration) {
	delays := x.run.o.Delays
	if failing > delays.DrainFailed {
		x.warn(ReasonDrainFailed, fmt.Sprintf("node %s: drain exceeded timeout: %v. Will continue to retry.", x.node, delays.DrainFailed), nil)
	}
	x.d.attempt = &drainAttempt{asked: asked, failing: failing, drain: &Drain{Node: x.node, Delays: delays}}
}

// proceed continues the attempt, and ends it when no pod is left or its time is over. It
// returns when to look again.
func (x *drainer) proceed() (at time.Time, err error) {
	drain := x.d.attempt.drain
	drain.Blocked = func(pod types.NamespacedName, text string, err *DrainError) {
		x.emitDrain(EventDrainBlocked, EventData{Phase: mcp.PhaseDraining},
			fmt.Sprintf("node %s: pod %s may not be evicted now: %s", x.node, pod, text), err)
	}
	at, done, err := drain.Advance(x.ctx, x.run.api, x.now)
	switch {
	case err != nil && x.ctx.Err() != nil:
		return time.Time{}, err
	case err != nil:
		x.failed(err)
	case done:
		return time.Time{}, x.fulfilled()
	}
	return at, nil
}

// drainingSince reads since when a node is drained; zero: it is not.
func drainingSince(n *corev1.Node) (time.Time, error) {
	value := n.Annotations[annotationDrainSince]
	if value == "" {
		return time.Time{}, nil
	}
	var s drainSince
	if err := json.Unmarshal([]byte(value), &s); err != nil {
		return time.Time{}, nil // not ours: it is written again
	}
	if s.Version > drainSinceVersion {
		return time.Time{}, fmt.Errorf("node %s: annotation %s has version %d; this program knows 1 to %d", n.Name, annotationDrainSince, s.Version, drainSinceVersion)
	}
	return s.Since, nil
}

// cordon writes whether the node is schedulable, if it still asks for that: a
// read may have been old. at is when to try again, zero if it was written.
func (x *drainer) cordon(asked string, change func(*corev1.Node), verb string) (at time.Time, err error) {
	const tries = 5
	_, err = clusterapi.Modify(x.ctx, x.run.api, clusterapi.Key("", x.node), modifyNode, func(n *corev1.Node) error {
		if n.Annotations[mcp.AnnotationDesiredDrain] != asked || n.Annotations[mcp.AnnotationLastAppliedDrain] == asked {
			return errStale
		}
		change(n)
		return nil
	})
	switch {
	case errors.Is(err, errStale):
		x.d.dirty = true
		return x.now.Add(x.run.o.Delays.PoolQueue), nil
	case err == nil:
		x.d.cordons, x.d.errors = 0, 0
		return time.Time{}, nil
	case x.ctx.Err() != nil, apierrors.IsConflict(err):
		x.d.dirty = true
		return time.Time{}, err
	}
	x.d.cordons++
	if x.d.cordons == tries {
		x.d.cordons = 0
		return time.Time{}, &DrainError{Node: x.node, Kind: drainCordon, Err: fmt.Errorf("node %s: failed to %s (%d tries): %w", x.node, verb, tries, err)}
	}
	x.d.dirty = true
	return x.now.Add(x.run.o.Delays.CordonRetry << (x.d.cordons - 1)), nil
}

// fulfilled tells the daemon that its request is, if the node is still cordoned: if
// somebody uncordoned it, pods may have returned, and that change queues the node
// again.
func (x *drainer) fulfilled() error {
	if ran, err := x.hookedDrained(); !ran {
		return err
	}
	drained := false
	_, err := clusterapi.Modify(x.ctx, x.run.api, clusterapi.Key("", x.node), modifyNode, func(n *corev1.Node) error {
		drained = n.Spec.Unschedulable
		if drained {
			setAnnotation(n, mcp.AnnotationLastAppliedDrain, x.d.attempt.asked)
		}
		delete(n.Annotations, annotationDrainSince)
		return nil
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	x.d.attempt = nil
	if drained && err == nil {
		x.emitDrained()
	}
	x.d.errors = 0
	return nil
}

func (x *drainer) emitDrained() {
	x.emitDrain(EventDrained, EventData{}, fmt.Sprintf("node %s is drained", x.node), nil)
}

// failed ends the attempt, and says when the next one follows.
func (x *drainer) failed(err error) {
	delays, failing := x.run.o.Delays, x.d.attempt.failing
	x.d.attempt, x.d.errors = nil, 0
	retry := delays.DrainRetry
	if failing >= delays.DrainSlowAfter {
		retry = delays.DrainSlowRetry
		x.warn(ReasonDrainThresholdExceeded, fmt.Sprintf(
			"Drain failed. Drain has been failing for more than %v minutes. Waiting %v minutes then retrying. Error message from drain: %v",
			delays.DrainSlowAfter.Minutes(), delays.DrainSlowRetry.Minutes(), err), err)
	} else {
		x.emitDrain(EventDrainRetry, EventData{Phase: mcp.PhaseDraining},
			fmt.Sprintf("node %s: drain failed, trying again: %v", x.node, err), err)
	}
	x.run.lock(x.now)
	x.d.enqueue(x.now.Add(retry))
	x.run.release()
}

func (x *drainer) warn(reason, text string, err error) {
	x.emitDrain(EventDrainRetry, EventData{Phase: mcp.PhaseDraining, Reason: reason, Warning: true}, text, err)
}

func (x *drainer) emitDrain(t clusterapi.EventType, d EventData, message string, err error) {
	d.Pool = x.pool
	d.Node = x.node
	x.run.lock(x.now)
	x.run.emit(t, d, message, err)
	x.run.release()
}
