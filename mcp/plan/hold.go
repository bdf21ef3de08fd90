package plan

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
)

// other is another runner that has the plan, as this one saw it.
type other struct {
	holder   string
	renewed  time.Time
	since    time.Time // seen first with this renewal
	reads    int       // since then
	reported bool
}

// hold makes sure that the record names us, and was written by us within the
// last 30 s: what it says is then what is stored.
func (x *pass) hold() (held bool, res reconcile.Result, err error) {
	if x.r.dirty || x.r.rec == nil {
		x.r.dirty = false
		if err := x.read(); err != nil {
			return false, res, err
		}
	}
	if x.r.over {
		return false, res, nil
	}
	if x.r.rec == nil {
		return x.holdNew()
	}
	p := &x.r.rec.Progress
	text := x.r.rec.data[keyPlan]
	byID := x.r.run.o.Mode.stops() && len(x.r.run.o.Plan.Steps) == 0 // the plan is the record's
	if text != string(x.r.run.text) && !byID || hash([]byte(text)) != p.Hash {
		return false, res, x.finish(fmt.Errorf("plan %s: %w", x.r.plan.ID, ErrPlanChanged))
	}
	if byID && len(x.r.plan.Steps) == 0 {
		if recorded, err := x.r.rec.plan(); err == nil {
			x.r.plan = recorded
		}
	}
	if p.Holder != "" && p.Holder != x.r.holder {
		x.r.work.call = nil
		if !x.mayTake() {
			return false, reconcile.Result{At: x.now.Add(renewEvery)}, nil
		}
		p = &x.r.rec.Progress
	}
	if err := x.r.rec.unfold(x.r.plan.Steps); err != nil {
		return false, res, x.finish(err)
	}
	if x.closed() {
		return false, res, x.finish(x.verdict())
	}
	if x.r.ours && x.r.atLeast(x.now).Sub(x.r.renewed) < renewEvery {
		return true, res, nil
	}
	if p.Holder != x.r.holder {
		defer func() {
			if err == nil {
				x.emit(EventTaken, EventData{Holder: x.r.holder}, fmt.Sprintf("%s has plan %s now", x.r.holder, x.r.plan.ID), nil)
			}
		}()
	}
	x.apply()
	return true, res, x.store()
}

// holdNew starts a plan that has no record. A plan that has lost its record ends, but that
// what it changed can still be put back.
func (x *pass) holdNew() (held bool, res reconcile.Result, err error) {
	where := fmt.Sprintf("ConfigMap %s/%s", x.r.run.o.Namespace, recordName(x.r.plan.ID))
	if x.r.had { // or the reading was old
		err := x.mustExist(recordName(x.r.plan.ID), false)
		if err != nil {
			err = x.finish(fmt.Errorf("the record of plan %s is gone: %s", x.r.plan.ID, where))
		}
		return false, reconcile.Result{At: x.now.Add(actionRetry)}, err
	}
	if x.r.run.o.Mode.stops() {
		left, err := x.scan()
		if err != nil {
			return false, res, err
		}
		if !x.r.run.o.Mode.restores() || len(left) == 0 {
			return false, res, x.finish(fmt.Errorf("plan %s: there is no record to stop: %s", x.r.plan.ID, where))
		}
	}
	return true, res, x.start()
}

// read reads the record. If it is not the one that we wrote, it has to be written
// before it counts: a reading may be old.
func (x *pass) read() error {
	rec, err := readRecord(x.ctx, x.r.api, x.r.run.o.Namespace, x.r.plan.ID)
	if apierrors.IsNotFound(err) {
		x.r.rec, x.r.ours = nil, false
		return nil
	}
	if err != nil {
		if errors.As(err, new(unreadable)) {
			return x.finish(err)
		}
		return err
	}
	x.r.had = true
	delete(x.r.missing, recordName(x.r.plan.ID))
	if x.r.rec == nil || rec.object.GetResourceVersion() != x.r.rec.object.GetResourceVersion() {
		x.r.rec, x.r.ours = rec, false
	}
	return nil
}

// start starts the plan.
func (x *pass) start() error {
	x.r.rec = newRecord(x.r.run.o.Namespace, x.r.plan.ID, x.r.run.text)
	x.apply()
	err := x.store()
	x.r.had = err == nil
	return err
}

// apply makes the record ours, and reports what is to become of the plan.
func (x *pass) apply() {
	p := &x.r.rec.Progress
	p.Holder = x.r.holder
	switch {
	case p.State == StateRestoring, p.State == StateEnding, p.State == StateFreezing && !x.r.run.o.Mode.stops():
	case x.r.run.o.Mode.stops():
		p.State = x.r.run.o.Mode.state()
		p.Report = nil
		p.AllowReboots = x.r.run.o.Mode == RestoreWithReboots
	case p.State.stopped():
		p.State, p.Report = StateRunning, nil
	}
}

// closed reports whether nothing is to be done for the plan as it is.
func (x *pass) closed() bool {
	p := &x.r.rec.Progress
	switch {
	case p.State == StateRestored: // what was left for fear of reboots may still go
		return x.r.run.o.Mode != RestoreWithReboots || p.AllowReboots
	case p.State.Ended():
		return true
	case !p.State.stopped():
		return false
	case !x.r.run.o.Mode.stops():
		return !x.resumes()
	}
	return p.State == x.r.run.o.Mode.state().end() && p.Holder == "" // an earlier stop may not have come to its end
}

// resumes reports whether the mode Resume is still to be used.
func (x *pass) resumes() bool { return x.r.run.o.Mode == Resume && !x.r.resumed }

// store writes the record with the time of now.
func (x *pass) store() error {
	x.r.rec.Progress.Renewed = x.now.UTC()
	if err := x.r.rec.store(x.ctx, x.r.api, x.r.plan.Steps); err != nil {
		if errors.As(err, new(*LimitError)) {
			return x.finish(fmt.Errorf("plan %s: %w", x.r.plan.ID, err))
		}
		x.r.rec, x.r.ours = nil, false // what is stored is not known
		return err
	}
	x.r.ours, x.r.renewed = x.r.rec.Progress.Holder == x.r.holder, x.now
	x.r.took = true
	x.r.resumed = x.r.resumed || x.r.rec.Progress.State == StateRunning
	x.show()
	return nil
}

// show makes the progress known to callers.
func (x *pass) show() {
	p := x.r.rec.Progress
	steps := make(map[string]StepProgress, len(p.Steps))
	for id, s := range p.Steps {
		steps[id] = s
	}
	p.Steps = steps
	x.r.run.mu.Lock()
	defer x.r.run.mu.Unlock()
	x.r.run.last = p
}

// mayTake reports whether the plan may be taken from its holder: it was silent
// for two minutes of our own clock, in which we looked again and again.
func (x *pass) mayTake() bool {
	p := &x.r.rec.Progress
	if x.r.run.o.Claim == TakeOver && !x.r.took {
		return true
	}
	o := &x.r.other
	if o.holder != p.Holder || !o.renewed.Equal(p.Renewed) {
		alive := o.holder == p.Holder
		*o = other{holder: p.Holder, renewed: p.Renewed, since: x.now, reported: o.reported && alive}
		x.r.ours = false
		if alive && x.r.run.o.Claim != Wait {
			x.finishRun(fmt.Errorf("plan %s: %w: %s", x.r.plan.ID, ErrPlanHeld, p.Holder))
		}
	}
	if !o.reported {
		o.reported = true
		text := fmt.Sprintf("%s has plan %s", p.Holder, x.r.plan.ID)
		x.emit(EventHeld, EventData{Holder: p.Holder, Warning: true}, text, nil)
	}
	if x.now.Before(o.since) { // the clock was set back
		o.since = x.now
	}
	o.reads++
	const reads = 4 // should the clock jump
	x.r.rec = nil   // to be read again
	if x.now.Sub(o.since) < takeOverTime || o.reads < reads {
		return false
	}
	if x.read() != nil || x.r.rec == nil {
		return false
	}
	now := &x.r.rec.Progress
	return now.Holder == o.holder && now.Renewed.Equal(o.renewed)
}

// verdict is how Run ends for a plan that does not continue.
func (x *pass) verdict() error {
	p := &x.r.rec.Progress
	x.show()
	switch {
	case x.r.run.o.Mode.stops(), p.State == StateFinished, p.State == StateRestored && x.r.ours:
		return nil
	case p.State == StateFailed:
		for i := range x.r.plan.Steps {
			s := &x.r.plan.Steps[i]
			if sp := p.Steps[s.ID]; sp.State == stepFailed && s.stops() {
				return fmt.Errorf("%w: %w", ErrPlanStopped, &StepError{Plan: x.r.plan.ID, Step: s.ID, Err: errors.New(sp.Error)})
			}
		}
	}
	return fmt.Errorf("plan %s is %s: %w", x.r.plan.ID, p.State, ErrPlanStopped)
}

// finish is the end: nothing is done any more. It returns nil, so that nothing
// is tried again.
func (x *pass) finish(err error) error {
	x.r.over, x.r.ours = true, false
	x.r.work.call = nil
	if err != nil && !errors.Is(err, ErrPlanStopped) {
		if step := new(StepError); !errors.As(err, &step) { // already sent as EventStepFailed
			x.emit(EventError, EventData{Warning: true}, err.Error(), err)
		}
	}
	x.finishRun(err)
	return nil
}

// finishRun ends Run, but no driver of the caller.
func (x *pass) finishRun(err error) {
	if end := x.r.run.end.Load(); end != nil {
		(*end)(err)
	}
}

func (x *pass) emit(t clusterapi.EventType, d EventData, message string, err error) {
	x.r.run.emit(x.now, t, d, message, err)
}
