package reconcile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// vprocess is a process of a virtual run. What a crash ends has the life of the
// time before.
type vprocess struct {
	Process
	v           *Virtual
	life        *life
	lives       uint64
	stopped     bool
	reconcilers []*vreconciler
	named       map[string]*vreconciler
	watches     watchSet
	ctx         context.Context
}

// life is the time from a start of a process to its crash.
type life struct {
	over   bool
	cancel context.CancelFunc
}

// begin makes the process's reconcilers and begins their watches.
func (p *vprocess) begin() {
	if p.stopped {
		return
	}
	ctx, cancel := context.WithCancel(clusterapi.WithoutRetries(context.WithValue(context.Background(), driverKey{}, waiter(p.v))))
	p.ctx, p.life = ctx, &life{cancel: cancel}
	p.lives++
	p.reconcilers, p.named, p.watches = nil, make(map[string]*vreconciler), newWatchSet()
	made := p.New(&virtualAPI{p: p, life: p.life})
	for _, r := range made {
		x := &vreconciler{Reconciler: r, name: r.Name(), p: p, keys: make(map[Key]*vkey),
			rand: rand.New(rand.NewPCG(p.v.o.Seed, mix(hash(p.Name), hash(r.Name()), p.lives)))}
		p.reconcilers, p.named[x.name] = append(p.reconcilers, x), x
	}
	for _, r := range p.reconcilers {
		for _, w := range r.Watches() {
			r.unlisted += p.subscribe(&subscription{r: r, watch: w, initial: true})
		}
	}
	p.list(p.watches.ordered)
}

// crash ends the process's life and begins another one later.
func (p *vprocess) crash() {
	if p.life == nil || p.life.over {
		return
	}
	p.drop()
	p.v.observe(eventAbout(EventCrashed, Attempt{Process: p.Name}, nil))
	p.v.at(p.v.Now().Add(p.restart()), p.begin)
}

func (p *vprocess) restart() time.Duration {
	if p.v.faults != nil {
		return p.v.faults.Restart
	}
	return time.Second
}

// drop forgets all that the process has begun.
func (p *vprocess) drop() {
	if p.life == nil || p.life.over {
		return
	}
	p.life.over = true
	p.life.cancel()
	for _, r := range p.reconcilers {
		for _, k := range r.keys {
			p.v.remove(&k.item)
		}
	}
	p.reconcilers, p.named, p.watches = nil, nil, newWatchSet()
}

// skew is by how much the process's clock is off.
func (p *vprocess) skew() time.Duration {
	if p.v.faults == nil {
		return 0
	}
	return p.v.faults.skew(p.Name, p.v.Now())
}

// call runs a callback of the process; a panic is an error.
func (p *vprocess) call(f func()) error {
	return panics.Catch(func() error { f(); return nil })
}

// vreconciler is a reconciler of a virtual run.
type vreconciler struct {
	Reconciler
	name     string
	p        *vprocess
	keys     map[Key]*vkey
	unlisted int // of its watches; no key is looked at before it is zero
	ready    bool
	rand     *rand.Rand
}

// becomeReady lets the reconciler look at keys, once its watches are listed.
func (r *vreconciler) becomeReady() {
	r.ready = true
	waiting := make([]*vkey, 0, len(r.keys))
	for _, k := range r.keys {
		waiting = append(waiting, k)
	}
	slices.SortFunc(waiting, func(a, b *vkey) int { return a.key.Compare(b.key) })
	for _, k := range waiting {
		r.p.v.push(&k.item, k.wanted)
	}
	r.resync()
}

// resync wakes all keys, now and at intervals.
func (r *vreconciler) resync() {
	l, ok := r.Reconciler.(Lister)
	if !ok {
		return
	}
	life := r.p.life
	var keys []Key
	if err := r.p.call(func() { keys = l.Keys() }); err != nil {
		r.p.v.observe(eventAbout(EventFailed, Attempt{Process: r.p.Name, Reconciler: r.name, Failures: 1}, err))
	}
	for _, key := range keys {
		r.wake(key, r.p.v.Now())
	}
	r.p.v.at(r.p.v.Now().Add(defaultResync), func() {
		if !life.over {
			r.resync()
		}
	})
}

// vkey is a key of a reconciler. Its item is in the queue while a look at it is
// due.
type vkey struct {
	item
	r        *vreconciler
	key      Key
	wanted   time.Time // when a look is due, before the reconciler is ready
	hold     time.Time // no look before: the server asked to be left alone
	asked    time.Time // the At of the latest Result, while that is to come
	jobs     map[any]*vjob
	watches  []*subscription
	failing  failing
	conflict int

	visited time.Time
	visits  int // at that time
}

func (k *vkey) String() string { return k.r.p.Name + " " + k.r.name + " " + k.key.String() }

func (r *vreconciler) key(key Key) *vkey {
	k := r.keys[key]
	if k == nil {
		k = &vkey{r: r, key: key}
		k.index, k.run = -1, k.reconcile
		r.keys[key] = k
	}
	return k
}

// wake makes a look at a key due, unless it is earlier.
func (r *vreconciler) wake(key Key, at time.Time) { r.key(key).due(at) }

func (k *vkey) due(at time.Time) {
	v := k.r.p.v
	if at.Before(k.hold) {
		at = k.hold
	}
	switch {
	case !k.r.ready:
		if k.wanted.IsZero() || at.Before(k.wanted) {
			k.wanted = at
		}
	case k.index < 0:
		v.push(&k.item, at)
	case at.Before(k.at):
		v.remove(&k.item)
		v.push(&k.item, at)
	}
}

// wakes makes all the looks due that a callback asks for.
func (r *vreconciler) wakes(wakes []Wake) {
	for _, w := range wakes {
		to := r
		if w.Reconciler != "" && w.Reconciler != r.name {
			to = r.p.named[w.Reconciler]
			if to == nil {
				r.p.v.observe(eventAbout(EventFailed, Attempt{Process: r.p.Name, Reconciler: r.name, Key: w.Key, Failures: 1}, fmt.Errorf("there is no reconciler %q to wake", w.Reconciler)))
				continue
			}
		}
		to.wake(w.Key, r.p.v.Now().Add(max(w.After, 0)))
	}
}

// reconcile looks at the key.
func (k *vkey) reconcile() {
	r, p, v, now := k.r, k.r.p, k.r.p.v, k.r.p.v.Now()
	if k.visited.Equal(now) {
		v.repeats++
	} else {
		k.visited, k.visits = now, 0
	}
	k.visits++
	if !k.asked.After(now) {
		k.asked = time.Time{}
	}
	life, skew := p.life, p.skew()
	var res Result
	err := panics.Catch(func() (err error) {
		res, err = r.Reconcile(p.ctx, Request{Key: k.key, Now: now.Add(skew), Rand: r.rand})
		if err == nil {
			err = checkJobs(res.Jobs)
		}
		return err
	})
	switch {
	case life.over:
		return
	case err != nil:
		k.failed(err)
		return
	}
	if k.failing.count > 0 {
		v.observe(eventAbout(EventRecovered, Attempt{Process: p.Name, Reconciler: r.name, Key: k.key, Failures: k.failing.count}, nil))
	}
	k.failing, k.conflict, k.hold, k.asked = failing{}, 0, time.Time{}, time.Time{}
	if !res.At.IsZero() {
		k.asked = res.At.Add(-skew)
		k.due(k.asked)
	}
	r.wakes(res.Wake)
	k.setJobs(res.Jobs)
	k.setWatches(res.Watches)
}

// failed makes the key look again after a delay that grows.
func (k *vkey) failed(err error) {
	v, now := k.r.p.v, k.r.p.v.Now()
	if apierrors.IsConflict(err) && k.conflict < maxConflicts {
		k.conflict++
		k.due(now)
		return
	}
	tell := k.failing.fail(now)
	delay, busy := k.failing.wait(err)
	if busy {
		v.remove(&k.item)
		k.hold = now.Add(delay)
	}
	k.due(now.Add(delay))
	if !k.asked.IsZero() { // the earlier Result stays in effect
		k.due(k.asked)
	}
	if !tell && (!busy || k.failing.busy) {
		return
	}
	e := eventAbout(EventFailed, Attempt{Process: k.r.p.Name, Reconciler: k.r.name, Key: k.key, Failures: k.failing.count, Retry: now.Add(delay)}, err)
	if busy {
		e.Type, k.failing.busy = EventServerBusy, true
	}
	v.observe(e)
}
