package reconcile

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// stream is one watch of a process: how the changes of the cluster reach a source.
type stream struct {
	h      *life
	source *source
	listed uint64 // the number of the last change that the list showed

	events uint64                             // counted, for draws
	late   []*delivery                        // on their way, in order
	last   time.Time                          // when the last of them arrives
	waits  map[types.NamespacedName]*delivery // merged with the next change
}

// delivery is an event on its way.
type delivery struct {
	key    types.NamespacedName
	object *clusterapi.Object // nil: it was deleted
	twice  bool
	done   bool
}

// follow lists a watch and follows the changes after that.
func (h *life) follow(s *source) {
	w := &stream{h: h, source: s, waits: make(map[types.NamespacedName]*delivery)}
	gk := s.id.gvk.GroupKind()
	h.streams[gk] = append(h.streams[gk], w)
	w.list()
}

func (h *life) unfollow(s *source) {
	gk := s.id.gvk.GroupKind()
	h.streams[gk] = slices.DeleteFunc(h.streams[gk], func(w *stream) bool { return w.source == s })
}

// list lists the watch, now and again until that succeeds. A kind that is not
// served is empty: should it be served later, its objects arrive as changes.
func (w *stream) list() {
	v := w.h.v
	v.pull()
	w.listed = v.pulled
	err := w.away()
	if err == nil {
		err = w.source.list(w.h.ctx)
	}
	if err == nil {
		return
	}
	delay := w.source.failed(err)
	if notServed(err) {
		return
	}
	v.at(v.Now().Add(delay), func() {
		if !w.h.core.ended && w.followed() {
			w.list()
		}
	})
}

// away draws whether the list fails.
func (w *stream) away() error {
	v, process := w.h.v, w.h.p.Name
	if !v.faults.strikes(process, v.Now()) {
		return nil
	}
	if v.faults.away(v.Now()) {
		return errAway
	}
	c := call{process: process, verb: "Watch", kind: w.source.id.gvk.Kind}
	if v.faults.of(c).hit("fails", v.faults.Before) {
		return errServer
	}
	return nil
}

// followed reports whether the watch still has subscribers.
func (w *stream) followed() bool {
	return slices.Contains(w.h.streams[w.source.id.gvk.GroupKind()], w)
}

// changed hands a change to the watches of a process, now or later.
func (h *life) changed(gk schema.GroupKind, change clusterapi.Change, number uint64) {
	var twice []*stream
	key := change.Object().Key()
	for _, w := range h.streams[gk] {
		if listed, _ := w.source.state(); !listed || number <= w.listed {
			continue // the list shows it
		}
		d := w.delivery(key, change)
		if d == nil {
			continue
		}
		delay := w.draw(d)
		switch {
		case d.done: // merged into one that waits
		case delay > 0 || len(w.late) > 0:
			w.post(d, delay)
		default:
			w.arrive(d)
			if d.twice {
				twice = append(twice, w)
			}
		}
	}
	h.v.settle()
	for _, w := range twice {
		w.source.repeat(key)
	}
	h.v.settle()
}

// delivery returns the event of a change, nil where the watch does not select
// the object.
func (w *stream) delivery(key types.NamespacedName, change clusterapi.Change) *delivery {
	o := w.source.options
	if change.New != nil && o.Selects(change.New.Unstructured()) {
		return &delivery{key: key, object: inVersion(change.New, w.source.id.gvk)}
	}
	if change.Old != nil && o.Selects(change.Old.Unstructured()) {
		return &delivery{key: key}
	}
	return nil
}

// draw decides how late an event arrives, and whether twice, or as one with the
// next change of its object.
func (w *stream) draw(d *delivery) (delay time.Duration) {
	v, process, id := w.h.v, w.h.p.Name, w.source.id
	w.events++
	if v.o.Latency.Watch > 0 {
		n := mix(v.o.Seed, hash(process), hash(id.gvk.Kind), hash(id.namespace), hash(id.nodeName), w.events)
		delay = time.Duration(unit(n) * float64(v.o.Latency.Watch))
	}
	if waiting := w.waits[d.key]; waiting != nil && !waiting.done {
		// Its place in the order of events is the earlier one.
		waiting.object, d.done = d.object, true
		delete(w.waits, d.key)
		return 0
	}
	f := v.faults
	if !f.strikes(process, v.Now()) {
		return delay
	}
	draws := f.of(call{process: process, verb: "event", kind: id.gvk.Kind, key: d.key})
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

// post makes a delivery arrive after a delay, and after all that are on their way.
func (w *stream) post(d *delivery, delay time.Duration) {
	v := w.h.v
	at := v.Now().Add(delay)
	if at.Before(w.last) {
		at = w.last
	}
	w.last = at
	w.late = append(w.late, d)
	v.at(at, func() {
		if w.h.core.ended || len(w.late) == 0 || !w.followed() {
			return
		}
		// The order of events stays, whatever the order of due items.
		first := w.late[0]
		w.late = w.late[1:]
		w.arrive(first)
		if first.twice {
			v.settle()
			w.source.repeat(first.key)
		}
	})
}

// arrive shows the source a delivery.
func (w *stream) arrive(d *delivery) {
	d.done = true
	if w.waits[d.key] == d {
		delete(w.waits, d.key)
	}
	w.source.set(d.key, d.object)
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
