package reconcile_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

var errConflict = apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "a", errTest)

func TestABackendWithoutWatchIsPolled(t *testing.T) {
	bubble(t, func(t *testing.T, l *log, api *memory.Cluster) {
		stop := begin(t, reconcile.Options{API: unwatched{api}}, rec{name: "r", watches: []reconcile.Watch{tells(l, "")}})
		defer stop()
		for i := range 3 {
			time.Sleep(19 * time.Second)
			put(t, api, "a", fmt.Sprint(i))
		}
		time.Sleep(time.Minute)
		checktest.Same(t, []string{"30s a ->0", "1m0s a 0>2"}, l.take())
	})
}

func TestABusyServerIsLeftAloneByLists(t *testing.T) {
	bubble(t, func(t *testing.T, l *log, _ *memory.Cluster) {
		asked := 0
		api := newCluster(func(ctx context.Context, c memory.Call, do func(context.Context) error) error {
			if c.Verb == "List" {
				if asked++; asked == 1 {
					return apierrors.NewTooManyRequests("busy", 600)
				}
			}
			return do(ctx)
		})
		put(t, api, "a", "1")
		drive(t, reconcile.Options{API: unwatched{api}, Observe: l.observe}, 2*time.Minute+time.Second, rec{name: "r", watches: []reconcile.Watch{tells(l, "")}})
		want := []string{"0s ServerBusy ConfigMap x1: busy", "2m0s WatchRecovered ConfigMap x1: <nil>", "2m0s a ->1"}
		checktest.Same(t, want, sorted(l.take()))
	})
}

// After a success, conflicts are tried again at once again.
func TestConflictsAreCountedInARow(t *testing.T) {
	bubble(t, func(t *testing.T, l *log, _ *memory.Cluster) {
		looks := 0
		drive(t, reconcile.Options{Observe: l.observe}, 2*time.Minute, at(rec{name: "r", look: func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			if looks++; looks%5 != 0 {
				return reconcile.Result{}, errConflict
			}
			l.add("look %d", looks)
			return reconcile.Result{At: r.Now.Add(time.Minute)}, nil
		}}, "a"))
		checktest.Same(t, []string{"0s look 5", "1m0s look 10"}, l.take()[:2])
	})
}

// Of what came and went while a look went on nobody is told.
func TestWhatCameAndWentIsNotTold(t *testing.T) {
	bubble(t, func(t *testing.T, l *log, api *memory.Cluster) {
		stop := begin(t, reconcile.Options{API: api}, at(rec{name: "r", watches: []reconcile.Watch{{GVK: configMaps,
			Changed: func(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake {
				l.add("%s>%s", dataOf(old), dataOf(new))
				return nil
			}}}, look: func(context.Context, reconcile.Request) (reconcile.Result, error) {
			time.Sleep(time.Second)
			return reconcile.Result{}, nil
		}}, "k"))
		defer stop()
		put(t, api, "a", "1")
		put(t, api, "b", "1")
		put(t, api, "b", "2")
		synctest.Wait()
		remove(t, api, "a")
		time.Sleep(time.Minute)
		checktest.Same(t, []string{"1s ->2"}, l.take())
	})
}

func TestVirtualJobsTakeTime(t *testing.T) {
	w := newWorld(reconcile.VirtualOptions{Latency: reconcile.Latency{Job: time.Second}})
	w.Add(of("p", &toy{name: "r", keys: []reconcile.Key{name("k")},
		reconcile: func(context.Context, reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{Jobs: []reconcile.Job{{ID: 1,
				Run: func(ctx context.Context, _ func(any)) (any, error) {
					return nil, reconcile.Sleep(ctx, time.Minute)
				},
				Done: func(any, error) []reconcile.Wake { w.say("done"); return nil },
			}}}, nil
		}}))
	w.run(t, time.Hour)
	w.check(t, "1m1s done")
}

// A job that goes on tells the functions of the latest Result.
func TestVirtualTheLatestResultIsTold(t *testing.T) {
	w := newWorld(reconcile.VirtualOptions{})
	look := 0
	w.Add(of("p", &toy{name: "r", keys: []reconcile.Key{name("k")},
		reconcile: func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			look++
			n := look
			res := reconcile.Result{Jobs: []reconcile.Job{{ID: 1,
				Run: func(ctx context.Context, report func(any)) (any, error) {
					err := reconcile.Sleep(ctx, time.Minute)
					report(1)
					return nil, err
				},
				Report: func(any) []reconcile.Wake { w.say("reported to %d", n); return nil },
				Done:   func(any, error) []reconcile.Wake { w.say("told %d", n); return nil },
			}}}
			if n == 1 {
				res.At = r.Now.Add(time.Second)
			}
			return res, nil
		}}))
	w.run(t, time.Hour)
	w.check(t, "1m0s reported to 2", "1m0s told 2")
}

// Request.Rand comes from the seed.
func TestVirtualRandomnessRepeats(t *testing.T) {
	draw := func(seed uint64) (drawn []uint64) {
		w := newWorld(reconcile.VirtualOptions{Seed: seed})
		w.Add(of("p", &toy{name: "r", keys: []reconcile.Key{name("a"), name("b")},
			reconcile: func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
				drawn = append(drawn, r.Rand.Uint64())
				return reconcile.Result{At: r.Now.Add(time.Minute)}, nil
			}}))
		w.run(t, 3*time.Minute)
		return drawn
	}
	if first := draw(1); !slices.Equal(first, draw(1)) || slices.Equal(first, draw(2)) {
		t.Error("the randomness is not the seed's")
	}
}

// Modify does not try a conflict again: that is the driver's.
func TestVirtualModifyReturnsAConflictAtOnce(t *testing.T) {
	w := newWorld(reconcile.VirtualOptions{Faults: reconcile.Faults{Conflict: 1}})
	w.put(t, "a", "1")
	asked := 0
	w.Add(reconcile.Process{Name: "p", New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
		return []reconcile.Reconciler{&toy{name: "r", keys: []reconcile.Key{name("k")},
			reconcile: func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
				w.say("look")
				_, err := clusterapi.Modify(ctx, api, clusterapi.Key("ns", "a"), clusterapi.ModifyOptions{}, func(c *corev1.ConfigMap) error {
					asked++
					c.Data = map[string]string{"value": "2"}
					return nil
				})
				return reconcile.Result{}, err
			}}}
	}})
	w.run(t, time.Millisecond)
	if w.check(t, "0s look", "0s look", "0s look", "0s look", "0s look", "0s look"); asked != 6 {
		t.Errorf("asked %d times in 6 looks", asked)
	}
}

// A job that ends at its limit in the middle of a call says which limit that was.
func TestALimitIsNotTheCalls(t *testing.T) {
	bubble(t, func(t *testing.T, l *log, _ *memory.Cluster) {
		api := newCluster(func(ctx context.Context, _ memory.Call, _ func(context.Context) error) error {
			<-ctx.Done()
			return ctx.Err()
		})
		driveWith(t, reconcile.Options{API: unwatched{api}}, time.Minute, func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
			return []reconcile.Reconciler{at(rec{name: "r", look: func(context.Context, reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{Jobs: []reconcile.Job{{ID: 1, Limit: time.Second,
					Run: func(ctx context.Context, _ func(any)) (any, error) {
						return api.Get(ctx, configMaps, clusterapi.Key("ns", "a"))
					},
					Done: func(_ any, err error) []reconcile.Wake { l.add("%v", err); return nil },
				}}}, nil
			}}, "k")}
		})
		checktest.Same(t, []string{"1s the job has not ended within 1s: context deadline exceeded"}, l.take())
	})
}
