package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// Syncer drives processes from a loop of the caller's own: each Sync catches
// up with the cluster and returns. Between two of them nothing runs. It is safe
// for concurrent use; one Sync runs at a time.
type Syncer struct {
	mu    sync.Mutex
	e     *engine
	err   error
	round int
}

// NewSyncer returns a Syncer whose reconcilers are made at once and live as
// long as it does. Options.API may be nil where nothing is watched. An error of
// making them, as [Run] returns it, is what each Sync returns.
func NewSyncer(o Options, processes ...Process) *Syncer {
	e, err := newEngine(o, true, processes)
	return &Syncer{e: e, err: err}
}

// parallelLists is how many kinds a Sync lists at a time.
const parallelLists = 8

// Sync lists what is watched, tells the reconcilers what differs from what they
// know, and drives them until nothing is due now and no job runs. What they
// write themselves they are told of at once.
//
// after says in how long the next look is due; zero means that none is planned,
// so that only a change in the cluster, which the next Sync will see, brings
// one. err joins the errors of lists that failed and of keys whose last look
// failed; such a key is not looked at again in the same Sync, and the next one
// looks at once, unless the server asked to be left alone. Where a list fails,
// reconcilers whose watches were never listed do not run; others go on with
// what they know. When ctx ends, what was cut short is done in the next Sync.
func (s *Syncer) Sync(ctx context.Context) (after time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	e := s.e
	ctx, cancel := context.WithCancel(e.context(ctx))
	defer cancel()
	s.round++
	e.errs = nil
	for _, l := range e.loops {
		l.unpark()
	}
	for ctx.Err() == nil {
		did := s.list(ctx)
		for _, l := range e.loops {
			did = l.runReady(ctx) || did
		}
		if did {
			continue
		}
		busy := false
		var at time.Time
		timed := false
		for _, l := range e.loops {
			busy = busy || l.running > 0 || l.jobs > 0
			if t, ok := l.next(); ok && (!timed || t.Before(at)) {
				at, timed = t, true
			}
		}
		if !busy && (!timed || at.After(e.now())) {
			break
		}
		e.wait(ctx, s.ping(), at, timed)
	}
	err = ctx.Err()
	cancel()
	e.group.Wait()
	for _, l := range e.loops {
		l.cut(ctx)
	}
	return s.after(), errors.Join(append(e.errs, err)...)
}

// Wake makes the next Sync look at a key. Names that there are not do nothing.
func (s *Syncer) Wake(process, reconciler string, key Key) {
	if s.err != nil {
		return
	}
	for _, l := range s.e.loops {
		if l.process == process && l.name == reconciler {
			l.want(key, 0)
		}
	}
}

func (s *Syncer) ping() chan struct{} {
	if len(s.e.loops) == 0 {
		return nil
	}
	return s.e.loops[0].ping // they share it
}

// list lists the watches that this Sync has not listed, and reports whether
// there were any.
func (s *Syncer) list(ctx context.Context) bool {
	var due []*source
	for _, one := range s.e.sources.current() {
		if one.round < s.round {
			one.round = s.round
			due = append(due, one)
		}
	}
	_ = Each(ctx, parallelLists, len(due), func(ctx context.Context, i int) error {
		one := due[i]
		err := panics.Isolate(func() error { return one.list(ctx) })
		if err == nil || ctx.Err() != nil {
			return nil
		}
		one.failed(err)
		if !notServed(err) {
			s.e.failed(fmt.Errorf("listing %s: %w", one.id.gvk.Kind, err))
		}
		return nil
	})
	return len(due) > 0
}

// after returns the time to the look that is due first; zero: none is planned.
func (s *Syncer) after() time.Duration {
	now := s.e.now()
	var first time.Duration
	for _, l := range s.e.loops {
		for _, e := range l.agenda.keys {
			if e.due.IsZero() {
				continue
			}
			if d := max(e.when().Sub(now), 1); first == 0 || d < first {
				first = d
			}
		}
	}
	return first
}

// unpark lets keys that failed in the last Sync be looked at again.
func (l *loop) unpark() {
	now := l.e.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.agenda.sorted() {
		if e.parked {
			e.parked = false
			l.agenda.want(e, now, now)
			l.agenda.place(e)
		}
	}
}

// cut makes good what the end of a Sync's context cut short: those looks are
// planned again, and jobs that had not ended are started again by them.
func (l *loop) cut(ctx context.Context) {
	l.finish(ctx)
	l.mu.Lock()
	l.reports = nil
	entries := l.agenda.sorted()
	l.mu.Unlock()
	l.jobs, l.ending = 0, nil
	for _, e := range entries {
		for id, j := range e.jobs {
			if !j.over {
				j.cancel()
				delete(e.jobs, id)
				l.want(e.key, 0)
			}
		}
	}
}
