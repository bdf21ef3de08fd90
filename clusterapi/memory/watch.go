package memory

import (
	"context"
	"iter"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Watch implements [clusterapi.Watcher]. A slow consumer never blocks a
// writer: changes wait in a queue. From 1024 waiting changes on, those of one
// object are merged into one that leads to the same state, so the queue is
// bounded by that and the number of objects.
func (c *Cluster) Watch(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) iter.Seq2[clusterapi.WatchEvent, error] {
	return func(yield func(clusterapi.WatchEvent, error) bool) {
		call := Call{Verb: "Watch", GVK: gvk, Key: types.NamespacedName{Namespace: opts.Namespace}}
		var w *watcher
		var existing []*entry
		var k *kind
		var partial error
		err := c.call(ctx, call, func(ctx context.Context) error {
			var err error
			k, err = c.touch(ctx, gvk)
			if err != nil {
				return err
			}
			w = &watcher{opts: opts, wake: make(chan struct{}, 1)}
			existing, partial = c.register(k, w)
			return nil
		})
		if w != nil {
			defer c.unregister(gvk.GroupKind(), w)
		}
		if ctx.Err() != nil {
			return
		}
		if err == nil && w == nil {
			err = errIntercepted
		}
		if err != nil {
			yield(clusterapi.WatchEvent{}, err)
			return
		}
		for _, e := range existing {
			if ctx.Err() != nil || !yield(clusterapi.WatchEvent{Type: clusterapi.Added, Object: c.shared(k, e).Unstructured().DeepCopy()}, nil) {
				return
			}
		}
		if partial != nil && ctx.Err() == nil {
			yield(clusterapi.WatchEvent{}, partial) // Synced would say that these are all
			return
		}
		if ctx.Err() != nil || !yield(clusterapi.WatchEvent{Type: clusterapi.Synced}, nil) {
			return
		}
		for {
			for _, change := range w.take() {
				if now, err := c.kind(gvk); err == nil { // its definition may have changed
					k = now
				}
				obj := k.shown(change.obj).DeepCopy()
				if ctx.Err() != nil || !yield(clusterapi.WatchEvent{Type: change.kind, Object: obj}, nil) {
					return
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-w.wake:
			}
		}
	}
}

// register starts a watch and returns what exists at that moment, and why that
// may not be all.
func (c *Cluster) register(k *kind, w *watcher) ([]*entry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.table(k.gvk.GroupKind())
	t.watchers[w] = true
	var existing []*entry
	t.selected(w.opts, func(e *entry) bool {
		existing = append(existing, e)
		return true
	})
	return existing, c.unknownIn(k.gvk.GroupKind(), w.opts.Namespace)
}

func (c *Cluster) unregister(gk schema.GroupKind, w *watcher) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.table(gk).watchers, w)
}

// notify notifies the watchers of a change: old is nil for a new object, e for a
// deleted one, and then last is its last state.
func (t *table) notify(old, e *entry, last *unstructured.Unstructured) {
	for w := range t.watchers {
		was := old != nil && w.opts.Selects(old.obj)
		is := e != nil && w.opts.Selects(e.obj)
		switch {
		case was && is:
			w.push(change{clusterapi.Modified, e.obj})
		case is:
			w.push(change{clusterapi.Added, e.obj})
		case was && e != nil: // it is no longer selected
			w.push(change{clusterapi.Deleted, withMetadata(old.obj, func(m map[string]any) {
				m["resourceVersion"] = metadata(e.obj)["resourceVersion"]
			})})
		case was:
			w.push(change{clusterapi.Deleted, last})
		}
	}
}

type change struct {
	kind clusterapi.WatchEventType
	obj  *unstructured.Unstructured
}

// watcher is the queue of one Watch.
type watcher struct {
	opts clusterapi.ListOptions
	wake chan struct{} // one token: there may be something to take

	mu      sync.Mutex
	queue   []change
	compact int // length at which to merge next
}

// mergeFrom is the length of a queue from which changes are merged.
const mergeFrom = 1024

func (w *watcher) push(ch change) {
	w.mu.Lock()
	w.queue = append(w.queue, ch)
	if len(w.queue) >= max(w.compact, mergeFrom) {
		w.queue = merge(w.queue)
		w.compact = 2 * len(w.queue) // so that merging costs little per change
	}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// take returns all that waits.
func (w *watcher) take() []change {
	w.mu.Lock()
	defer w.mu.Unlock()
	queue := w.queue
	w.queue, w.compact = nil, 0
	return queue
}

// merge leaves of each object's changes the last, with the type that leads there
// from what the consumer has seen. An object that was deleted and created again
// keeps both changes, one that was created and deleted neither.
func merge(queue []change) []change {
	lastOf := make(map[types.NamespacedName]int, len(queue))
	keep := make([]bool, len(queue))
	for i := range queue {
		key := clusterapi.KeyOf(queue[i].obj)
		j, seen := lastOf[key]
		lastOf[key], keep[i] = i, true
		if !seen || !keep[j] || queue[j].kind == clusterapi.Deleted {
			continue
		}
		keep[j] = false
		if queue[j].kind == clusterapi.Added {
			if queue[i].kind == clusterapi.Deleted {
				keep[i] = false
			} else {
				queue[i].kind = clusterapi.Added
			}
		}
	}
	out := queue[:0:0]
	for i := range queue {
		if keep[i] {
			out = append(out, queue[i])
		}
	}
	return out
}
