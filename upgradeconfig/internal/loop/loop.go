// Package loop runs one thing again and again as a reconciler: the syncs of a
// manager and the passes of a controller.
package loop

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// Loop is a reconciler with one key. Each turn is a job, since hooks and
// providers take their time, and says itself when the next one is due.
type Loop struct {
	// ID is the name of the reconciler.
	ID string
	// Each makes a turn and returns how long to wait for the next.
	Each func(ctx context.Context, t Turn) time.Duration
	// First is the wait before the first turn; nil means none.
	First func(t Turn) time.Duration
	// Asked returns when somebody asks for a turn now; nil: nobody does.
	Asked func(ctx context.Context)
	// Watch says what else asks for one; without a kind, nothing.
	Watch reconcile.Watch

	number int  // of the turn
	busy   bool // one is under way
	begun  bool
	dirty  bool // another one is wanted
	asked  int
	after  time.Duration // how long to wait after the turn that has just ended
	ended  bool
	due    time.Time
}

// Turn is what a turn knows besides the cluster: the time, which stands still
// meanwhile, and random numbers in [0, n).
type Turn struct {
	Now    time.Time
	Int64N func(n int64) int64
}

// Time returns Now.
func (t Turn) Time() time.Time { return t.Now }

// afterPanic is the wait after a turn that panicked.
const afterPanic = time.Minute

// Name implements [reconcile.Reconciler].
func (r *Loop) Name() string { return r.ID }

// Keys implements [reconcile.Reconciler].
func (r *Loop) Keys() []reconcile.Key { return []reconcile.Key{{}} }

// Watches implements [reconcile.Reconciler].
func (r *Loop) Watches() []reconcile.Watch {
	if r.Watch.GVK.Empty() {
		return nil
	}
	w := r.Watch
	w.Changed = func(now time.Time, old, new *clusterapi.Object) []reconcile.Wake {
		wakes := r.Watch.Changed(now, old, new)
		r.dirty = r.dirty || len(wakes) > 0
		return wakes
	}
	return []reconcile.Watch{w}
}

// jobID names the jobs of a turn, and of waiting to be asked for one.
type jobID struct {
	what   string
	number int
}

// now is the key that asks for a turn at once.
var now = reconcile.Key{Kind: "now"}

// Reconcile implements [reconcile.Reconciler].
func (r *Loop) Reconcile(_ context.Context, q reconcile.Request) (res reconcile.Result, err error) {
	if q.Key == now {
		r.dirty = true
		return reconcile.Result{Wake: []reconcile.Wake{{}}}, nil
	}
	t := Turn{q.Now, rand.New(rand.NewPCG(q.Rand.Uint64(), q.Rand.Uint64())).Int64N} // q.Rand is for this call only
	if !r.begun {
		r.begun, r.ended = true, true
		if r.First != nil {
			r.after = r.First(t)
		}
	}
	if r.ended || r.due.Sub(q.Now) > r.after { // the clock was set back
		r.ended, r.due = false, q.Now.Add(r.after)
	}
	if r.Asked != nil {
		res.Jobs = append(res.Jobs, reconcile.Job{
			ID:  jobID{"asked", r.asked},
			Run: func(ctx context.Context, _ func(any)) (any, error) { r.Asked(ctx); return nil, nil },
			Done: func(any, error) []reconcile.Wake {
				r.asked++
				r.dirty = true
				return []reconcile.Wake{{}}
			},
		})
	}
	if !r.busy && (r.dirty || !q.Now.Before(r.due)) {
		r.busy, r.dirty = true, false
		r.number++
	}
	if !r.busy {
		res.At = r.due
		return res, nil
	}
	res.Jobs = append(res.Jobs, reconcile.Job{
		ID: jobID{"turn", r.number},
		Run: func(ctx context.Context, _ func(any)) (out any, err error) {
			err = panics.Isolate(func() error { out = r.Each(ctx, t); return nil })
			return out, err
		},
		Done: func(out any, err error) []reconcile.Wake {
			r.busy, r.ended, r.after = false, true, afterPanic
			if err == nil {
				r.after = out.(time.Duration)
			}
			return []reconcile.Wake{{}}
		},
	})
	return res, nil
}

// Run runs a process live until ctx ends.
func Run(ctx context.Context, api clusterapi.ReadWriter, c clock.WithTicker, log *slog.Logger, p reconcile.Process) error {
	if err := reconcile.Run(ctx, reconcile.Options{API: whole(api), Clock: c, Logger: log, Resync: reconcile.Never}, p); err != nil {
		return err
	}
	return ctx.Err()
}

// whole makes a cluster of what the options ask for; nobody evicts.
func whole(api clusterapi.ReadWriter) clusterapi.ClusterAPI {
	if c, ok := api.(clusterapi.ClusterAPI); ok {
		return c
	}
	return struct {
		clusterapi.ReadWriter
		clusterapi.Evictor
	}{api, nobody{}}
}

type nobody struct{}

func (nobody) Evict(context.Context, types.NamespacedName, clusterapi.EvictOptions) error {
	panic("upgradeconfig: evicts nothing")
}

// Observe tells an observer of an event. A panic in it is logged: what goes on
// in the cluster does not depend on who looks on.
func Observe[E any](observer func(E), e E, log *slog.Logger) {
	err := panics.Catch(func() error {
		observer(e)
		return nil
	})
	if p, ok := errors.AsType[*clusterapi.PanicError](err); ok {
		log.Error("the observer failed", "error", p, "stack", string(p.Stack))
	}
}
