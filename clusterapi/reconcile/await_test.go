package reconcile_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	testclock "k8s.io/utils/clock/testing"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// TestAwait: it returns what the function does, an error for a panic and for a
// goroutine that ends, and the end of the context without waiting.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := errors.New("failed")
		deaf := make(chan struct{})
		defer close(deaf)
		var caught *clusterapi.PanicError
		for name, tc := range map[string]struct {
			f    func() (int, error)
			out  int
			good func(error) bool
		}{
			"returns":     {func() (int, error) { return 3, failed }, 3, func(err error) bool { return err == failed }},
			"just so":     {func() (int, error) { time.Sleep(59 * time.Second); return 4, nil }, 4, func(err error) bool { return err == nil }},
			"panics":      {func() (int, error) { panic("oops") }, 0, func(err error) bool { return errors.As(err, &caught) }},
			"ends":        {func() (int, error) { runtime.Goexit(); return 1, nil }, 0, func(err error) bool { return errors.As(err, &caught) }},
			"is too late": {func() (int, error) { <-deaf; return 1, nil }, 0, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
		} {
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			out, err := reconcile.Await(ctx, tc.f)
			if took := time.Since(start); out != tc.out || !tc.good(err) || took > time.Minute {
				t.Errorf("%s: %d, %v after %s", name, out, err, took)
			}
			cancel()
		}
	})
}

// TestWithClock: a deadline goes by the clock of its context.
func TestWithClock(t *testing.T) {
	c := testclock.NewFakeClock(time.Unix(0, 0))
	ctx, cancel := reconcile.WithTimeout(reconcile.WithClock(t.Context(), c), time.Hour)
	defer cancel()
	checktest.FatalIf(t, ctx.Err() != nil, "%v", ctx.Err())
	c.Step(time.Hour)
	<-ctx.Done()
	if ctx := t.Context(); reconcile.WithClock(ctx, nil) != ctx {
		t.Error("a nil clock changes the context")
	}
}
