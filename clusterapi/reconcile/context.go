package reconcile

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// driverKey is the key of a context's driver.
type driverKey struct{}

// waiter is what a virtual driver puts into the contexts of its calls.
type waiter interface {
	sleep(ctx context.Context, d time.Duration) error
	timeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
}

func virtualOf(ctx context.Context) waiter {
	w, _ := ctx.Value(driverKey{}).(waiter)
	return w
}

// Sleep waits in a [Job]: for d of virtual time under a virtual driver, else by
// the driver's clock. It returns the context's error when that ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	if w := virtualOf(ctx); w != nil {
		return w.sleep(ctx, d)
	}
	if d <= 0 {
		return ctx.Err()
	}
	timer := clockOf(ctx).NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}

// WithTimeout bounds a part of a [Job] as Job.Limit bounds the whole: by the
// virtual time that it sleeps under a virtual driver, else by the driver's clock.
// What ctx itself leaves counts if that is less.
func WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if w := virtualOf(ctx); w != nil {
		return w.timeout(ctx, d)
	}
	return within(ctx, clockOf(ctx), d)
}

// WithClock returns a context in which [Sleep] and [WithTimeout] use c, except
// under a virtual driver. It is for code that is also called without a driver; nil
// is the driver's clock, or the real one.
func WithClock(ctx context.Context, c clock.WithTicker) context.Context {
	if c == nil {
		return ctx
	}
	return context.WithValue(ctx, clockKey{}, c)
}

// clockKey is the key of a live driver's clock.
type clockKey struct{}

func clockOf(ctx context.Context) clock.WithTicker {
	if c, ok := ctx.Value(clockKey{}).(clock.WithTicker); ok {
		return c
	}
	return clock.RealClock{}
}

// Await calls f and returns what it returns, but no later than when ctx ends: then
// f is left to itself, and the error is ctx's. It is for code of others that may
// not heed its context. A panic, or a runtime.Goexit, is an error. A virtual driver
// waits for f in any case.
func Await[T any](ctx context.Context, f func() (T, error)) (out T, err error) {
	if virtualOf(ctx) != nil {
		err = panics.Isolate(func() (err error) {
			out, err = f()
			return err
		})
		return out, err
	}
	type answer struct {
		out T
		err error
	}
	answers := make(chan answer, 1) // so that one that is left to itself can end
	go func() {
		a := answer{err: &panics.Error{}} // what a Goexit leaves
		defer func() { answers <- a }()
		a.err = panics.Catch(func() (err error) {
			a.out, err = f()
			return err
		})
	}()
	select {
	case a := <-answers:
		return a.out, a.err
	case <-ctx.Done():
	}
	select {
	case a := <-answers: // just in time
		return a.out, a.err
	default:
		return out, ctx.Err()
	}
}

// Each calls f for 0 to n-1, up to limit at a time, and returns when all calls
// have; a virtual driver makes one call after another. It is how a reconciler or a
// job makes calls in parallel. The first error cancels the context of the others,
// no further call starts, and that error is returned; a panic is an error. A limit
// below 1 means 1.
func Each(ctx context.Context, limit, n int, f func(ctx context.Context, i int) error) error {
	if virtualOf(ctx) != nil || limit <= 1 || n <= 1 {
		for i := range n {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := panics.Catch(func() error { return f(ctx, i) }); err != nil {
				return err
			}
		}
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(limit)
	for i := range n {
		ended := ctx.Err() != nil
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return panics.Isolate(func() error { return f(ctx, i) })
		})
		if ended { // which the last one reports
			break
		}
	}
	return group.Wait()
}

type callTimeoutKey struct{}

// WithCallTimeout returns a context in which API calls may take d instead of
// [Options].CallTimeout, longer or shorter: a deadline that a subject's rules
// give wins over the driver's. Zero or less means no deadline.
func WithCallTimeout(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, callTimeoutKey{}, d)
}
