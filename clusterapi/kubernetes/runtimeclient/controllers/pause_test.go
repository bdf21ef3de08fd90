package controllers

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestPauses(t *testing.T) {
	for _, tc := range []struct {
		name string
		o    Options
		far  time.Duration // since the time was looked at last
		want bool
	}{
		{"none", Options{}, time.Second, false},
		{"too long", Options{}, 11 * time.Second, true},
		{"too long for the host", Options{MaxPause: time.Second}, 2 * time.Second, true},
		{"any", Options{MaxPause: reconcile.Never}, time.Hour, false},
		{"not a leader", Options{EveryReplica: true}, time.Hour, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newPauses(tc.o)
			p.last = time.Now().Add(-tc.far)
			got := p.tooLong()
			checktest.FailIf(t, got != tc.want || p.tooLong() != got, "got %v, want %v", got, tc.want)
		})
	}
	t.Run("watch", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPauses(Options{})
			ctx, cancel := context.WithCancelCause(t.Context())
			go p.watch(ctx, cancel)
			time.Sleep(time.Hour)
			checktest.OK(t, ctx.Err())
			p.mu.Lock()
			p.last = p.last.Add(-time.Minute)
			p.mu.Unlock()
			time.Sleep(time.Minute)
			if context.Cause(ctx) != ErrPaused {
				t.Errorf("the cause is %v", context.Cause(ctx))
			}
		})
	})
}
