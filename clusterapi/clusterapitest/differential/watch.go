package differential

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest/internal/probe"
)

// sideWatch is a watch of a run on one backend.
type sideWatch struct {
	step   step
	cancel context.CancelFunc
	synced chan struct{} // closed at the Synced mark, or at the end
	marked chan struct{} // closed when the last object is reported, or at the end
	ended  chan struct{}

	mu     sync.Mutex
	marker string // name of the object that is created last
	events []clusterapi.WatchEvent
	err    error
}

// watch opens a watch on both sides, which continues until the end of the run.
func (r *run) watch(i int, s step) []found {
	var watchers [2]clusterapi.Watcher
	for n, side := range r.sides {
		w, ok := side.api.(clusterapi.Watcher)
		if !ok {
			return nil
		}
		watchers[n] = w
	}
	var answers [2]fields
	for n, side := range r.sides {
		w := &sideWatch{step: s, synced: make(chan struct{}), marked: make(chan struct{}), ended: make(chan struct{}), marker: "end-" + fmt.Sprint(r.watches)}
		var ctx context.Context
		ctx, w.cancel = context.WithCancel(r.ctx)
		if s.ended {
			w.cancel()
		}
		go w.run(ctx, watchers[n], s.kind, r.selection(s))
		answers[n] = fields{"synced": "true"}
		if !within(w.synced) {
			answers[n]["synced"] = "waited in vain"
		}
		side.watches = append(side.watches, w)
	}
	r.watches++
	return diff(i, s.verb, s.kind.Name, answers[0], answers[1])
}

func within(c chan struct{}) bool {
	select {
	case <-c:
		return true
	case <-time.After(probe.Patience):
		return false
	}
}

func (w *sideWatch) run(ctx context.Context, watcher clusterapi.Watcher, k *kind, opts clusterapi.ListOptions) {
	var synced, marked sync.Once
	defer close(w.ended)
	defer marked.Do(func() { close(w.marked) })
	defer synced.Do(func() { close(w.synced) })
	for e, err := range watcher.Watch(ctx, k.gvk, opts) {
		w.mu.Lock()
		if err != nil {
			w.err = err
			w.mu.Unlock()
			continue
		}
		isMarker := e.Object != nil && strings.HasSuffix(e.Object.GetName(), w.marker)
		if !isMarker {
			w.events = append(w.events, e)
		}
		w.mu.Unlock()
		if e.Type == clusterapi.Synced {
			synced.Do(func() { close(w.synced) })
		}
		if isMarker {
			marked.Do(func() { close(w.marked) })
		}
	}
}

// events ends all watches, each after an object that is created for it has been
// reported, and compares what they reported.
func (r *run) events(i int) []found {
	var out []found
	for n := range r.watches {
		var answers [2]fields
		var objects [2][]fields
		kind := r.sides[0].watches[n].step.kind
		for m, side := range r.sides {
			answers[m], objects[m] = r.endWatch(side, side.watches[n])
		}
		these := diff(i, "Event", kind.Name, answers[0], answers[1])
		if len(these) == 0 {
			for j := range objects[0] {
				these = append(these, diff(i, "Event", kind.Name, objects[0][j], objects[1][j])...)
			}
		}
		out = append(out, these...)
	}
	return out
}

// endWatch waits for the events of one watch.
func (r *run) endWatch(side *side, w *sideWatch) (fields, []fields) {
	f := fields{}
	if !w.step.ended && w.step.kind.Name != "Nothing" {
		if err := r.mark(side, w); err != nil {
			f["marker"] = err.Error()
		} else if !within(w.marked) {
			f["marker"] = "created, and not reported"
		}
	}
	w.cancel()
	if !within(w.ended) {
		f["end"] = "goes on after its context has ended"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	f.addError(r, w.err)
	var types []string
	var objects []fields
	for _, e := range w.events {
		if e.Type == clusterapi.Synced || e.Object == nil {
			types = append(types, string(e.Type))
			continue
		}
		key := objectKey{w.step.kind.Name, clusterapi.KeyOf(e.Object)}
		if r.retired[key] || strings.HasPrefix(key.Name, "end-") || strings.HasPrefix(key.Name, r.id+"-end-") {
			continue
		}
		finalizers := e.Object.GetFinalizers()
		if e.Type == clusterapi.Modified && slices.ContainsFunc(finalizers, isCollectors) {
			continue // a backend that collects garbage by itself may not tell
		}
		types = append(types, string(e.Type)+" "+r.plain(key.NamespacedName.String()))
		content := fields{}
		content.addObject(r, side, w.step.kind, e.Object)
		delete(content, "metadata.resourceVersion") // known from other answers by now
		objects = append(objects, content)
	}
	f["events"] = strings.Join(types, ", ")
	return f, objects
}

// mark creates the object that a watch must report after all others.
func (r *run) mark(side *side, w *sideWatch) error {
	s := w.step
	s.name = w.marker
	if s.kind.Namespaced && s.namespace == "" {
		s.namespace = "one"
	}
	u := r.object(s, s.kind.Base)
	labels := map[string]any{"run": r.id, "app": "x"}
	switch {
	case s.selector == "color!=red":
		labels["color"] = "blue"
	case strings.HasPrefix(s.selector, "color"):
		labels["color"] = "red"
	}
	put(u.Object, []string{"metadata", "labels"}, labels)
	if s.node != "" {
		put(u.Object, []string{"spec", "nodeName"}, s.node)
	}
	_, err := side.api.Create(r.ctx, u, clusterapi.CreateOptions{})
	if key := (objectKey{s.kind.Name, clusterapi.KeyOf(u)}); err == nil && !slices.Contains(r.keys, key) {
		r.keys, r.kinds = append(r.keys, key), append(r.kinds, s.kind)
	}
	return err
}
