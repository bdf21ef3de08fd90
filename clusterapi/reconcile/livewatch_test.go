package reconcile_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestChangesWakeKeys(t *testing.T) {
	for name, hide := range map[string]func(clusterapi.ClusterAPI) clusterapi.ClusterAPI{
		"by events": func(api clusterapi.ClusterAPI) clusterapi.ClusterAPI { return api },
		"by lists":  func(api clusterapi.ClusterAPI) clusterapi.ClusterAPI { return unwatched{api} },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, l *log, api *memory.Cluster) {
				put(t, api, "a", "1")
				put(t, api, "b", "1")
				stop := begin(t, reconcile.Options{API: hide(api), Poll: time.Second},
					rec{name: "r", watches: []reconcile.Watch{tells(l, "")}, look: looks(l, "")})
				defer stop()
				time.Sleep(1500 * time.Millisecond)
				l.take()
				put(t, api, "a", "2")
				remove(t, api, "b")
				put(t, api, "c", "1")
				time.Sleep(time.Second)
				var got []string
				for _, line := range l.take() {
					_, line, _ = strings.Cut(line, " ")
					got = append(got, line)
				}
				want := []string{"a 1>2", "b 1>-", "c ->1", "look a", "look b", "look c"}
				checktest.Same(t, want, sorted(got))
			})
		})
	}
}

func TestWatchesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := newLog()
		api := newCluster(func(ctx context.Context, c memory.Call, do func(context.Context) error) error {
			if c.Verb == "Watch" {
				begun.add("%s %s", c.GVK.Kind, c.Key.Namespace)
			}
			return do(ctx)
		})
		put(t, api, "a", "1")
		l := newLog()
		same := func() reconcile.Watch {
			w := tells(l, "")
			w.Options.Labels = labels.SelectorFromSet(nil)
			return w
		}
		trimmed := tells(l, "trimmed ")
		trimmed.Trim = func(u *unstructured.Unstructured) *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": u.GetName()}}}
		}
		inNS := tells(l, "in ns ")
		inNS.Options.Namespace = "ns"
		stop := begin(t, reconcile.Options{API: api}, rec{name: "one", watches: []reconcile.Watch{same(), trimmed, inNS}}, rec{name: "two", watches: []reconcile.Watch{same(), trimmed}})
		defer stop()
		checktest.SameIn(t, "watches", []string{"0s ConfigMap ", "0s ConfigMap ns"}, sorted(begun.take()))
		checktest.SameIn(t, "changes", []string{"0s a ->1", "0s a ->1", "0s in ns a ->1", "0s trimmed a ->", "0s trimmed a ->"}, sorted(l.take()))
	})
}

// A watch that wants less than one under way shares it; one that wants more does
// not. Of one change every Cache comes before any Changed.
func TestViewsOfAWatch(t *testing.T) {
	names := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": u.GetName()}}}
	}
	for _, tc := range []struct {
		name        string
		first, then func(*unstructured.Unstructured) *unstructured.Unstructured
		begun       []string
	}{
		{"less", nil, names, []string{"0s begun"}},
		{"more", names, nil, []string{"0s begun", "10s begun"}},
		{"the same", nil, nil, []string{"0s begun"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun, l := newLog(), newLog()
				api := newCluster(func(ctx context.Context, c memory.Call, do func(context.Context) error) error {
					if c.Verb == "Watch" {
						begun.add("begun")
					}
					return do(ctx)
				})
				put(t, api, "a", "1")
				watch := func(who string, trim func(*unstructured.Unstructured) *unstructured.Unstructured) reconcile.Watch {
					log := func(what string, old, new *clusterapi.Object) {
						l.add("%s %s %s>%s", who, what, dataOf(old), dataOf(new))
					}
					return reconcile.Watch{GVK: configMaps, Trim: trim,
						Cache:   func(_ time.Time, old, new *clusterapi.Object) { log("cache", old, new) },
						Changed: func(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake { log("changed", old, new); return nil },
					}
				}
				r := rec{name: "r", watches: []reconcile.Watch{watch("first", tc.first)}, look: func(_ context.Context, q reconcile.Request) (reconcile.Result, error) {
					if q.Now.Sub(l.start) < 10*time.Second {
						return reconcile.Result{At: l.start.Add(10 * time.Second)}, nil
					}
					return reconcile.Result{Watches: []reconcile.Watch{watch("then", tc.then)}}, nil
				}}
				stop := begin(t, reconcile.Options{API: api}, at(r, "k"))
				defer stop()
				time.Sleep(11 * time.Second)
				checktest.Same(t, tc.begun, begun.take())
				l.take()
				put(t, api, "a", "2")
				synctest.Wait()
				value := func(trim func(*unstructured.Unstructured) *unstructured.Unstructured) string {
					if trim != nil {
						return ">"
					}
					return "1>2"
				}
				first, then := value(tc.first), value(tc.then)
				want := []string{"11s first cache " + first, "11s then cache " + then, "11s first changed " + first, "11s then changed " + then}
				got := l.take()
				if tc.name == "more" {
					got, want = sorted(got), sorted(want)
				}
				checktest.Same(t, want, got)
			})
		})
	}
}

func TestFoldsSeeAChangeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newCluster(nil)
		var mu sync.Mutex
		cache := map[string]string{}
		check := func(name, v string) {
			mu.Lock()
			defer mu.Unlock()
			if cache[name] != v {
				t.Errorf("Changed sees %s, the cache of the other reconciler has %q", v, cache[name])
			}
		}
		n := 0
		reader := reconcile.Watch{GVK: configMaps, Changed: func(_ time.Time, _, new *clusterapi.Object) []reconcile.Wake {
			n++
			check(new.Name(), dataOf(new))
			return nil
		}}
		owner := reconcile.Watch{GVK: configMaps, Cache: func(_ time.Time, _, new *clusterapi.Object) {
			mu.Lock()
			defer mu.Unlock()
			cache[new.Name()] = dataOf(new)
		}}
		for i := range 20 {
			put(t, api, fmt.Sprint("a", i), "1")
		}
		stop := begin(t, reconcile.Options{API: api}, rec{name: "reader", watches: []reconcile.Watch{reader}}, rec{name: "owner", watches: []reconcile.Watch{owner}})
		defer stop()
		for i := range 20 {
			put(t, api, fmt.Sprint("a", i), "2")
			synctest.Wait()
		}
		checktest.FailIf(t, n != 40, "%d changes", n)
	})
}

func TestNoKeyIsLookedAtBeforeAllIsListed(t *testing.T) {
	bubble(t, func(t *testing.T, l *log, _ *memory.Cluster) {
		api := newCluster(func(ctx context.Context, c memory.Call, do func(context.Context) error) error {
			if c.Verb == "Watch" && c.GVK == secrets {
				time.Sleep(5 * time.Second)
			}
			return do(ctx)
		})
		put(t, api, "a", "1")
		r := rec{name: "r", watches: []reconcile.Watch{tells(l, ""), {GVK: secrets}}, look: looks(l, "")}
		stop := begin(t, reconcile.Options{API: api}, at(r, "k"), rec{name: "other", watches: []reconcile.Watch{tells(l, "other ")}})
		defer stop()
		time.Sleep(time.Minute)
		want := []string{"0s other a ->1", "5s a ->1", "5s look a", "5s look k"}
		checktest.Same(t, want, l.take())
	})
}

func TestABrokenWatchYieldsDifferences(t *testing.T) {
	bubble(t, func(t *testing.T, l *log, api *memory.Cluster) {
		for _, name := range []string{"a", "b", "c"} {
			put(t, api, name, "1")
		}
		broken := make(chan struct{})
		begun := 0
		watch := func(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) iter.Seq2[clusterapi.WatchEvent, error] {
			return func(yield func(clusterapi.WatchEvent, error) bool) {
				begun++
				switch begun {
				case 1:
					ctx, cancel := context.WithCancel(ctx)
					go func() { <-broken; cancel() }()
					for e, err := range api.Watch(ctx, gvk, opts) {
						if !yield(e, err) {
							return
						}
					}
					if ctx.Err() != nil {
						yield(clusterapi.WatchEvent{}, errTest)
					}
				case 2:
					yield(clusterapi.WatchEvent{}, errTest)
				default:
					api.Watch(ctx, gvk, opts)(yield)
				}
			}
		}
		stop := begin(t, reconcile.Options{API: watchFunc{api, watch}, Observe: l.observe}, rec{name: "r", watches: []reconcile.Watch{tells(l, "")}})
		defer stop()
		time.Sleep(time.Minute)
		l.take()
		close(broken)
		synctest.Wait()
		put(t, api, "b", "2")
		remove(t, api, "c")
		put(t, api, "d", "1")
		time.Sleep(time.Minute)
		want := []string{
			"1m0s WatchFailed ConfigMap x1: no luck",
			"1m0.03s WatchRecovered ConfigMap x2: <nil>",
			"1m0.03s b 1>2", "1m0.03s c 1>-", "1m0.03s d ->1",
		}
		got := l.take()
		checktest.Same(t, sorted(want), sorted(got))
	})
}

func TestAListThatDoesNotComeIsBrokenOff(t *testing.T) {
	bubble(t, func(t *testing.T, l *log, api *memory.Cluster) {
		put(t, api, "a", "1")
		begun := 0
		watch := func(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) iter.Seq2[clusterapi.WatchEvent, error] {
			if begun++; begun > 3 {
				return api.Watch(ctx, gvk, opts)
			}
			return func(yield func(clusterapi.WatchEvent, error) bool) {
				<-ctx.Done()
				if begun > 1 { // a backend may say so, or just end
					yield(clusterapi.WatchEvent{}, ctx.Err())
				}
			}
		}
		stop := begin(t, reconcile.Options{API: watchFunc{api, watch}, Observe: l.observe}, rec{name: "r", watches: []reconcile.Watch{tells(l, "")}, look: looks(l, "")})
		defer stop()
		time.Sleep(time.Hour)
		want := []string{
			"30s WatchFailed ConfigMap x1: no list within 30s: context deadline exceeded",
			"1m0.01s WatchFailed ConfigMap x2: no list within 30s: context deadline exceeded",
			"1m30.07s WatchRecovered ConfigMap x3: <nil>",
			"1m30.07s a ->1", "1m30.07s look a",
		}
		got := l.take()
		checktest.Same(t, sorted(want), sorted(got))
	})
}

func TestAKindThatIsNotServed(t *testing.T) {
	for name, hide := range map[string]func(clusterapi.ClusterAPI) clusterapi.ClusterAPI{
		"by events": func(api clusterapi.ClusterAPI) clusterapi.ClusterAPI { return api },
		"by lists":  func(api clusterapi.ClusterAPI) clusterapi.ClusterAPI { return unwatched{api} },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, l *log, api *memory.Cluster) {
				r := rec{name: "r", watches: []reconcile.Watch{{GVK: widgets, Changed: func(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake {
					l.add("%v>%v", old != nil, new != nil)
					return nil
				}}}, look: looks(l, "")}
				stop := begin(t, reconcile.Options{API: hide(api), Observe: func(e clusterapi.Event) {
					a := e.Data.(*reconcile.Attempt)
					l.add("%s %s", e.Type, a.Watch)
					checktest.FailIf(t, e.Type == reconcile.EventNotServed && a.Retry.Sub(e.Time) != time.Minute,
						"tried again at %s, %s after the event", a.Retry, a.Retry.Sub(e.Time))
				}, Resync: reconcile.Never}, at(r, "k"))
				defer stop()
				time.Sleep(10*time.Minute + time.Second)
				define(t, api)
				time.Sleep(10 * time.Minute)
				want := []string{"0s NotServed Widget", "0s look k", "11m0s WatchRecovered Widget", "11m0s false>true"}
				got := l.take()
				checktest.Same(t, sorted(want), sorted(got))
			})
		})
	}
}

// define makes a cluster serve Widgets, and stores one.
func define(t *testing.T, api clusterapi.ClusterAPI) {
	t.Helper()
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "widgets.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced",
			"names": map[string]any{"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}},
		},
	}}
	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"namespace": "ns", "name": "w"},
	}}
	for _, u := range []*unstructured.Unstructured{crd, widget} {
		checktest.OK(t, checktest.Err(api.Create(t.Context(), u, clusterapi.CreateOptions{})))
	}
}

func TestARecordingIsListed(t *testing.T) {
	bubble(t, func(t *testing.T, l *log, _ *memory.Cluster) {
		inner := newCluster(nil)
		put(t, inner, "a", "1")
		partial := partly{unwatched{inner}}
		stop := begin(t, reconcile.Options{API: clusterapi.ReadOnly(partial), Observe: l.observe}, rec{name: "r", watches: []reconcile.Watch{tells(l, "")}, look: looks(l, "")})
		defer stop()
		time.Sleep(10 * time.Minute)
		want := []string{"0s NotServed ConfigMap x1: not collected in this recording", "0s a ->1", "0s look a"}
		checktest.Same(t, want, sorted(l.take()))
	})
}

// partly knows that it does not have all objects.
type partly struct{ unwatched }

func (p partly) List(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	list, err := p.unwatched.List(ctx, gvk, opts)
	if err == nil {
		err = clusterapi.ErrNotCollected
	}
	return list, err
}

func TestOwnWritesAreKnownWithoutEvents(t *testing.T) {
	bubble(t, func(t *testing.T, l *log, _ *memory.Cluster) {
		inner := newCluster(nil)
		driveWith(t, reconcile.Options{API: unwatched{inner}, Poll: time.Hour}, time.Minute, func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
			return []reconcile.Reconciler{at(rec{name: "r", watches: []reconcile.Watch{tells(l, "")}, look: func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
				if r.Key.Name == "k" {
					put(t, api, "a", "1")
					put(t, api, "b", "1")
					remove(t, api, "b")
				}
				return reconcile.Result{}, nil
			}}, "k")}
		})
		checktest.Same(t, []string{"0s a ->1"}, l.take())
	})
}

func TestAListThatIsOlderThanAWrite(t *testing.T) {
	bubble(t, func(t *testing.T, l *log, _ *memory.Cluster) {
		lists := 0
		inner := newCluster(func(ctx context.Context, c memory.Call, do func(context.Context) error) error {
			err := do(ctx)
			if c.Verb == "List" {
				if lists++; lists == 2 {
					time.Sleep(5 * time.Second) // what it read is old when it arrives
				}
			}
			return err
		})
		put(t, inner, "a", "1")
		driveWith(t, reconcile.Options{API: unwatched{inner}, Poll: time.Minute}, 10*time.Minute-1, func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
			return []reconcile.Reconciler{at(rec{name: "r", watches: []reconcile.Watch{tells(l, "")}, look: func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
				if r.Key.Name != "k" {
					return reconcile.Result{}, nil
				}
				if time.Since(l.start) > 0 {
					put(t, api, "a", "2")
					put(t, api, "b", "1")
					return reconcile.Result{}, nil
				}
				return reconcile.Result{At: r.Now.Add(62 * time.Second)}, nil
			}}, "k")}
		})
		checktest.Same(t, []string{"0s a ->1", "1m2s a 1>2", "1m2s b ->1"}, l.take())
	})
}

func TestFurtherWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := newLog()
		api := newCluster(func(ctx context.Context, c memory.Call, do func(context.Context) error) error {
			if c.Verb == "Watch" {
				begun.add("begun")
				context.AfterFunc(ctx, func() { begun.add("ended") })
			}
			return do(ctx)
		})
		put(t, api, "a", "1")
		l := newLog()
		var off atomic.Bool
		watch := func() []reconcile.Watch {
			if off.Load() {
				return nil
			}
			w := tells(l, "")
			changed := w.Changed
			w.Changed = func(now time.Time, old, new *clusterapi.Object) []reconcile.Wake { changed(now, old, new); return nil }
			return []reconcile.Watch{w, w}
		}
		r := rec{name: "r", look: func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{At: r.Now.Add(10 * time.Second), Watches: watch()}, nil
		}}
		stop := begin(t, reconcile.Options{API: api}, at(r, "one", "two"))
		defer stop()
		time.Sleep(25 * time.Second)
		put(t, api, "a", "2")
		synctest.Wait()
		off.Store(true)
		time.Sleep(20 * time.Second)
		put(t, api, "a", "3")
		synctest.Wait()
		checktest.SameIn(t, "watches", []string{"0s begun", "30s ended"}, begun.take())
		checktest.SameIn(t, "changes", []string{"0s a ->1", "0s a ->1", "25s a 1>2", "25s a 1>2"}, l.take())
	})
}

func TestManyChangesDoNotQueue(t *testing.T) {
	bubble(t, func(t *testing.T, l *log, api *memory.Cluster) {
		r := rec{name: "r", watches: []reconcile.Watch{tells(l, "")}, look: func(context.Context, reconcile.Request) (reconcile.Result, error) {
			time.Sleep(time.Second)
			return reconcile.Result{}, nil
		}}
		stop := begin(t, reconcile.Options{API: api}, at(r, "k"))
		defer stop()
		synctest.Wait()
		put(t, api, "a", "0")
		put(t, api, "gone", "0")
		for i := range 5000 {
			put(t, api, "a", fmt.Sprint(i))
		}
		remove(t, api, "gone")
		time.Sleep(time.Minute)
		checktest.Same(t, []string{"1s a ->4999"}, l.take())
	})
}

func TestWritesOfOthersThatTheWatchDoesNotSelect(t *testing.T) {
	bubble(t, func(t *testing.T, l *log, _ *memory.Cluster) {
		inner := newCluster(nil)
		w := tells(l, "")
		w.Options.Namespace = "other"
		s := reconcile.NewSyncer(reconcile.Options{API: inner}, reconcile.Process{Name: "p", New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
			return []reconcile.Reconciler{at(rec{name: "r", watches: []reconcile.Watch{w}, look: func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
				put(t, api, "a", "1")
				_, err := api.Get(ctx, configMaps, types.NamespacedName{Namespace: "ns", Name: "a"})
				return reconcile.Result{}, err
			}}, "k")}
		}})
		checktest.OK(t, checktest.Err(s.Sync(t.Context())))
		lines := l.take()
		checktest.FailIf(t, lines != nil, "changes %v", lines)
	})
}
