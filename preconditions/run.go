package preconditions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/preconditions/internal/facts"
)

// Options are the limits of a run. The zero value works.
type Options struct {
	Workers  int              // checks at once; 0: 8
	PerCheck time.Duration    // time for one check; 0: 60 s
	Total    time.Duration    // time for all; 0: 5 min
	MaxItems int              // longest list that is read; 0: 500 000
	Clock    clock.WithTicker // for the time-outs; nil: the driver's, else the real one
}

func (o Options) withDefaults() Options {
	o.Workers = cmp.Or(o.Workers, 8)
	o.PerCheck = cmp.Or(o.PerCheck, time.Minute)
	o.Total = cmp.Or(o.Total, 5*time.Minute)
	o.MaxItems = cmp.Or(o.MaxItems, 500_000)
	return o
}

// stopError ends a check from outside: time-out or cancellation.
type stopError struct {
	reason, message string
	err             error
}

func (e *stopError) Error() string { return e.message }
func (e *stopError) Unwrap() error { return e.err }

// Run runs all checks on one input; none stops another. Results come in the
// order of checks, whatever the order of completion.
//
// A check that fails, panics, or does not answer in time is Unknown in the
// report, and Run returns no error for it. Run fails without a report where
// two checks have one name, a check is nil or without a name, or a number of the
// options is negative. It fails with a report where ctx ends before every check
// has answered: those that have not are Unknown, and the error wraps the cause of
// ctx. It does not wait for checks that ignore the end of their context.
func Run(ctx context.Context, checks []Check, in *Input, o Options) (*Report, error) {
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	names, err := namesOf(checks)
	if err != nil {
		return nil, err
	}
	if in == nil {
		in = &Input{}
	}
	in = in.completed()
	o = o.withDefaults()

	r := &running{options: o, outer: ctx}
	var stop context.CancelFunc
	r.ctx, stop = reconcile.WithTimeout(reconcile.WithClock(ctx, o.Clock), o.Total)
	defer stop()

	memo := newMemoReader(r.ctx, in.Reader, o.MaxItems)
	results := make([]Result, len(checks))
	_ = reconcile.Each(r.ctx, o.Workers, len(checks), func(_ context.Context, i int) error {
		own := *in
		own.Reader = memo
		results[i] = r.one(names[i], checks[i], &own)
		return nil
	})
	for i, name := range names {
		if results[i].Check == "" { // it was not started
			results[i] = unknown(name, r.stopCause())
		}
	}

	markRepeats(results)
	report := &Report{Transition: in.Transition, Time: in.Now, Results: results, Seen: memo.seen(), Assumed: memo.assumed()}
	for _, r := range results {
		if r.State == Unknown && r.Findings[0].Reason == reasonCancelled {
			return report, fmt.Errorf("preconditions: not all checks have run: %w", context.Cause(ctx))
		}
	}
	return report, nil
}

// completed returns the input with the time and the alerts of its reader, and with what
// the target's payload says of itself, where it has none itself: a request may name an
// image alone.
func (in *Input) completed() *Input {
	out := *in
	if out.Target == nil && out.TargetPayload != nil {
		release := out.TargetPayload.Release
		out.Target = facts.VersionOrNil(release.Version)
		out.TargetArchitecture = cmp.Or(out.TargetArchitecture, release.Architecture)
		out.Kind = cmp.Or(out.Kind, out.Transition.kind())
	}
	if out.Now.IsZero() {
		out.Now = clusterapi.TimeOf(in.Reader)
	}
	if out.Alerts == nil && in.Reader != nil {
		out.Alerts = readerAlerts{in.Reader}
	}
	return &out
}

// readerAlerts is the source of the alerts that a reader has.
type readerAlerts struct{ reader clusterapi.Reader }

func (a readerAlerts) Firing(ctx context.Context) ([]clusterapi.Alert, error) {
	alerts, err := clusterapi.AlertsOf(ctx, a.reader)
	if errors.Is(err, clusterapi.ErrNotCollected) {
		return nil, &NoSourceError{Source: "Alerts"}
	}
	return alerts, err
}

// namesOf asks every check for its name, once.
func namesOf(checks []Check) ([]string, error) {
	var errs []error
	names := make([]string, len(checks))
	seen := make(map[string]bool, len(checks))
	for i, check := range checks {
		if check == nil {
			errs = append(errs, fmt.Errorf("preconditions: check %d is nil", i+1))
			continue
		}
		name, err := nameOf(check)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("preconditions: check %d: %w", i+1, err))
		case name == "":
			errs = append(errs, fmt.Errorf("preconditions: check %d has no name", i+1))
		case seen[name]:
			errs = append(errs, fmt.Errorf("preconditions: two checks are called %q", name))
		}
		seen[name], names[i] = true, name
	}
	return names, errors.Join(errs...)
}

// nameOf turns a panic into an error: a nil pointer may be a Check too.
func nameOf(check Check) (name string, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = newPanicError("Name", v)
		}
	}()
	return check.Name(), nil
}

// running is a run under way.
type running struct {
	options Options
	outer   context.Context // the caller's
	ctx     context.Context // ends with the time for all checks
}

type answer struct {
	applies  bool
	findings []Finding
	err      error
}

// one runs one check with its time-out.
func (r *running) one(name string, check Check, in *Input) Result {
	start := r.now()
	ctx, stop := reconcile.WithTimeout(r.ctx, r.options.PerCheck)
	defer stop()
	a, err := reconcile.Await(ctx, func() (answer, error) { return ask(ctx, name, check, in), nil })
	var result Result
	switch {
	case ctx.Err() != nil && (err != nil || a.applies && a.err != nil):
		result = unknown(name, r.stopCause()) // the error only repeats that the time was over
	case err != nil:
		result = judge(name, nil, errors.New("the check ended its goroutine"))
	case !a.applies:
		result = Result{Check: name, State: NotApplicable}
	default:
		result = judge(name, a.findings, a.err)
	}
	result.Elapsed = r.now().Sub(start)
	return result
}

func (r *running) now() time.Time {
	if r.options.Clock != nil {
		return r.options.Clock.Now()
	}
	return time.Now()
}

// stopCause explains why a check was ended from outside.
func (r *running) stopCause() error {
	switch {
	case r.outer.Err() != nil:
		cause := context.Cause(r.outer)
		return &stopError{reason: reasonCancelled, message: "the run was cancelled: " + cause.Error(), err: cause}
	case r.ctx.Err() != nil:
		return &stopError{reason: reasonTimedOut, message: fmt.Sprintf("the checks together took longer than %s", r.options.Total), err: context.DeadlineExceeded}
	}
	return &stopError{reason: reasonTimedOut, message: fmt.Sprintf("no answer within %s", r.options.PerCheck), err: context.DeadlineExceeded}
}

// ask calls the check and turns a panic into an error.
func ask(ctx context.Context, name string, check Check, in *Input) (a answer) {
	defer func() {
		if v := recover(); v != nil {
			a = answer{applies: true, err: newPanicError("check "+name, v)}
		}
	}()
	if !check.Applies(in.Transition) {
		return answer{}
	}
	findings, err := check.Run(ctx, in)
	return answer{applies: true, findings: findings, err: err}
}
