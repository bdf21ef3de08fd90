package nodeaction

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// node is a node that the run has claimed.
type node struct {
	*reconciler
	name   string
	known  bool   // record is what this run wrote last
	record Record // as stored
	stored *corev1.Node

	work    *work
	works   int           // so many have begun
	due     time.Time     // when the next work may begin
	wait    time.Duration // until then, when it was planned
	failing time.Time     // since when the action fails; zero: it does not
	drain   *rollout.NodeDrain
	failure error // what halted the run here
	noted   bool  // it is on the node
}

// work is a hook, or a step of the action, that runs beside the reconciler.
type work struct {
	id     int
	limit  time.Duration
	run    func(ctx context.Context) (any, error)
	over   bool
	result any
	err    error
}

// errFinished ends the work on a node.
var errFinished = errors.New("the node is finished")

// advance does what is due for the node.
func (x *node) advance(ctx context.Context) (reconcile.Result, error) {
	at, err := x.proceed(ctx)
	switch {
	case errors.Is(err, errFinished), apierrors.IsNotFound(err) && x.gone(ctx):
		return x.release(ctx)
	case err != nil:
		return reconcile.Result{}, err
	}
	res := reconcile.Result{At: at}
	if w := x.work; w != nil && !w.over {
		res.Jobs = []reconcile.Job{x.job(w)}
	}
	if x.known && x.record.Phase == phaseDraining && x.drain != nil {
		res.Watches = []reconcile.Watch{x.drain.Watch(nodeKey(x.name))}
	}
	if x.failure != nil {
		res.Wake = []reconcile.Wake{{Key: scheduleKey}}
	}
	return res, nil
}

// gone reports whether the node is not there any more.
func (x *node) gone(ctx context.Context) bool {
	_, err := clusterapi.Read[corev1.Node](ctx, x.api, clusterapi.Key("", x.name))
	return apierrors.IsNotFound(err)
}

// release gives the node back.
func (x *node) release(ctx context.Context) (reconcile.Result, error) {
	if _, err := changeClaims(ctx, x.api, x.Namespace, func(c *claims) error {
		c.Claims = slices.DeleteFunc(c.Claims, func(c claim) bool { return c.Node == x.name && c.Run == x.ID })
		return nil
	}); err != nil {
		return reconcile.Result{}, err
	}
	if x.known {
		d := EventData{Phase: phaseDone}
		switch {
		case x.record.Skipped:
			x.emit(EventNodeSkipped, d, fmt.Sprintf("node %s does not need it", x.name), nil)
		case x.record.Phase != phaseDone:
			x.emit(EventNodeSkipped, d, fmt.Sprintf("node %s is gone", x.name), nil)
		default:
			x.emit(EventNodeDone, d, fmt.Sprintf("node %s is finished", x.name), nil)
		}
	}
	delete(x.nodes, x.name)
	return reconcile.Result{Wake: []reconcile.Wake{{Key: scheduleKey}}}, nil
}

// proceed goes from phase to phase until something has to be waited for. It
// returns when to look again, and errFinished at the end.
func (x *node) proceed(ctx context.Context) (at time.Time, err error) {
	if !x.known {
		if err := x.begin(ctx); err != nil {
			return time.Time{}, err
		}
	}
	for {
		if x.failure != nil {
			return time.Time{}, x.note(ctx)
		}
		if left := x.due.Sub(x.now); left > 0 && left <= x.wait { // else the clock was set back
			return x.due, nil
		}
		phase := x.record.Phase
		at, err = x.enter(ctx)
		if err != nil {
			return time.Time{}, err
		}
		if x.record.Phase == phase && x.failure == nil {
			return at, nil
		}
	}
}

// begin takes the node over: it writes the record, or its next attempt. A write
// that succeeds shows that the node was read as it is.
func (x *node) begin(ctx context.Context) error {
	resumed := false
	stored, err := clusterapi.Modify(ctx, x.api, clusterapi.Key("", x.name), modify, func(n *corev1.Node) error {
		r, there, err := RecordOf(n, x.ID)
		if err != nil {
			return err
		}
		resumed = there
		if r.Phase == phaseDone {
			return errFinished
		}
		if !there {
			r = Record{Version: recordVersion, Action: x.Action.Name(), Phase: phasePreCordon, Since: x.now.UTC(), WasCordoned: n.Spec.Unschedulable}
			if _, ok := x.Action.(Checker); ok {
				r.Phase = phaseChecking
			}
		}
		r.Attempt++
		if r.Failed != "" {
			r.Failed, r.Since = "", x.now.UTC()
		}
		x.record = r
		return r.write(n, x.ID)
	})
	if err != nil {
		return err
	}
	x.known, x.stored = true, stored
	d := EventData{Phase: x.record.Phase}
	if resumed {
		x.emit(EventNodeResumed, d, fmt.Sprintf("node %s is gone on with, in phase %s", x.name, x.record.Phase), nil)
	} else {
		x.emit(EventNodeStarted, d, fmt.Sprintf("node %s is begun", x.name), nil)
	}
	return nil
}

// enter does what is due in the present phase.
func (x *node) enter(ctx context.Context) (at time.Time, err error) {
	switch x.record.Phase {
	case phaseChecking:
		return x.check(ctx)
	case phasePreCordon:
		return x.hook(ctx, rollout.HookPreCordon, x.cordon)
	case phaseDraining:
		return x.drained(ctx)
	case phasePreUpgrade:
		return x.hook(ctx, rollout.HookPreUpgrade, func(ctx context.Context) error { return x.become(ctx, phaseActing, nil) })
	case phaseActing:
		return x.act(ctx)
	case phasePreUncordon:
		return x.hook(ctx, rollout.HookPreUncordon, x.uncordon)
	case phasePostUpgrade:
		return x.hook(ctx, rollout.HookPostUpgrade, func(ctx context.Context) error { return x.become(ctx, phaseDone, nil) })
	default:
		return time.Time{}, errFinished
	}
}

// become writes that the node is in another phase, together with a change of it.
func (x *node) become(ctx context.Context, next string, change func(*corev1.Node, *Record)) error {
	if err := x.write(ctx, next, change); err != nil {
		return err
	}
	x.work, x.failing, x.due = nil, time.Time{}, time.Time{}
	if next != phaseDone {
		x.emit(EventPhase, EventData{Phase: next}, fmt.Sprintf("node %s: %s", x.name, next), nil)
	}
	return nil
}

// write changes the node and its record, if that is as this run left it. A write
// that took effect although it failed is found to be done.
func (x *node) write(ctx context.Context, next string, change func(*corev1.Node, *Record)) error {
	var record Record
	stored, err := clusterapi.Modify(ctx, x.api, clusterapi.Key("", x.name), modify, func(n *corev1.Node) error {
		r, there, err := RecordOf(n, x.ID)
		if err != nil {
			return err
		}
		if there && r.Attempt == x.record.Attempt && r.Phase == next && next != x.record.Phase {
			record = r
			return nil
		}
		if r.Attempt > x.record.Attempt || r.Attempt == x.record.Attempt && after(r.Phase, x.record.Phase) {
			return fmt.Errorf("node %s: %w", x.name, ErrTakenOver)
		}
		r = x.record // where the node was read as it was a moment ago, the write meets a conflict
		r.Phase, r.Waiting = next, ""
		if next != x.record.Phase {
			r.Since = x.now.UTC()
		}
		if change != nil {
			change(n, &r)
		}
		record = r
		return r.write(n, x.ID)
	})
	if err != nil {
		return err
	}
	x.record, x.stored = record, stored
	return nil
}

// cordon takes the node out of service, as far as the action asks for.
func (x *node) cordon(ctx context.Context) error {
	next := phasePreUpgrade
	disruption := x.Action.Disruption(x.stored)
	if disruption == Drain {
		next = phaseDraining
	}
	return x.become(ctx, next, func(n *corev1.Node, r *Record) {
		if disruption == None {
			return
		}
		r.WasCordoned = n.Spec.Unschedulable
		n.Spec.Unschedulable = true
		r.Asked = x.now.UTC()
	})
}

// uncordon puts the node back as it was.
func (x *node) uncordon(ctx context.Context) error {
	return x.become(ctx, phasePostUpgrade, func(n *corev1.Node, r *Record) {
		if !r.Asked.IsZero() && !r.WasCordoned {
			n.Spec.Unschedulable = false
		}
	})
}

// drained empties the node.
func (x *node) drained(ctx context.Context) (at time.Time, err error) {
	if x.drain == nil {
		x.drain, err = rollout.NewNodeDrain(x.api, x.name, x.record.Asked, x.Drain, func(e clusterapi.Event) {
			warning := e.Data.(*rollout.EventData).Warning
			x.emit(EventDrain, EventData{Phase: phaseDraining, Warning: warning, Drain: &e}, e.Message, e.Err)
		})
		if err != nil {
			return time.Time{}, err
		}
	}
	drained, at, err := x.drain.Step(ctx, x.now)
	if err != nil || !drained {
		return at, err
	}
	x.drain = nil
	return time.Time{}, x.become(ctx, phasePreUpgrade, nil)
}

// hook runs a hook, if there is one, and what follows it.
func (x *node) hook(ctx context.Context, name rollout.Hook, then func(context.Context) error) (at time.Time, err error) {
	run := x.Hooks.Of(name)
	if run == nil {
		return time.Time{}, then(ctx)
	}
	w := x.begun(x.HookLimit, func(ctx context.Context) (any, error) { return nil, run(ctx, x.name) })
	if !w.over {
		return time.Time{}, nil
	}
	if w.err != nil {
		x.halt(&rollout.HookError{Node: x.name, Hook: name, Err: w.err})
		return time.Time{}, nil
	}
	return time.Time{}, then(ctx)
}

// check asks whether the node needs the action.
func (x *node) check(ctx context.Context) (at time.Time, err error) {
	w := x.begun(x.StepLimit, func(ctx context.Context) (any, error) {
		n, err := clusterapi.Get[corev1.Node](ctx, x.api, clusterapi.Key("", x.name))
		if err != nil {
			return nil, err
		}
		return x.Action.(Checker).Needed(ctx, n)
	})
	if !w.over {
		return time.Time{}, nil
	}
	if w.err != nil {
		return x.failed(ctx, w.err)
	}
	if needed := w.result.(bool); needed {
		return time.Time{}, x.become(ctx, phasePreCordon, nil)
	}
	return time.Time{}, x.become(ctx, phaseDone, func(_ *corev1.Node, r *Record) { r.Skipped = true })
}

// act takes the next step of the action.
func (x *node) act(ctx context.Context) (at time.Time, err error) {
	progress := x.record.Progress
	w := x.begun(x.StepLimit, func(ctx context.Context) (any, error) {
		n, err := clusterapi.Get[corev1.Node](ctx, x.api, clusterapi.Key("", x.name))
		if err != nil {
			return nil, err
		}
		return x.Action.Step(ctx, n, progress)
	})
	if !w.over {
		return time.Time{}, nil
	}
	if w.err != nil {
		return x.failed(ctx, w.err)
	}
	step := w.result.(Step)
	if len(step.Progress) > maxProgress {
		x.halt(fmt.Errorf("the action's progress has %d bytes; at most %d can be recorded", len(step.Progress), maxProgress))
		return time.Time{}, nil
	}
	x.failing = time.Time{}
	if step.Done {
		return time.Time{}, x.become(ctx, phasePreUncordon, func(n *corev1.Node, r *Record) {
			r.Progress = ""
			delete(n.Annotations, ConfirmAnnotation(r.Action))
		})
	}
	waiting := bounded.Text(step.Waiting, maxRecorded)
	if step.Progress != x.record.Progress || waiting != x.record.Waiting {
		moved, told := step.Progress != x.record.Progress, waiting != x.record.Waiting && waiting != ""
		if err := x.write(ctx, phaseActing, func(_ *corev1.Node, r *Record) {
			r.Progress, r.Waiting = step.Progress, waiting
			if moved {
				r.Since = x.now.UTC()
			}
		}); err != nil {
			return time.Time{}, err
		}
		if told {
			x.emit(EventWaiting, EventData{Phase: phaseActing}, fmt.Sprintf("node %s waits for %s", x.name, waiting), nil)
		}
	}
	x.work = nil
	if waited := x.now.Sub(x.record.Since); waited >= x.StallLimit && !step.Person {
		x.halt(stalled(waited, waiting))
		return time.Time{}, nil
	}
	x.due, x.wait = x.now.Add(step.After), step.After
	if step.After <= 0 {
		return x.now, nil
	}
	return x.due, nil
}

// stalled is the error of an action that does not move any more.
func stalled(waited time.Duration, waiting string) error {
	if waiting != "" {
		waiting = "; it waits for " + waiting
	}
	return fmt.Errorf("nothing has moved for %s%s", waited.Truncate(time.Second), waiting)
}

// failed says when what failed is tried again, or halts the run.
func (x *node) failed(ctx context.Context, err error) (at time.Time, _ error) {
	if apierrors.IsNotFound(err) && x.gone(ctx) {
		return time.Time{}, errFinished
	}
	if x.failing.IsZero() {
		x.failing = x.now
	}
	if IsPermanent(err) || x.now.Sub(x.failing) >= x.RetryLimit {
		x.halt(err)
		return time.Time{}, nil
	}
	x.emit(EventRetry, EventData{Phase: x.record.Phase, Warning: true}, fmt.Sprintf("node %s: %v; trying again", x.name, err), err)
	x.work, x.due, x.wait = nil, x.now.Add(x.Retry), x.Retry
	return x.due, nil
}

// halt halts the run here. The node stays as it is.
func (x *node) halt(err error) {
	x.work, x.failure = nil, &FailedError{Node: x.name, Phase: x.record.Phase, Err: err}
	if x.reconciler.failure == nil {
		x.reconciler.failure = x.failure
	}
	x.emit(EventFailed, EventData{Phase: x.record.Phase, Warning: true}, x.failure.Error(), x.failure)
}

// emit tells the observer of an event about the node.
func (x *node) emit(t clusterapi.EventType, d EventData, message string, err error) {
	x.reconciler.emit(t, "node/"+x.name, d, message, err)
}

// note records what halted the run.
func (x *node) note(ctx context.Context) error {
	if x.noted {
		return nil
	}
	err := x.write(ctx, x.record.Phase, func(_ *corev1.Node, r *Record) {
		r.Failed = bounded.Text(x.reason(), maxRecorded)
	})
	x.noted = err == nil
	return err
}

// reason is what halted the run, without the name of the node.
func (x *node) reason() string {
	if h, ok := errors.AsType[*rollout.HookError](x.failure); ok {
		return fmt.Sprintf("hook %s failed: %v", h.Hook, h.Err)
	}
	return errors.Unwrap(x.failure).Error()
}

// begun returns the work under way, and begins it where there is none.
func (x *node) begun(limit time.Duration, run func(ctx context.Context) (any, error)) *work {
	if x.work == nil {
		x.works++
		x.work = &work{id: x.works, limit: limit, run: run}
	}
	return x.work
}

// job runs work.
func (x *node) job(w *work) reconcile.Job {
	return reconcile.Job{
		ID: w.id, Limit: w.limit,
		Run: func(ctx context.Context, _ func(any)) (any, error) { return w.run(ctx) },
		Done: func(result any, err error) []reconcile.Wake {
			w.over, w.result, w.err = true, result, err
			return []reconcile.Wake{{Key: nodeKey(x.name)}}
		},
	}
}
