package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// Action is what a plan leaves to the program that runs it: starting an update,
// updating operators, asking whether workloads are healthy, a hook. It is looked
// up by name in [Options].Actions.
//
// Do is called until it reports that it is done, and once more in a runner that
// takes over while the step is under way: asking twice must do no harm. It may take
// its time, as a job beside the runner, must return soon when ctx ends, and waits
// by returning or with the function Sleep of package reconcile.
//
// An error fails the step; one that a server may not repeat, such as a
// conflict or an overload that apierrors recognises, is tried again. A panic is an
// error. It must be safe for concurrent use if several plans share it.
type Action interface {
	Do(ctx context.Context, c Call) (Outcome, error)
}

// ActionFunc is a function as an [Action], with the same rules for errors and
// concurrent use.
type ActionFunc func(ctx context.Context, c Call) (Outcome, error)

// Do calls f; its errors are those of f.
func (f ActionFunc) Do(ctx context.Context, c Call) (Outcome, error) { return f(ctx, c) }

// Call is what an [Action] is asked.
type Call struct {
	Plan string
	Step Step
	// Started is when the step was, Now when it is called.
	Started, Now time.Time
	// Attempt counts the starts of the step, from 1, and Times the calls of this
	// runner for it.
	Attempt, Times int
	// Cordoned reports that the plan holds the step's node cordoned. The action must
	// do nothing to the node while somebody has uncordoned it: the plan cordons it
	// again, drains it again if it has drained it before and it is up, and calls the
	// action again.
	Cordoned bool
	// API is the cluster.
	API clusterapi.ClusterAPI
}

// Outcome is what an [Action] says.
type Outcome struct {
	// Done reports that the action has nothing more to do.
	Done bool
	// After is when to ask again if it is not done; zero means 10 s.
	After time.Duration
	// Text describes what it waits for.
	Text string
}

// Names of actions that need not be in [Options].Actions: see [Args].
const (
	actionWindow   = "window"
	actionApproval = "approval"
	actionHealth   = "health"
)

// window is the action window.
func window(now time.Time, parameters map[string]string) (Outcome, error) {
	from, err := timeOf(parameters, "from")
	until, err2 := timeOf(parameters, "until")
	switch {
	case err != nil || err2 != nil:
		return Outcome{}, errors.Join(err, err2)
	case !until.IsZero() && !now.Before(until):
		return Outcome{}, fmt.Errorf("the window has closed at %s", until.Format(time.RFC3339))
	case now.Before(from):
		return Outcome{After: from.Sub(now), Text: "the window opens at " + from.Format(time.RFC3339)}, nil
	}
	return Outcome{Done: true}, nil
}

// checkParameters returns what is wrong with the parameters of a built-in action: a misspelt
// one would open a window at once.
func checkParameters(action string, parameters map[string]string) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		if action != actionWindow || name != "from" && name != "until" {
			errs = append(errs, fmt.Errorf("parameter %s has no meaning for the action %s", bounded.Quote(name), action))
		}
	}
	from, err := timeOf(parameters, "from")
	until, err2 := timeOf(parameters, "until")
	if err == nil && err2 == nil && !until.IsZero() && !from.Before(until) {
		errs = append(errs, errors.New("parameter until is not after from"))
	}
	return bounded.Errors(append(errs, err, err2)...)
}

func timeOf(parameters map[string]string, name string) (time.Time, error) {
	text := parameters[name]
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fmt.Errorf("parameter %s: %w", name, err)
	}
	return t, nil
}

// health is the action health.
func (v *view) health(args *Args) (Outcome, error) {
	pools := args.Pools
	if len(pools) == 0 && len(args.Nodes) == 0 {
		all, err := v.allPools()
		if err != nil {
			return Outcome{}, err
		}
		for _, p := range all {
			pools = append(pools, p.Name)
		}
	}
	why, err := v.check(Check{Kind: poolsHealthy, Pools: pools})
	if why == "" && err == nil {
		why, err = v.check(Check{Kind: nodesReady, Nodes: args.Nodes})
	}
	for _, pool := range pools {
		if why != "" || err != nil {
			break
		}
		nodes, listErr := v.nodesOf(pool)
		err = listErr
		if err != nil {
			break
		}
		names := make([]string, len(nodes))
		for i, n := range nodes {
			names[i] = n.Name
		}
		why, err = v.check(Check{Kind: nodesReady, Nodes: names})
	}
	return Outcome{Done: why == "", Text: why}, err
}

// call is how far a step's action is, in this runner.
type call struct {
	n       int
	running bool
	outcome Outcome
	err     error
	ended   bool // the last one has
	next    time.Time
	wait    time.Duration // until then, when it was planned
	fails   int           // in a row, that may pass
}

// jobID distinguishes the calls of a plan's actions.
type jobID struct {
	Step string
	N    int
}

const (
	actionEvery  = 10 * time.Second
	actionRetry  = 5 * time.Second
	actionAtMost = time.Minute
)

// act continues with a step's action. done reports that it has nothing more to do;
// job is what is running; at is when to look again.
func (x *pass) act(s *Step, sp StepProgress) (done bool, why string, job *reconcile.Job, at time.Time, err error) {
	if out, builtin, err := x.builtin(s); builtin {
		if err != nil || out.Done {
			return out.Done, "", nil, time.Time{}, err
		}
		return false, out.Text, nil, x.now.Add(cmp.Or(out.After, actionEvery)), nil
	}
	action := x.r.run.o.Actions[s.action()]
	if action == nil && s.action() == string(UpdateCluster) {
		action = update{x.r.run.o.Update}
	}
	if action == nil {
		return false, "", nil, time.Time{}, &failure{err: fmt.Errorf("there is no action %q", s.action()), sure: true}
	}
	c := x.r.work.call
	if c == nil {
		c = &call{}
		x.r.work.call = c
	}
	if c.ended {
		c.ended = false
		switch {
		case c.err == nil:
			c.fails = 0
			c.wait = cmp.Or(c.outcome.After, actionEvery)
		case passes(c.err):
			c.fails++
			c.wait = min(actionRetry<<min(c.fails-1, 10), actionAtMost)
			x.emit(EventError, EventData{Step: s.ID, Kind: s.Kind, Warning: true}, c.err.Error(), c.err)
		default:
			x.r.work.call = nil
			return false, "", nil, time.Time{}, &failure{err: c.err, sure: true}
		}
		c.next = x.now.Add(c.wait)
	}
	if c.err == nil && c.outcome.Done {
		return true, "", nil, time.Time{}, nil
	}
	if !c.running {
		if left := c.next.Sub(x.now); left > 0 && left <= c.wait { // else the clock was set back
			return false, c.outcome.Text, nil, c.next, nil
		}
		c.running = true
		c.n++
	}
	cordoned, _ := x.r.plan.cordoned(s)
	asked := Call{Plan: x.r.plan.ID, Step: *s, Started: sp.Started, Now: x.now,
		Attempt: sp.Attempts, Times: c.n, Cordoned: cordoned, API: x.r.api}
	key := x.r.key
	return false, c.outcome.Text, &reconcile.Job{ID: jobID{s.ID, c.n},
		Run: func(ctx context.Context, _ func(any)) (any, error) { return action.Do(ctx, asked) },
		Done: func(out any, err error) []reconcile.Wake {
			c.running, c.ended, c.err = false, true, err
			c.outcome, _ = out.(Outcome)
			return []reconcile.Wake{{Key: key}}
		},
	}, time.Time{}, nil
}

// builtin answers for an action that the options need not have.
func (x *pass) builtin(s *Step) (out Outcome, builtin bool, err error) {
	name := s.action()
	if x.r.run.o.Actions[name] != nil {
		return out, false, nil
	}
	switch name {
	case actionWindow:
		out, err = window(x.now, s.Args.Parameters)
		if err != nil {
			err = &failure{err: err, sure: true}
		}
	case actionApproval:
		out = x.confirmed(s)
	case actionHealth:
		out, err = x.v.health(&s.Args)
	default:
		return out, false, nil
	}
	return out, true, err
}

// confirmed reports whether somebody has confirmed a step.
func (x *pass) confirmed(s *Step) Outcome {
	if x.r.rec.confirmed[s.ID] {
		return Outcome{Done: true}
	}
	return Outcome{Text: "somebody is to confirm the step"}
}

// isBuiltin reports whether an action is known without [Options].
func isBuiltin(name string) bool {
	return name == actionWindow || name == actionApproval || name == actionHealth || name == string(UpdateCluster)
}

// passes reports whether an error may pass by itself.
func passes(err error) bool {
	var caught *panics.Error
	if errors.As(err, &caught) {
		return false
	}
	return apierrors.IsConflict(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsUnexpectedServerError(err) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
