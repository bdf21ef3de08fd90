package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

var (
	start     = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	configMap = corev1.SchemeGroupVersion.WithKind("ConfigMap")
)

// toy is a reconciler made of functions.
type toy struct {
	name      string
	watches   []reconcile.Watch
	keys      []reconcile.Key
	reconcile func(ctx context.Context, r reconcile.Request) (reconcile.Result, error)
}

func (t *toy) Name() string               { return t.name }
func (t *toy) Watches() []reconcile.Watch { return t.watches }
func (t *toy) Keys() []reconcile.Key      { return t.keys }
func (t *toy) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	return t.reconcile(ctx, r)
}

// of is a process of reconcilers that need no API.
func of(name string, rs ...reconcile.Reconciler) reconcile.Process {
	return reconcile.Process{Name: name, New: func(clusterapi.ClusterAPI) []reconcile.Reconciler { return rs }}
}

func name(n string) reconcile.Key { return reconcile.Key{Name: n} }

// world is a virtual run on an empty cluster, with a log of what happened.
type world struct {
	*reconcile.Virtual
	cluster *memory.Cluster
	clock   *reconcile.Clock
	log     []string
}

func newWorld(o reconcile.VirtualOptions) *world {
	w := &world{clock: reconcile.NewClock(start)}
	w.cluster = memory.New(memory.Options{Clock: w.clock})
	o.Cluster, o.Clock = w.cluster, w.clock
	w.Virtual = reconcile.NewVirtual(o)
	return w
}

// say logs a line with the time since the start.
func (w *world) say(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%v ", w.Now().Sub(start))+fmt.Sprintf(format, args...))
}

func (w *world) run(t *testing.T, d time.Duration) {
	t.Helper()
	checktest.OK(t, w.RunUntil(w.Now().Add(d)))
}

func (w *world) check(t *testing.T, want ...string) {
	t.Helper()
	checktest.SameIn(t, "log", want, w.log)
	w.log = nil
}

func (w *world) put(t *testing.T, name, value string) {
	t.Helper()
	u := object(name, value)
	checktest.OK(t, checktest.Err(w.cluster.Apply(t.Context(), u, clusterapi.ApplyOptions{FieldManager: "test"})))
}

func (w *world) remove(t *testing.T, name string) {
	t.Helper()
	checktest.OK(t, w.cluster.Delete(t.Context(), configMap, clusterapi.Key("ns", name), clusterapi.DeleteOptions{}))
}

func object(name, value string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"value": value}}}
	u.SetGroupVersionKind(configMap)
	u.SetNamespace("ns")
	u.SetName(name)
	u.SetLabels(map[string]string{"value": value})
	return u
}

func value(o *clusterapi.Object) string {
	if o == nil {
		return "-"
	}
	v, _, _ := unstructured.NestedString(o.Unstructured().Object, "data", "value")
	return v
}

func TestVirtualTime(t *testing.T) {
	w := newWorld(reconcile.VirtualOptions{})
	w.Add(of("p", &toy{name: "r", keys: []reconcile.Key{name("a"), name("b")},
		reconcile: func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			w.say("%s %v", r.Key, r.Now.Sub(start))
			if r.Key == name("a") {
				return reconcile.Result{At: r.Now.Add(time.Minute), Wake: []reconcile.Wake{{Key: name("b"), After: 30 * time.Second}}}, nil
			}
			return reconcile.Result{At: r.Now.Add(2 * time.Minute)}, nil
		}}))
	w.run(t, 2*time.Minute)
	// At 0s b is due earlier than a's wake asks for; later it is woken before
	// its time, and what it says then replaces the look at 2m.
	w.check(t, "0s a 0s", "0s b 0s", "1m0s a 1m0s", "1m30s b 1m30s", "2m0s a 2m0s")
	checktest.FailIf(t, !w.Now().Equal(start.Add(2*time.Minute)), "now = %v", w.Now())
}

func TestVirtualPastAndZero(t *testing.T) {
	w := newWorld(reconcile.VirtualOptions{})
	n := 0
	w.Add(of("p", &toy{name: "r", keys: []reconcile.Key{name("a")},
		reconcile: func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			w.say("look")
			if n++; n == 1 {
				return reconcile.Result{At: r.Now.Add(-time.Hour)}, nil
			}
			return reconcile.Result{}, nil
		}}))
	w.run(t, time.Minute)
	w.check(t, "0s look", "0s look")
	w.Wake("p", "r", name("a"))
	w.Wake("p", "r", name("a"))
	w.run(t, time.Minute)
	w.check(t, "1m0s look")
}

func TestVirtualBackoff(t *testing.T) {
	busy := apierrors.NewTooManyRequests("later", 300)
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "things"}, "a", errors.New("moved"))
	for _, c := range []struct {
		name string
		err  func(n int) error
		want []string
	}{
		{"errors", func(int) error { return errors.New("no") },
			[]string{"0s look", "10ms look", "30ms look", "70ms look", "150ms look"}},
		{"conflicts", func(int) error { return conflict },
			[]string{"0s look", "0s look", "0s look", "0s look", "0s look", "0s look", "10ms look", "30ms look", "70ms look", "150ms look"}},
		{"server asks", func(int) error { return fmt.Errorf("wrapped: %w", busy) }, []string{"0s look"}},
		{"panic", func(int) error { panic("oh") },
			[]string{"0s look", "10ms look", "30ms look", "70ms look", "150ms look"}},
		{"recovers", func(n int) error {
			if n == 1 {
				return errors.New("no")
			}
			return nil
		}, []string{"0s look", "10ms look", "10ms Recovered"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := 0
			var w *world
			w = newWorld(reconcile.VirtualOptions{Observe: func(e clusterapi.Event) {
				if e.Type == reconcile.EventRecovered {
					w.say("%s", e.Type)
				}
			}})
			w.Add(of("p", &toy{name: "r", keys: []reconcile.Key{name("a")},
				reconcile: func(context.Context, reconcile.Request) (reconcile.Result, error) {
					n++
					w.say("look")
					return reconcile.Result{}, c.err(n)
				}}))
			w.run(t, 200*time.Millisecond)
			w.check(t, c.want...)
			if c.name == "server asks" {
				w.run(t, 3*time.Minute)
				w.check(t, "2m0s look")
			}
		})
	}
}

func TestVirtualWatch(t *testing.T) {
	w := newWorld(reconcile.VirtualOptions{})
	watch := func(who string, o clusterapi.ListOptions) reconcile.Watch {
		return reconcile.Watch{GVK: configMap, Options: o,
			Cache: func(_ time.Time, old, new *clusterapi.Object) { w.say("%s fold %s %s", who, value(old), value(new)) },
			Changed: func(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake {
				w.say("%s changed %s %s", who, value(old), value(new))
				if new == nil {
					return nil
				}
				return []reconcile.Wake{{Key: name(new.Name())}}
			}}
	}
	look := func(who string) func(context.Context, reconcile.Request) (reconcile.Result, error) {
		return func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			w.say("%s looks at %s", who, r.Key)
			return reconcile.Result{}, nil
		}
	}
	red := clusterapi.ListOptions{Labels: labels.SelectorFromSet(labels.Set{"value": "red"})}
	w.put(t, "a", "red")
	w.Add(of("p",
		&toy{name: "all", watches: []reconcile.Watch{watch("all", clusterapi.ListOptions{})}, reconcile: look("all")},
		&toy{name: "red", watches: []reconcile.Watch{watch("red", red)}, reconcile: look("red")}))
	w.run(t, 0)
	w.check(t, "0s all fold - red", "0s red fold - red", "0s all changed - red", "0s red changed - red", "0s all looks at a", "0s red looks at a")
	w.put(t, "a", "blue")
	w.run(t, time.Second)
	w.check(t, "0s all fold red blue", "0s red fold red -", "0s all changed red blue", "0s red changed red -", "0s all looks at a")
	w.put(t, "a", "red")
	w.remove(t, "a")
	w.run(t, time.Second)
	w.check(t,
		"1s all fold blue red", "1s red fold - red", "1s all changed blue red", "1s red changed - red",
		"1s all fold red -", "1s red fold red -", "1s all changed red -", "1s red changed red -",
		"1s all looks at a", "1s red looks at a")
}

func TestVirtualWatchesOfAResult(t *testing.T) {
	w := newWorld(reconcile.VirtualOptions{})
	on := true
	watch := reconcile.Watch{GVK: configMap, Changed: func(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake {
		w.say("changed %s %s", value(old), value(new))
		return nil
	}}
	w.put(t, "a", "1")
	w.Add(of("p", &toy{name: "r", keys: []reconcile.Key{name("k")},
		reconcile: func(context.Context, reconcile.Request) (reconcile.Result, error) {
			w.say("look")
			if !on {
				return reconcile.Result{}, nil
			}
			return reconcile.Result{Watches: []reconcile.Watch{watch}}, nil
		}}))
	w.run(t, time.Second)
	w.put(t, "a", "2")
	w.run(t, time.Second)
	w.Wake("p", "r", name("k")) // named again: stays
	w.run(t, time.Second)
	on = false
	w.Wake("p", "r", name("k"))
	w.run(t, time.Second)
	w.put(t, "a", "3")
	w.run(t, time.Second)
	w.check(t, "0s look", "0s changed - 1", "1s changed 1 2", "2s look", "3s look")
}

func TestVirtualTrim(t *testing.T) {
	w := newWorld(reconcile.VirtualOptions{})
	w.put(t, "a", "1")
	w.Add(of("p", &toy{name: "r", watches: []reconcile.Watch{{GVK: configMap,
		Trim: func(u *unstructured.Unstructured) *unstructured.Unstructured {
			out := u.DeepCopy()
			delete(out.Object, "data")
			return out
		},
		Changed: func(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake {
			w.say("%s %q %q", new.Name(), value(old), value(new))
			return nil
		}}}}))
	w.run(t, 0)
	w.put(t, "a", "2")
	w.run(t, 0)
	w.check(t, `0s a "-" ""`, `0s a "" ""`)
}

func TestVirtualKindNotServed(t *testing.T) {
	w := newWorld(reconcile.VirtualOptions{})
	w.Add(of("p", &toy{name: "r", keys: []reconcile.Key{name("k")},
		watches: []reconcile.Watch{{GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}}},
		reconcile: func(context.Context, reconcile.Request) (reconcile.Result, error) {
			w.say("look")
			return reconcile.Result{}, nil
		}}))
	w.run(t, time.Second)
	w.check(t, "0s look")
}

func TestVirtualJobs(t *testing.T) {
	for _, c := range []struct {
		name string
		job  func(w *world) reconcile.Job
		// names says at each look whether the job is named.
		names func(look int) bool
		want  []string
	}{
		{"runs once", func(w *world) reconcile.Job {
			return reconcile.Job{Run: func(ctx context.Context, report func(any)) (any, error) {
				w.say("begins")
				report("early")
				err := reconcile.Sleep(ctx, time.Second)
				report("half")
				return "all", errors.Join(err, reconcile.Sleep(ctx, time.Second))
			}, Report: func(x any) []reconcile.Wake {
				w.say("reports %v", x)
				return []reconcile.Wake{{Key: name("k")}}
			}, Done: func(x any, err error) []reconcile.Wake {
				w.say("done %v %v", x, err)
				return []reconcile.Wake{{Key: name("k")}}
			}}
		}, func(int) bool { return true },
			[]string{"0s look", "0s begins", "0s reports early", "0s look", "1s reports half", "1s look", "2s done all <nil>", "2s look"}},
		{"cancelled", func(w *world) reconcile.Job {
			return reconcile.Job{Run: func(ctx context.Context, report func(any)) (any, error) {
				_ = reconcile.Sleep(ctx, time.Second)
				report("half")
				return nil, reconcile.Sleep(ctx, time.Second)
			}, Report: func(any) []reconcile.Wake {
				w.say("reports")
				return []reconcile.Wake{{Key: name("k")}}
			}, Done: func(any, error) []reconcile.Wake { w.say("done"); return nil }}
		}, func(look int) bool { return look == 1 }, []string{"0s look", "1s reports", "1s look"}},
		{"limit", func(w *world) reconcile.Job {
			return reconcile.Job{Limit: time.Minute, Run: func(ctx context.Context, _ func(any)) (any, error) {
				err := reconcile.Sleep(ctx, time.Hour)
				return nil, errors.Join(err, reconcile.Sleep(ctx, time.Hour))
			}, Done: func(_ any, err error) []reconcile.Wake {
				w.say("done %v", errors.Is(err, context.DeadlineExceeded))
				return nil
			}}
		}, func(int) bool { return true }, []string{"0s look", "1m0s done true"}},
		{"panic, and nobody is told", func(w *world) reconcile.Job {
			return reconcile.Job{Run: func(context.Context, func(any)) (any, error) { panic("oh") }}
		}, func(int) bool { return true }, []string{"0s look", "0s look"}},
		{"named again after a pause", func(w *world) reconcile.Job {
			return reconcile.Job{Run: func(context.Context, func(any)) (any, error) { w.say("runs"); return nil, nil }}
		}, func(look int) bool { return look != 2 }, []string{"0s look", "0s runs", "0s look"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(reconcile.VirtualOptions{})
			looks := 0
			w.Add(of("p", &toy{name: "r", keys: []reconcile.Key{name("k")},
				reconcile: func(context.Context, reconcile.Request) (reconcile.Result, error) {
					w.say("look")
					if looks++; !c.names(looks) {
						return reconcile.Result{}, nil
					}
					job := c.job(w)
					job.ID = "job"
					return reconcile.Result{Jobs: []reconcile.Job{job}}, nil
				}}))
			w.run(t, 5*time.Minute)
			w.check(t, c.want...)
		})
	}
}

func TestVirtualOnlyJobsSleep(t *testing.T) {
	w := newWorld(reconcile.VirtualOptions{})
	w.Add(of("p", &toy{name: "r", keys: []reconcile.Key{name("k")},
		reconcile: func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
			err := reconcile.Sleep(ctx, time.Second)
			checktest.FailIf(t, err == nil, "a reconciler slept")
			return reconcile.Result{}, nil
		}}))
	w.run(t, time.Second)
}

func TestVirtualCrash(t *testing.T) {
	w := newWorld(reconcile.VirtualOptions{})
	lives := 0
	w.Add(reconcile.Process{Name: "p", New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
		lives++
		life := lives
		return []reconcile.Reconciler{&toy{name: "r", keys: []reconcile.Key{name("k")},
			reconcile: func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
				w.say("life %d", life)
				if life == 1 && r.Now.Sub(start) == time.Minute {
					w.Crash("p")
					_, err := api.Get(ctx, configMap, clusterapi.Key("ns", "a"))
					w.say("crashed: %v", errors.Is(err, reconcile.ErrCrashed))
				}
				return reconcile.Result{At: r.Now.Add(time.Minute), Jobs: []reconcile.Job{{
					ID:   r.Now,
					Run:  func(ctx context.Context, _ func(any)) (any, error) { return nil, reconcile.Sleep(ctx, time.Minute) },
					Done: func(any, error) []reconcile.Wake { w.say("job of life %d", life); return nil },
				}}}, nil
			}}}
	}})
	w.run(t, 2*time.Minute)
	w.check(t, "0s life 1", "1m0s life 1", "1m0s crashed: true", "1m1s life 2")
	w.Stop("p")
	w.run(t, 10*time.Minute)
	w.check(t)
}

func TestVirtualStuck(t *testing.T) {
	w := newWorld(reconcile.VirtualOptions{})
	other := map[reconcile.Key]string{name("a"): "b", name("b"): "a"}
	w.Add(of("p", &toy{name: "r", keys: []reconcile.Key{name("a"), name("quiet")},
		reconcile: func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			if r.Key == name("quiet") {
				return reconcile.Result{}, nil
			}
			return reconcile.Result{Wake: []reconcile.Wake{{Key: name(other[r.Key])}}}, nil
		}}))
	err := w.RunUntil(start.Add(time.Minute))
	if err == nil || !strings.Contains(err.Error(), "p r a (5002 times)") || !strings.Contains(err.Error(), "p r b") || strings.Contains(err.Error(), "quiet") {
		t.Errorf("RunUntil = %v, want an error that names a and b", err)
	}
}

func TestVirtualManyKeysAtOnce(t *testing.T) {
	w := newWorld(reconcile.VirtualOptions{})
	keys := make([]reconcile.Key, 30_000)
	for i := range keys {
		keys[i] = name(fmt.Sprint(i))
	}
	n := 0
	w.Add(of("p", &toy{name: "r", keys: keys, reconcile: func(context.Context, reconcile.Request) (reconcile.Result, error) {
		n++
		return reconcile.Result{}, nil
	}}))
	w.run(t, time.Minute)
	checktest.FailIf(t, n != len(keys), "%d looks at %d keys", n, len(keys))
}

func TestRunWhile(t *testing.T) {
	w := newWorld(reconcile.VirtualOptions{})
	n := 0
	w.Add(of("p", &toy{name: "r", keys: []reconcile.Key{name("a")},
		reconcile: func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			n++
			return reconcile.Result{At: r.Now.Add(time.Second)}, nil
		}}))
	err := w.RunWhile(time.Minute, func() bool { return n < 5 })
	checktest.FailIf(t, err != nil || n != 5, "RunWhile = %v after %d looks", err, n)
	checktest.ErrorIs(t, reconcile.ErrLimit, w.RunWhile(time.Minute, func() bool { return true }))
}

func TestClock(t *testing.T) {
	w := newWorld(reconcile.VirtualOptions{})
	timer := w.clock.AfterFunc(time.Minute, func() { w.say("first") })
	stopped := w.clock.AfterFunc(time.Minute, func() { w.say("never") })
	w.clock.AfterFunc(30*time.Second, func() { timer.Reset(time.Minute) })
	checktest.FailIf(t, !stopped.Stop() || stopped.Stop(), "Stop does not tell whether the timer was running")
	w.run(t, 5*time.Minute)
	w.check(t, "1m30s first")
	for what, wait := range map[string]func(){
		"After":     func() { w.clock.After(1) },
		"Sleep":     func() { w.clock.Sleep(1) },
		"NewTimer":  func() { w.clock.NewTimer(1) },
		"NewTicker": func() { w.clock.NewTicker(1) },
		"Tick":      func() { w.clock.Tick(1) },
	} {
		func() {
			defer func() {
				checktest.FailIf(t, recover() == nil, "%s did not panic", what)
			}()
			wait()
		}()
	}
}

// copier keeps copies of ConfigMaps: "copy-x" of "x".
func copier(api clusterapi.ClusterAPI, say func(string, ...any)) *toy {
	return &toy{name: "copier",
		watches: []reconcile.Watch{{GVK: configMap, Changed: func(_ time.Time, _, new *clusterapi.Object) []reconcile.Wake {
			if new == nil || strings.HasPrefix(new.Name(), "copy-") {
				return nil
			}
			return []reconcile.Wake{{Key: name(new.Name())}}
		}}},
		reconcile: func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			o, err := clusterapi.GetShared(ctx, api, configMap, clusterapi.Key("ns", r.Key.Name))
			if err != nil {
				return reconcile.Result{}, err
			}
			say("copies %s=%s at %v", r.Key, value(o), r.Now.Sub(start))
			_, err = api.Apply(ctx, object("copy-"+r.Key.Name, value(o)), clusterapi.ApplyOptions{FieldManager: "copier"})
			return reconcile.Result{}, err
		}}
}

// play runs two copiers under faults while values change, and checks that the
// copies are right in the end.
func play(seed uint64, o reconcile.VirtualOptions) (log []string, faults []string, err error) {
	o.Seed = seed
	w := newWorld(o)
	for _, p := range []string{"p", "q"} {
		w.Add(reconcile.Process{Name: p, New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
			return []reconcile.Reconciler{copier(api, func(f string, args ...any) { w.say(p+" "+f, args...) })}
		}})
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	want := map[string]string{}
	for range 30 {
		n, v := fmt.Sprint("o", rng.IntN(3)), fmt.Sprint("v", rng.IntN(10))
		want[n] = v
		if _, err := w.cluster.Apply(context.Background(), object(n, v), clusterapi.ApplyOptions{FieldManager: "test"}); err != nil {
			return nil, nil, err
		}
		if err := w.RunUntil(w.Now().Add(time.Duration(rng.IntN(100)) * time.Second)); err != nil {
			return nil, nil, err
		}
	}
	err = w.RunUntil(w.Now().Add(2 * time.Hour))
	for n, v := range want {
		got, fault := clusterapi.GetShared(context.Background(), w.cluster, configMap, clusterapi.Key("ns", "copy-"+n))
		if fault != nil || value(got) != v {
			err = errors.Join(err, fmt.Errorf("copy-%s is %q (%v), want %q", n, value(got), fault, v))
		}
	}
	return w.log, w.Faults(), err
}
