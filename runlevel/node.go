package runlevel

import (
	"context"
	"errors"
	"time"

	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/manifest"
)

// node runs the tasks of a node in order. The first error that blocks ends
// it.
func (p *pass) node(ctx context.Context, node int, tasks []*manifest.Task) (err error) {
	p.emitTask(tasks[0], Event{Type: NodeStarted, Node: node})
	defer func() { p.emitTask(tasks[0], Event{Type: NodeDone, Node: node, Err: err}) }()

	if err := p.precreate(ctx, tasks); err != nil {
		return err
	}
	for _, t := range tasks {
		if err := p.contextError(ctx); err != nil {
			return err
		}
		if v := p.filter.Judge(t.Manifest); !v.Included {
			p.emitTask(t, Event{Type: TaskSkipped, Node: node, Message: v.Reason})
			continue
		}
		p.emitTask(t, Event{Type: TaskStarted, Node: node})
		attempt, err := p.task(ctx, node, t)
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
// trouble: the task itself will find out.
func (p *pass) precreate(ctx context.Context, tasks []*manifest.Task) error {
	for _, t := range tasks {
		if !isClusterOperator(t.Manifest) || !p.filter.Judge(t.Manifest).Included {
			continue
		}
		if err := p.contextError(ctx); err != nil {
			return err
		}
		p.tracker.StartCO(t.Manifest.Object.GetName())
		if err := p.applier.Apply(ctx, t, Precreating); err != nil {
			p.log.WarnContext(ctx, "precreating failed", "task", t.String(), "err", err)
		}
	}
	return nil
}

// contextError returns the error of a node that the context ends, or nil.
func (p *pass) contextError(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return &ContextError{Done: p.count(), Total: p.total, Err: err}
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
		err = p.applier.Apply(ctx, t, p.state)
		if err == nil {
			return true, nil
		}
		if ctx.Err() != nil && isContextError(err) {
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
