package preconditions

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"
)

// Options are the limits of a run. The zero value works.
type Options struct {
	Workers  int              // checks at once; 0 or less: 8
	PerCheck time.Duration    // time for one check; 0 or less: 60 s
	Total    time.Duration    // time for all; 0 or less: 5 min
	MaxItems int              // longest list that is read; 0 or less: 500 000
	Clock    clock.WithTicker // for the time-outs; nil: the real one
}

func (o Options) withDefaults() Options {
	if o.Workers <= 0 {
		o.Workers = 8
	}
	if o.PerCheck <= 0 {
		o.PerCheck = time.Minute
	}
	if o.Total <= 0 {
		o.Total = 5 * time.Minute
	}
	if o.MaxItems <= 0 {
		o.MaxItems = 500_000
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
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
// report and no error of Run. Run fails where two checks have one name, or a
// check is nil or without a name (no report then), and where ctx ends before every check has
// answered (with a report in which the unanswered ones are Unknown; the error
// wraps the cause of ctx). It does not wait for checks that ignore the end of
// their context.
func Run(ctx context.Context, checks []Check, in *Input, o Options) (*Report, error) {
	names, err := namesOf(checks)
	if err != nil {
		return nil, err
	}
	if in == nil {
		in = &Input{}
	}
	o = o.withDefaults()

	runCtx, stop := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer stop(nil)
	watch.Go(func() { stopAfter(runCtx, stop, o) })

	memo := newMemoReader(runCtx, in.Reader, o.MaxItems)
	results := make([]Result, len(checks))
	var group errgroup.Group
	group.SetLimit(o.Workers)
	for i, check := range checks {
		group.Go(func() error {
			own := *in
			own.Reader = memo
			results[i] = runOne(runCtx, names[i], check, &own, o)
			return nil
		})
	}
	_ = group.Wait() // its functions return nil

	report := &Report{Transition: in.Transition, Time: in.Now, Results: results, Seen: memo.seen()}
	for _, r := range results {
		if r.State == Unknown && r.Findings[0].Reason == ReasonCancelled {
			return report, fmt.Errorf("preconditions: not all checks have run: %w", context.Cause(ctx))
		}
	}
	return report, nil
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

// stopAfter ends the run when its total time has passed.
func stopAfter(ctx context.Context, stop context.CancelCauseFunc, o Options) {
	timer := o.Clock.NewTimer(o.Total)
	defer timer.Stop()
	select {
	case <-timer.C():
		stop(&stopError{
			reason: ReasonTimedOut, message: fmt.Sprintf("the checks together took longer than %s", o.Total),
			err: context.DeadlineExceeded,
		})
	case <-ctx.Done():
	}
}

type answer struct {
	applies  bool
	findings []Finding
	err      error
}

// runOne runs one check with its time-out.
func runOne(ctx context.Context, name string, check Check, in *Input, o Options) Result {
	start := o.Clock.Now()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	timer := o.Clock.NewTimer(o.PerCheck)
	defer timer.Stop()

	answers := make(chan answer, 1) // buffered: an abandoned check can still end
	if ctx.Err() == nil {
		go func() {
			a := answer{applies: true, err: errors.New("the check ended its goroutine")}
			defer func() { answers <- a }()
			a = ask(ctx, name, check, in)
		}()
	}
	var result Result
	select {
	case a := <-answers:
		result = resultOf(ctx, name, a)
	case <-timer.C():
		stop(&stopError{
			reason: ReasonTimedOut, message: fmt.Sprintf("no answer within %s", o.PerCheck),
			err: context.DeadlineExceeded,
		})
		result = stoppedResult(ctx, name, answers)
	case <-ctx.Done():
		result = stoppedResult(ctx, name, answers)
	}
	result.Elapsed = o.Clock.Since(start)
	return result
}

// stoppedResult is the result of a check whose context has ended. An answer just
// in time counts.
func stoppedResult(ctx context.Context, name string, answers <-chan answer) Result {
	select {
	case a := <-answers:
		return resultOf(ctx, name, a)
	default:
		return unknown(name, stopCause(ctx))
	}
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

func resultOf(ctx context.Context, name string, a answer) Result {
	switch {
	case !a.applies:
		return Result{Check: name, State: NotApplicable}
	case a.err != nil && ctx.Err() != nil:
		return unknown(name, stopCause(ctx)) // the error is but an echo of the end
	default:
		return judge(name, a.findings, a.err)
	}
}

// stopCause says why the context of a run ended.
func stopCause(ctx context.Context) error {
	cause := context.Cause(ctx)
	var stopped *stopError
	if errors.As(cause, &stopped) {
		return stopped
	}
	return &stopError{reason: ReasonCancelled, message: "the run was cancelled: " + cause.Error(), err: cause}
}
