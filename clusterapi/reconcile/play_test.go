package reconcile_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// A process runs while act waits, in virtual time and live, and ends with it.
func TestPlay(t *testing.T) {
	for _, tt := range []struct {
		name  string
		clock clock.WithTicker
		every time.Duration
	}{
		{"virtual", reconcile.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), time.Hour},
		{"live", clock.RealClock{}, 10 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var looks atomic.Int32
			process := reconcile.Process{Name: "p", New: func(clusterapi.ClusterAPI) []reconcile.Reconciler {
				return []reconcile.Reconciler{&keyed{&toy{name: "r", reconcile: func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
					looks.Add(1)
					return reconcile.Result{At: r.Now.Add(tt.every)}, nil
				}}}}
			}}
			o := reconcile.PlayOptions{Cluster: memory.New(memory.Options{Clock: tt.clock}), Clock: tt.clock}
			enough := errors.New("seen enough")
			err := reconcile.Play(t.Context(), o, func(_ context.Context, wait func(time.Duration) error) error {
				for looks.Load() < 3 {
					if err := wait(tt.every); err != nil {
						return err
					}
				}
				return enough
			}, process)
			checktest.FailIf(t, !errors.Is(err, enough), "%v", err)
			before := looks.Load()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			err = reconcile.Play(ctx, o, func(_ context.Context, wait func(time.Duration) error) error { return wait(time.Hour) })
			checktest.FailIf(t, !errors.Is(err, context.Canceled) || looks.Load() != before,
				"%v; %d looks after the end", err, looks.Load()-before)
		})
	}
}

// keyed is a toy with a key of its own.
type keyed struct{ *toy }

func (keyed) Keys() []reconcile.Key { return []reconcile.Key{{Name: "k"}} }
