package runlevel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// nodeRun is a node that is run.
type nodeRun struct {
	*pass
	index int
	tasks []*manifest.Task
	at    *manifest.Task // the task under way
}

// run runs the tasks of the node in order. The first error that blocks ends
// it; a panic in code that was supplied is one of them.
func (n *nodeRun) run(ctx context.Context) error {
	var err error
	n.at = n.tasks[0]
	caught := panics.Catch(func() error {
		n.emitTask(n.tasks[0], Event{Type: NodeStarted, Node: n.index})
		err = n.runTasks(ctx)
		n.emitTask(n.tasks[0], Event{Type: NodeDone, Node: n.index, Err: err})
		return nil
	})
	if caught != nil {
		return n.broken(caught)
	}
	return err
}

// broken ends the node for a panic that nobody caught before, of a logger or
// the clock, or because supplied code has ended the goroutine.
func (n *nodeRun) broken(caught error) error {
	te := panicError(n.at, caught)
	n.putSafely(func() {
		n.count(n.at, Event{Type: TaskFailed, Node: n.index, Message: te.Message, Err: te})
		n.count(n.tasks[0], Event{Type: NodeDone, Node: n.index, Err: te})
	})
	return te
}

func (n *nodeRun) runTasks(ctx context.Context) error {
	p, node, tasks, at := n.pass, n.index, n.tasks, &n.at
	broken, err := p.precreate(ctx, tasks, at)
	if err != nil {
		return err
	}
	for _, t := range tasks {
		*at = t
		if err := p.contextError(ctx); err != nil {
			return err
		}
		if v := p.filter.Judge(t.Manifest); !v.Included {
			p.emitTask(t, Event{Type: TaskSkipped, Node: node, Message: v.Reason})
			continue
		}
		p.emitTask(t, Event{Type: TaskStarted, Node: node})
		attempt, err := 1, broken[t]
		if err == nil {
			attempt, err = p.task(ctx, node, t)
		}
		te, isTask := err.(*TaskError)
		switch {
		case err == nil:
			if isClusterOperator(t.Manifest) {
				p.tracker.StopCO(t.Manifest.Object.GetName())
			}
			p.emitTask(t, Event{Type: TaskDone, Node: node, Attempt: attempt})
		case isTask && te.Effect == EffectReport:
			p.remember(te)
			p.emitTask(t, Event{Type: TaskDone, Node: node, Attempt: attempt, Message: te.Message, Err: te})
		case isTask:
			if te.Wait != nil {
				p.emitTask(t, Event{Type: Waiting, Node: node, Attempt: attempt, Wait: te.Wait, Message: te.Message, Err: te})
			}
			p.emitTask(t, Event{Type: TaskFailed, Node: node, Attempt: attempt, Message: te.Message, Err: te})
			return te
		default:
			return err
		}
	}
	return nil
}

// precreate creates the ClusterOperators of a node, so that dashboards and
// must-gathers know of them before their turn. Failing to do so is no
// trouble: the task itself will find out. Only panics are kept for it.
func (p *pass) precreate(ctx context.Context, tasks []*manifest.Task, at **manifest.Task) (broken map[*manifest.Task]error, err error) {
	for _, t := range tasks {
		*at = t
		if !isClusterOperator(t.Manifest) || !p.filter.Judge(t.Manifest).Included {
			continue
		}
		if err := p.contextError(ctx); err != nil {
			return nil, err
		}
		p.tracker.StartCO(t.Manifest.Object.GetName())
		err := p.apply(ctx, t, Precreating)
		if err == nil {
			continue
		}
		p.log.WarnContext(ctx, "precreating failed", "task", t.String(), "err", err)
		if _, ok := errors.AsType[*panics.Error](err); ok {
			if broken == nil {
				broken = make(map[*manifest.Task]error)
			}
			broken[t] = taskError(t, err)
		}
	}
	return broken, nil
}

// apply calls the applier. A panic of it is an error of the task, which
// another attempt would only repeat. A runtime.Goexit ends the node.
func (p *pass) apply(ctx context.Context, t *manifest.Task, state State) error {
	err := panics.Catch(func() error { return p.applier.Apply(ctx, t, state) })
	if caught, ok := err.(*panics.Error); ok {
		return panicError(t, caught)
	}
	return err
}

// contextError returns the error of a node that the context ends, or nil.
func (p *pass) contextError(ctx context.Context) error {
	if err := ended(ctx); err != nil {
		return &ContextError{Done: p.doneSoFar(), Total: p.total, Err: err}
	}
	return nil
}

// task applies one manifest, trying again as the back-off says. It returns
// nil, a *TaskError or, where nothing but the end of the context went wrong,
// a *ContextError.
func (p *pass) task(ctx context.Context, node int, t *manifest.Task) (attempt int, err error) {
	var last error // of an attempt that failed by itself
	over := func() error {
		if last != nil {
			return taskError(t, last)
		}
		return p.contextError(ctx)
	}
	try := func() (finished bool, err error) {
		if ctx.Err() != nil {
			return true, over()
		}
		attempt++
		err = p.apply(ctx, t, p.state)
		if err == nil {
			return true, nil
		}
		if ctx.Err() != nil && isContextError(ctx, err) {
			return true, over()
		}
		last = err
		_, final := errors.AsType[*TaskError](err)
		return final, taskError(t, err)
	}

	finished, err := try()
	for wait := range p.backoff.Delays() {
		if finished {
			return attempt, err
		}
		p.emitTask(t, Event{Type: TaskRetry, Node: node, Attempt: attempt, Message: err.Error(), Err: last})
		p.log.DebugContext(ctx, "task failed, trying again", "task", t.String(), "attempt", attempt, "wait", wait, "err", last)
		if !sleep(ctx, p.clock, wait) {
			return attempt, over()
		}
		finished, err = try()
	}
	return attempt, err
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

// sleep waits; it returns false when the context ends before.
func sleep(ctx context.Context, c clock.WithTicker, d time.Duration) bool {
	timer := c.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}

func (p *pass) remember(te *TaskError) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reports = append(p.reports, te)
}
