// Package loop repeats one thing: the syncs of a manager, or the passes of a
// controller. A [Loop] is the reconciler that says when each pass is due;
// [Passes] makes them one at a time.
package loop

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// Loop is a reconciler with one key. Each pass is a job, since hooks and
// providers take their time, and says itself when the next one is due.
type Loop struct {
	// ID is the name of the reconciler.
	ID string
	// Each makes a pass and returns how long to wait for the next.
	Each func(ctx context.Context, p Pass) time.Duration
	// First is the wait before the first pass; nil means none.
	First func(p Pass) time.Duration
	// Requested returns when somebody asks for a pass; nil: nobody does.
	Requested func(ctx context.Context)
	// Watch determines which changes ask for a pass; without a kind, none.
	Watch reconcile.Watch

	number   int  // of the pass
	running  bool // a pass
	begun    bool
	wanted   bool // another pass
	requests int
	wait     time.Duration // after the pass that has just ended
	ended    bool
	due      time.Time
}

// Pass is what a pass knows in addition to the cluster: the time, which stands still
// meanwhile, and random numbers in [0, n).
type Pass struct {
	Now    time.Time
	Int64N func(n int64) int64
}

// afterPanic is the wait after a pass that panicked.
const afterPanic = time.Minute

// atOnce is the key that asks for a pass at once.
var atOnce = reconcile.Key{Kind: "now"}

// Name implements [reconcile.Reconciler].
func (l *Loop) Name() string { return l.ID }

// Keys implements [reconcile.Reconciler].
func (l *Loop) Keys() []reconcile.Key { return []reconcile.Key{{}} }

// Watches implements [reconcile.Reconciler].
func (l *Loop) Watches() []reconcile.Watch {
	if l.Watch.GVK.Empty() {
		return nil
	}
	w := l.Watch
	w.Changed = func(now time.Time, old, new *clusterapi.Object) []reconcile.Wake {
		wakes := l.Watch.Changed(now, old, new)
		l.wanted = l.wanted || len(wakes) > 0
		return wakes
	}
	return []reconcile.Watch{w}
}

// jobID names the job of a pass, and of waiting for a request.
type jobID struct {
	what   string
	number int
}

// Reconcile implements [reconcile.Reconciler].
func (l *Loop) Reconcile(_ context.Context, q reconcile.Request) (res reconcile.Result, err error) {
	if q.Key == atOnce {
		l.wanted = true
		return reconcile.Result{Wake: []reconcile.Wake{{}}}, nil
	}
	p := Pass{q.Now, rand.New(rand.NewPCG(q.Rand.Uint64(), q.Rand.Uint64())).Int64N} // q.Rand is for this call only
	if !l.begun {
		l.begun, l.ended = true, true
		if l.First != nil {
			l.wait = l.First(p)
		}
	}
	if l.ended || l.due.Sub(q.Now) > l.wait { // the clock was set back
		l.ended, l.due = false, q.Now.Add(l.wait)
	}
	if l.Requested != nil {
		res.Jobs = append(res.Jobs, reconcile.Job{
			ID:  jobID{"request", l.requests},
			Run: func(ctx context.Context, _ func(any)) (any, error) { l.Requested(ctx); return nil, nil },
			Done: func(any, error) []reconcile.Wake {
				l.requests++
				l.wanted = true
				return []reconcile.Wake{{}}
			},
		})
	}
	if !l.running && (l.wanted || !q.Now.Before(l.due)) {
		l.running, l.wanted = true, false
		l.number++
	}
	if !l.running {
		res.At = l.due
		return res, nil
	}
	res.Jobs = append(res.Jobs, reconcile.Job{
		ID: jobID{"pass", l.number},
		Run: func(ctx context.Context, _ func(any)) (out any, err error) {
			err = panics.Isolate(func() error { out = l.Each(ctx, p); return nil })
			return out, err
		},
		Done: func(out any, err error) []reconcile.Wake {
			l.running, l.ended, l.wait = false, true, afterPanic
			if err == nil {
				l.wait = out.(time.Duration)
			}
			return []reconcile.Wake{{}}
		},
	})
	return res, nil
}
