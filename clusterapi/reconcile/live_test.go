package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

var errTest = errors.New("no luck")

func TestFailuresBackOff(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "x"}, "x", errTest)
	for _, tc := range []struct {
		name string
		errs []error // one after another, the last again and again
		want []string
	}{
		{"an error", []error{errTest}, []string{
			"0s", "10ms", "30ms", "70ms", "150ms", "310ms", "630ms", "1.27s", "2.55s", "5.11s", "10.23s", "20.47s", "40.95s", "1m10.95s", "1m40.95s",
		}},
		{"conflicts", []error{conflict}, []string{"0s", "0s", "0s", "0s", "0s", "0s", "10ms", "30ms", "70ms"}},
		{"a conflict, then an error", []error{conflict, errTest, nil}, []string{"0s", "0s", "10ms"}},
		{"a busy server", []error{apierrors.NewTooManyRequests("busy", 7), nil}, []string{"0s", "7s"}},
		{"a very busy server", []error{apierrors.NewTooManyRequests("busy", 3600), nil}, []string{"0s", "2m0s"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, l *log, _ *memory.Cluster) {
				n := 0
				drive(t, reconcile.Options{}, 5*time.Minute, at(rec{name: "r", look: func(context.Context, reconcile.Request) (reconcile.Result, error) {
					l.add("")
					err := tc.errs[min(n, len(tc.errs)-1)]
					n++
					return reconcile.Result{}, err
				}}, "a"))
				var got []string
				for _, line := range l.take() {
					got = append(got, strings.TrimSpace(line))
				}
				if tc.errs[len(tc.errs)-1] != nil && len(got) > len(tc.want) {
					got = got[:len(tc.want)]
				}
				checktest.SameIn(t, "looks", tc.want, got)
			})
		})
	}
}

func TestALastingErrorIsToldSeldom(t *testing.T) {
	bubble(t, func(t *testing.T, l *log, _ *memory.Cluster) {
		start := time.Now()
		drive(t, reconcile.Options{Observe: l.observe, Resync: reconcile.Never}, time.Hour, at(rec{name: "r", look: func(context.Context, reconcile.Request) (reconcile.Result, error) {
			if time.Since(start) < 20*time.Minute {
				return reconcile.Result{}, errTest
			}
			return reconcile.Result{}, nil
		}}, "a"))
		want := []string{
			"0s Failed r a x1: no luck",
			"10.23s Failed r a x11: no luck",
			"1m40.95s Failed r a x15: no luck",
			"16m40.95s Failed r a x45: no luck",
			"20m10.95s Recovered r a x51: <nil>",
		}
		checktest.SameIn(t, "events", want, l.take())
	})
}

func TestABusyServerIsToldAndObeyed(t *testing.T) {
	bubble(t, func(t *testing.T, l *log, api *memory.Cluster) {
		stop := begin(t, reconcile.Options{API: api, Observe: l.observe}, rec{
			name: "r", watches: []reconcile.Watch{tells(l, "")},
			look: script(l,
				func() (reconcile.Result, error) { return reconcile.Result{}, apierrors.NewTooManyRequests("busy", 60) },
				func() (reconcile.Result, error) { return reconcile.Result{}, nil }),
		})
		defer stop()
		put(t, api, "a", "1")
		time.Sleep(10 * time.Second)
		put(t, api, "a", "2") // a wake does not make it look earlier
		time.Sleep(time.Minute)
		want := []string{
			"0s a ->1", "0s look a", "0s ServerBusy r a x1: busy",
			"10s a 1>2", "1m0s look a", "1m0s Recovered r a x1: <nil>",
		}
		checktest.Same(t, want, l.take())
	})
}

func TestWhenToLookAgain(t *testing.T) {
	in := func(d time.Duration) time.Time { return time.Now().Add(d) }
	result := func(f func() reconcile.Result) func() (reconcile.Result, error) {
		return func() (reconcile.Result, error) { return f(), nil }
	}
	wake := func(name string, after time.Duration) reconcile.Wake {
		return reconcile.Wake{Key: reconcile.Key{Name: name}, After: after}
	}
	nothing := result(func() reconcile.Result { return reconcile.Result{} })
	for _, tc := range []struct {
		name  string
		steps []func() (reconcile.Result, error)
		want  []string
	}{
		{"once", []func() (reconcile.Result, error){nothing}, []string{"0s look a"}},
		{"at a time", []func() (reconcile.Result, error){
			result(func() reconcile.Result { return reconcile.Result{At: in(5 * time.Second)} }), nothing,
		}, []string{"0s look a", "5s look a"}},
		{"in the past is now", []func() (reconcile.Result, error){
			result(func() reconcile.Result { return reconcile.Result{At: time.Unix(1, 0)} }), nothing,
		}, []string{"0s look a", "0s look a"}},
		{"the earliest of wakes and At", []func() (reconcile.Result, error){
			result(func() reconcile.Result {
				return reconcile.Result{At: in(5 * time.Second), Wake: []reconcile.Wake{wake("a", 4*time.Second), wake("a", 2*time.Second), wake("a", 3*time.Second)}}
			}), nothing,
		}, []string{"0s look a", "2s look a"}},
		{"a newer result replaces", []func() (reconcile.Result, error){
			result(func() reconcile.Result {
				return reconcile.Result{At: in(time.Hour), Wake: []reconcile.Wake{wake("a", time.Second)}}
			}), nothing,
		}, []string{"0s look a", "1s look a"}},
		{"the earlier result stays after an error", []func() (reconcile.Result, error){
			result(func() reconcile.Result {
				return reconcile.Result{At: in(2 * time.Second), Wake: []reconcile.Wake{wake("a", 1995*time.Millisecond)}}
			}),
			func() (reconcile.Result, error) { return reconcile.Result{At: in(time.Millisecond)}, errTest },
			nothing,
		}, []string{"0s look a", "1.995s look a", "2s look a"}},
		{"other keys", []func() (reconcile.Result, error){
			result(func() reconcile.Result {
				return reconcile.Result{Wake: []reconcile.Wake{wake("c", time.Second), wake("b", 0)}}
			}), nothing,
		}, []string{"0s look a", "0s look b", "1s look c"}},
		{"a reconciler that is not there", []func() (reconcile.Result, error){
			result(func() reconcile.Result {
				return reconcile.Result{Wake: []reconcile.Wake{{Reconciler: "other", Key: reconcile.Key{Name: "b"}}}}
			}), nothing,
		}, []string{"0s look a", `0s Failed r b x1: there is no reconciler "other" to wake`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, l *log, _ *memory.Cluster) {
				o := reconcile.Options{Observe: func(e clusterapi.Event) {
					if e.Err != errTest && e.Type != reconcile.EventRecovered {
						l.observe(e)
					}
				}, Resync: reconcile.Never}
				drive(t, o, 2*time.Hour, at(rec{name: "r", look: script(l, tc.steps...)}, "a"))
				checktest.Same(t, tc.want, l.take())
			})
		})
	}
}

func TestAWakeDuringALookIsKept(t *testing.T) {
	bubble(t, func(t *testing.T, l *log, api *memory.Cluster) {
		first := true
		stop := begin(t, reconcile.Options{API: api}, rec{
			name: "r", watches: []reconcile.Watch{tells(l, "")},
			look: func(context.Context, reconcile.Request) (reconcile.Result, error) {
				l.add("look")
				if first {
					first = false
					time.Sleep(time.Second)
				}
				return reconcile.Result{At: time.Now().Add(time.Hour)}, nil
			},
		})
		defer stop()
		put(t, api, "a", "1")
		synctest.Wait()
		put(t, api, "a", "2")
		put(t, api, "a", "3")
		time.Sleep(time.Minute)
		want := []string{"0s a ->1", "0s look", "1s a 1>3", "1s look"}
		checktest.Same(t, want, l.take())
	})
}

func TestReconcilersWakeOneAnother(t *testing.T) {
	bubble(t, func(t *testing.T, l *log, _ *memory.Cluster) {
		drive(t, reconcile.Options{Resync: reconcile.Never}, time.Minute,
			at(rec{name: "one", look: func(context.Context, reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{Wake: []reconcile.Wake{{Reconciler: "two", Key: reconcile.Key{Name: "b"}, After: time.Second}}}, nil
			}}, "a"),
			rec{name: "two", look: looks(l, "two ")})
		checktest.Same(t, []string{"1s two look b"}, l.take())
	})
}

func TestKeysAreResynced(t *testing.T) {
	for _, tc := range []struct {
		resync time.Duration
		want   []string
	}{
		{0, []string{"0s look a", "10m0s look a", "20m0s look a"}},
		{12 * time.Minute, []string{"0s look a", "12m0s look a", "24m0s look a"}},
		{reconcile.Never, []string{"0s look a"}},
	} {
		bubble(t, func(t *testing.T, l *log, _ *memory.Cluster) {
			drive(t, reconcile.Options{Resync: tc.resync}, 25*time.Minute, at(rec{name: "r", look: looks(l, "")}, "a"))
			checktest.SameIn(t, fmt.Sprintf("Resync %s", tc.resync), tc.want, l.take())
		})
	}
}

func TestReconcilersDoNotWaitForEachOther(t *testing.T) {
	bubble(t, func(t *testing.T, l *log, api *memory.Cluster) {
		put(t, api, "a", "1")
		stop := begin(t, reconcile.Options{API: api},
			rec{name: "slow", watches: []reconcile.Watch{tells(l, "slow ")}, look: func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
				<-ctx.Done()
				return reconcile.Result{}, nil
			}},
			rec{name: "quick", watches: []reconcile.Watch{tells(l, "quick ")}, look: looks(l, "quick ")})
		put(t, api, "a", "2")
		time.Sleep(time.Hour)
		put(t, api, "a", "3")
		time.Sleep(time.Second)
		stop()
		want := []string{"0s quick a ->1", "0s quick a 1>2", "0s quick look a", "0s quick look a", "0s slow a ->1", "1h0m0s quick a 2>3", "1h0m0s quick look a"}
		checktest.Same(t, want, sorted(l.take()))
	})
}

func TestAFailingKeyDoesNotStarveOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looked := map[string]int{}
		r := rec{name: "r", look: func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			looked[r.Key.Name]++
			if strings.HasPrefix(r.Key.Name, "bad") {
				return reconcile.Result{At: time.Unix(1, 0)}, errTest
			}
			return reconcile.Result{At: r.Now}, nil // always due
		}}
		names := []string{"good", "better"}
		for i := range 100 {
			names = append(names, fmt.Sprint("bad", i))
		}
		var turns atomic.Int64
		look := r.look
		ctx, cancel := context.WithCancel(t.Context())
		r.look = func(c context.Context, q reconcile.Request) (reconcile.Result, error) {
			if turns.Add(1) == 2000 {
				cancel()
			}
			return look(c, q)
		}
		checktest.OK(t, reconcile.Run(ctx, reconcile.Options{}, process(at(r, names...))))
		checktest.FailIf(t, looked["good"] < 500 || looked["better"] < 500 || looked["bad7"] == 0,
			"looks: %v", looked)
	})
}

func TestWorkers(t *testing.T) {
	for _, tc := range []struct {
		name           string
		offers, limits int
		want           string
	}{
		{"as the reconciler offers", 3, 0, "1s 3 1s 3 1s 3 2s 3 2s 3 2s 3 3s 1"},
		{"as the options allow", 3, 2, "1s 2 1s 2 2s 2 2s 2 3s 2 3s 2 4s 1"},
		{"one by default", 0, 5, "1s 1 2s 1 3s 1 4s 1 5s 1 6s 1 7s 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var running, seen atomic.Int64
				got := make(chan string, 10)
				l := at(rec{name: "r", look: func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
					running.Add(1)
					time.Sleep(time.Second - 1)
					n := running.Load()
					time.Sleep(time.Nanosecond)
					running.Add(-1)
					seen.Add(1)
					got <- fmt.Sprint(time.Since(start), " ", n)
					return reconcile.Result{}, nil
				}}, "a", "b", "c", "d", "e", "f", "g")
				var r reconcile.Reconciler = l
				if tc.offers > 0 {
					r = wide{l, tc.offers}
				}
				drive(t, reconcile.Options{Workers: tc.limits}, time.Minute, r)
				close(got)
				var all []string
				for s := range got {
					all = append(all, s)
				}
				checktest.Equal(t, tc.want, strings.Join(all, " "), "looks")
			})
		})
	}
}

func TestCallsHaveDeadlines(t *testing.T) {
	hang := func(ctx context.Context, c memory.Call, do func(context.Context) error) error {
		<-ctx.Done()
		return ctx.Err()
	}
	get := func(ctx context.Context, api clusterapi.ClusterAPI) error {
		_, err := api.Get(ctx, configMaps, types.NamespacedName{Namespace: "ns", Name: "a"})
		return err
	}
	for _, tc := range []struct {
		name    string
		timeout time.Duration
		call    func(ctx context.Context, api clusterapi.ClusterAPI) error
		want    string // "" means none within the hour
	}{
		{"by default", 0, get, "30s Get of ConfigMap ns/a: no answer within 30s: context deadline exceeded"},
		{"by options", time.Second, get, "1s Get of ConfigMap ns/a: no answer within 1s: context deadline exceeded"},
		{"none", reconcile.Never, get, ""},
		{"longer", 0, func(ctx context.Context, api clusterapi.ClusterAPI) error {
			return get(reconcile.WithCallTimeout(ctx, time.Minute), api)
		}, "1m0s Get of ConfigMap ns/a: no answer within 1m0s: context deadline exceeded"},
		{"without", 0, func(ctx context.Context, api clusterapi.ClusterAPI) error {
			return get(reconcile.WithCallTimeout(ctx, 0), api)
		}, ""},
		{"list", time.Second, func(ctx context.Context, api clusterapi.ClusterAPI) error {
			_, err := clusterapi.ListShared(ctx, api, configMaps, clusterapi.ListOptions{Namespace: "ns"})
			return err
		}, "1s List of ConfigMap in ns: no answer within 1s: context deadline exceeded"},
		{"evict", time.Second, func(ctx context.Context, api clusterapi.ClusterAPI) error {
			return api.Evict(ctx, types.NamespacedName{Namespace: "ns", Name: "p"}, clusterapi.EvictOptions{})
		}, "1s Evict of Pod ns/p: no answer within 1s: context deadline exceeded"},
		{"one's own is not the driver's", time.Minute, func(ctx context.Context, api clusterapi.ClusterAPI) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return get(ctx, api)
		}, "1s context deadline exceeded"},
	} {
		for _, inJob := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, in a job %v", tc.name, inJob), func(t *testing.T) {
				bubble(t, func(t *testing.T, l *log, _ *memory.Cluster) {
					driveWith(t, reconcile.Options{API: unwatched{newCluster(hang)}, CallTimeout: tc.timeout, Resync: reconcile.Never}, time.Hour, func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
						call := func(ctx context.Context) {
							if err := tc.call(ctx, api); err != nil && ctx.Err() == nil {
								l.add("%v", err)
								checktest.FailIf(t, !errors.Is(err, context.DeadlineExceeded),
									"%v is not a deadline", err)
							}
						}
						return []reconcile.Reconciler{at(rec{name: "r", look: func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
							if !inJob {
								call(ctx)
								return reconcile.Result{}, nil
							}
							return reconcile.Result{Jobs: []reconcile.Job{{ID: 1, Run: func(ctx context.Context, _ func(any)) (any, error) {
								call(ctx)
								return nil, nil
							}, Done: func(any, error) []reconcile.Wake { return nil }}}}, nil
						}}, "a")}
					})
					checktest.Equal(t, tc.want, strings.Join(l.take(), "\n"), "log")
				})
			})
		}
	}
}

func TestModifyReturnsAConflictAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		api := newCluster(func(ctx context.Context, c memory.Call, do func(context.Context) error) error {
			if c.Verb == "Update" {
				if calls++; calls < 4 {
					return apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "a", errTest)
				}
			}
			return do(ctx)
		})
		put(t, api, "a", "1")
		l := newLog()
		drive(t, reconcile.Options{API: api}, time.Second, at(rec{name: "r", look: func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			l.add("look")
			cm := newConfigMap("a", "2")
			_, err := clusterapi.Modify(ctx, api, types.NamespacedName{Namespace: "ns", Name: "a"}, clusterapi.ModifyOptions{}, func(c *corev1.ConfigMap) error {
				c.Data = cm.Data
				return nil
			})
			return reconcile.Result{}, err
		}}, "a"))
		checktest.Same(t, []string{"0s look", "0s look", "0s look", "0s look"}, l.take())
	})
}

func TestRunEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newCluster(nil)
		put(t, api, "a", "1")
		var ended atomic.Int64
		ending := func(ctx context.Context) {
			<-ctx.Done()
			time.Sleep(time.Second)
			ended.Add(1)
		}
		l := newLog()
		stop := begin(t, reconcile.Options{API: api, Observe: l.observe},
			rec{name: "look", watches: []reconcile.Watch{tells(newLog(), "")}, look: func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
				ending(ctx)
				return reconcile.Result{Wake: []reconcile.Wake{{Reconciler: "nobody"}}}, ctx.Err()
			}},
			at(rec{name: "job", look: func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{Jobs: []reconcile.Job{{ID: 1, Run: func(ctx context.Context, report func(any)) (any, error) {
					ending(ctx)
					for range 1000 { // nobody hears it, and it does not wait
						report(1)
					}
					return nil, ctx.Err()
				}, Done: func(any, error) []reconcile.Wake { t.Error("Done was called"); return nil }}}}, nil
			}}, "a"))
		time.Sleep(time.Minute)
		stop()
		checktest.Equal(t, int64(2), ended.Load(), "ended when Run returned")
		lines := l.take()
		checktest.FailIf(t, lines != nil, "events %v", lines)

		done, cancel := context.WithCancel(t.Context())
		cancel()
		checktest.Good(t, reconcile.Run(done, reconcile.Options{}, process(at(rec{name: "r"}, "a"))))
	})
}

func TestPanicsAreErrors(t *testing.T) {
	boom := func() { panic("boom") }
	goexit := func() { new(testing.B).FailNow() } // ends the goroutine
	for _, tc := range []struct {
		name string
		make func(l *log, f func()) rec
		want string // the event's beginning
	}{
		{"Reconcile", func(l *log, f func()) rec {
			return rec{look: func(context.Context, reconcile.Request) (reconcile.Result, error) {
				f()
				return reconcile.Result{}, nil
			}}
		}, "Failed bad a x1: panic: "},
		{"Changed", func(l *log, f func()) rec {
			return rec{watches: []reconcile.Watch{{GVK: configMaps, Changed: func(time.Time, *clusterapi.Object, *clusterapi.Object) []reconcile.Wake { f(); return nil }}}}
		}, "Failed bad x1: panic: "},
		{"Cache", func(l *log, f func()) rec {
			return rec{watches: []reconcile.Watch{{GVK: configMaps, Cache: func(time.Time, *clusterapi.Object, *clusterapi.Object) { f() }}}}
		}, "Failed bad x1: panic: "},
		{"job", func(l *log, f func()) rec {
			return rec{look: func(context.Context, reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{Jobs: []reconcile.Job{{ID: "j", Run: func(context.Context, func(any)) (any, error) { f(); return nil, nil }}}}, nil
			}}
		}, "Failed bad a x1: job j: panic: "},
		{"Done", func(l *log, f func()) rec {
			return rec{look: func(context.Context, reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{Jobs: []reconcile.Job{{ID: "j", Run: func(context.Context, func(any)) (any, error) { return nil, nil },
					Done: func(any, error) []reconcile.Wake { f(); return nil }}}}, nil
			}}
		}, "Failed bad a x1: panic: "},
		{"Report", func(l *log, f func()) rec {
			return rec{look: func(context.Context, reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{Jobs: []reconcile.Job{{ID: "j", Run: func(_ context.Context, report func(any)) (any, error) { report(1); return nil, nil },
					Report: func(any) []reconcile.Wake { f(); return nil }, Done: func(any, error) []reconcile.Wake { return nil }}}}, nil
			}}
		}, "Failed bad a x1: panic: "},
	} {
		for how, f := range map[string]func(){"panic": boom, "Goexit": goexit} {
			t.Run(tc.name+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l, events := newLog(), newLog()
					api := newCluster(nil)
					put(t, api, "a", "1")
					put(t, api, "b", "1")
					var stack string
					bad := tc.make(l, f)
					bad.name = "bad"
					drive(t, reconcile.Options{API: api, Observe: func(e clusterapi.Event) {
						events.observe(e)
						if caught := new(clusterapi.PanicError); errors.As(e.Err, &caught) {
							stack = string(caught.Stack)
						}
					}}, time.Second,
						at(bad, "a"), rec{name: "good", watches: []reconcile.Watch{tells(l, "")}, look: looks(l, "")})
					got := events.take()
					checktest.FailIf(t, len(got) == 0 || !strings.HasPrefix(got[0], "0s "+tc.want),
						"events %q, want first %s", got, tc.want)
					checktest.FailIf(t, how == "panic" && !strings.Contains(stack, "live_test.go"),
						"the stack does not say where: %s", stack)
					checktest.SameIn(t, "the other reconciler", []string{"0s a ->1", "0s b ->1", "0s look a", "0s look b"}, l.take())
				})
			})
		}
	}

	t.Run("Keys", func(t *testing.T) {
		bubble(t, func(t *testing.T, l *log, _ *memory.Cluster) {
			drive(t, reconcile.Options{Observe: l.observe}, time.Second, listing{rec{name: "bad"}, func() []reconcile.Key { panic("boom") }})
			checktest.Same(t, []string{"0s Failed bad x1: panic: boom"}, l.take())
		})
	})
	t.Run("Observe and Logger", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var text strings.Builder
			n := 0
			drive(t, reconcile.Options{Observe: func(clusterapi.Event) { boom() }, Logger: slog.New(slog.NewTextHandler(&text, nil))}, time.Second,
				at(rec{name: "r", look: func(context.Context, reconcile.Request) (reconcile.Result, error) {
					n++
					return reconcile.Result{}, errTest
				}}, "a"))
			if n < 5 || !strings.Contains(text.String(), "panicked") || !strings.Contains(text.String(), "live_test.go") || !strings.Contains(text.String(), `event.error="no luck"`) {
				t.Errorf("%d looks; log:\n%s", n, text.String())
			}
			n = 0
			drive(t, reconcile.Options{Logger: slog.New(panicking{})}, time.Second, at(rec{name: "r", look: func(context.Context, reconcile.Request) (reconcile.Result, error) {
				n++
				return reconcile.Result{}, errTest
			}}, "a"))
			checktest.FailIf(t, n < 5, "%d looks", n)
		})
	})
	t.Run("backend", func(t *testing.T) {
		bubble(t, func(t *testing.T, l *log, _ *memory.Cluster) {
			api := newCluster(func(ctx context.Context, c memory.Call, do func(context.Context) error) error {
				if c.GVK == secrets {
					panic("boom")
				}
				return do(ctx)
			})
			put(t, api, "a", "1")
			drive(t, reconcile.Options{API: api, Observe: l.observe}, time.Second,
				rec{name: "bad", watches: []reconcile.Watch{{GVK: secrets}}},
				rec{name: "good", watches: []reconcile.Watch{tells(l, "")}, look: looks(l, "")})
			got := strings.Join(l.take(), "\n")
			if !strings.Contains(got, "WatchFailed Secret x1: panic: boom") || !strings.Contains(got, "look a") {
				t.Errorf("got %s", got)
			}
		})
	})
}

type panicking struct{ slog.Handler }

func (panicking) Enabled(context.Context, slog.Level) bool { panic("boom") }

func TestWhatCannotRun(t *testing.T) {
	for _, tc := range []struct {
		name string
		p    reconcile.Process
		want string
	}{
		{"New panics", reconcile.Process{Name: "p", New: func(clusterapi.ClusterAPI) []reconcile.Reconciler { panic("boom") }}, "process p: panic: boom"},
		{"two of one name", process(rec{name: "r"}, rec{name: "r"}), `process test: two reconcilers are called "r"`},
		{"no API", process(rec{name: "r", watches: []reconcile.Watch{{GVK: configMaps}}}), "process test: r watches ConfigMap, and there is no API"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := reconcile.Run(t.Context(), reconcile.Options{}, tc.p); err == nil || err.Error() != tc.want {
				t.Errorf("Run: %v, want %s", err, tc.want)
			}
			if _, err := reconcile.NewSyncer(reconcile.Options{}, tc.p).Sync(t.Context()); err == nil || err.Error() != tc.want {
				t.Errorf("Sync: %v, want %s", err, tc.want)
			}
		})
	}
}

func TestOptionalInterfacesStay(t *testing.T) {
	for _, tc := range []struct {
		name             string
		api              clusterapi.ClusterAPI
		watches, follows bool
	}{
		{"neither", unwatched{newCluster(nil)}, false, false},
		{"Watcher", watchFunc{ClusterAPI: newCluster(nil)}, true, false},
		{"Follower", struct {
			unwatched
			clusterapi.Follower
		}{}, false, true},
		{"both", struct {
			watchFunc
			clusterapi.Follower
		}{}, true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var given clusterapi.ClusterAPI
			reconcile.NewSyncer(reconcile.Options{API: tc.api}, reconcile.Process{New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
				given = api
				return nil
			}})
			_, watches := given.(clusterapi.Watcher)
			_, follows := given.(clusterapi.Follower)
			_, shared := given.(clusterapi.Shared)
			checktest.FailIf(t, watches != tc.watches || follows != tc.follows || !shared,
				"Watcher %v, Follower %v, Shared %v", watches, follows, shared)
		})
	}
}

func TestRandomnessRepeats(t *testing.T) {
	draw := func(seed uint64) (out []uint64) {
		synctest.Test(t, func(t *testing.T) {
			drive(t, reconcile.Options{Seed: seed}, time.Second, at(rec{name: "r", look: func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
				out = append(out, r.Rand.Uint64())
				return reconcile.Result{}, nil
			}}, "a", "b", "c"))
		})
		return out
	}
	if a, b := draw(7), draw(7); !cmp.Equal(a, b) || len(a) != 3 || a[0] == a[1] {
		t.Errorf("draws %v and %v", a, b)
	}
	if a, b := draw(0), draw(0); cmp.Equal(a, b) {
		t.Errorf("draws without a seed repeat: %v", a)
	}
}

func TestAnotherClock(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	looked := make(chan time.Time)
	hang := func(ctx context.Context, c memory.Call, do func(context.Context) error) error {
		<-ctx.Done()
		return ctx.Err()
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	api := unwatched{newCluster(hang)}
	p := reconcile.Process{Name: "p", New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
		return []reconcile.Reconciler{at(rec{name: "r", look: func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			looked <- r.Now
			_, err := api.Get(ctx, configMaps, types.NamespacedName{Name: "a"})
			checktest.FailIf(t, !errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil, "got %v", err)
			return reconcile.Result{At: r.Now.Add(time.Hour)}, nil
		}}, "a")}
	}}
	go func() {
		ended <- reconcile.Run(ctx, reconcile.Options{API: api, Clock: clock, Resync: reconcile.Never}, p)
	}()
	start := <-looked
	for done := false; !done; {
		select {
		case next := <-looked:
			d := next.Sub(start)
			checktest.FailIf(t, d < time.Hour || d > time.Hour+time.Minute, "the second look came after %s", d)
			done = true
		default:
			if clock.HasWaiters() {
				clock.Step(10 * time.Second)
			}
		}
	}
	cancel()
	checktest.Good(t, <-ended)
}

func TestErrorsOfTheServerKeepTheirType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := func(ctx context.Context, c memory.Call, do func(context.Context) error) error {
			<-ctx.Done()
			return apierrors.NewTimeoutError("took too long", 3)
		}
		var got error
		driveWith(t, reconcile.Options{API: unwatched{newCluster(late)}}, time.Minute, func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
			return []reconcile.Reconciler{at(rec{name: "r", look: func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
				_, got = api.Get(ctx, configMaps, types.NamespacedName{Name: "a"})
				return reconcile.Result{}, nil
			}}, "a")}
		})
		if status := apierrors.APIStatus(nil); !apierrors.IsTimeout(got) || !errors.As(got, &status) || status.Status().Code != http.StatusGatewayTimeout || !errors.Is(got, context.DeadlineExceeded) {
			t.Errorf("got %v", got)
		}
	})
}

func TestAHostRunsTheLooks(t *testing.T) {
	bubble(t, func(t *testing.T, l *log, _ *memory.Cluster) {
		queue := make(chan func() error, 10)
		host := make(chan struct{})
		go func() {
			defer close(host)
			for look := range queue {
				l.add("host: %v", look())
			}
		}()
		n := 0
		dispatch := func(process, reconciler string, key reconcile.Key, look func() error) {
			l.add("%s %s %s", process, reconciler, key)
			switch n++; n {
			case 3:
				panic("boom")
			case 4: // never made
			default:
				queue <- look
			}
		}
		drive(t, reconcile.Options{Dispatch: dispatch, Resync: reconcile.Never, Observe: func(e clusterapi.Event) {
			if e.Err != errTest {
				l.observe(e)
			}
		}}, time.Minute, at(rec{name: "r", look: func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			if n == 1 {
				return reconcile.Result{}, errTest
			}
			return reconcile.Result{At: r.Now.Add(time.Second)}, nil
		}}, "a"))
		close(queue)
		<-host
		want := []string{
			"0s test r a", "0s host: no luck", "10ms test r a", "10ms Recovered r a x1: <nil>", "10ms host: <nil>",
			"1.01s test r a", "1.01s Failed r a x1: panic: boom", "2.01s test r a",
		}
		checktest.Same(t, sorted(want), sorted(l.take()))
	})
}
