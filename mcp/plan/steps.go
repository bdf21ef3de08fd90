package plan

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// failure is an error that fails a step; the step is tried again after any different one. Unless it is
// sure, it has to be found twice, since what was read may have been old.
type failure struct {
	err  error
	sure bool
}

func (e *failure) Error() string { return e.err.Error() }
func (e *failure) Unwrap() error { return e.err }

func failf(format string, args ...any) error { return &failure{err: fmt.Errorf(format, args...)} }

// fails reports whether an error of a step fails it.
func fails(err error) bool {
	f := new(failure)
	return errors.As(err, &f) || apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsMethodNotSupported(err) || meta.IsNoMatchError(err)
}

// proceed does what is due: the steps of the plan, or its stop.
func (x *pass) proceed() (reconcile.Result, error) {
	if x.r.over {
		return reconcile.Result{}, nil
	}
	if x.r.rec.Progress.State.end() != "" {
		return x.bringToEnd()
	}
	for i := range x.r.plan.Steps {
		s := &x.r.plan.Steps[i]
		if x.r.rec.Progress.Steps[s.ID].over(s) {
			continue
		}
		done, res, err := x.step(i, s)
		if err != nil || !done {
			return res, err
		}
		x.v = x.r.newView(x.ctx) // of the next step
	}
	x.r.rec.Progress.State = StateEnding
	if err := x.store(); err != nil || x.r.over {
		return reconcile.Result{}, err
	}
	return x.bringToEnd()
}

// endPlan records the end of a plan.
func (x *pass) endPlan(state State, err error) error {
	p := &x.r.rec.Progress
	p.State, p.Holder = state, ""
	if err := x.store(); err != nil || x.r.over {
		return err
	}
	x.reportEnd(state)
	return x.finish(err)
}

func (x *pass) reportEnd(state State) {
	d := EventData{State: state, Warning: state == StateFailed}
	x.emit(EventPlanDone, d, fmt.Sprintf("plan %s is %s", x.r.plan.ID, state), nil)
}

// look is what a step is found to be.
type look struct {
	done bool
	ours bool            // a mark of ours is on what makes it done
	why  string          // it is not
	at   time.Time       // when to look again; zero: after Options.Poll
	jobs []reconcile.Job // that run meanwhile
	more []reconcile.Watch
	// change makes the next change; nil: only waiting helps.
	change func() error
	// again reports that there are changes left after it.
	again bool
	// writes reports that the step is of the kind that changes fields: done at the
	// first look, it is skipped.
	writes bool
	// skipped is why the step is left out; empty if it is not.
	skipped string
	// wait names the pools whose standstill ends the step.
	wait []string
}

// pace is the time between two changes, in which the cluster's caches catch up.
const pace = time.Second

// step continues with one step.
func (x *pass) step(i int, s *Step) (done bool, res reconcile.Result, err error) {
	sp := x.r.rec.Progress.Steps[s.ID]
	if x.r.work.step != s.ID {
		x.r.work = stepWork{step: s.ID, reported: map[string]bool{}}
	}
	if s.closed(x.now) && (sp.State != stepRunning || s.Kind == SetPaused) { // also one that a crash cut short
		return true, res, x.stepDone(s, sp, look{skipped: "its window has closed"})
	}
	l, err := x.lookForNode(s)
	switch {
	case err != nil:
	case l.skipped != "":
		x.emitStep(EventNodeGone, s, l.skipped, nil)
		return true, res, x.stepDone(s, sp, l)
	case !l.done:
		x.waiting(s, l.why)
		return false, reconcile.Result{At: x.now.Add(x.r.run.o.Poll)}, nil
	default:
		l, err = x.lookWhole(i, s, sp)
	}
	if err == nil && l.done {
		return true, res, x.stepDone(s, sp, l)
	}
	if err == nil {
		err = x.advance(s, sp, &l)
	}
	if x.r.over {
		return false, res, nil
	}
	if err != nil {
		return x.doubtStep(s, err)
	}
	x.r.work.doubt = time.Time{}
	x.waiting(s, l.why)
	return false, x.nextLook(s, l), nil
}

// lookWhole finds out how a step stands: its node, what its kind asks for, and its Done.
func (x *pass) lookWhole(i int, s *Step, sp StepProgress) (look, error) {
	l, err := x.keepCordoned(i, s)
	if err != nil || !l.done {
		return l, err
	}
	l, err = x.look(i, s, sp)
	if err != nil || !l.done || s.Done.isZero() {
		return l, err
	}
	l.why, err = x.v.check(s.Done)
	l.done = l.why == ""
	return l, err
}

// advance makes the next change of a step: if what the step needs holds, its time is not
// over, and it is recorded that it has begun.
func (x *pass) advance(s *Step, sp StepProgress, l *look) error {
	err := x.needs(s, sp, *l)
	if err == nil && sp.State != stepRunning {
		sp, err = x.begin(s, sp)
	}
	if err != nil || x.r.over {
		return err
	}
	if err := x.overdue(s, sp, *l); err != nil || l.change == nil {
		return err
	}
	l.again = true
	l.why = "" // it is not waited for
	return l.change()
}

// doubtStep decides what follows from an error of a step: it is tried again, or found a
// second time, or fails the step.
func (x *pass) doubtStep(s *Step, err error) (done bool, res reconcile.Result, _ error) {
	if !fails(err) || x.r.rec == nil { // without the record nothing can be said to have failed
		return false, res, err
	}
	f := new(failure)
	if errors.As(err, &f) && f.sure || x.now.Sub(x.since(&x.r.work.doubt)) >= again {
		return x.stepFailed(s, err)
	}
	return false, reconcile.Result{At: x.r.work.doubt.Add(again)}, nil
}

// nextLook is when to look at a step again, and what runs meanwhile.
func (x *pass) nextLook(s *Step, l look) reconcile.Result {
	res := reconcile.Result{At: x.now.Add(x.r.run.o.Poll), Jobs: l.jobs, Watches: l.more}
	switch {
	case l.again:
		res.At = x.now.Add(pace)
	case len(l.jobs) > 0:
		res.At = time.Time{} // the job wakes
	case !l.at.IsZero():
		res.At = l.at
	}
	end := s.end(x.r.rec.Progress.Steps[s.ID])
	if !end.IsZero() && (res.At.IsZero() || end.Before(res.At)) {
		res.At = end
	}
	return res
}

// since returns when what is found now was found first; first keeps it. If the
// clock was set back, it is now.
func (x *pass) since(first *time.Time) time.Time {
	if first.IsZero() || x.now.Before(*first) {
		*first = x.now
	}
	return *first
}

// end is when the step's time is over; zero: never.
func (s *Step) end(sp StepProgress) (end time.Time) {
	if s.Timeout.Duration > 0 {
		end = sp.Started.Add(s.Timeout.Duration)
	}
	if until := s.Args.Until; until != nil && s.Kind == WaitPools && (end.IsZero() || until.Time.Before(end)) {
		end = until.Time
	}
	return end
}

// closed reports whether the step's window is.
func (s *Step) closed(now time.Time) bool {
	return s.Args.Until != nil && !now.Before(s.Args.Until.Time)
}

// begin records that a step is under way.
func (x *pass) begin(s *Step, sp StepProgress) (StepProgress, error) {
	sp.State, sp.Started, sp.Finished, sp.Error = stepRunning, x.now.UTC(), time.Time{}, ""
	sp.Moved = x.now.UTC()
	sp.Attempts++
	x.r.rec.Progress.Steps[s.ID] = sp
	if err := x.store(); err != nil || x.r.over {
		return sp, err
	}
	x.emitStep(EventStepStarted, s, fmt.Sprintf("step %s: %s", s.ID, s.describe()), nil)
	return sp, nil
}

// needs asks what must hold before a step starts, and before it changes anything.
func (x *pass) needs(s *Step, sp StepProgress, l look) error {
	if l.change == nil && len(l.jobs) == 0 && sp.State == stepRunning {
		return nil
	}
	for _, c := range s.Needs {
		why, err := x.v.check(c)
		if err != nil {
			return err
		}
		if why != "" {
			return failf("it needs %s: %s", c.Kind, why)
		}
	}
	return nil
}

// overdue reports that a step has taken too long.
func (x *pass) overdue(s *Step, sp StepProgress, l look) error {
	if d := s.Timeout.Duration; d > 0 && x.now.Sub(sp.Started) >= d {
		return &failure{err: late(d.String(), l.why), sure: true}
	}
	if s.Kind == WaitPools && s.closed(x.now) {
		return &failure{err: late("the window has closed", l.why), sure: true}
	}
	if len(l.wait) == 0 {
		return nil
	}
	moved := sp.Moved
	for _, pool := range l.wait {
		if at := x.r.moved[pool]; at.After(moved) {
			moved = at
		}
	}
	if moved.After(sp.Moved.Add(renewEvery)) {
		sp.Moved = moved.UTC()
		x.r.rec.Progress.Steps[s.ID] = sp // stored with the next renewal
	}
	if x.now.Sub(moved) < x.r.run.o.Stall {
		return nil
	}
	stalled := &StalledError{Pools: l.wait, Since: moved}
	for _, pool := range l.wait {
		nodes, err := x.v.nodesOf(pool)
		if err != nil {
			return err
		}
		for _, n := range nodes {
			if phase, _ := mcp.PhaseOf(mcp.NodeStateOf(n)); phase != mcp.PhaseDone && stalled.Node == "" {
				stalled.Node, stalled.Phase = n.Name, phase
			}
		}
	}
	return &failure{err: stalled, sure: true}
}

// late is the error of a step that took too long.
func late(what, why string) error {
	if why != "" {
		what += ": " + why
	}
	return fmt.Errorf("%w: %s", ErrTimeout, what)
}

// stepDone records that a step is done, or was so without it.
func (x *pass) stepDone(s *Step, sp StepProgress, l look) error {
	state, event := stepDone, EventStepDone
	if l.skipped == "" && l.writes && (sp.State != stepRunning || !l.ours) {
		l.skipped = "it was so without the plan"
	}
	if l.skipped != "" {
		state, event = stepSkipped, EventStepSkipped
	}
	sp.State, sp.Finished, sp.Error = state, x.now.UTC(), ""
	if sp.Started.IsZero() {
		sp.Started = sp.Finished
	}
	x.r.rec.Progress.Steps[s.ID] = sp
	if err := x.r.rec.shorten(x.r.plan.Steps, s); err != nil {
		return err
	}
	x.r.work = stepWork{}
	if err := x.store(); err != nil || x.r.over {
		return err
	}
	text := fmt.Sprintf("step %s is done", s.ID)
	if state == stepSkipped {
		text = fmt.Sprintf("step %s is skipped: %s", s.ID, l.skipped)
	}
	x.emitStep(event, s, text, nil)
	return nil
}

// stepFailed records a failure. done reports that the plan continues all the same.
func (x *pass) stepFailed(s *Step, err error) (done bool, res reconcile.Result, _ error) {
	if f := new(failure); errors.As(err, &f) {
		err = f.err
	}
	sp := x.r.rec.Progress.Steps[s.ID]
	sp.State, sp.Finished, sp.Error = stepFailed, x.now.UTC(), cut(err.Error())
	if sp.Started.IsZero() {
		sp.Started = sp.Finished
	}
	x.r.rec.Progress.Steps[s.ID] = sp
	x.r.work = stepWork{}
	failed := &StepError{Plan: x.r.plan.ID, Step: s.ID, Err: err}
	if !s.stops() {
		if err := x.store(); err != nil || x.r.over {
			return false, res, err
		}
		x.emitStep(EventStepFailed, s, failed.Error()+"; the plan goes on", failed)
		return true, res, nil
	}
	p := &x.r.rec.Progress
	p.State, p.Holder = StateFailed, ""
	if err := x.store(); err != nil || x.r.over {
		return false, res, err
	}
	x.emitStep(EventStepFailed, s, failed.Error(), failed)
	x.reportEnd(StateFailed)
	return false, res, x.finish(failed)
}

// waiting reports what a step waits for, when that changes.
func (x *pass) waiting(s *Step, why string) {
	if why != "" && why != x.r.work.waits {
		x.r.work.waits = why
		x.emitStep(EventWaiting, s, fmt.Sprintf("step %s waits: %s", s.ID, why), nil)
	}
}

func (x *pass) emitStep(t clusterapi.EventType, s *Step, text string, err error) {
	d := EventData{Step: s.ID, Kind: s.Kind, Pool: s.Args.Pool, Node: s.Args.Node,
		Attempt: x.r.rec.Progress.Steps[s.ID].Attempts, Warning: t == EventStepFailed || t == EventNodeGone}
	if len(s.Args.Pools) == 1 {
		d.Pool = s.Args.Pools[0]
	}
	x.emit(t, d, text, err)
}

// cut bounds the error of a step.
func cut(text string) string { return bounded.Text(text, maxText) }
