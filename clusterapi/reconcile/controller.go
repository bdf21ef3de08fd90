package reconcile

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// controller drives one reconciler. Its host calls settle and start from one
// goroutine at a time, its dispatcher.
type controller struct {
	core       *core
	host       host
	reconciler Reconciler
	name       string
	process    string
	named      map[string]*controller // all of the process
	lister     Lister
	workers    int
	serial     bool   // no callback runs during a look
	ping       func() // makes the host call settle and begin

	mu       sync.Mutex
	keys     map[Key]*entry
	queue    *queue // of looks and resyncs
	unlisted int    // of its watches; no key is looked at before it is zero
	ready    bool   // keys are in the queue; before, they wait to be sorted
	changes  inbox[change]
	index    map[changeID]int // of changes
	results  inbox[result]
	reports  inbox[report]
	callback failing // callbacks that panic, and wakes of unknown reconcilers

	// The rest belongs to the dispatcher.
	running int // looks
	jobs    int // that run, or whose end has not been taken in
	ending  map[jobID]*job
	again   item // the next resync
	rand    *rand.Rand
	waiting []change     // for which Changed is to be called
	tell    func() error // c.callChanged
}

// inbox holds what arrives until it is taken.
type inbox[T any] struct{ in, taken []T }

// maxKept bounds the items for which an inbox keeps memory.
const maxKept = 64

// add adds an item.
func (b *inbox[T]) add(x T) { b.in = append(b.in, x) }

// take empties the inbox. What it returns is valid until the next take.
func (b *inbox[T]) take() []T {
	taken := b.in
	b.in = nil
	if cap(b.taken) <= maxKept {
		clear(b.taken)
		b.in = b.taken[:0]
	}
	b.taken = taken
	return taken
}

// entry is what is known of a key.
type entry struct {
	c    *controller
	key  Key
	item item // the look that is planned, unless the key waits

	due    time.Time // of the next look; zero: none is planned
	hold   time.Time // no look before: the server asked to be left alone
	asked  time.Time // the At of the latest Result, while that is to come
	parked bool      // no look before unpark

	running   bool
	begun     time.Time // the time of the last look
	looks     int       // at that time
	conflicts int
	failing   failing

	jobs    map[any]*job  // those that the latest Result names
	watches []*subscriber // likewise
}

// change is what became of an object since the last call of Changed.
type change struct {
	sub      *subscriber
	old, new *clusterapi.Object
}

type changeID struct {
	sub *subscriber
	key types.NamespacedName
}

// result is the result of a look.
type result struct {
	entry  *entry
	now    time.Time // the time of the request
	result Result
	err    error
}

// newController returns the controller of a reconciler of a process.
func newController(c *core, r Reconciler, process string, life uint64) *controller {
	x := &controller{core: c, host: c.host, reconciler: r, name: r.Name(), process: process,
		workers: 1, serial: true, keys: make(map[Key]*entry)}
	x.lister, _ = r.(Lister)
	if many, ok := r.(Concurrent); ok {
		x.workers, x.serial = max(many.Workers(), 1), false
	}
	x.rand = c.random(process, x.name, life)
	x.again.run = x.resync
	x.tell = x.callChanged
	x.queue, x.ping = c.host.adopt(x)
	return x
}

// settle takes in the results of looks, jobs and watches, and reports whether there
// were any.
func (c *controller) settle() bool {
	did := c.finish()
	if c.serial && c.running > 0 {
		return did
	}
	did = c.takeReports() || did
	if !c.listed() {
		return did
	}
	return c.takeChanges() || did
}

// begin lets the reconciler look at keys once its watches are listed, and
// reports whether it did.
func (c *controller) begin() bool {
	c.mu.Lock()
	if c.ready || c.unlisted > 0 {
		c.mu.Unlock()
		return false
	}
	c.ready = true
	for _, e := range c.sorted() {
		c.place(e)
	}
	c.mu.Unlock()
	c.resync()
	return true
}

// drop takes what is planned out of the queue.
func (c *controller) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.keys {
		c.queue.remove(&e.item)
	}
	c.queue.remove(&c.again)
}

func (c *controller) listed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unlisted == 0
}

// list counts one of the reconciler's watches as listed.
func (c *controller) list() {
	c.mu.Lock()
	c.unlisted--
	c.mu.Unlock()
	c.ping()
}

// of returns what is known of a key.
func (c *controller) of(key Key) *entry {
	e := c.keys[key]
	if e == nil {
		e = &entry{c: c, key: key}
		e.item.run = e.begin
		c.keys[key] = e
	}
	return e
}

// sorted returns all entries by key.
func (c *controller) sorted() []*entry {
	return slices.SortedFunc(maps.Values(c.keys), func(x, y *entry) int { return x.key.Compare(y.key) })
}

// want plans a look at a key.
func (c *controller) want(key Key, after time.Duration) {
	now := c.host.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.plan(c.of(key), now.Add(max(after, 0)), now)
}

// plan plans a look at a time, unless an earlier one is planned. What is due
// waits in the order in which it became due, so a time in the past is now.
func (c *controller) plan(e *entry, at, now time.Time) {
	at = latest(at, now, e.hold)
	if !e.due.IsZero() && !at.Before(e.due) {
		return
	}
	e.due = at
	c.place(e)
}

func latest(t time.Time, others ...time.Time) time.Time {
	for _, o := range others {
		if o.After(t) {
			t = o
		}
	}
	return t
}

// place puts a planned look into the queue, unless it has to wait.
func (c *controller) place(e *entry) {
	if !e.due.IsZero() && c.ready && !e.running && !e.parked {
		c.queue.put(&e.item, e.due, c.host.now())
	}
}

// unpark lets keys that failed be looked at again.
func (c *controller) unpark() {
	now := c.host.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.sorted() {
		if e.parked {
			e.parked = false
			c.plan(e, now, now)
			c.place(e)
		}
	}
}

// setBack adapts to a clock that was set back by d: what is planned is as far off
// as before.
func (c *controller) setBack(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue.setBack(d)
	for _, e := range c.keys {
		for _, t := range []*time.Time{&e.due, &e.hold, &e.asked, &e.begun} {
			if !t.IsZero() {
				*t = t.Add(-d)
			}
		}
	}
}

// begin starts the look that was planned.
func (e *entry) begin() {
	c, now := e.c, e.c.host.now()
	c.mu.Lock()
	e.running, e.due = true, time.Time{}
	if !e.begun.Equal(now) {
		e.looks = 0
	}
	e.begun = now
	e.looks++
	if !e.asked.After(now) {
		e.asked = time.Time{}
	}
	c.mu.Unlock()
	c.running++
	q := Request{Key: e.key, Now: now.Add(c.host.skew(c.process)), Rand: c.rand}
	if !c.serial {
		q.Rand = rand.New(rand.NewPCG(c.rand.Uint64(), c.rand.Uint64()))
	}
	c.host.look(e, q)
}

// look calls Reconcile.
func (e *entry) look(ctx context.Context, q Request) error {
	r := result{entry: e, now: q.Now, err: &panics.Error{}} // what a Goexit leaves
	defer func() { e.c.came(r) }()
	r.err = panics.Catch(func() (err error) {
		r.result, err = e.c.reconciler.Reconcile(ctx, q)
		return err
	})
	return r.err
}

// came stores the result of a look.
func (c *controller) came(r result) {
	c.mu.Lock()
	c.results.add(r)
	c.mu.Unlock()
	c.ping()
}

// finish takes in the results of looks.
func (c *controller) finish() bool {
	c.mu.Lock()
	results := c.results.take()
	c.mu.Unlock()
	for _, r := range results {
		c.running--
		if r.err == nil {
			r.err = checkJobs(r.result.Jobs)
		}
		switch {
		case c.core.ended:
		case c.host.context().Err() != nil:
			c.resume(r.entry)
		case r.err != nil:
			c.failed(r.entry, r.err)
		default:
			// At is by the clock of the request, which may be off or have been
			// set back since.
			if !r.result.At.IsZero() {
				r.result.At = r.result.At.Add(r.entry.begun.Sub(r.now))
			}
			c.succeeded(r.entry, r.result)
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

func (c *controller) succeeded(e *entry, r Result) {
	if e.failing.count > 0 {
		c.observe(EventRecovered, Attempt{Key: e.key, Failures: e.failing.count}, nil)
	}
	e.failing, e.conflicts = failing{}, 0

	now := c.host.now()
	c.mu.Lock()
	e.hold, e.asked = time.Time{}, r.At
	c.release(e)
	if !r.At.IsZero() {
		c.plan(e, r.At, now)
	}
	c.mu.Unlock()

	c.wake(r.Wake)
	c.setJobs(e, r.Jobs)
	c.setWatches(e, r.Watches)

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.core.forgets && e.due.IsZero() && len(e.jobs) == 0 && len(e.watches) == 0 {
		delete(c.keys, e.key)
	}
}

// failed plans another look after an error. The earlier Result stays in effect.
func (c *controller) failed(e *entry, err error) {
	now := c.host.now()
	if apierrors.IsConflict(err) && e.conflicts < maxConflicts {
		e.conflicts++
		c.resume(e)
		return
	}
	report := e.failing.fail(now)
	delay, busy := e.failing.wait(err)
	what, retry := EventFailed, now.Add(delay)
	if busy {
		what = EventServerBusy
		report = report || !e.failing.busy
		e.failing.busy = true
	}
	c.mu.Lock()
	if busy {
		e.hold = retry
	}
	e.parked = c.core.parks
	c.release(e)
	c.plan(e, retry, now)
	if !e.asked.IsZero() {
		c.plan(e, e.asked, now)
	}
	c.mu.Unlock()
	c.host.failed(fmt.Errorf("%s %s: %w", c.name, e.key, err))
	if report {
		c.observe(what, Attempt{Key: e.key, Failures: e.failing.count, Retry: retry}, err)
	}
}

// resume plans a look at a key again at once.
func (c *controller) resume(e *entry) {
	now := c.host.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.release(e)
	c.plan(e, now, now)
}

// release ends a look, and plans the one that was asked for in the meantime.
func (c *controller) release(e *entry) {
	e.running = false
	if !e.due.IsZero() {
		e.due = latest(e.due, e.hold)
		c.place(e)
	}
}

// wake plans the looks that a result or a callback asks for.
func (c *controller) wake(wakes []Wake) {
	for _, w := range wakes {
		to := c
		if w.Reconciler != "" {
			to = c.named[w.Reconciler]
		}
		if to == nil {
			c.fault(w.Key, fmt.Errorf("there is no reconciler %q to wake", w.Reconciler))
			continue
		}
		to.want(w.Key, w.After)
	}
}

// changed takes in a change of an object, and makes one of it and those that
// Changed has not been called with.
func (c *controller) changed(sub *subscriber, key types.NamespacedName, old, new *clusterapi.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := changeID{sub, key}
	if i, ok := c.index[id]; ok {
		c.changes.in[i].new = new
		return
	}
	if c.index == nil {
		c.index = make(map[changeID]int)
	}
	c.index[id] = len(c.changes.in)
	c.changes.add(change{sub, old, new})
	c.ping()
}

// takeChanges calls Changed for all changes.
func (c *controller) takeChanges() bool {
	c.mu.Lock()
	c.waiting = c.changes.take()
	if len(c.waiting) > maxKept {
		c.index = nil
	} else {
		clear(c.index)
	}
	c.mu.Unlock()
	if len(c.waiting) == 0 {
		return false
	}
	for len(c.waiting) > 0 {
		if err := c.host.isolate(c.tell); err != nil {
			c.fault(Key{}, err)
		}
	}
	return true
}

// callChanged calls Changed for the waiting changes, until it panics.
func (c *controller) callChanged() error {
	now := c.host.now().Add(c.host.skew(c.process))
	for len(c.waiting) > 0 {
		x := c.waiting[0]
		c.waiting = c.waiting[1:]
		if !x.sub.ended && !c.core.ended && (x.old != nil || x.new != nil) {
			c.wake(x.sub.watch.Changed(now, x.old, x.new))
		}
	}
	return nil
}

// resync wakes all keys of a Lister, now and at intervals.
func (c *controller) resync() {
	if c.lister == nil {
		return
	}
	c.call(Key{}, func() []Wake {
		for _, key := range c.lister.Keys() {
			c.want(key, 0)
		}
		return nil
	})
	if c.core.resync == Never {
		return
	}
	now := c.host.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue.put(&c.again, now.Add(c.core.resync), now)
}

// call calls a function of the reconciler that may wake keys.
func (c *controller) call(key Key, f func() []Wake) {
	var wakes []Wake
	if err := c.host.isolate(func() error { wakes = f(); return nil }); err != nil {
		c.fault(key, err)
		return
	}
	if !c.core.ended {
		c.wake(wakes)
	}
}

// fault reports an error outside of a look: a callback that panicked, or a wake of
// an unknown reconciler. It reports those that last seldom.
func (c *controller) fault(key Key, err error) {
	if c.core.ended {
		return
	}
	now := c.host.now()
	c.mu.Lock()
	if now.Sub(c.callback.last) > defaultResync {
		c.callback = failing{}
	}
	report, count := c.callback.fail(now), c.callback.count
	c.mu.Unlock()
	c.host.failed(fmt.Errorf("%s: %w", c.name, err))
	if report {
		c.observe(EventFailed, Attempt{Key: key, Failures: count}, err)
	}
}

// observe reports an event of the reconciler.
func (c *controller) observe(t clusterapi.EventType, a Attempt, err error) {
	a.Process, a.Reconciler = c.process, c.name
	c.host.observe(eventAbout(t, a, err))
}

// setWatches makes the further watches of a key those of its latest Result.
func (c *controller) setWatches(e *entry, want []Watch) {
	if len(want) == 0 && len(e.watches) == 0 {
		return
	}
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
		if c.core.sources.api == nil {
			c.fault(e.key, fmt.Errorf("%s cannot be watched: there is no API", w.GVK.Kind))
			continue
		}
		s := &subscriber{c: c, watch: w}
		c.core.sources.subscribe(s)
		kept = append(kept, s)
	}
	for _, s := range e.watches {
		c.core.sources.unsubscribe(s)
	}
	e.watches = kept
}
