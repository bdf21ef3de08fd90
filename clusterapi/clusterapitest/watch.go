package clusterapitest

import (
	"context"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

func testWatch(t *testing.T, s *suite) {
	watcher, ok := s.api.(clusterapi.Watcher)
	if !ok {
		t.Fatal("the backend declares Watch and does not implement clusterapi.Watcher")
	}
	t.Run("Sequence", func(t *testing.T) {
		label := map[string]string{"watch": s.id}
		named := func(name string) *unstructured.Unstructured {
			u := s.configMap(t, name)
			u.SetLabels(label)
			return u
		}
		one := s.create(t, named("watch-one"))
		s.create(t, s.configMap(t, "watch-unselected"))
		w := start(t, s, watcher, clusterapi.ListOptions{Namespace: s.ns, Labels: labels.SelectorFromSet(label)})
		w.want(t, "Added watch-one", "Synced ")
		elsewhere := named("watch-elsewhere")
		elsewhere.SetNamespace(s.other)
		s.create(t, elsewhere)
		s.create(t, named("watch-two"))
		w.want(t, "Added watch-two")
		set(t, one, "2", "data", "a")
		one = s.update(t, one)
		w.want(t, "Modified watch-one")
		if got := at(w.last.Object, "data", "a"); got != "2" {
			t.Errorf("the event has data %v, want that of the update", got)
		}
		one.SetLabels(nil)
		one = s.update(t, one)
		w.want(t, "Deleted watch-one") // it is no longer selected
		one.SetLabels(label)
		s.update(t, one)
		w.want(t, "Added watch-one")
		s.discard(t, configMaps, s.ns, "watch-one")
		w.want(t, "Deleted watch-one")
		w.stop(t)
	})
	t.Run("Ownership", func(t *testing.T) {
		label := map[string]string{"watch-own": s.id}
		in := s.configMap(t, "watch-own")
		in.SetLabels(label)
		s.create(t, in)
		w := start(t, s, watcher, clusterapi.ListOptions{Namespace: s.ns, Labels: labels.SelectorFromSet(label)})
		spoil := func() {
			data, _ := w.last.Object.Object["data"].(map[string]any)
			data["a"] = "spoilt"
		}
		w.want(t, "Added watch-own")
		spoil()
		w.want(t, "Synced ")
		u := s.get(t, in)
		wantAt(t, u, "1", "data", "a")
		set(t, u, "2", "data", "a")
		s.update(t, u)
		w.want(t, "Modified watch-own")
		spoil()
		wantAt(t, s.get(t, in), "2", "data", "a")
		w.stop(t)
	})
	t.Run("EndedContext", func(t *testing.T) {
		ctx, cancel := context.WithCancel(s.ctx)
		cancel()
		for e, err := range watcher.Watch(ctx, configMaps, clusterapi.ListOptions{Namespace: s.ns}) {
			t.Errorf("got %s, %v after the context had ended, want nothing", e.Type, err)
		}
	})
	t.Run("ConsumerStops", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(s.ctx, 30*time.Second)
		defer cancel()
		for e, err := range watcher.Watch(ctx, configMaps, clusterapi.ListOptions{Namespace: s.ns}) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Type == clusterapi.Synced {
				break
			}
		}
	})
	t.Run("NoMatch", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(s.ctx, 30*time.Second)
		defer cancel()
		var errs int
		gvk := schema.GroupVersionKind{Group: "nobody-" + s.id + ".clusterupdate.github.io", Version: "v1", Kind: "Nothing"}
		for _, err := range watcher.Watch(ctx, gvk, clusterapi.ListOptions{}) {
			if err != nil {
				errs++
			}
		}
		if errs != 1 {
			t.Errorf("got %d errors, want one that ends the sequence", errs)
		}
	})
}

// watch runs a Watch in a goroutine.
type watch struct {
	events chan clusterapi.Event
	end    chan error
	cancel context.CancelFunc
	last   clusterapi.Event
}

func start(t *testing.T, s *suite, w clusterapi.Watcher, opts clusterapi.ListOptions) *watch {
	t.Helper()
	ctx, cancel := context.WithCancel(s.ctx)
	out := &watch{events: make(chan clusterapi.Event, 100), end: make(chan error, 1), cancel: cancel}
	t.Cleanup(cancel)
	go func() {
		var last error
		for e, err := range w.Watch(ctx, configMaps, opts) {
			if last = err; err == nil {
				out.events <- e
			}
		}
		out.end <- last
	}()
	return out
}

// want expects the next events, in this order.
func (w *watch) want(t *testing.T, events ...string) {
	t.Helper()
	var got []string
	for range events {
		select {
		case w.last = <-w.events:
			name := ""
			if w.last.Object != nil {
				name = w.last.Object.GetName()
			}
			got = append(got, string(w.last.Type)+" "+name)
		case err := <-w.end:
			t.Fatalf("the watch ended (%v) after %v, want %v", err, got, events)
		case <-time.After(30 * time.Second):
			t.Fatalf("got %v, want %v", got, events)
		}
	}
	if !slices.Equal(got, events) {
		t.Fatalf("got %v, want %v", got, events)
	}
}

// stop ends the watch, which must not call that an error.
func (w *watch) stop(t *testing.T) {
	t.Helper()
	w.cancel()
	select {
	case err := <-w.end:
		if err != nil {
			t.Errorf("the watch ended with %v after its context had ended, want no error", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("the watch goes on after its context has ended")
	}
}
