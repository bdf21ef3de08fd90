package backend

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// ErrTooLarge is in the chain of an error about an answer that is larger than
// its limit.
var ErrTooLarge = errors.New("the server's answer is too large")

// ErrClosed is the error of a watch that is used after it has been closed.
var ErrClosed = errors.New("the cluster's client is closed")

// Source is where a watch gets its objects.
type Source struct {
	// List returns all objects, sorted, and their size in bytes, if known.
	List func(ctx context.Context) (*unstructured.UnstructuredList, int64, error)
	// Follow calls do with each event of a watch, and its size in bytes, if
	// known, until the stream ends, ctx ends, or do returns an error, which it
	// returns.
	Follow func(ctx context.Context, o metav1.ListOptions, do func(t watch.EventType, u *unstructured.Unstructured, size int64) error) error
	// Limit bounds the size in bytes of the objects that a watch keeps; 0 means
	// no limit.
	Limit  int64
	Logger *slog.Logger
	Clock  clock.Clock
}

// Watch implements [clusterapi.Watcher].
//
// The first list decides whether there is anything to watch: its error ends
// the sequence. After that, faults of the network and of the server are waited
// out, for as long as ctx lasts; errors that say that the request itself has
// become impossible, since the kind or the permission is gone, end it, and so
// does an answer that is too large or not what was asked for.
func Watch(ctx context.Context, s Source, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) iter.Seq2[clusterapi.WatchEvent, error] {
	return func(yield func(clusterapi.WatchEvent, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		w := &watcher{
			Source: s, gvk: gvk, opts: opts,
			yield: func(e clusterapi.WatchEvent) bool { return yield(e, nil) },
			known: make(map[types.NamespacedName]known),
		}
		if err := w.run(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, errStopped) {
			yield(clusterapi.WatchEvent{}, err)
		}
	}
}

// errStopped reports that the consumer wants no more.
var errStopped = errors.New("stopped")

// errExpired reports that the server has forgotten where a watch was.
var errExpired = errors.New("the watch has expired")

// watcher is one Watch.
type watcher struct {
	Source
	gvk   schema.GroupVersionKind
	opts  clusterapi.ListOptions
	yield func(clusterapi.WatchEvent) bool

	known   map[types.NamespacedName]known // as yielded last
	size    int64                          // of all that is known
	synced  bool
	version string // where to continue; empty: list first
}

// known is an object that the consumer knows.
type known struct {
	*unstructured.Unstructured
	size int64
}

func (w *watcher) run(ctx context.Context) error {
	faults := 0
	for {
		before, began := w.version, w.Clock.Now()
		err := w.round(ctx)
		if w.Clock.Since(began) > time.Minute {
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
			// It ended at once. Without a wait this would be a busy loop.
		case !w.synced || !isTransient(err):
			return err
		default:
			w.Logger.Warn("a watch is interrupted", "kind", w.gvk.Kind, "error", err)
		}
		faults++
		delay := time.Second << min(faults-1, 4)
		delay = delay/2 + rand.N(delay/2+1)
		select {
		case <-ctx.Done():
			return nil
		case <-w.Clock.After(delay):
		}
	}
}

// isTransient reports whether a fault may go away by itself: one of the network or
// of the server, not one of the request.
func isTransient(err error) bool {
	for _, final := range []error{ErrAnswer, ErrTooLarge, ErrClosed} {
		if errors.Is(err, final) {
			return false
		}
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return !meta.IsNoMatchError(err)
	}
	code := status.Status().Code
	return code == 429 || code >= 500 || code == 0
}

// round lists where needed and follows one watch to its end.
func (w *watcher) round(ctx context.Context) error {
	if w.version == "" {
		if err := w.relist(ctx); err != nil {
			return err
		}
	}
	request := Selection(w.opts)
	request.ResourceVersion = w.version
	request.AllowWatchBookmarks = true
	seconds := int64(300 + rand.IntN(300)) // so that many watches do not start again at once
	request.TimeoutSeconds = &seconds
	err := w.Follow(ctx, request, w.change)
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return errExpired
	}
	return err
}

// relist yields what has changed since the last event: at first all.
func (w *watcher) relist(ctx context.Context) error {
	list, size, err := w.List(ctx)
	if err != nil {
		return err
	}
	size /= max(1, int64(len(list.Items))) // of each, on average
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
		if err := w.tell(clusterapi.Deleted, w.known[key].Unstructured, 0); err != nil {
			return err
		}
	}
	for i := range list.Items {
		u := &list.Items[i]
		old, ok := w.known[clusterapi.KeyOf(u)]
		switch {
		case !ok:
			err = w.tell(clusterapi.Added, u, size)
		case old.GetResourceVersion() != u.GetResourceVersion():
			err = w.tell(clusterapi.Modified, u, size)
		}
		if err != nil {
			return err
		}
	}
	w.version = list.GetResourceVersion()
	if !w.synced {
		w.synced = true
		if !w.yield(clusterapi.WatchEvent{Type: clusterapi.Synced}) {
			return errStopped
		}
	}
	return nil
}

// change yields what an event of the server says.
func (w *watcher) change(t watch.EventType, u *unstructured.Unstructured, size int64) error {
	if t == watch.Bookmark {
		if u.GroupVersionKind() != w.gvk {
			return wrongAnswer("a bookmark of kind %s, not %s", quote(u.GetKind()), w.gvk.Kind)
		}
		w.reached(u)
		return nil
	}
	if err := selected(u, w.gvk, w.opts); err != nil {
		return err
	}
	if t != watch.Deleted {
		if err := matches(u, w.gvk, w.opts); err != nil {
			return err
		}
	}
	old, ok := w.known[clusterapi.KeyOf(u)]
	var err error
	switch {
	case t == watch.Deleted && !ok:
		// It was created and deleted while the list was made.
	case t == watch.Deleted:
		err = w.tell(clusterapi.Deleted, u, 0)
	case t != watch.Added && t != watch.Modified:
		err = wrongAnswer("an event of type %s", quote(string(t)))
	case ok && old.GetUID() != u.GetUID():
		err = w.tell(clusterapi.Deleted, old.Unstructured, 0)
		if err == nil {
			err = w.tell(clusterapi.Added, u, size)
		}
	case ok:
		err = w.tell(clusterapi.Modified, u, size)
	default:
		err = w.tell(clusterapi.Added, u, size)
	}
	if err == nil {
		w.reached(u)
	}
	return err
}

// reached notes where to continue. An event that does not say so leaves it.
func (w *watcher) reached(u *unstructured.Unstructured) {
	if v := u.GetResourceVersion(); v != "" {
		w.version = v
	}
}

// tell yields an event and keeps the object for comparison: the consumer gets its
// own.
func (w *watcher) tell(t clusterapi.WatchEventType, u *unstructured.Unstructured, size int64) error {
	key := clusterapi.KeyOf(u)
	w.size -= w.known[key].size
	if t == clusterapi.Deleted {
		delete(w.known, key)
	} else {
		w.size += size
		if w.Limit > 0 && w.size > w.Limit {
			return fmt.Errorf("watch of %s: %w: the objects exceed the limit of %d bytes", w.gvk.Kind, ErrTooLarge, w.Limit)
		}
		w.known[key] = known{u, size}
	}
	if !w.yield(clusterapi.WatchEvent{Type: t, Object: u.DeepCopy()}) {
		return errStopped
	}
	return nil
}
