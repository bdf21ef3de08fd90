package reconcile_test

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestEach(t *testing.T) {
	for _, limit := range []int{0, 1, 2, 10} {
		ctx, cancel := context.WithCancel(t.Context())
		var calls atomic.Int32
		count := func(context.Context, int) error { calls.Add(1); return nil }
		if err := reconcile.Each(ctx, limit, 5, count); err != nil || calls.Load() != 5 {
			t.Errorf("limit %d: %v after %d calls, want 5", limit, err, calls.Load())
		}
		cancel()
		calls.Store(0)
		if err := reconcile.Each(ctx, limit, math.MaxInt, count); !errors.Is(err, context.Canceled) || calls.Load() != 0 {
			t.Errorf("limit %d: %v after %d calls, although the context has ended", limit, err, calls.Load())
		}
	}
}

func TestEachBeginsNothingAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := errors.New("failed")
		var calls atomic.Int32
		err := reconcile.Each(t.Context(), 2, 10, func(ctx context.Context, i int) error {
			calls.Add(1)
			if i == 0 {
				time.Sleep(time.Second)
				return failed
			}
			<-ctx.Done()
			return ctx.Err()
		})
		checktest.FailIf(t, !errors.Is(err, failed) || calls.Load() != 2,
			"%v after %d calls, want %v after 2", err, calls.Load(), failed)
	})
}

func TestEachPanics(t *testing.T) {
	for _, limit := range []int{1, 3} {
		err := reconcile.Each(t.Context(), limit, 3, func(context.Context, int) error { panic("oh") })
		checktest.FailIf(t, err == nil, "limit %d: no error", limit)
	}
}
