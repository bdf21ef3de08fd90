package reconcile

import (
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// watchID tells which watches are the same.
type watchID struct {
	gvk                         schema.GroupVersionKind
	namespace, labels, nodeName string
}

func idOf(w Watch) watchID {
	id := watchID{gvk: w.GVK, namespace: w.Options.Namespace, nodeName: w.Options.NodeName}
	if w.Options.Labels != nil {
		id.labels = w.Options.Labels.String()
	}
	return id
}

// subscription is the interest of a reconciler, or of one of its keys, in a
// watch.
type subscription struct {
	r       *vreconciler
	watch   Watch
	initial bool // one of those that the reconciler waits for
	ended   bool
	on      *vwatch
}

// vwatch is one watch of a process, with what its subscribers know.
type vwatch struct {
	id     watchID
	p      *vprocess
	watch  Watch // of the first subscriber
	subs   []*subscription
	listed bool
	known  map[types.NamespacedName]*clusterapi.Object
	tries  int

	events uint64                             // counted, for draws
	late   []*delivery                        // not told yet, in order
	last   time.Time                          // when the last of them is told
	waits  map[types.NamespacedName]*delivery // merged with the next change
}

// delivery is an event on its way.
type delivery struct {
	key    types.NamespacedName
	object *clusterapi.Object // nil: it went
	twice  bool
	done   bool
}

// watchSet is the watches of a process.
type watchSet struct {
	ordered []*vwatch
	byID    map[watchID]*vwatch
	byKind  map[schema.GroupKind][]*vwatch
}

func newWatchSet() watchSet {
	return watchSet{byID: make(map[watchID]*vwatch), byKind: make(map[schema.GroupKind][]*vwatch)}
}

// subscribe adds a subscription, and returns 1 if its watch is to be listed
// first. Watches that trim are not shared.
func (p *vprocess) subscribe(s *subscription) int {
	id := idOf(s.watch)
	w := p.watches.byID[id]
	if w == nil || s.watch.Trim != nil {
		w = &vwatch{id: id, p: p, watch: s.watch, known: make(map[types.NamespacedName]*clusterapi.Object), waits: make(map[types.NamespacedName]*delivery)}
		p.watches.ordered = append(p.watches.ordered, w)
		gk := id.gvk.GroupKind()
		p.watches.byKind[gk] = append(p.watches.byKind[gk], w)
		if s.watch.Trim == nil {
			p.watches.byID[id] = w
		}
	}
	s.on = w
	w.subs = append(w.subs, s)
	if w.listed {
		return 0
	}
	return 1
}

// unsubscribe ends a subscription, and its watch with the last one.
func (p *vprocess) unsubscribe(s *subscription) {
	s.ended = true
	w := s.on
	w.subs = slices.DeleteFunc(w.subs, func(o *subscription) bool { return o == s })
	if len(w.subs) > 0 {
		return
	}
	is := func(o *vwatch) bool { return o == w }
	p.watches.ordered = slices.DeleteFunc(p.watches.ordered, is)
	gk := w.id.gvk.GroupKind()
	p.watches.byKind[gk] = slices.DeleteFunc(p.watches.byKind[gk], is)
	if p.watches.byID[w.id] == w {
		delete(p.watches.byID, w.id)
	}
}

// setWatches makes the further watches of a key those of its latest Result.
func (k *vkey) setWatches(want []Watch) {
	if len(want) == 0 && len(k.watches) == 0 {
		return
	}
	p := k.r.p
	var kept, fresh []*subscription
	for _, w := range want {
		is := func(s *subscription) bool { return idOf(s.watch) == idOf(w) }
		if slices.ContainsFunc(kept, is) || slices.ContainsFunc(fresh, is) {
			continue
		}
		if i := slices.IndexFunc(k.watches, is); i >= 0 {
			kept = append(kept, k.watches[i])
			k.watches = slices.Delete(k.watches, i, i+1)
			continue
		}
		fresh = append(fresh, &subscription{r: k.r, watch: w})
	}
	for _, s := range k.watches {
		p.unsubscribe(s)
	}
	k.watches = append(kept, fresh...)
	for _, s := range fresh {
		if p.subscribe(s) == 1 {
			p.list([]*vwatch{s.on})
			continue
		}
		p.tell([]told{{s.on, sorted(s.on.known)}}, s)
	}
}

// list lists watches for the first time and tells their subscribers.
func (p *vprocess) list(watches []*vwatch) {
	var all []told
	for _, w := range slices.Clone(watches) {
		objects, err := p.listOne(w)
		if err != nil {
			w.tries++
			life, delay := p.life, backoff(w.tries)
			p.v.observe(eventAbout(EventWatchFailed, Attempt{Process: p.Name, Watch: w.id.gvk.Kind, Failures: w.tries, Retry: p.v.Now().Add(delay)}, err))
			p.v.at(p.v.Now().Add(delay), func() {
				if !life.over && !w.listed && len(w.subs) > 0 {
					p.list([]*vwatch{w})
				}
			})
			continue
		}
		w.listed = true
		events := make([]event, 0, len(objects))
		for _, o := range objects {
			o = w.keep(o)
			w.known[o.Key()] = o
			events = append(events, event{nil, o})
		}
		all = append(all, told{w, events})
	}
	p.tell(all, nil)
	for _, t := range all {
		for _, s := range t.w.subs {
			if s.initial {
				s.r.unlisted--
			}
		}
	}
	for _, r := range p.reconcilers {
		if r.unlisted == 0 && !r.ready {
			r.becomeReady()
		}
	}
}

// listOne lists a watch. A kind that is not served is empty: should it be
// served later, its objects come as changes.
func (p *vprocess) listOne(w *vwatch) ([]*clusterapi.Object, error) {
	if f := p.v.faults; f.strikes(p.Name, p.v.Now()) {
		if f.away(p.v.Now()) {
			return nil, errAway
		}
		if f.of(call{process: p.Name, verb: "Watch", kind: w.id.gvk.Kind}).hit("fails", f.Before) {
			return nil, errServer
		}
	}
	o := w.watch.Options
	o.Limit = 0
	objects, err := clusterapi.ListShared(p.ctx, p.v.o.Cluster, w.id.gvk, o)
	if meta.IsNoMatchError(err) || errors.Is(err, clusterapi.ErrNotCollected) {
		return objects, nil
	}
	return objects, err
}

// keep is what the watch keeps of an object.
func (w *vwatch) keep(o *clusterapi.Object) *clusterapi.Object {
	if o == nil || w.watch.Trim == nil {
		return o
	}
	return clusterapi.NewObject(w.watch.Trim(o.Unstructured()))
}

// event is a change as a subscriber sees it.
type event struct{ old, new *clusterapi.Object }

// told are the events of a watch that are to be told together with others.
type told struct {
	w      *vwatch
	events []event
}

// tell hands events to the subscribers, or to only one of them: to all Caches
// first, then to all Changeds.
func (p *vprocess) tell(all []told, only *subscription) {
	life := p.life
	now := p.v.Now().Add(p.skew())
	each := func(f func(s *subscription, e event)) {
		for _, t := range all {
			for _, e := range t.events {
				for _, s := range slices.Clone(t.w.subs) {
					if (only == nil || s == only) && !s.ended && !life.over {
						f(s, e)
					}
				}
			}
		}
	}
	each(func(s *subscription, e event) {
		if s.watch.Cache != nil {
			s.r.guard(func() { s.watch.Cache(now, e.old, e.new) })
		}
	})
	each(func(s *subscription, e event) {
		if s.watch.Changed != nil {
			var wakes []Wake
			s.r.guard(func() { wakes = s.watch.Changed(now, e.old, e.new) })
			s.r.wakes(wakes)
		}
	})
}

// guard runs a callback of the reconciler; a panic is reported.
func (r *vreconciler) guard(f func()) {
	if err := r.p.call(f); err != nil && !r.p.life.over {
		r.p.v.observe(eventAbout(EventFailed, Attempt{Process: r.p.Name, Reconciler: r.name, Failures: 1}, err))
	}
}

func sorted(known map[types.NamespacedName]*clusterapi.Object) []event {
	events := make([]event, 0, len(known))
	for _, o := range known {
		events = append(events, event{nil, o})
	}
	slices.SortFunc(events, func(a, b event) int { return compareNames(a.new.Key(), b.new.Key()) })
	return events
}

// pull reads the changes of the cluster, and remembers what was before where
// reads may be stale.
func (v *Virtual) pull() {
	for change, ok := v.cursor.Next(); ok; change, ok = v.cursor.Next() {
		if v.faults != nil && v.faults.Stale > 0 {
			v.past.add(change, v.Now())
		}
		v.pending = append(v.pending, change)
	}
}

// drain tells the processes of the changes of the cluster.
func (v *Virtual) drain() {
	for v.pull(); len(v.pending) > 0; v.pull() {
		change := v.pending[0]
		v.pending = v.pending[1:]
		gk := change.Object().Kind().GroupKind()
		for _, p := range slices.Clone(v.processes) {
			if p.life != nil && !p.life.over {
				p.changed(gk, change)
			}
		}
	}
}

// changed tells a process of a change, now or later.
func (p *vprocess) changed(gk schema.GroupKind, change clusterapi.Change) {
	var now []told
	for _, w := range p.watches.byKind[gk] {
		if !w.listed {
			continue // the list will show it
		}
		key := change.Object().Key()
		object := change.New
		if object != nil && !w.watch.Options.Selects(object.Unstructured()) {
			object = nil
		}
		if object == nil && (change.Old == nil || !w.watch.Options.Selects(change.Old.Unstructured())) {
			continue
		}
		if object != nil {
			object = w.keep(inVersion(object, w.id.gvk))
		}
		d := &delivery{key: key, object: object}
		delay := p.draw(w, d)
		if d.done {
			continue // merged into one that waits
		}
		if delay == 0 && len(w.late) == 0 {
			now = append(now, told{w, w.take(d)})
			continue
		}
		w.post(d, delay)
	}
	if len(now) > 0 {
		p.tell(now, nil)
	}
}

// draw decides how late an event is told, and whether twice, or as one with the
// next change of its object.
func (p *vprocess) draw(w *vwatch, d *delivery) (delay time.Duration) {
	v := p.v
	w.events++
	if v.o.Latency.Watch > 0 {
		n := mix(v.o.Seed, hash(p.Name), hash(w.id.gvk.Kind), hash(w.id.namespace), hash(w.id.nodeName), w.events)
		delay = time.Duration(unit(n) * float64(v.o.Latency.Watch))
	}
	if waiting := w.waits[d.key]; waiting != nil && !waiting.done {
		// Its place in the order of events is the earlier one.
		waiting.object, d.done = d.object, true
		delete(w.waits, d.key)
		return 0
	}
	f := v.faults
	if !f.strikes(p.Name, v.Now()) {
		return delay
	}
	draws := f.of(call{process: p.Name, verb: "event", kind: w.id.gvk.Kind, key: d.key})
	if draws.hit("late", f.Late) {
		delay += time.Duration(draws.number("how late") * float64(lateBy))
	}
	d.twice = draws.hit("twice", f.Double)
	if draws.hit("merged", f.Merge) {
		w.waits[d.key] = d
		delay = max(delay, time.Duration(draws.number("how long merged")*float64(lateBy)))
	}
	return delay
}

// post makes a delivery due after a delay, and after all that wait already.
func (w *vwatch) post(d *delivery, delay time.Duration) {
	v, life := w.p.v, w.p.life
	at := v.Now().Add(delay)
	if at.Before(w.last) {
		at = w.last
	}
	w.last = at
	w.late = append(w.late, d)
	v.at(at, func() {
		if life.over || len(w.late) == 0 || len(w.subs) == 0 {
			return
		}
		// The order of events stays, whatever the order of what is due.
		first := w.late[0]
		w.late = w.late[1:]
		w.p.tell([]told{{w, w.take(first)}}, nil)
	})
}

// take makes a delivery known and returns its events.
func (w *vwatch) take(d *delivery) []event {
	d.done = true
	if w.waits[d.key] == d {
		delete(w.waits, d.key)
	}
	old := w.known[d.key]
	if d.object == nil {
		if old == nil {
			return nil
		}
		delete(w.known, d.key)
	} else {
		w.known[d.key] = d.object
	}
	events := []event{{old, d.object}}
	if d.twice && d.object != nil {
		events = append(events, event{d.object, d.object})
	}
	return events
}

// inVersion is an object in the version that a watch asks for. The versions of a
// kind differ in nothing else here.
func inVersion(o *clusterapi.Object, gvk schema.GroupVersionKind) *clusterapi.Object {
	if o.Kind() == gvk {
		return o
	}
	u := *o.Unstructured()
	content := make(map[string]any, len(u.Object))
	for k, v := range u.Object {
		content[k] = v
	}
	u.Object = content
	u.SetGroupVersionKind(gvk)
	return clusterapi.NewObject(&u)
}
