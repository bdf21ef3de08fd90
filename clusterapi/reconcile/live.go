package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// Run drives processes until ctx ends, then returns nil: all goroutines that it
// began have ended, with the looks, jobs and watches in them. A reconciler or a job
// that continues although its context has ended holds it up. It returns an error,
// before anything has started, where a process cannot be made: New panics, two
// reconcilers have one name, or something is watched and there is no API.
func Run(ctx context.Context, o Options, processes ...Process) error {
	l, err := newLive(o)
	if err != nil {
		return err
	}
	core := newCore(l, l.o)
	l.watcher, _ = l.o.API.(clusterapi.Watcher)
	if err := addAll(core, l.o, l.watcher == nil, processes); err != nil {
		return err
	}
	ctx, cancel := l.begin(ctx)
	defer cancel()
	core.start()
	for _, d := range l.dispatchers {
		l.group.Go(func() { l.dispatch(d) })
	}
	<-ctx.Done()
	l.group.Wait()
	return nil
}

// live is the host that drives a core in goroutines.
type live struct {
	o           Options
	ctx         context.Context
	watcher     clusterapi.Watcher // nil: lists
	dispatchers []*dispatcher
	group       sync.WaitGroup // of all goroutines

	mu sync.Mutex // held while Observe runs
}

// dispatcher is what a live host has for a controller.
type dispatcher struct {
	c    *controller
	wake chan struct{} // holds a token when there may be something to do
	seen time.Time     // the latest time of the clock
}

func newLive(o Options) (*live, error) {
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	o.CallTimeout = orDefault(o.CallTimeout, defaultCallTimeout)
	o.Poll = max(orDefault(o.Poll, defaultPoll), time.Millisecond)
	o.Resync = orDefault(o.Resync, defaultResync)
	return &live{o: o}, nil
}

// newCore returns a core with the options of a live driver.
func newCore(h host, o Options) *core {
	c := &core{host: h, resync: o.Resync, seed: o.Seed, forgets: true}
	c.sources = sources{host: h, byID: make(map[watchID][]*source)}
	return c
}

// addAll makes the reconcilers of processes. If the API has no events, the watches
// show what the processes write.
func addAll(core *core, o Options, unwatched bool, processes []Process) error {
	var api clusterapi.ClusterAPI
	if o.API != nil {
		c := &calls{api: o.API, clock: o.Clock, timeout: o.CallTimeout, sources: &core.sources, unwatched: unwatched}
		core.sources.api = c
		api = c.optional()
	}
	for _, p := range processes {
		if err := core.add(p, api, 1); err != nil {
			return err
		}
	}
	return nil
}

// begin makes ctx, as reconcilers and jobs get it, the context of the host.
func (l *live) begin(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx = options.Once(context.WithValue(ctx, clockKey{}, l.o.Clock))
	ctx, cancel := context.WithCancel(ctx)
	l.ctx = ctx
	return ctx, cancel
}

func (l *live) context() context.Context { return l.ctx }

func (l *live) now() time.Time { return l.o.Clock.Now() }

func (l *live) skew(string) time.Duration { return 0 }

func (l *live) isolate(f func() error) error { return panics.Isolate(f) }

func (l *live) failed(error) {}

func (l *live) adopt(c *controller) (*queue, func()) {
	return l.drive(c, make(chan struct{}, 1))
}

// drive adds a dispatcher that waits for wake.
func (l *live) drive(c *controller, wake chan struct{}) (*queue, func()) {
	if l.o.Workers > 0 {
		c.workers = min(c.workers, l.o.Workers)
	}
	l.dispatchers = append(l.dispatchers, &dispatcher{c: c, wake: wake})
	ping := func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
	return &queue{changed: ping}, ping
}

// dispatch drives a controller until the host's context ends.
func (l *live) dispatch(d *dispatcher) {
	for l.ctx.Err() == nil {
		if l.runReady(d) {
			continue
		}
		at, timed := d.next()
		l.wait(l.ctx, d.wake, at, timed)
	}
}

// runReady does what can be done without waiting, and reports whether that was
// anything. Looks start here, and continue in goroutines of their own.
func (l *live) runReady(d *dispatcher) bool {
	l.readClock(d)
	did := d.c.settle()
	did = d.c.begin() || did
	for l.ctx.Err() == nil {
		i := d.take(l.now())
		if i == nil {
			break
		}
		i.run()
		did = true
	}
	return did
}

// readClock moves what is planned when the clock was set back. How far is known but
// for the time since it was read last, which is at most a minute.
func (l *live) readClock(d *dispatcher) {
	now := l.now()
	if back := d.seen.Sub(now); back > 0 {
		d.c.setBack(back)
	}
	d.seen = now
}

// idle reports whether the controller may start another look or a resync.
func (d *dispatcher) idle() bool { return d.c.running < d.c.workers }

// take takes what is due, nil if nothing is.
func (d *dispatcher) take(now time.Time) *item {
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	if at, ok := d.c.queue.next(); !ok || at.After(now) || !d.idle() {
		return nil
	}
	return d.c.queue.take()
}

// next returns when something is due, unless the controller waits for a look to end.
func (d *dispatcher) next() (time.Time, bool) {
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	at, ok := d.c.queue.next()
	return at, ok && d.idle()
}

// wait waits until something may be to do: a token in wake, the time given, or
// the end of ctx.
func (l *live) wait(ctx context.Context, wake <-chan struct{}, at time.Time, timed bool) {
	var due <-chan time.Time
	if timed {
		// A clock that was set, or stood still while a machine slept, is
		// noticed after a minute.
		timer := l.o.Clock.NewTimer(min(at.Sub(l.now()), time.Minute))
		defer timer.Stop()
		if !l.now().Before(at) {
			return
		}
		due = timer.C()
	}
	select {
	case <-ctx.Done():
	case <-wake:
	case <-due:
	}
}

// sleep waits for d, or until ctx ends.
func (l *live) sleep(ctx context.Context, d time.Duration) {
	last := l.now()
	for at := last.Add(d); ctx.Err() == nil && last.Before(at); {
		l.wait(ctx, nil, at, true)
		now := l.now()
		if now.Before(last) { // the clock was set back
			at = at.Add(now.Sub(last))
		}
		last = now
	}
}

// look makes a look in a goroutine, or where Dispatch wants it. One that has not
// started when the context ends is not made.
func (l *live) look(e *entry, q Request) {
	ctx := l.ctx
	if l.o.Dispatch == nil {
		l.group.Go(func() { _ = e.look(ctx, q) })
		return
	}
	var taken atomic.Bool
	l.group.Add(1)
	stop := context.AfterFunc(ctx, func() {
		if taken.CompareAndSwap(false, true) {
			l.group.Done()
		}
	})
	look := func() error {
		if !taken.CompareAndSwap(false, true) {
			return nil
		}
		stop()
		defer l.group.Done()
		return e.look(ctx, q)
	}
	c := e.c
	if err := l.isolate(func() error { l.o.Dispatch(c.process, c.name, e.key, look); return nil }); err != nil {
		c.fault(e.key, err)
		go func() { _ = look() }()
	}
}

func (l *live) job(j, earlier *job) {
	j.room, j.ended = make(chan struct{}, maxReports), make(chan struct{})
	l.group.Go(func() {
		defer close(j.ended)
		if earlier != nil {
			<-earlier.ended
		}
		limited, stop := j.ctx, func() {}
		if j.Limit > 0 {
			limited, stop = within(j.ctx, l.o.Clock, j.Limit)
		}
		defer stop()
		j.work(limited, l.hand)
	})
}

// hand posts what a job hands on, once there is room.
func (l *live) hand(r report) {
	if r.done {
		r.job.c.post(r)
		return
	}
	select {
	case r.job.room <- struct{}{}:
		r.job.c.post(r)
	case <-r.job.ctx.Done():
	}
}

func (l *live) follow(s *source) {
	ctx, cancel := context.WithCancel(l.ctx)
	s.cancel = cancel
	l.group.Go(func() {
		for ctx.Err() == nil {
			err := l.isolate(func() error {
				if l.watcher != nil {
					return l.watch(ctx, s)
				}
				return s.list(ctx)
			})
			if ctx.Err() != nil {
				return
			}
			delay := l.o.Poll
			if err != nil {
				delay = s.failed(err)
			}
			l.sleep(ctx, delay)
		}
	})
}

func (l *live) unfollow(s *source) {
	if s.cancel != nil {
		s.cancel()
	}
}

// watch follows the events of the cluster until they break off. It ends a list that
// does not arrive in time.
func (l *live) watch(ctx context.Context, s *source) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if timeout := l.o.CallTimeout; timeout != Never {
		limit, stop := within(ctx, l.o.Clock, timeout)
		defer stop()
		defer context.AfterFunc(limit, func() {
			if _, listing := s.state(); listing && timedOut(limit) {
				cancel(errTimedOut)
			}
		})()
	}
	s.beginList()
	for e, err := range l.watcher.Watch(ctx, s.id.gvk, s.options) {
		switch {
		case err != nil && timedOut(ctx):
			return l.noList(err)
		case err != nil:
			return err
		case e.Type == clusterapi.Synced:
			s.endList()
			s.recovered(false)
		case e.Object == nil:
			return fmt.Errorf("an event of type %q without an object", e.Type)
		case e.Type == clusterapi.Deleted:
			s.set(clusterapi.KeyOf(e.Object), nil)
		default:
			s.set(clusterapi.KeyOf(e.Object), clusterapi.NewObject(e.Object))
		}
	}
	if timedOut(ctx) {
		return l.noList(context.DeadlineExceeded)
	}
	return errors.New("the watch has ended")
}

func (l *live) noList(err error) error {
	return fmt.Errorf("no list within %s: %w", l.o.CallTimeout, deadlineOf(err))
}

func (l *live) observe(event clusterapi.Event) {
	event.Time = l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.o.Observe != nil {
		if err := l.isolate(func() error { l.o.Observe(event); return nil }); err != nil {
			logEvent(l.isolate, l.o.Logger, slog.LevelError, "the observer of events panicked", err, event)
		}
	}
	logEvent(l.isolate, l.o.Logger, levelOf(event), string(event.Type), event.Err, event)
}
