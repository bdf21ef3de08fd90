package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestVirtualProcessThatCannotBeMade(t *testing.T) {
	for _, tc := range []struct {
		name string
		p    reconcile.Process
		want string
	}{
		{"New panics", reconcile.Process{Name: "p", New: func(clusterapi.ClusterAPI) []reconcile.Reconciler { panic("boom") }}, "process p: panic: boom"},
		{"two of one name", of("p", &toy{name: "r"}, &toy{name: "r"}), `process p: two reconcilers are called "r"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(reconcile.VirtualOptions{})
			w.Add(tc.p)
			_, err := w.Step()
			checktest.ErrorHas(t, tc.want, err)
			_, err = w.Step()
			checktest.ErrorHas(t, tc.want, err)
		})
	}
}

// Failures outside of looks are counted, and reported seldom; lists recover.
func TestVirtualEvents(t *testing.T) {
	var text strings.Builder
	var w *world
	w = newWorld(reconcile.VirtualOptions{
		Faults: reconcile.Faults{Before: 1, Until: 15 * time.Second},
		Logger: slog.New(slog.NewTextHandler(&text, nil)),
		Observe: func(e clusterapi.Event) {
			if e.Type != reconcile.EventFault {
				a := e.Data.(*reconcile.Attempt)
				w.say("%s %s%s x%d", e.Type, a.Watch, a.Key, a.Failures)
			}
		},
	})
	w.put(t, "a", "0")
	w.Add(of("p",
		&toy{name: "r", watches: []reconcile.Watch{{GVK: configMap, Changed: func(time.Time, *clusterapi.Object, *clusterapi.Object) []reconcile.Wake {
			panic("in Changed")
		}}}},
		&toy{name: "s", watches: []reconcile.Watch{{GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}}}},
	))
	w.run(t, 21*time.Second)
	for i := range 120 {
		w.put(t, "a", fmt.Sprint("v", i))
		w.run(t, time.Second)
	}
	w.check(t,
		"0s WatchFailed ConfigMap x1", "0s WatchFailed Thing x1",
		"10.23s WatchFailed ConfigMap x11", "10.23s WatchFailed Thing x11",
		"20.47s WatchRecovered ConfigMap x11", "20.47s Failed  x1", "20.47s NotServed Thing x12",
		"31s Failed  x12", "2m1s Failed  x102")
	if !strings.Contains(text.String(), "virtual_hosts_test.go") || !strings.Contains(text.String(), "level=INFO msg=NotServed") {
		t.Errorf("log:\n%s", text.String())
	}
}

// A rehearsal does not hide that the observer of events panics.
func TestVirtualObserverPanics(t *testing.T) {
	w := newWorld(reconcile.VirtualOptions{Faults: reconcile.Faults{Crash: 1}, Observe: func(clusterapi.Event) { panic("observer") }})
	w.put(t, "a", "1")
	w.Add(reconcile.Process{Name: "p", New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
		return []reconcile.Reconciler{write(w, api)}
	}})
	defer func() {
		checktest.Equal(t, "observer", recover(), "recovered")
	}()
	w.run(t, time.Second)
	t.Error("the run went on")
}

func TestVirtualResync(t *testing.T) {
	for _, tc := range []struct {
		resync time.Duration
		want   []string
	}{
		{0, []string{"0s look", "10m0s look", "20m0s look"}},
		{12 * time.Minute, []string{"0s look", "12m0s look", "24m0s look"}},
		{reconcile.Never, []string{"0s look"}},
	} {
		w := newWorld(reconcile.VirtualOptions{Resync: tc.resync})
		w.Add(of("p", &toy{name: "r", keys: []reconcile.Key{name("k")}, reconcile: func(context.Context, reconcile.Request) (reconcile.Result, error) {
			w.say("look")
			return reconcile.Result{}, nil
		}}))
		w.run(t, 25*time.Minute)
		w.check(t, tc.want...)
	}
}

// A slow call of a job takes the time in which it is broken off.
func TestVirtualSlowCalls(t *testing.T) {
	for _, tc := range []struct {
		name    string
		timeout time.Duration
		in      func(ctx context.Context) context.Context
		limit   time.Duration
		want    string
	}{
		{"by default", 0, nil, 0, "30s done: simulated: the call took too long: context deadline exceeded"},
		{"by options", time.Minute, nil, 0, "1m0s done: simulated: the call took too long: context deadline exceeded"},
		{"none", reconcile.Never, nil, 0, "0s done: simulated: the call took too long: context deadline exceeded"},
		{"of the call", 0, func(ctx context.Context) context.Context { return reconcile.WithCallTimeout(ctx, time.Second) }, 0,
			"1s done: simulated: the call took too long: context deadline exceeded"},
		{"of the job", time.Hour, nil, 5 * time.Second, "5s done: the job has not ended within 5s: context deadline exceeded"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(reconcile.VirtualOptions{CallTimeout: tc.timeout, Faults: reconcile.Faults{Slow: 1}})
			w.Add(reconcile.Process{Name: "p", New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
				return []reconcile.Reconciler{&toy{name: "r", keys: []reconcile.Key{name("k")},
					reconcile: func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
						if _, err := api.Get(ctx, configMap, clusterapi.Key("ns", "a")); !errors.Is(err, context.DeadlineExceeded) || !w.Now().Equal(r.Now) {
							t.Errorf("in a look: %v at %s", err, w.Now())
						}
						return reconcile.Result{Jobs: []reconcile.Job{{ID: 1, Limit: tc.limit,
							Run: func(ctx context.Context, _ func(any)) (any, error) {
								if tc.in != nil {
									ctx = tc.in(ctx)
								}
								return api.Get(ctx, configMap, clusterapi.Key("ns", "a"))
							},
							Done: func(_ any, err error) []reconcile.Wake { w.say("done: %v", err); return nil },
						}}}, nil
					}}}
			}})
			w.run(t, 5*time.Minute)
			w.check(t, tc.want)
		})
	}
}

// What a list showed does not come as a change too, nor what was before it.
func TestVirtualWatchBegunInALookThatWrites(t *testing.T) {
	w := newWorld(reconcile.VirtualOptions{})
	watch := reconcile.Watch{GVK: configMap, Changed: func(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake {
		w.say("%s>%s", value(old), value(new))
		return nil
	}}
	w.Add(of("p", &toy{name: "r", keys: []reconcile.Key{name("k")}, reconcile: func(context.Context, reconcile.Request) (reconcile.Result, error) {
		w.put(t, "a", "1")
		w.put(t, "a", "2")
		return reconcile.Result{Watches: []reconcile.Watch{watch}}, nil
	}}))
	w.run(t, time.Second)
	w.put(t, "a", "3")
	w.run(t, time.Second)
	w.check(t, "0s ->2", "1s 2>3")
}
