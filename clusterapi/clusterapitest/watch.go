package clusterapitest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest/internal/probe"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func testWatch(t *testing.T, s *suite) {
	watcher, ok := s.api.(clusterapi.Watcher)
	checktest.FatalIf(t, !ok, "the backend declares Watch and does not implement clusterapi.Watcher")
	if s.recorded {
		t.Run("Recorded", func(t *testing.T) { testWatchRecorded(t, s, watcher) })
	} else {
		testWatchChanges(t, s, watcher)
	}
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
			checktest.OK(t, err)
			if e.Type == clusterapi.Synced {
				break
			}
		}
	})
	t.Run("NoMatch", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(s.ctx, 30*time.Second)
		defer cancel()
		var errs []error
		for e, err := range watcher.Watch(ctx, s.nothing(), clusterapi.ListOptions{}) {
			errs = append(errs, err)
			checktest.FailIf(t, err == nil, "got %s of a kind that is not served", e.Type)
		}
		checktest.FailIf(t, len(errs) != 1 || !meta.IsNoMatchError(errs[0]),
			"got %v, want one error that meta.IsNoMatchError recognises", errs)
	})
}

// testWatchChanges: every change arrives, once and in order.
func testWatchChanges(t *testing.T, s *suite, watcher clusterapi.Watcher) {
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
		checktest.Equal(t, "2", probe.At(w.last.Object, "data", "a"), "the event has data")
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
	t.Run("Kinds", func(t *testing.T) {
		// The same for each kind, and what becomes of status.
		for _, in := range []*unstructured.Unstructured{
			s.configMap(t, "watch-kind"), object(t, `{apiVersion: v1, kind: Secret, metadata: {name: watch-kind, namespace: %s}}`, s.ns),
			s.deployment(t, "watch-kind"), s.widget(t, "watch-kind"),
			object(t, `{apiVersion: v1, kind: Pod, metadata: {name: watch-kind, namespace: %s}, spec: {containers: [{name: one, image: registry.example/one}]}}`, s.ns),
			object(t, `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: watch-kind, namespace: %s}, spec: {minAvailable: 1, selector: {matchLabels: {app: x}}}}`, s.ns),
			object(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: watch-kind-%s}}`, s.id),
			object(t, `{apiVersion: v1, kind: Node, metadata: {name: watch-kind-%s}}`, s.id),
		} {
			t.Run(in.GetKind(), func(t *testing.T) { testWatchKind(t, s, watcher, in) })
		}
	})
	t.Run("Selection", func(t *testing.T) {
		s.create(t, s.configMap(t, "watch-selection"))
		for name, opts := range map[string]clusterapi.ListOptions{
			"Labels":    {Namespace: s.ns, Labels: labels.SelectorFromSet(labels.Set{"watch": "nothing-" + s.id})},
			"Namespace": {Namespace: "conformance-" + s.id + "-empty"},
		} {
			w := start(t, s, watcher, opts)
			t.Log(name)
			w.want(t, "Synced ") // though nothing is there
			w.stop(t)
		}
		node := "watch-node-" + s.id
		w := startKind(t, s, watcher, pods, clusterapi.ListOptions{Namespace: s.ns, NodeName: node})
		w.want(t, "Synced ")
		for name, on := range map[string]string{"watch-elsewhere": "another-" + node, "watch-nowhere": ""} {
			s.create(t, object(t, `{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: %s}, spec: {nodeName: "%s", terminationGracePeriodSeconds: 0, containers: [{name: one, image: registry.example/one}]}}`, name, s.ns, on))
		}
		s.create(t, object(t, `{apiVersion: v1, kind: Pod, metadata: {name: watch-on-node, namespace: %s}, spec: {nodeName: %s, terminationGracePeriodSeconds: 0, containers: [{name: one, image: registry.example/one}]}}`, s.ns, node))
		w.want(t, "Added watch-on-node")
		w.stop(t)
	})
	t.Run("AllNamespaces", func(t *testing.T) {
		label := map[string]string{"watch-all": s.id}
		for _, ns := range []string{s.ns, s.other} {
			u := s.configMap(t, "watch-all")
			u.SetNamespace(ns)
			u.SetLabels(label)
			s.create(t, u)
		}
		w := start(t, s, watcher, clusterapi.ListOptions{Labels: labels.SelectorFromSet(label)})
		w.want(t, "Added watch-all", "Added watch-all", "Synced ")
		w.stop(t)
	})
	t.Run("TwoAtOnce", func(t *testing.T) {
		label := map[string]string{"watch-twice": s.id}
		opts := clusterapi.ListOptions{Labels: labels.SelectorFromSet(label)}
		one, two := start(t, s, watcher, opts), start(t, s, watcher, opts)
		one.want(t, "Synced ")
		two.want(t, "Synced ")
		u := s.configMap(t, "watch-twice")
		u.SetLabels(label)
		s.create(t, u)
		one.want(t, "Added watch-twice")
		one.mutate()
		two.want(t, "Added watch-twice")
		wantAt(t, two.last.Object, "1", "data", "a")
		one.stop(t)
		u = s.get(t, u)
		set(t, u, "2", "data", "a")
		s.update(t, u)
		two.want(t, "Modified watch-twice") // though the other one has ended
		two.stop(t)
	})
	t.Run("Order", func(t *testing.T) {
		label := map[string]string{"watch-order": s.id}
		u := s.configMap(t, "watch-order")
		u.SetLabels(label)
		w := start(t, s, watcher, clusterapi.ListOptions{Namespace: s.ns, Labels: labels.SelectorFromSet(label)})
		w.want(t, "Synced ")
		u = s.create(t, u)
		const n = 20
		for i := range n {
			set(t, u, fmt.Sprint(i), "data", "n")
			u = s.update(t, u)
		}
		s.discard(t, configMaps, s.ns, u.GetName())
		w.want(t, "Added watch-order")
		// A backend may leave out states that were replaced at once, never the
		// last one, and never an order.
		last := -1
		for last < n-1 {
			w.want(t, "Modified watch-order")
			got, err := strconv.Atoi(fmt.Sprint(probe.At(w.last.Object, "data", "n")))
			checktest.FatalIf(t, err != nil || got <= last,
				"the event has n %v after %d: %v", probe.At(w.last.Object, "data", "n"), last, err)
			last = got
		}
		w.want(t, "Deleted watch-order")
		w.stop(t)
	})
	t.Run("Ownership", func(t *testing.T) {
		label := map[string]string{"watch-own": s.id}
		in := s.configMap(t, "watch-own")
		in.SetLabels(label)
		s.create(t, in)
		w := start(t, s, watcher, clusterapi.ListOptions{Namespace: s.ns, Labels: labels.SelectorFromSet(label)})
		w.want(t, "Added watch-own")
		w.mutate()
		w.want(t, "Synced ")
		u := s.get(t, in)
		wantAt(t, u, "1", "data", "a")
		set(t, u, "2", "data", "a")
		s.update(t, u)
		w.want(t, "Modified watch-own")
		w.mutate()
		wantAt(t, s.get(t, in), "2", "data", "a")
		w.stop(t)
	})
}

// testWatchKind has one object of a kind go through all that may happen to it.
func testWatchKind(t *testing.T, s *suite, watcher clusterapi.Watcher, in *unstructured.Unstructured) {
	gvk, name := in.GroupVersionKind(), in.GetName()
	label := map[string]string{"watch-kind": s.id}
	in.SetLabels(label)
	in.SetFinalizers([]string{"clusterupdate.github.io/conformance"})
	w := startKind(t, s, watcher, gvk, clusterapi.ListOptions{Namespace: in.GetNamespace(), Labels: labels.SelectorFromSet(label)})
	w.want(t, "Synced ")
	last := s.create(t, in)
	defer s.release(t, in)
	same := func(event string) {
		t.Helper()
		w.want(t, event+" "+name)
		checktest.FailIf(t, w.last.Object.GroupVersionKind() != gvk,
			"%s: the object's kind is %s", event, w.last.Object.GroupVersionKind())
		if event != string(clusterapi.Deleted) {
			wantSame(t, "the event", last, w.last.Object)
		}
	}
	same("Added")
	last.SetAnnotations(map[string]string{"changed": "x"})
	last = s.update(t, last)
	same("Modified")
	applied := &unstructured.Unstructured{Object: map[string]any{}}
	applied.SetGroupVersionKind(gvk)
	applied.SetName(name)
	applied.SetNamespace(in.GetNamespace())
	applied.SetAnnotations(map[string]string{"applied": "x"})
	last = s.apply(t, "first", applied)
	same("Modified")
	if status, ok := map[string]map[string]any{
		"Deployment": {"replicas": int64(1)}, "Widget": {"phase": "Ready"}, "Pod": {"phase": "Running"}, "Node": {"phase": "Running"},
		"PodDisruptionBudget": {"observedGeneration": int64(1), "disruptionsAllowed": int64(0), "currentHealthy": int64(1), "desiredHealthy": int64(1), "expectedPods": int64(1)},
	}[gvk.Kind]; ok {
		last.Object["status"] = status
		last = s.updateStatus(t, last)
		same("Modified")
	}
	checktest.OK(t, s.api.Delete(s.ctx, gvk, clusterapi.KeyOf(in), clusterapi.DeleteOptions{}))
	last = s.get(t, in)
	checktest.FatalIf(t, last.GetDeletionTimestamp() == nil, "it has no deletionTimestamp")
	same("Modified")
	s.release(t, in)
	same("Deleted")
	w.stop(t)
}

// wait is how long to wait for what must come.
const wait = 20 * time.Second

// watch runs a Watch in a goroutine.
type watch struct {
	events chan clusterapi.WatchEvent
	end    chan error
	cancel context.CancelFunc
	last   clusterapi.WatchEvent
}

func start(t *testing.T, s *suite, w clusterapi.Watcher, opts clusterapi.ListOptions) *watch {
	t.Helper()
	return startKind(t, s, w, configMaps, opts)
}

func startKind(t *testing.T, s *suite, w clusterapi.Watcher, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) *watch {
	t.Helper()
	ctx, cancel := context.WithCancel(s.ctx)
	out := &watch{events: make(chan clusterapi.WatchEvent, 100), end: make(chan error, 1), cancel: cancel}
	t.Cleanup(cancel)
	go func() {
		var last error
		for e, err := range w.Watch(ctx, gvk, opts) {
			last = err
			if err == nil {
				out.events <- e
			}
		}
		out.end <- last
	}()
	return out
}

// mutate changes the object of the last event, which must not matter to others.
func (w *watch) mutate() {
	data, _ := w.last.Object.Object["data"].(map[string]any)
	data["a"] = "spoilt"
}

// next returns the next event, which must come.
func (w *watch) next(t *testing.T) clusterapi.WatchEvent {
	t.Helper()
	select {
	case w.last = <-w.events:
		return w.last
	case err := <-w.end:
		t.Fatalf("the watch ended (%v)", err)
	case <-time.After(wait):
		t.Fatal("waited in vain for an event")
	}
	return clusterapi.WatchEvent{}
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
			checktest.FatalIf(t, (w.last.Object == nil) != (w.last.Type == clusterapi.Synced),
				"%s has the object %v, want one but for Synced", w.last.Type, w.last.Object)
			got = append(got, string(w.last.Type)+" "+name)
		case err := <-w.end:
			t.Fatalf("the watch ended (%v) after %v, want %v", err, got, events)
		case <-time.After(wait):
			t.Fatalf("got %v, want %v", got, events)
		}
	}
	checktest.FatalIf(t, !slices.Equal(got, events), "got %v, want %v", got, events)
}

// stop ends the watch, which must not call that an error.
func (w *watch) stop(t *testing.T) {
	t.Helper()
	w.cancel()
	select {
	case err := <-w.end:
		checktest.FailIf(t, err != nil, "the watch ended with %v after its context had ended, want no error", err)
	case <-time.After(wait):
		t.Error("the watch goes on after its context has ended")
	}
}
