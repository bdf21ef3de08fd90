package reconcile_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

var (
	configMaps = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	secrets    = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	widgets    = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
)

// rec is a reconciler made of its parts.
type rec struct {
	name    string
	watches []reconcile.Watch
	look    func(ctx context.Context, r reconcile.Request) (reconcile.Result, error)
}

func (r rec) Name() string               { return r.name }
func (r rec) Watches() []reconcile.Watch { return r.watches }

func (r rec) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	if r.look == nil {
		return reconcile.Result{}, nil
	}
	return r.look(ctx, q)
}

// listing has keys of its own.
type listing struct {
	rec
	keys func() []reconcile.Key
}

func (l listing) Keys() []reconcile.Key { return l.keys() }

// wide looks at several keys at a time.
type wide struct {
	listing
	workers int
}

func (w wide) Workers() int { return w.workers }

// at has the keys named.
func at(r rec, names ...string) listing {
	return listing{r, func() []reconcile.Key {
		var keys []reconcile.Key
		for _, name := range names {
			keys = append(keys, reconcile.Key{Name: name})
		}
		return keys
	}}
}

func process(recs ...reconcile.Reconciler) reconcile.Process {
	return reconcile.Process{Name: "test", New: func(clusterapi.ClusterAPI) []reconcile.Reconciler { return recs }}
}

// log is what happened, with the time since its first use.
type log struct {
	mu    sync.Mutex
	start time.Time
	lines []string
}

func newLog() *log { return &log{start: time.Now()} }

func (l *log) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf("%s ", time.Since(l.start).Round(time.Millisecond))+fmt.Sprintf(format, args...))
}

func (l *log) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

// observe adds an event without its retry.
func (l *log) observe(e clusterapi.Event) {
	a := e.Data.(*reconcile.Attempt)
	l.add("%s %s%s%s x%d: %v", e.Type, a.Reconciler, a.Watch, keyText(a.Key), a.Failures, e.Err)
}

func keyText(k reconcile.Key) string {
	if k == (reconcile.Key{}) {
		return ""
	}
	return " " + k.String()
}

// bubble runs a test in virtual time, with a log and an empty cluster.
func bubble(t *testing.T, test func(t *testing.T, l *log, api *memory.Cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newLog(), newCluster(nil)) })
}

// drive runs a process for some time of a bubble, and waits until it has ended.
func drive(t *testing.T, o reconcile.Options, d time.Duration, recs ...reconcile.Reconciler) {
	t.Helper()
	driveWith(t, o, d, process(recs...).New)
}

// driveWith is drive for reconcilers that take the API of their process.
func driveWith(t *testing.T, o reconcile.Options, d time.Duration, recs func(clusterapi.ClusterAPI) []reconcile.Reconciler) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	checktest.OK(t, reconcile.Run(ctx, o, reconcile.Process{Name: "test", New: recs}))
}

// begin runs a process until the function that it returns is called.
func begin(t *testing.T, o reconcile.Options, recs ...reconcile.Reconciler) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- reconcile.Run(ctx, o, process(recs...)) }()
	synctest.Wait()
	return func() {
		cancel()
		checktest.Good(t, <-ended)
	}
}

func newCluster(intercept func(ctx context.Context, c memory.Call, do func(context.Context) error) error) *memory.Cluster {
	return memory.New(memory.Options{Intercept: intercept})
}

// unwatched hides the optional interfaces of a cluster.
type unwatched struct{ clusterapi.ClusterAPI }

// watchFunc is a cluster with another Watch.
type watchFunc struct {
	clusterapi.ClusterAPI
	watch func(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) iter.Seq2[clusterapi.WatchEvent, error]
}

func (w watchFunc) Watch(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) iter.Seq2[clusterapi.WatchEvent, error] {
	return w.watch(ctx, gvk, opts)
}

func newConfigMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: map[string]string{"v": value},
	}
}

// put makes a ConfigMap hold a value.
func put(t *testing.T, api clusterapi.ClusterAPI, name, value string) {
	t.Helper()
	u, err := clusterapi.ToUnstructured(newConfigMap(name, value))
	if err == nil {
		_, err = api.Apply(t.Context(), u, clusterapi.ApplyOptions{FieldManager: "test"})
	}
	checktest.OK(t, err)
}

func remove(t *testing.T, api clusterapi.ClusterAPI, name string) {
	t.Helper()
	if err := api.Delete(t.Context(), configMaps, types.NamespacedName{Namespace: "ns", Name: name}, clusterapi.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// dataOf is what a ConfigMap holds; "-" where there is none.
func dataOf(o *clusterapi.Object) string {
	if o == nil {
		return "-"
	}
	v, _, _ := unstructured.NestedString(o.Unstructured().Object, "data", "v")
	return v
}

// tells is a watch of ConfigMaps that logs changes and wakes by name.
func tells(l *log, prefix string) reconcile.Watch {
	return reconcile.Watch{GVK: configMaps, Changed: func(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake {
		l.add("%s%s %s>%s", prefix, clusterapi.Change{Old: old, New: new}.Object().Name(), dataOf(old), dataOf(new))
		return []reconcile.Wake{{Key: reconcile.Key{Name: clusterapi.Change{Old: old, New: new}.Object().Name()}}}
	}}
}

// looks logs every look.
func looks(l *log, prefix string) func(context.Context, reconcile.Request) (reconcile.Result, error) {
	return func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
		l.add("%slook%s", prefix, keyText(r.Key))
		return reconcile.Result{}, nil
	}
}

// script answers looks one after another; the last answer stays.
func script(l *log, steps ...func() (reconcile.Result, error)) func(context.Context, reconcile.Request) (reconcile.Result, error) {
	n := 0
	return func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
		l.add("look%s", keyText(r.Key))
		step := steps[min(n, len(steps)-1)]
		n++
		return step()
	}
}

func sorted(lines []string) []string {
	slices.Sort(lines)
	return lines
}
