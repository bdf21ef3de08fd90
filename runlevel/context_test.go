package runlevel

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
)

func TestRunContextEnds(t *testing.T) {
	files := []string{"0000_10_a_1", "0000_10_a_2", "0000_20_b_1", "0000_20_c_1"}
	t.Run("after a failed attempt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			r := &recorder{apply: func(context.Context, *manifest.Task, State) error { return errors.New("broken") }}
			start := time.Now()
			res, err := Run(ctx, configMaps(t, files...), Options{Applier: r})
			if err == nil || err.Error() != `Could not update configmap "ns/0000_10_a_1" (1 of 4)` || res.Failure == nil {
				t.Fatalf("%+v %v", res, err)
			}
			if time.Since(start) != 5*time.Second {
				t.Fatalf("took %v", time.Since(start))
			}
		})
	})
	t.Run("a second attempt that the context fails keeps the first error", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			n := 0
			r := &recorder{apply: func(ctx context.Context, _ *manifest.Task, _ State) error {
				if n++; n == 1 {
					return errors.New("first")
				}
				cancel()
				return ctx.Err()
			}}
			_, err := Run(ctx, configMaps(t, files...), Options{Applier: r})
			te, ok := errors.AsType[*TaskError](err)
			if !ok || te.Err.Error() != "first" {
				t.Fatalf("error %v", err)
			}
		})
	})
	t.Run("before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r := &recorder{}
		res, err := Run(ctx, configMaps(t, files...), Options{Applier: r})
		if !errors.Is(err, context.Canceled) || len(r.log) > 0 || res.Failure != nil {
			t.Fatalf("%+v %v", res, err)
		}
	})
	t.Run("a time-out of the applier's own is a failure", func(t *testing.T) {
		r := &recorder{apply: func(context.Context, *manifest.Task, State) error { return context.DeadlineExceeded }}
		res, err := Run(t.Context(), configMaps(t, files...), Options{Applier: r, Backoff: &Backoff{Steps: 1}})
		if res.Failure == nil || res.Failure != err {
			t.Fatalf("%+v %v", res, err)
		}
	})
}

// The cause that a context was given is found in every error that says that it
// ended, and such errors are not failures.
func TestRunKeepsTheCause(t *testing.T) {
	files := []string{"0000_10_a_1", "0000_10_a_2", "0000_20_b_1", "0000_20_c_1"}
	errShutdown := errors.New("the program shuts down")
	job := "{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: ns}}"
	for name, c := range map[string]struct {
		tasks []*manifest.Task
		apply func(ctx context.Context, t *manifest.Task) error
		want  []string // texts of the errors
	}{
		"between nodes": {configMaps(t, files...), func(_ context.Context, t *manifest.Task) error {
			if t.Index == 2 {
				return errShutdown // the sign to cancel, not an error: see below
			}
			return nil
		}, []string{`2 incomplete task nodes, beginning with configmap "ns/0000_20_b_1" (3 of 4)`, "context canceled: the program shuts down"}},
		"between tasks": {configMaps(t, files...), func(_ context.Context, t *manifest.Task) error { return errShutdown },
			[]string{"update context canceled: the program shuts down at 1 of 4"}},
		"while applying": {configMaps(t, files...), func(ctx context.Context, _ *manifest.Task) error {
			return fmt.Errorf("put: %w", errBlocked)
		}, []string{"update context canceled: the program shuts down at 0 of 4"}},
		"while a job is awaited": {tasksOf(t, job), nil, []string{"update context canceled: the program shuts down at 0 of 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			o := Options{Applier: &recorder{apply: func(ctx context.Context, t *manifest.Task, _ State) error {
				err := c.apply(ctx, t)
				switch {
				case errors.Is(err, errBlocked):
					cancel(errShutdown)
					<-ctx.Done()
					return fmt.Errorf("put: %w", context.Cause(ctx))
				case err != nil:
					cancel(err)
				}
				return nil
			}}}
			if c.apply == nil {
				o = Options{API: newFake(), AwaitJobs: true, Observe: func(e clusterapi.Event) {
					if e.Type == EventWaiting {
						cancel(errShutdown)
					}
				}}
			}
			res, err := Run(ctx, c.tasks, o)
			if !errors.Is(err, errShutdown) || !errors.Is(err, context.Canceled) || res.Failure != nil {
				t.Fatalf("returned %v, failure %v", err, res.Failure)
			}
			var got []string
			for _, err := range res.Errors {
				got = append(got, err.Error())
			}
			checktest.Same(t, c.want, got)
		})
	}
}

// An applier that returns the error of the context says that it ended, also where
// the context has a cause of its own, or the applier a deadline of its own.
func TestContextErrorsOfTheApplier(t *testing.T) {
	for _, end := range []error{context.Canceled, context.DeadlineExceeded} {
		ctx, cancel := context.WithCancelCause(t.Context())
		r := &recorder{apply: func(context.Context, *manifest.Task, State) error {
			cancel(errors.New("the program shuts down"))
			return fmt.Errorf("put: %w", end)
		}}
		res, err := Run(ctx, configMaps(t, "x"), Options{Applier: r})
		if _, ok := errors.AsType[*contextEnd](err); !ok || res.Failure != nil {
			t.Errorf("%v: error %v, failure %v", end, err, res.Failure)
		}
	}
}

var errBlocked = errors.New("blocks until the context ends")

// A deadline with a cause still is a deadline: the Job that was awaited then
// is what to tell.
func TestCauseOfADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errLate := errors.New("the maintenance window is over")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errLate)
		defer cancel()
		tasks := tasksOf(t, "{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: ns}}")
		_, err := Run(ctx, tasks, Options{API: newFake(), AwaitJobs: true})
		te, ok := errors.AsType[*TaskError](err)
		if !ok || te.Reason != ReasonJobNotComplete || !errors.Is(err, errLate) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%v", err)
		}
	})
}

// A driver of one's own hands schedule the cause, whatever its type.
func TestSummarizeLeavesOutTheCause(t *testing.T) {
	s := newSchedule(graphFor(Updating, configMaps(t, "0000_10_a_1"), 0))
	cause := errors.New("some cause")
	errs := s.Result(cause)
	if len(errs) != 2 || !errors.Is(errs[1], cause) || errs[1].Error() != "some cause" {
		t.Fatalf("%v", errs)
	}
	if err := summarize(errs); err != nil {
		t.Errorf("a failure: %v", err)
	}
	if err := summarize([]error{cause}); err != cause {
		t.Errorf("the same error of a task: %v", err)
	}
}
