package policyengine

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// RefresherOptions configure a [Refresher]. Load is required.
type RefresherOptions struct {
	// Load makes the graph anew. It should return soon when its context ends; one
	// that does not is left to itself. A panic in it is an error.
	Load func(context.Context) (*graphdata.Snapshot, error)
	// Interval is the time between two loads, a tenth of it more or less; zero means
	// 5 minutes.
	Interval time.Duration
	// Retry is the time to the next load after a failure, a fifth of it more or
	// less. It doubles with each, up to Interval. Zero means 5 seconds.
	Retry time.Duration
	// Timeout bounds a load; zero means 5 minutes.
	Timeout time.Duration
	// Observe gets the events, one at a time; nil drops them.
	Observe func(clusterapi.Event)
	// Clock measures the times of [Refresher.Run]; nil means the real one.
	Clock clock.WithTicker
}

// Refresher keeps the graph of a handler up to date. A load that fails changes
// nothing: the last good graph is served on. It is safe for concurrent use. Make one
// with [NewRefresher].
type Refresher struct {
	h *Handler
	o RefresherOptions

	mu    sync.Mutex
	begun uint64 // loads
	set   uint64 // the number of the load that was set last
}

// NewRefresher returns a refresher, or an error for options that cannot work:
// without Load, or with a negative number.
func NewRefresher(h *Handler, o RefresherOptions) (*Refresher, error) {
	if h == nil || o.Load == nil {
		return nil, errors.New("policyengine.RefresherOptions: a handler and Load are required")
	}
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	o.Interval = cmp.Or(o.Interval, 5*time.Minute)
	o.Retry = cmp.Or(o.Retry, 5*time.Second)
	o.Timeout = cmp.Or(o.Timeout, 5*time.Minute)
	return &Refresher{h: h, o: o}, nil
}

// Run loads at once, and then again and again until ctx ends. It returns the error
// of ctx.
func (r *Refresher) Run(ctx context.Context) error {
	if err := reconcile.Run(ctx, reconcile.Options{Clock: r.o.Clock, Resync: reconcile.Never}, r.Process()); err != nil {
		return err
	}
	return ctx.Err()
}

// Process is the refresher for a driver of package reconcile: what Run drives live.
func (r *Refresher) Process() reconcile.Process {
	return reconcile.Process{Name: "graph", New: func(clusterapi.ClusterAPI) []reconcile.Reconciler {
		return []reconcile.Reconciler{&refreshing{r: r}}
	}}
}

// Refresh loads and sets the graph now, in addition to Run: for a signal, or a change
// that a program has noticed. The error is the load's, or ctx's, or its end after Timeout;
// then the graph stays. Of two loads at a time the one that began last counts.
func (r *Refresher) Refresh(ctx context.Context) error {
	ctx, cancel := reconcile.WithTimeout(reconcile.WithClock(ctx, r.o.Clock), r.o.Timeout)
	defer cancel()
	_, err := r.load(ctx)
	return err
}

// loaded is the result of a load.
type loaded struct {
	revision string
	nodes    int
	changed  bool
}

func (r *Refresher) load(ctx context.Context) (loaded, error) {
	r.mu.Lock()
	r.begun++
	number := r.begun
	r.mu.Unlock()
	r.h.counts.loads.Add(1)
	snapshot, err := reconcile.Await(ctx, func() (*graphdata.Snapshot, error) { return r.o.Load(ctx) })
	if err == nil && snapshot == nil {
		err = errors.New("there is no graph")
	}
	if err == nil {
		err = ctx.Err() // what comes too late does not count
	}
	if err != nil {
		r.h.counts.failed.Add(1)
		return loaded{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.h.Revision()
	if number > r.set {
		r.set = number
		r.h.Set(snapshot)
	}
	out := loaded{revision: r.h.Revision()}
	if c := r.h.current.Load(); c != nil {
		out.nodes = c.content.nodes
	}
	out.changed = out.revision != before
	return out, nil
}

// refreshing decides when to load. It is the reconciler of one process.
type refreshing struct {
	r        *Refresher
	due      time.Time     // of the next load; zero: now
	wait     time.Duration // how long before due that was decided
	running  uint64        // the number of the load under way; 0: none
	number   uint64
	failures int
	over     func(q reconcile.Request) // what the load that has ended makes of it
}

func (r *refreshing) Name() string               { return "graph" }
func (r *refreshing) Watches() []reconcile.Watch { return nil }
func (r *refreshing) Keys() []reconcile.Key      { return []reconcile.Key{{Kind: "Graph"}} }

// Reconcile implements [reconcile.Reconciler].
func (r *refreshing) Reconcile(_ context.Context, q reconcile.Request) (reconcile.Result, error) {
	if r.over != nil {
		over := r.over
		r.over, r.running = nil, 0
		over(q)
	}
	if r.due.Sub(q.Now) > r.wait {
		r.due = q.Now.Add(r.wait) // the clock was set back
	}
	if r.running == 0 {
		if r.due.After(q.Now) {
			return reconcile.Result{At: r.due}, nil
		}
		r.number++
		r.running = r.number
	}
	return reconcile.Result{Jobs: []reconcile.Job{{
		ID: r.running, Limit: r.r.o.Timeout,
		Run: func(ctx context.Context, _ func(any)) (any, error) { return r.r.load(ctx) },
		Done: func(value any, err error) []reconcile.Wake {
			r.over = func(q reconcile.Request) { r.ended(q, value, err) }
			return []reconcile.Wake{{Key: q.Key}}
		},
	}}}, nil
}

// ended decides when to load again, and reports the load.
func (r *refreshing) ended(q reconcile.Request, value any, err error) {
	failures := r.failures
	if err != nil {
		r.failures++
		delay := r.r.o.Interval
		if shift := r.failures - 1; shift < 30 && r.r.o.Retry<<shift>>shift == r.r.o.Retry {
			delay = min(delay, r.r.o.Retry<<shift)
		}
		r.wait = jitter(q.Rand, delay, 5)
	} else {
		r.failures = 0
		r.wait = jitter(q.Rand, r.r.o.Interval, 10)
	}
	r.due = q.Now.Add(r.wait)
	if err != nil {
		r.r.send(clusterapi.Event{Type: EventFailed, Time: q.Now, Err: err, Data: &Load{Revision: r.r.h.Revision(), Failures: r.failures, Retry: r.due}})
		return
	}
	done, _ := value.(loaded)
	if failures > 0 {
		r.r.send(clusterapi.Event{Type: EventRecovered, Time: q.Now, Data: &Load{Revision: done.revision, Nodes: done.nodes, Failures: failures, Retry: r.due}})
	}
	e := clusterapi.Event{Type: EventUnchanged, Time: q.Now, Data: &Load{Revision: done.revision, Nodes: done.nodes, Retry: r.due}}
	if done.changed {
		e.Type = EventChanged
	}
	r.r.send(e)
}

func (r *Refresher) send(e clusterapi.Event) {
	if r.o.Observe != nil {
		_ = panics.Catch(func() error { r.o.Observe(e); return nil }) // it must not end the loop
	}
}

// jitter returns d, a part of it more or less.
func jitter(random *rand.Rand, d time.Duration, part int64) time.Duration {
	spread := int64(d) / part
	if spread <= 0 {
		return d
	}
	return d - time.Duration(spread) + time.Duration(random.Int64N(2*spread+1))
}
