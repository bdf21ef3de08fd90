package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// Run drives processes until ctx ends, then returns nil: all goroutines that it
// began have ended, with the looks, jobs and watches in them. A reconciler or a
// job that goes on although its context has ended holds it up. It returns an
// error, before anything has begun, where a process cannot be made: New panics,
// two reconcilers have one name, or something is watched and there is no API.
func Run(ctx context.Context, o Options, processes ...Process) error {
	e, err := newEngine(o, false, processes)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(e.context(ctx))
	defer cancel()
	e.sources.start(ctx)
	for _, l := range e.loops {
		e.group.Go(func() { l.run(ctx) })
	}
	<-ctx.Done()
	e.group.Wait()
	return nil
}

// engine is what Run and a Syncer have in common.
type engine struct {
	o       Options
	syncs   bool // it is a Syncer's
	loops   []*loop
	sources sources
	group   sync.WaitGroup // of all goroutines
	seed    uint64

	mu   sync.Mutex // held while an event is told
	errs []error    // of this Sync
}

func newEngine(o Options, syncs bool, processes []Process) (*engine, error) {
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	e := &engine{o: o, syncs: syncs, seed: o.Seed}
	if o.Clock == nil {
		e.o.Clock = clock.RealClock{}
	}
	if o.Seed == 0 {
		e.seed = rand.Uint64()
	}
	e.o.CallTimeout = orDefault(o.CallTimeout, defaultCallTimeout)
	e.o.Poll = max(orDefault(o.Poll, defaultPoll), time.Millisecond)
	e.o.Resync = orDefault(o.Resync, defaultResync)
	e.sources = sources{e: e, byID: make(map[watchID]*source)}

	var api clusterapi.ClusterAPI
	if o.API != nil {
		c := &calls{api: o.API, clock: e.o.Clock, timeout: e.o.CallTimeout}
		e.sources.watcher, _ = o.API.(clusterapi.Watcher)
		if syncs {
			e.sources.watcher = nil
		}
		if e.sources.watcher == nil {
			c.wrote, c.gone = e.sources.wrote, e.sources.gone
		}
		api = c.optional()
		e.sources.api = c
	}
	ping := make(chan struct{}, 1)
	for _, p := range processes {
		if err := e.add(p, api, ping); err != nil {
			return nil, fmt.Errorf("process %s: %w", p.Name, err)
		}
	}
	return e, nil
}

func orDefault(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return d
}

// add makes the reconcilers of a process and subscribes to what they watch.
func (e *engine) add(p Process, api clusterapi.ClusterAPI, ping chan struct{}) error {
	named := make(map[string]*loop)
	return panics.Isolate(func() error {
		for _, r := range p.New(api) {
			l := &loop{Reconciler: r, name: r.Name(), e: e, process: p.Name, named: named, ping: ping}
			if named[l.name] != nil {
				return fmt.Errorf("two reconcilers are called %q", l.name)
			}
			if !e.syncs {
				l.ping = make(chan struct{}, 1)
			}
			l.lister, _ = r.(Lister)
			l.workers, l.serial = 1, true
			if c, ok := r.(Concurrent); ok {
				l.workers, l.serial = max(c.Workers(), 1), false
				if e.o.Workers > 0 {
					l.workers = min(l.workers, e.o.Workers)
				}
			}
			l.rand = rand.New(rand.NewPCG(e.seed, mix(hash(p.Name), hash(l.name))))
			named[l.name] = l
			e.loops = append(e.loops, l)
			for _, w := range r.Watches() {
				if e.o.API == nil {
					return fmt.Errorf("%s watches %s, and there is no API", l.name, w.GVK.Kind)
				}
				l.unlisted++
				e.sources.subscribe(&subscriber{l: l, watch: w, initial: true})
			}
		}
		return nil
	})
}

// context returns ctx as reconcilers and jobs get it.
func (e *engine) context(ctx context.Context) context.Context {
	return clusterapi.WithoutRetries(context.WithValue(ctx, clockKey{}, e.o.Clock))
}

func (e *engine) now() time.Time { return e.o.Clock.Now() }

// wait waits until something may be to do: a token in ping, the time given, or
// the end of ctx.
func (e *engine) wait(ctx context.Context, ping <-chan struct{}, at time.Time, timed bool) {
	var due <-chan time.Time
	if timed {
		// A clock that was set, or stood still while a machine slept, is
		// noticed after a minute.
		timer := e.o.Clock.NewTimer(min(at.Sub(e.now()), time.Minute))
		defer timer.Stop()
		if !e.now().Before(at) {
			return
		}
		due = timer.C()
	}
	select {
	case <-ctx.Done():
	case <-ping:
	case <-due:
	}
}

// sleep waits for d, or until ctx ends.
func (e *engine) sleep(ctx context.Context, d time.Duration) {
	last := e.now()
	for at := last.Add(d); ctx.Err() == nil && last.Before(at); {
		e.wait(ctx, nil, at, true)
		now := e.now()
		if now.Before(last) { // the clock was set back
			at = at.Add(now.Sub(last))
		}
		last = now
	}
}

// observe tells of an event.
func (e *engine) observe(event clusterapi.Event) {
	event.Time = e.now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.o.Observe != nil {
		if err := panics.Isolate(func() error { e.o.Observe(event); return nil }); err != nil {
			e.log(slog.LevelError, "the observer of events panicked", err, event)
		}
	}
	level := slog.LevelWarn
	if event.Type == EventRecovered || event.Type == EventWatchRecovered || event.Type == EventNotServed {
		level = slog.LevelInfo
	}
	e.log(level, string(event.Type), event.Err, event)
}

// log logs an event, with the stack of a panic. A logger that panics is let be.
func (e *engine) log(level slog.Level, message string, err error, event clusterapi.Event) {
	if e.o.Logger == nil {
		return
	}
	attrs := []slog.Attr{slog.Any("event", event)}
	if caught := new(panics.Error); errors.As(err, &caught) {
		attrs = append(attrs, slog.String("panic", caught.Error()), slog.String("stack", string(caught.Stack)))
	}
	_ = panics.Isolate(func() error {
		e.o.Logger.LogAttrs(context.Background(), level, message, attrs...)
		return nil
	})
}

// isolated calls f for 0 to n-1. One that panics, or ends its goroutine, does
// not keep the others from being called.
func isolated(n int, f func(i int), failed func(err error)) {
	for i := 0; i < n; i++ {
		err := panics.Isolate(func() error {
			for ; i < n; i++ {
				f(i)
			}
			return nil
		})
		if err != nil {
			failed(err)
		}
	}
}
