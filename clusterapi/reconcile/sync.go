package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Syncer drives processes from a loop of the caller's own: each Sync catches
// up with the cluster and returns. Between two of them nothing runs. It is safe
// for concurrent use; one Sync runs at a time.
type Syncer struct {
	mu   sync.Mutex
	host *syncHost
	core *core
	err  error
}

// NewSyncer returns a Syncer whose reconcilers are made at once and live as long as
// it does. Options.API may be nil if nothing is watched. An error of making them,
// as [Run] returns it, is what each Sync returns.
func NewSyncer(o Options, processes ...Process) *Syncer {
	o.Dispatch = nil
	l, err := newLive(o)
	if err != nil {
		return &Syncer{err: err}
	}
	h := &syncHost{live: l, wake: make(chan struct{}, 1), unlisted: make(map[*source]bool)}
	core := newCore(h, l.o)
	core.parks = true
	err = addAll(core, l.o, true, processes)
	if err == nil {
		core.start()
	}
	return &Syncer{host: h, core: core, err: err}
}

// parallelLists is how many kinds a Sync lists at a time.
const parallelLists = 8

// Sync lists what is watched, shows the reconcilers what differs from what they
// know, and drives them until nothing is due now and no job runs. It shows them
// at once what they write themselves.
//
// after says in how long the next look is due; zero means that none is planned, so
// that only a change in the cluster, which the next Sync will see, brings one. err
// joins the errors of lists that failed and of keys whose last look failed; such a
// key is not looked at again in the same Sync, and the next one looks at once,
// unless the server asked to be left alone. Where a list fails, reconcilers whose
// watches were never listed do not run; others continue with what they know. When
// ctx ends, what was cut short is done in the next Sync.
func (s *Syncer) Sync(ctx context.Context) (after time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	live := s.host.live
	ctx, cancel := live.begin(ctx)
	defer cancel()
	s.host.errs = nil
	for _, one := range s.core.sources.current() {
		s.host.follow(one)
	}
	for _, c := range s.core.controllers {
		c.unpark()
	}
	for ctx.Err() == nil {
		did := s.list(ctx)
		for _, d := range live.dispatchers {
			did = live.runReady(d) || did
		}
		if did {
			continue
		}
		at, timed, busy := s.next()
		if !busy && (!timed || at.After(live.now())) {
			break
		}
		live.wait(ctx, s.host.wake, at, timed)
	}
	err = ctx.Err()
	cancel()
	live.group.Wait()
	for _, c := range s.core.controllers {
		c.cut()
	}
	return s.after(), errors.Join(append(s.host.errs, err)...)
}

// Wake makes the next Sync look at a key. Names that there are not do nothing.
func (s *Syncer) Wake(process, reconciler string, key Key) {
	if s.err != nil {
		return
	}
	if c := s.core.find(process, reconciler); c != nil {
		c.want(key, 0)
	}
}

// next returns when something is due, and whether a look or a job is under way.
func (s *Syncer) next() (first time.Time, timed, busy bool) {
	for _, d := range s.host.live.dispatchers {
		busy = busy || d.c.running > 0 || d.c.jobs > 0
		if at, ok := d.next(); ok && (!timed || at.Before(first)) {
			first, timed = at, true
		}
	}
	return first, timed, busy
}

// list lists the watches that this Sync has not listed, and reports whether
// there were any.
func (s *Syncer) list(ctx context.Context) bool {
	var due []*source
	for _, one := range s.core.sources.current() {
		if s.host.unlisted[one] {
			due = append(due, one)
		}
	}
	clear(s.host.unlisted)
	_ = Each(ctx, parallelLists, len(due), func(ctx context.Context, i int) error {
		one := due[i]
		err := s.host.isolate(func() error { return one.list(ctx) })
		if err == nil || ctx.Err() != nil {
			return nil
		}
		one.failed(err)
		if !notServed(err) {
			s.host.failed(fmt.Errorf("listing %s: %w", one.id.gvk.Kind, err))
		}
		return nil
	})
	return len(due) > 0
}

// after returns the time to the look that is due first; zero: none is planned.
func (s *Syncer) after() time.Duration {
	now := s.host.now()
	var first time.Duration
	for _, c := range s.core.controllers {
		for _, e := range c.keys {
			if e.due.IsZero() {
				continue
			}
			if d := max(e.due.Sub(now), 1); first == 0 || d < first {
				first = d
			}
		}
	}
	return first
}

// cut makes good what the end of a Sync's context cut short: those looks are
// planned again, and jobs that had not ended are started again by them.
func (c *controller) cut() {
	c.finish()
	c.mu.Lock()
	c.reports.take()
	entries := c.sorted()
	c.mu.Unlock()
	c.jobs, c.ending = 0, nil
	for _, e := range entries {
		for id, j := range e.jobs {
			if !j.over {
				j.cancel()
				delete(e.jobs, id)
				c.want(e.key, 0)
			}
		}
	}
}

// syncHost is the host of a Syncer: a live one that lists instead of following,
// has one dispatcher for all controllers, and keeps errors.
type syncHost struct {
	live *live
	wake chan struct{}

	unlisted map[*source]bool // by this Sync

	mu   sync.Mutex
	errs []error // of this Sync
}

func (h *syncHost) context() context.Context             { return h.live.context() }
func (h *syncHost) now() time.Time                       { return h.live.now() }
func (h *syncHost) skew(process string) time.Duration    { return h.live.skew(process) }
func (h *syncHost) adopt(c *controller) (*queue, func()) { return h.live.drive(c, h.wake) }
func (h *syncHost) look(e *entry, q Request)             { h.live.look(e, q) }
func (h *syncHost) job(j, earlier *job)                  { h.live.job(j, earlier) }
func (h *syncHost) follow(s *source)                     { h.unlisted[s] = true }
func (h *syncHost) unfollow(s *source)                   { delete(h.unlisted, s) }
func (h *syncHost) isolate(f func() error) error         { return h.live.isolate(f) }
func (h *syncHost) observe(e clusterapi.Event)           { h.live.observe(e) }

func (h *syncHost) failed(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.errs = append(h.errs, err)
}
