package runlevel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// node is a node of the task graph at work. It remembers where it waits.
type node struct {
	pass    *Pass
	index   int
	tasks   []*manifest.Task
	started bool

	next     int                      // the task under way
	broken   map[*manifest.Task]error // panics when ClusterOperators were created
	attempt  int                      // of the task under way; 0: it has not begun
	waits    []time.Duration          // after the attempts that are left
	last     error                    // of an attempt that failed by itself
	pending  *jobPending              // what the task waits for
	reported string                   // the trouble of a task that stalls, as the last event has it

	// guarded by the pass's lock
	cancel  context.CancelCauseFunc // of the look at it; nil if absent
	at      time.Time               // not before
	wait    time.Duration           // until then
	awaits  string                  // the ClusterOperator that the task under way is about
	stalled bool                    // until the next look at it begins
	woken   bool                    // the next look is due, though it is stalled or waits
	trouble error                   // the outcome of a stalled node's task
}

// run runs the tasks of the node in order, until one has to wait. The first
// error that blocks ends it; a panic in code that was supplied is one of them.
func (n *node) run(ctx context.Context) (wait time.Duration, over bool, err error) {
	caught := panics.Isolate(func() error {
		if !n.started {
			n.started = true
			n.pass.journal.emitTask(n.tasks[0], clusterapi.Event{Type: EventNodeStarted}, Progress{Node: n.index})
			err, over = n.precreate(ctx), true
			if err != nil {
				n.done(err)
				return nil
			}
		}
		for over = false; !over && wait == 0; {
			wait, over, err = n.stepTask(ctx)
		}
		if over && (err == nil || !n.pass.stay || ctx.Err() != nil) {
			n.done(err)
		}
		return nil
	})
	if caught != nil {
		return 0, true, n.broke(caught)
	}
	return wait, over, err
}

// done reports the end of the node.
func (n *node) done(err error) {
	n.pass.journal.emitTask(n.tasks[0], clusterapi.Event{Type: EventNodeDone, Err: err}, Progress{Node: n.index})
}

// task is the task under way.
func (n *node) task() *manifest.Task { return n.tasks[min(n.next, len(n.tasks)-1)] }

// operator is the ClusterOperator that the task under way is about; empty: it is about
// something else.
func (n *node) operator() string {
	if m := n.task().Manifest; isClusterOperator(m) {
		return m.Identity().Name
	}
	return ""
}

// broke ends the node for a panic that nobody caught before, of a logger or
// the clock, or because supplied code has ended the goroutine.
func (n *node) broke(caught error) error {
	te := panicError(n.task(), caught)
	n.pass.journal.putSafely(func() {
		n.pass.journal.count(n.task(), clusterapi.Event{Type: EventTaskFailed, Message: te.Message, Err: te}, Progress{Node: n.index})
		n.pass.journal.count(n.tasks[0], clusterapi.Event{Type: EventNodeDone, Err: te}, Progress{Node: n.index})
	})
	return te
}

// stepTask continues with the task under way. wait is how long until it is to be
// tried again; over reports that the node has ended, with err.
func (n *node) stepTask(ctx context.Context) (wait time.Duration, over bool, err error) {
	if n.next == len(n.tasks) {
		return 0, true, nil
	}
	t := n.task()
	if n.attempt == 0 {
		if err := n.pass.interrupted(ended(ctx)); err != nil {
			return 0, true, err
		}
		if v := n.pass.filter.Judge(t.Manifest); !v.Included {
			n.pass.journal.emitTask(t, clusterapi.Event{Type: EventTaskSkipped, Message: v.Reason}, Progress{Node: n.index})
			n.next++
			return 0, false, nil
		}
		n.pass.journal.emitTask(t, clusterapi.Event{Type: EventTaskStarted}, Progress{Node: n.index})
		n.waits, n.last = slices.Collect(n.pass.backoff.delays()), nil
	}
	wait, err = n.try(ctx, t)
	if wait > 0 {
		return wait, false, nil
	}
	over, err = n.finish(t, err, n.pass.stay)
	return 0, over, err
}

// try makes an attempt at the task, or continues with one that waits. It returns
// how long to wait for the next one, else nil, a *TaskError or, if nothing but the
// end of the context went wrong, a *contextEnd.
func (n *node) try(ctx context.Context, t *manifest.Task) (wait time.Duration, err error) {
	if n.attempt == 0 && n.broken[t] != nil {
		n.attempt = 1
		n.pass.journal.attemptFailed()
		return 0, n.broken[t]
	}
	if ctx.Err() != nil {
		return 0, n.cutShort(ended(ctx), t)
	}
	if look := n.pending; look != nil {
		n.pending = nil
		err = n.pass.supplied(t, func() error { return look.again(ctx) })
	} else {
		n.attempt++
		err = n.pass.apply(ctx, t, n.pass.state)
	}
	if pending, ok := errors.AsType[*jobPending](err); ok {
		n.pending = pending
		if ctx.Err() != nil {
			return 0, n.cutShort(ended(ctx), t)
		}
		return jobPoll, nil
	}
	if err == nil {
		return 0, nil
	}
	if ctx.Err() != nil && isContextError(ctx, err) {
		return 0, n.cutShort(ended(ctx), t)
	}
	n.last = err
	n.pass.journal.attemptFailed()
	te := taskError(t, err)
	if _, final := errors.AsType[*TaskError](err); final || len(n.waits) == 0 {
		return 0, te
	}
	wait, n.waits = n.waits[0], n.waits[1:]
	n.pass.journal.emitTask(t, clusterapi.Event{Type: EventTaskRetry, Message: te.Error(), Err: n.last}, Progress{Node: n.index, Attempt: n.attempt})
	n.pass.log.DebugContext(ctx, "task failed, trying again", "task", t.String(), "attempt", n.attempt, "wait", wait, "err", n.last)
	return max(wait, 1), nil
}

// cutShort is the result of a task that the end of the pass or of a look
// interrupts.
func (n *node) cutShort(why error, t *manifest.Task) error {
	if n.pending != nil {
		if te, ok := errors.AsType[*TaskError](jobUnfinished(n.pending.name, why)); ok {
			n.pass.journal.attemptFailed()
			return taskError(t, te)
		}
	}
	if n.last != nil {
		return taskError(t, n.last)
	}
	return n.pass.interrupted(why)
}

// finish records the outcome of a task: the next one follows, or the node has
// ended. With stay, a task that failed stalls the node.
func (n *node) finish(t *manifest.Task, err error, stay bool) (over bool, _ error) {
	attempt := n.attempt
	te, isTask := err.(*TaskError)
	switch {
	case err == nil:
		if isClusterOperator(t.Manifest) {
			n.pass.tracker.stopCO(t.Manifest.Identity().Name)
		}
		n.pass.journal.emitTask(t, clusterapi.Event{Type: EventTaskDone}, Progress{Node: n.index, Attempt: attempt})
	case isTask && te.Effect == EffectReport:
		n.pass.journal.remember(te)
		n.pass.journal.emitTask(t, clusterapi.Event{Type: EventTaskDone, Message: te.Message, Err: te}, Progress{Node: n.index, Attempt: attempt})
	case isTask && stay:
		n.stall(t, te)
		return true, te
	case isTask:
		if te.Wait != nil {
			n.pass.journal.emitTask(t, clusterapi.Event{Type: EventWaiting, Message: te.Message, Err: te}, Progress{Node: n.index, Attempt: attempt, Wait: te.Wait})
		}
		n.pass.journal.emitTask(t, clusterapi.Event{Type: EventTaskFailed, Message: te.Message, Err: te}, Progress{Node: n.index, Attempt: attempt})
		return true, te
	default:
		return true, err
	}
	n.next++
	n.attempt, n.reported = 0, ""
	return false, nil
}

// stall reports what a task waits for in a pass that stays, when that is new, and
// gives the task its attempts again.
func (n *node) stall(t *manifest.Task, te *TaskError) {
	if text := te.Error(); text != n.reported {
		n.reported = text
		what := EventTaskRetry
		if te.Wait != nil {
			what = EventWaiting
		}
		n.pass.journal.emitTask(t, clusterapi.Event{Type: what, Message: te.Message, Err: te}, Progress{Node: n.index, Attempt: n.attempt, Wait: te.Wait})
	}
	n.waits = slices.Collect(n.pass.backoff.delays())
}

// stop ends the node where it waits, because of why.
func (n *node) stop(why error) (err error) {
	caught := panics.Isolate(func() error {
		err = n.trouble
		if err == nil {
			_, err = n.finish(n.task(), n.cutShort(why, n.task()), false)
		}
		n.done(err)
		return nil
	})
	if caught != nil {
		return n.broke(caught)
	}
	return err
}

// precreate creates the ClusterOperators of a node, so that dashboards and
// must-gathers know of them before their turn. It does not matter if that fails:
// the task itself will find out. Only panics are kept for it.
func (n *node) precreate(ctx context.Context) error {
	for i, t := range n.tasks {
		if !isClusterOperator(t.Manifest) || !n.pass.filter.Judge(t.Manifest).Included {
			continue
		}
		if err := n.pass.interrupted(ended(ctx)); err != nil {
			return err
		}
		n.pass.tracker.StartCO(t.Manifest.Identity().Name)
		n.next = i // whom a Goexit is about
		err := n.pass.apply(ctx, t, Precreating)
		n.next = 0
		if err == nil {
			continue
		}
		n.pass.log.WarnContext(ctx, "precreating failed", "task", t.String(), "err", err)
		if _, ok := errors.AsType[*panics.Error](err); ok {
			if n.broken == nil {
				n.broken = make(map[*manifest.Task]error)
			}
			n.broken[t] = taskError(t, err)
		}
	}
	return nil
}

// apply calls the applier. A panic of it is an error of the task, which
// another attempt would only repeat. A runtime.Goexit ends the node.
func (p *Pass) apply(ctx context.Context, t *manifest.Task, state State) error {
	return p.supplied(t, func() error { return p.applier(ctx, t, state) })
}

// supplied calls code of the caller's.
func (p *Pass) supplied(t *manifest.Task, f func() error) error {
	err := panics.Catch(f)
	if caught, ok := err.(*panics.Error); ok {
		return panicError(t, caught)
	}
	return err
}

// interrupted returns the error of a node that why interrupts; nil for nil.
func (p *Pass) interrupted(why error) error {
	if why == nil {
		return nil
	}
	done, _ := p.journal.counts()
	return &contextEnd{Done: done, Total: p.journal.total, Err: why}
}

// ended returns why a context is over: its error, and the cause if that says
// more. It returns nil for one that is not over.
func ended(ctx context.Context) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); err != nil && !errors.Is(cause, err) {
		return fmt.Errorf("%w: %w", err, cause)
	} else if err != nil {
		return cause
	}
	return nil
}
