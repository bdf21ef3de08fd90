package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// syncing is a Syncer with the log of its reconcilers.
type syncing struct {
	*reconcile.Syncer
	t *testing.T
	l *log
}

// sync adds what a Sync returned to the log.
func (s syncing) sync() []string {
	s.t.Helper()
	after, err := s.Sync(s.t.Context())
	lines := s.l.take()
	if err != nil {
		lines = append(lines, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return append(lines, "after "+after.String())
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	checktest.SameIn(t, what, want, got)
}

func TestSync(t *testing.T) {
	bubble(t, func(t *testing.T, l *log, api *memory.Cluster) {
		put(t, api, "a", "1")
		p := reconcile.Process{Name: "p", New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
			return []reconcile.Reconciler{
				at(rec{name: "writer", watches: []reconcile.Watch{tells(l, "")}, look: func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
					l.add("look%s", keyText(r.Key))
					if r.Key.Name == "a" && r.Now.Equal(l.start) {
						put(t, api, "b", "1") // seen without another list
					}
					return reconcile.Result{}, nil
				}}, "k"),
				rec{name: "timer", watches: []reconcile.Watch{{GVK: configMaps, Changed: func(_ time.Time, _, new *clusterapi.Object) []reconcile.Wake {
					if new == nil || new.Name() != "a" {
						return nil
					}
					return []reconcile.Wake{{Key: reconcile.Key{Name: "t"}, After: 20 * time.Minute}}
				}}}, look: func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
					l.add("timer")
					return reconcile.Result{}, nil
				}},
			}
		}}
		s := syncing{reconcile.NewSyncer(reconcile.Options{API: api}, p), t, l}
		expect(t, "first", s.sync(), "0s a ->1", "0s look a", "0s b ->1", "0s look k", "0s look b", "after 20m0s")
		expect(t, "nothing new", s.sync(), "after 20m0s")
		time.Sleep(5 * time.Minute)
		put(t, api, "b", "2")
		remove(t, api, "a")
		expect(t, "differences", s.sync(), "5m0s b 1>2", "5m0s a 1>-", "5m0s look b", "5m0s look a", "after 15m0s")
		time.Sleep(15 * time.Minute)
		expect(t, "the timer and the resync", sorted(s.sync()), "20m0s look k", "20m0s timer", "after 0s")
		s.Wake("p", "timer", reconcile.Key{Name: "x"})
		s.Wake("p", "nobody", reconcile.Key{Name: "x"})
		expect(t, "woken", s.sync(), "20m0s timer", "after 0s")
	})
}

func TestSyncWaitsForJobs(t *testing.T) {
	bubble(t, func(t *testing.T, l *log, _ *memory.Cluster) {
		n := 0
		r := at(rec{name: "r", look: func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			l.add("look%s", keyText(r.Key))
			if n++; n == 1 {
				j := working(l, 1, time.Minute)
				j.Report, j.Done = nil, nil
				return reconcile.Result{At: r.Now.Add(40 * time.Second), Jobs: []reconcile.Job{j}}, nil
			}
			if n == 2 { // due while the job runs
				return reconcile.Result{At: r.Now.Add(40 * time.Second), Jobs: []reconcile.Job{{ID: 1}}}, nil
			}
			return reconcile.Result{At: r.Now.Add(time.Hour)}, nil
		}}, "k")
		s := syncing{reconcile.NewSyncer(reconcile.Options{}, process(r)), t, l}
		expect(t, "first", s.sync(), "0s look k", "0s 1 begins", "40s look k", "1m0s 1 ends", "1m0s look k", "after 1h0m0s")
	})
}

func TestSyncReportsErrors(t *testing.T) {
	bubble(t, func(t *testing.T, l *log, _ *memory.Cluster) {
		fails := map[string]error{
			"a": errTest, "b": apierrors.NewTooManyRequests("busy", 30),
			"c": apierrors.NewConflict(schema.GroupResource{Resource: "x"}, "x", errTest),
		}
		r := at(rec{name: "r", look: func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			l.add("look%s", keyText(r.Key))
			if r.Key.Name == "d" {
				return reconcile.Result{Wake: []reconcile.Wake{{Key: reconcile.Key{Name: "a"}}}}, nil // its turn is over
			}
			return reconcile.Result{}, fails[r.Key.Name]
		}}, "a", "b", "c", "d")
		s := syncing{reconcile.NewSyncer(reconcile.Options{}, process(r)), t, l}
		conflict := fails["c"].Error()
		expect(t, "first", s.sync(), "0s look a", "0s look b", "0s look c", "0s look d",
			"0s look c", "0s look c", "0s look c", "0s look c", "0s look c",
			"r a: no luck; r b: busy; r c: "+conflict, "after 1ns")
		delete(fails, "c")
		_, err := s.Sync(t.Context())
		checktest.FailIf(t, !errors.Is(err, errTest) || apierrors.IsTooManyRequests(err), "second: %v", err)
		expect(t, "second", l.take(), "0s look a", "0s look c")
		clear(fails)
		expect(t, "third", s.sync(), "0s look a", "after 30s")
		time.Sleep(30 * time.Second)
		expect(t, "fourth", s.sync(), "30s look b", "after 0s")
	})
}

func TestSyncWhereAListFails(t *testing.T) {
	bubble(t, func(t *testing.T, l *log, _ *memory.Cluster) {
		down := true
		api := newCluster(func(ctx context.Context, c memory.Call, do func(context.Context) error) error {
			if down && c.Verb == "List" && c.GVK == secrets {
				return errTest
			}
			return do(ctx)
		})
		put(t, api, "a", "1")
		s := syncing{reconcile.NewSyncer(reconcile.Options{API: api},
			process(
				at(rec{name: "needs", watches: []reconcile.Watch{{GVK: secrets}, {GVK: widgets}, tells(l, "")}, look: looks(l, "needs ")}, "k"),
				at(rec{name: "other", watches: []reconcile.Watch{{GVK: widgets}}, look: looks(l, "other ")}, "k"),
			)), t, l}
		expect(t, "first", s.sync(), "0s other look k", "listing Secret: no luck", "after 0s")
		down = false
		expect(t, "second", s.sync(), "0s a ->1", "0s needs look a", "0s needs look k", "after 0s")
		down = true
		put(t, api, "a", "2")
		expect(t, "third", s.sync(), "0s a 1>2", "0s needs look a", "listing Secret: no luck", "after 0s")
	})
}

func TestSyncGoesOnWhereItWasCut(t *testing.T) {
	bubble(t, func(t *testing.T, l *log, _ *memory.Cluster) {
		r := at(rec{name: "r", look: func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			l.add("look%s", keyText(r.Key))
			if r.Key.Name == "looks" {
				return reconcile.Result{}, reconcile.Sleep(ctx, 20*time.Second)
			}
			j := working(l, 1, time.Minute)
			j.Report = nil
			return reconcile.Result{Jobs: []reconcile.Job{j}}, nil
		}}, "jobs", "looks")
		s := reconcile.NewSyncer(reconcile.Options{}, process(wide{r, 2}))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		after, err := s.Sync(ctx)
		if err != context.DeadlineExceeded && err.Error() != "context deadline exceeded" || after != 1 {
			t.Errorf("first: after %s, %v", after, err)
		}
		expect(t, "first", sorted(l.take()), "0s 1 begins", "0s look jobs", "0s look looks", "10s 1 ends")
		after, err = s.Sync(t.Context())
		checktest.FailIf(t, err != nil || after != 0, "second: after %s, %v", after, err)
		expect(t, "second", sorted(l.take()), "10s 1 begins", "10s look jobs", "10s look looks", "1m10s 1 done: whole, <nil>", "1m10s 1 ends")
	})
}

func TestSyncListsFurtherWatches(t *testing.T) {
	bubble(t, func(t *testing.T, l *log, api *memory.Cluster) {
		put(t, api, "a", "1")
		s := syncing{reconcile.NewSyncer(reconcile.Options{API: api}, process(at(rec{name: "r", look: func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			l.add("look%s", keyText(r.Key))
			return reconcile.Result{Watches: []reconcile.Watch{tells(l, "")}}, nil
		}}, "k"))), t, l}
		// The key that the change wakes has a watch too, of its own interest.
		expect(t, "first", s.sync(), "0s look k", "0s a ->1", "0s look a", "0s a ->1", "0s look a", "after 0s")
	})
}

func TestSyncSeesOwnDeletions(t *testing.T) {
	bubble(t, func(t *testing.T, l *log, _ *memory.Cluster) {
		inner := newCluster(nil)
		put(t, inner, "a", "1")
		s := syncing{reconcile.NewSyncer(reconcile.Options{API: inner}, reconcile.Process{New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
			return []reconcile.Reconciler{at(rec{name: "r", watches: []reconcile.Watch{tells(l, "")}, look: func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
				if r.Key.Name == "k" {
					remove(t, api, "a")
				}
				return reconcile.Result{}, nil
			}}, "k")}
		}}), t, l}
		expect(t, "first", s.sync(), "0s a ->1", "0s a 1>-", "after 0s")
	})
}

func ExampleSyncer() {
	api := memory.New(memory.Options{})
	s := reconcile.NewSyncer(reconcile.Options{API: api}, greeter(api))
	after, err := s.Sync(context.Background())
	fmt.Println(after.Round(time.Minute), err)
	// Output:
	// hello, world
	// 1h0m0s <nil>
}
