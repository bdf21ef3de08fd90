package reconcile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// loop drives one reconciler. Its dispatcher is the goroutine that calls runReady.
type loop struct {
	Reconciler
	name    string
	process string
	named   map[string]*loop // all of the process
	e       *engine
	lister  Lister
	workers int
	serial  bool

	ping chan struct{} // holds a token when there may be something to do

	mu       sync.Mutex
	agenda   agenda
	unlisted int // of its watches; no key is looked at before it is zero
	changes  []change
	index    map[changeID]int // of changes
	results  []result
	reports  []report
	guarded  failing // callbacks that panic

	// The rest belongs to the dispatcher.
	running  int // looks
	jobs     int // that run, or whose end has not been told
	ending   map[jobID]*job
	started  bool
	resyncAt time.Time
	seen     time.Time // the latest time of the clock
	rand     *rand.Rand
}

// change is what became of an object since the reconciler was last told.
type change struct {
	sub      *subscriber
	old, new *clusterapi.Object
}

type changeID struct {
	sub *subscriber
	key types.NamespacedName
}

// result is what a look came to.
type result struct {
	entry  *entry
	now    time.Time // that the look was given
	result Result
	err    error
}

func (l *loop) run(ctx context.Context) {
	for ctx.Err() == nil {
		if l.runReady(ctx) {
			continue
		}
		at, timed := l.next()
		l.e.wait(ctx, l.ping, at, timed)
	}
}

func (l *loop) wakeUp() {
	select {
	case l.ping <- struct{}{}:
	default:
	}
}

// runReady does what can be done without waiting, and reports whether that was
// anything. Looks are begun here, and go on in goroutines of their own.
func (l *loop) runReady(ctx context.Context) bool {
	l.readClock()
	did := l.finish(ctx)
	if l.serial && l.running > 0 {
		return did
	}
	did = l.tellReports() || did
	if !l.ready() {
		return did
	}
	did = l.tellChanges() || did
	did = l.resync() || did
	return l.begin(ctx) || did
}

// readClock moves what is planned when the clock was set back. How far is known but
// for the time since it was read last, which is at most a minute.
func (l *loop) readClock() {
	now := l.e.now()
	if back := l.seen.Sub(now); back > 0 {
		l.mu.Lock()
		l.agenda.setBack(back)
		l.mu.Unlock()
		if !l.resyncAt.IsZero() {
			l.resyncAt = l.resyncAt.Add(-back)
		}
	}
	l.seen = now
}

// next returns when there is something to do, unless the loop waits for a look
// to end.
func (l *loop) next() (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unlisted > 0 || l.serial && l.running > 0 {
		return time.Time{}, false
	}
	at, ok := l.agenda.next()
	if l.running >= l.workers {
		ok = false
	}
	if !l.resyncAt.IsZero() && (!ok || l.resyncAt.Before(at)) {
		return l.resyncAt, true
	}
	return at, ok
}

func (l *loop) ready() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unlisted == 0
}

// listed says that one of the reconciler's watches has been listed.
func (l *loop) listed() {
	l.mu.Lock()
	l.unlisted--
	l.mu.Unlock()
	l.wakeUp()
}

// want plans a look at a key.
func (l *loop) want(key Key, after time.Duration) {
	now := l.e.now()
	l.mu.Lock()
	l.agenda.want(l.agenda.of(key), now.Add(max(after, 0)), now)
	l.mu.Unlock()
	l.wakeUp()
}

// wakes plans the looks that a result or a callback asks for.
func (l *loop) wakes(wakes []Wake) {
	for _, w := range wakes {
		to := l
		if w.Reconciler != "" {
			to = l.named[w.Reconciler]
		}
		if to == nil {
			l.fault(w.Key, fmt.Errorf("there is no reconciler %q to wake", w.Reconciler))
			continue
		}
		to.want(w.Key, w.After)
	}
}

// begin begins the looks that are due.
func (l *loop) begin(ctx context.Context) bool {
	did := false
	for l.running < l.workers && ctx.Err() == nil {
		now := l.e.now()
		l.mu.Lock()
		e := l.agenda.take(now)
		l.mu.Unlock()
		if e == nil {
			break
		}
		did = true
		l.running++
		request := Request{Key: e.key, Now: now, Rand: rand.New(rand.NewPCG(l.rand.Uint64(), l.rand.Uint64()))}
		l.dispatch(ctx, e, request)
	}
	return did
}

// dispatch has a look made: in a goroutine, or where the host wants it. One that
// the host has not begun when ctx ends is not made.
func (l *loop) dispatch(ctx context.Context, e *entry, request Request) {
	if l.e.o.Dispatch == nil || l.e.syncs {
		l.e.group.Go(func() { l.look(ctx, e, request) })
		return
	}
	var taken atomic.Bool
	l.e.group.Add(1)
	stop := context.AfterFunc(ctx, func() {
		if taken.CompareAndSwap(false, true) {
			l.e.group.Done()
		}
	})
	look := func() error {
		if !taken.CompareAndSwap(false, true) {
			return nil
		}
		stop()
		defer l.e.group.Done()
		return l.look(ctx, e, request)
	}
	if err := panics.Isolate(func() error { l.e.o.Dispatch(l.process, l.name, e.key, look); return nil }); err != nil {
		l.fault(e.key, err)
		go func() { _ = look() }()
	}
}

// look calls Reconcile.
func (l *loop) look(ctx context.Context, e *entry, request Request) error {
	r := result{entry: e, now: request.Now, err: &panics.Error{}} // what a Goexit leaves
	defer func() {
		l.mu.Lock()
		l.results = append(l.results, r)
		l.mu.Unlock()
		l.wakeUp()
	}()
	r.err = panics.Catch(func() (err error) {
		r.result, err = l.Reconcile(ctx, request)
		return err
	})
	return r.err
}

// finish takes in what looks came to.
func (l *loop) finish(ctx context.Context) bool {
	l.mu.Lock()
	results := l.results
	l.results = nil
	l.mu.Unlock()
	for _, r := range results {
		l.running--
		if r.err == nil {
			r.err = checkJobs(r.result.Jobs)
		}
		switch {
		case ctx.Err() != nil:
			l.again(r.entry)
		case r.err != nil:
			l.failed(r.entry, r.err)
		default:
			if !r.result.At.IsZero() { // the clock may have been set back since the look began
				r.result.At = r.result.At.Add(r.entry.begun.Sub(r.now))
			}
			l.succeeded(ctx, r.entry, r.result)
		}
	}
	return len(results) > 0
}

func checkJobs(jobs []Job) error {
	for _, j := range jobs {
		if !reflect.ValueOf(j.ID).Comparable() {
			return fmt.Errorf("the ID of a job, a %T, cannot be compared", j.ID)
		}
	}
	return nil
}

func (l *loop) succeeded(ctx context.Context, e *entry, r Result) {
	if e.failing.count > 0 {
		l.e.observe(eventAbout(EventRecovered, Attempt{Process: l.process, Reconciler: l.name, Key: e.key, Failures: e.failing.count}, nil))
	}
	e.failing, e.conflicts = failing{}, 0
	l.wakes(r.Wake)
	l.setJobs(ctx, e, r.Jobs)
	l.setWatches(e, r.Watches)

	now := l.e.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	e.hold, e.at = time.Time{}, r.At
	if !r.At.IsZero() {
		l.agenda.want(e, r.At, now)
	}
	l.agenda.release(e)
}

func (l *loop) failed(e *entry, err error) {
	now := l.e.now()
	l.mu.Lock()
	if apierrors.IsConflict(err) && e.conflicts < maxConflicts {
		e.conflicts++
		l.agenda.want(e, now, now)
		l.agenda.release(e)
		l.mu.Unlock()
		return
	}
	tell := e.failing.fail(now)
	delay, busy := e.failing.wait(err)
	what, retry := EventFailed, now.Add(delay)
	if busy {
		what, e.hold = EventServerBusy, retry
		tell, e.failing.busy = tell || !e.failing.busy, true
	}
	about := Attempt{Process: l.process, Reconciler: l.name, Key: e.key, Failures: e.failing.count, Retry: retry}
	l.agenda.want(e, retry, now)
	if !e.at.IsZero() { // the earlier Result stays in effect
		l.agenda.want(e, e.at, now)
	}
	e.parked = l.e.syncs
	l.agenda.release(e)
	l.mu.Unlock()
	l.e.failed(fmt.Errorf("%s %s: %w", l.name, e.key, err))
	if tell {
		l.e.observe(eventAbout(what, about, err))
	}
}

// failed keeps an error for the end of a Sync.
func (e *engine) failed(err error) {
	if e.syncs {
		e.mu.Lock()
		e.errs = append(e.errs, err)
		e.mu.Unlock()
	}
}

// again plans a look at a key whose look was cut short.
func (l *loop) again(e *entry) {
	now := l.e.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.agenda.want(e, now, now)
	l.agenda.release(e)
}

// changed takes in a change of an object, and makes one of it and those that
// the reconciler has not been told of.
func (l *loop) changed(sub *subscriber, key types.NamespacedName, old, new *clusterapi.Object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := changeID{sub, key}
	if i, ok := l.index[id]; ok {
		l.changes[i].new = new
		return
	}
	if l.index == nil {
		l.index = make(map[changeID]int)
	}
	l.index[id] = len(l.changes)
	l.changes = append(l.changes, change{sub, old, new})
	l.wakeUp()
}

// tellChanges calls Changed for all changes.
func (l *loop) tellChanges() bool {
	l.mu.Lock()
	changes := l.changes
	l.changes, l.index = nil, nil
	l.mu.Unlock()
	now := l.e.now()
	isolated(len(changes), func(i int) {
		c := changes[i]
		if !c.sub.ended && (c.old != nil || c.new != nil) {
			l.wakes(c.sub.watch.Changed(now, c.old, c.new))
		}
	}, func(err error) { l.fault(Key{}, err) })
	return len(changes) > 0
}

// resync wakes all keys of a Lister when that is due.
func (l *loop) resync() bool {
	now := l.e.now()
	if l.lister == nil || l.started && (l.resyncAt.IsZero() || now.Before(l.resyncAt)) {
		return false
	}
	l.started = true
	if l.e.o.Resync != Never {
		l.resyncAt = now.Add(l.e.o.Resync)
	}
	isolated(1, func(int) {
		for _, key := range l.lister.Keys() {
			l.want(key, 0)
		}
	}, func(err error) { l.fault(Key{}, err) })
	return true
}

// fault tells of an error outside of a look: a callback that panicked, or a
// wake that nobody can get. Of those that go on it tells seldom.
func (l *loop) fault(key Key, err error) {
	now := l.e.now()
	l.mu.Lock()
	if now.Sub(l.guarded.last) > defaultResync {
		l.guarded = failing{}
	}
	tell, count := l.guarded.fail(now), l.guarded.count
	l.mu.Unlock()
	l.e.failed(fmt.Errorf("%s: %w", l.name, err))
	if tell {
		l.e.observe(eventAbout(EventFailed, Attempt{Process: l.process, Reconciler: l.name, Key: key, Failures: count}, err))
	}
}

// setWatches makes the further watches of a key those of its latest Result.
func (l *loop) setWatches(e *entry, want []Watch) {
	var kept []*subscriber
	for _, w := range want {
		is := func(s *subscriber) bool { return idOf(s.watch) == idOf(w) }
		if slices.ContainsFunc(kept, is) {
			continue
		}
		if i := slices.IndexFunc(e.watches, is); i >= 0 {
			kept = append(kept, e.watches[i])
			e.watches = slices.Delete(e.watches, i, i+1)
			continue
		}
		if l.e.o.API == nil {
			l.fault(e.key, fmt.Errorf("%s cannot be watched: there is no API", w.GVK.Kind))
			continue
		}
		s := &subscriber{l: l, watch: w}
		l.e.sources.subscribe(s)
		kept = append(kept, s)
	}
	for _, s := range e.watches {
		l.e.sources.unsubscribe(s)
	}
	e.watches = kept
}
