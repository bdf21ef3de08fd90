package action

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/mcp/hosts"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// New makes an action one that the steps of a plan name: it does the
// action to the node of the step, which other steps cordon and drain if the action
// needs that. How far it is stands in the annotation
// clusterupdate.github.io/progress.NAME of the node, so another runner continues there. The
// annotation stays, so that no runner does again what it did not hear the end of,
// until the action is next done to the node or [hosts.Uninstall] removes it.
//
// It fails the step at once if an error is [hosts.Permanent], once errors have lasted for
// 30 minutes, or when nothing has moved for an hour. A step of the action that takes more
// than 10 minutes is an error. It is safe for concurrent use if the action is.
func New(a Action) plan.Action {
	return &planAction{action: a, steps: map[[2]string]planned{}}
}

// Of returns the action that New has made an action of plans, for tests.
func Of(p plan.Action) Action { return p.(*planAction).action }

const (
	atOnce = time.Second // of an outcome, whose zero means a plan's default

	retry      = 30 * time.Second
	retryLimit = 30 * time.Minute
	stallLimit = time.Hour
	stepLimit  = 10 * time.Minute
)

type planAction struct {
	action Action

	mu    sync.Mutex
	steps map[[2]string]planned // by plan and step
}

// planned is how an action does in a step, since this runner has it.
type planned struct {
	failing  time.Time // zero: it does not
	progress string
	moved    time.Time
}

// Do implements [plan.Action].
func (p *planAction) Do(ctx context.Context, c plan.Call) (plan.Outcome, error) {
	node := c.Step.Args.Node
	switch {
	case node == "":
		return plan.Outcome{}, fmt.Errorf("step %s names no node to do action %s to", c.Step.ID, p.action.Name())
	case len(c.Step.Args.Parameters) > 0:
		return plan.Outcome{}, fmt.Errorf("step %s: action %s has no parameters", c.Step.ID, p.action.Name())
	}
	id := fmt.Sprintf("plan %s, step %s of %s", c.Plan, c.Step.ID, c.Started.UTC().Format(time.RFC3339Nano))
	limited, cancel := reconcile.WithTimeout(ctx, stepLimit)
	defer cancel()
	step, err := takeStep(limited, c, p.action, id)
	if ctx.Err() != nil {
		return plan.Outcome{}, cmp.Or(err, ctx.Err())
	}
	was := p.note(c, step, err)
	switch {
	case err != nil && (hosts.IsPermanent(err) || c.Now.Sub(was.failing) >= retryLimit):
		return plan.Outcome{}, err
	case err != nil:
		return plan.Outcome{After: retry, Text: fmt.Sprintf("node %s: %v; trying again", node, err)}, nil
	case step.Done:
		return plan.Outcome{Done: true}, nil
	case c.Now.Sub(was.moved) >= stallLimit && !step.Person:
		return plan.Outcome{}, stalled(c.Now.Sub(was.moved), step.Waiting)
	}
	outcome := plan.Outcome{After: max(step.After, atOnce)}
	if step.Waiting != "" {
		outcome.Text = fmt.Sprintf("node %s waits for %s", node, step.Waiting)
	}
	return outcome, nil
}

// note remembers the result of a step's call, and returns how the step does.
func (p *planAction) note(c plan.Call, step Step, err error) planned {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := [2]string{c.Plan, c.Step.ID}
	if step.Done {
		delete(p.steps, key)
		return planned{}
	}
	s, known := p.steps[key]
	if !known || c.Times == 1 { // a runner's first call
		s = planned{progress: step.Progress, moved: c.Now}
	}
	switch {
	case err != nil && s.failing.IsZero():
		s.failing = c.Now
	case err == nil:
		s.failing = time.Time{}
		if s.progress != step.Progress {
			s.progress, s.moved = step.Progress, c.Now
		}
	}
	p.steps[key] = s
	return s
}

// stalled is the error of an action that does not move any more.
func stalled(waited time.Duration, waiting string) error {
	if waiting != "" {
		waiting = "; it waits for " + waiting
	}
	return fmt.Errorf("nothing has moved for %s%s", waited.Truncate(time.Second), waiting)
}
