package reconcile

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"
)

// PlayOptions are the options of [Play].
type PlayOptions struct {
	// Cluster is required, and so is the Clock that it was made with. A [*Clock]
	// plays in virtual time, any other one live.
	Cluster Cluster
	Clock   clock.WithTicker
	// Seed decides all that is drawn in virtual time; zero is a seed like any
	// other.
	Seed uint64
}

// Play runs processes while act does what people do to the cluster, and stops
// them when act returns. wait lets time pass in the cluster; it returns the error
// of the driver, or of ctx. Errors are those of act, and live those of [Run].
func Play(ctx context.Context, o PlayOptions, act func(ctx context.Context, wait func(time.Duration) error) error, processes ...Process) error {
	if jumps, ok := o.Clock.(*Clock); ok {
		v := NewVirtual(VirtualOptions{Cluster: o.Cluster, Clock: jumps, Seed: o.Seed}, processes...)
		defer v.Close()
		return act(ctx, func(d time.Duration) error { return errors.Join(v.RunUntil(v.Now().Add(d)), ctx.Err()) })
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	// The clock may be fast, but calls take as long as ever.
	group.Go(func() error {
		return Run(ctx, Options{API: o.Cluster, Clock: o.Clock, CallTimeout: Never}, processes...)
	})
	group.Go(func() error {
		defer cancel()
		return act(ctx, func(d time.Duration) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-o.Clock.After(d):
				return nil
			}
		})
	})
	return group.Wait()
}
