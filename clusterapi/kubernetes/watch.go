package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Watch implements [clusterapi.Watcher].
//
// The first list decides whether there is anything to watch: its error ends
// the sequence. After that, faults of the network and of the server are waited
// out, for as long as ctx lasts; errors that say that the request itself has
// become impossible, since the kind or the permission is gone, end it.
func (c *cluster) Watch(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) iter.Seq2[clusterapi.Event, error] {
	opts.Limit = 0
	return func(yield func(clusterapi.Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		w := &watcher{
			cluster: c, gvk: gvk, opts: opts,
			yield: func(e clusterapi.Event) bool { return yield(e, nil) },
			known: make(map[types.NamespacedName]*unstructured.Unstructured),
		}
		if err := w.run(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, errStopped) {
			yield(clusterapi.Event{}, err)
		}
	}
}

// errStopped says that the consumer wants no more.
var errStopped = errors.New("stopped")

// errExpired says that the server has forgotten where a watch was.
var errExpired = errors.New("the watch has expired")

// watcher is one Watch.
type watcher struct {
	*cluster
	gvk   schema.GroupVersionKind
	opts  clusterapi.ListOptions
	yield func(clusterapi.Event) bool

	known   map[types.NamespacedName]*unstructured.Unstructured // as yielded last
	synced  bool
	version string // where to go on; empty: list first
}

func (w *watcher) run(ctx context.Context) error {
	faults := 0
	for {
		before, began := w.version, w.o.Clock.Now()
		err := w.round(ctx)
		if w.o.Clock.Since(began) > time.Minute {
			faults = 0
		}
		switch {
		case ctx.Err() != nil, errors.Is(err, errStopped):
			return err
		case err == nil && w.version != before:
			faults = 0
			continue // the server ends a watch after some minutes
		case errors.Is(err, errExpired):
			w.version = ""
		case err == nil:
			// It ended at once: wait, lest this becomes a busy loop.
		case !w.synced || !passing(err):
			return err
		default:
			w.o.Logger.Warn("a watch is interrupted", "kind", w.gvk.Kind, "error", err)
		}
		faults++
		delay := time.Second << min(faults-1, 4)
		delay = delay/2 + rand.N(delay/2+1)
		select {
		case <-ctx.Done():
			return nil
		case <-w.o.Clock.After(delay):
		}
	}
}

// round lists where needed and follows one watch to its end.
func (w *watcher) round(ctx context.Context) error {
	return w.on(ctx, w.gvk, w.opts.Namespace, func(client dynamic.ResourceInterface, _ kind) error {
		if w.version == "" {
			if err := w.relist(ctx, client); err != nil {
				return err
			}
		}
		return w.follow(ctx, client)
	})
}

// relist yields what has changed since the last event: at first all.
func (w *watcher) relist(ctx context.Context, client dynamic.ResourceInterface) error {
	list, err := w.pages(ctx, client, w.gvk, w.opts)
	if err != nil {
		return err
	}
	there := make(map[types.NamespacedName]types.UID, len(list.Items))
	for i := range list.Items {
		there[clusterapi.KeyOf(&list.Items[i])] = list.Items[i].GetUID()
	}
	var gone []types.NamespacedName
	for key, old := range w.known {
		if uid, ok := there[key]; !ok || uid != old.GetUID() {
			gone = append(gone, key)
		}
	}
	slices.SortFunc(gone, compareKeys)
	for _, key := range gone {
		if err := w.tell(clusterapi.Deleted, w.known[key]); err != nil {
			return err
		}
	}
	for i := range list.Items {
		u := &list.Items[i]
		old, ok := w.known[clusterapi.KeyOf(u)]
		switch {
		case !ok:
			err = w.tell(clusterapi.Added, u)
		case old.GetResourceVersion() != u.GetResourceVersion():
			err = w.tell(clusterapi.Modified, u)
		}
		if err != nil {
			return err
		}
	}
	w.version = list.GetResourceVersion()
	if !w.synced {
		w.synced = true
		if !w.yield(clusterapi.Event{Type: clusterapi.Synced}) {
			return errStopped
		}
	}
	return nil
}

// follow yields changes from w.version on, until the server ends the watch.
func (w *watcher) follow(ctx context.Context, client dynamic.ResourceInterface) error {
	request := selection(w.opts)
	request.ResourceVersion = w.version
	request.AllowWatchBookmarks = true
	seconds := int64(300 + rand.IntN(300)) // so that many watches do not begin anew at once
	request.TimeoutSeconds = &seconds
	stream, err := client.Watch(ctx, request)
	if err != nil {
		return expired(err)
	}
	defer stream.Stop()
	for {
		var e watch.Event
		var ok bool
		select {
		case <-ctx.Done():
			return nil
		case e, ok = <-stream.ResultChan():
		}
		if !ok {
			return nil
		}
		if e.Type == watch.Error {
			return expired(apierrors.FromObject(e.Object))
		}
		u, ok := e.Object.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("watch of %s: unexpected %T", w.gvk.Kind, e.Object)
		}
		if err := w.change(e.Type, u); err != nil {
			return err
		}
		w.version = u.GetResourceVersion()
	}
}

func expired(err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return errExpired
	}
	return err
}

func (w *watcher) change(t watch.EventType, u *unstructured.Unstructured) error {
	old, known := w.known[clusterapi.KeyOf(u)]
	switch {
	case t == watch.Deleted && known:
		return w.tell(clusterapi.Deleted, u)
	case t != watch.Added && t != watch.Modified:
		return nil // a bookmark
	case known && old.GetUID() != u.GetUID():
		if err := w.tell(clusterapi.Deleted, old); err != nil {
			return err
		}
		return w.tell(clusterapi.Added, u)
	case known:
		return w.tell(clusterapi.Modified, u)
	}
	return w.tell(clusterapi.Added, u)
}

// tell yields an event and keeps the object for comparison: the consumer gets
// one of its own.
func (w *watcher) tell(t clusterapi.EventType, u *unstructured.Unstructured) error {
	key := clusterapi.KeyOf(u)
	if t == clusterapi.Deleted {
		delete(w.known, key)
	} else {
		w.known[key] = u
	}
	if !w.yield(clusterapi.Event{Type: t, Object: u.DeepCopy()}) {
		return errStopped
	}
	return nil
}
