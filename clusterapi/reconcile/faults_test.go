package reconcile_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/simtest"
)

// harsh is a bit of every fault.
var harsh = reconcile.Faults{
	Before: 0.05, After: 0.05, Conflict: 0.05, Slow: 0.02, Stale: 0.1, Late: 0.2, Double: 0.1, Merge: 0.1,
	Crash: 0.03, Outage: 0.2, ClockBack: 0.2,
}

func TestFaultsAreSurvived(t *testing.T) {
	simtest.Test(t, 0, func(seed uint64, only map[string]bool) ([]string, error) {
		o := reconcile.VirtualOptions{Faults: harsh, Latency: reconcile.Latency{Watch: time.Second}}
		if o.Faults.Only = only; seed%2 == 0 {
			o.Order = reconcile.Random
		}
		_, faults, err := play(seed, o)
		return faults, err
	})
}

func TestSameSeedSameRun(t *testing.T) {
	for _, order := range []reconcile.Order{reconcile.InOrder, reconcile.Random} {
		o := reconcile.VirtualOptions{Faults: harsh, Order: order, Latency: reconcile.Latency{Watch: time.Second}}
		first, faults, err := play(1, o)
		checktest.FatalIf(t, err != nil || len(faults) == 0, "%d faults, %v", len(faults), err)
		again, _, _ := play(1, o)
		checktest.SameIn(t, "the same seed made another run (-first +second)", first, again)
		other, _, _ := play(2, o)
		checktest.FailIf(t, cmp.Equal(first, other), "another seed made the same run")
	}
}

// Without one of the faults, those before it stay as they were.
func TestFaultLeftOut(t *testing.T) {
	o := reconcile.VirtualOptions{Faults: harsh}
	_, all, _ := play(3, o)
	i := len(all) / 2
	o.Faults.Only = map[string]bool{}
	for _, f := range all {
		o.Faults.Only[f] = f != all[i]
	}
	_, some, err := play(3, o)
	checktest.OK(t, err)
	checktest.SameIn(t, "the faults before the one that was left out (-with +without)", all[:i], some[:i])
	if slices.Contains(some, all[i]) {
		t.Errorf("%q took place", all[i])
	}
	o.Faults.Only = map[string]bool{}
	_, none, _ := play(3, o)
	checktest.FailIf(t, len(none) != 0, "with no faults allowed: %q", none)
}

// one returns a world with one process p, which a fault of rate 1 strikes.
func one(t *testing.T, f reconcile.Faults, r func(w *world, api clusterapi.ClusterAPI) *toy) *world {
	t.Helper()
	w := newWorld(reconcile.VirtualOptions{Seed: 1, Faults: f})
	w.put(t, "a", "1")
	w.Add(reconcile.Process{Name: "p", New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
		return []reconcile.Reconciler{r(w, api)}
	}})
	return w
}

// write is a reconciler that once tries to write a ConfigMap, and says how that
// went.
func write(w *world, api clusterapi.ClusterAPI) *toy {
	return &toy{name: "r", keys: []reconcile.Key{name("k")}, reconcile: func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		u, err := w.cluster.Get(ctx, configMap, clusterapi.Key("ns", "a"))
		if err != nil {
			return reconcile.Result{}, err
		}
		u.Object["data"] = map[string]any{"value": "2"}
		_, err = api.Update(ctx, u, clusterapi.UpdateOptions{})
		stored, _ := w.cluster.Get(context.Background(), configMap, clusterapi.Key("ns", "a"))
		text := "nil"
		switch {
		case errors.Is(err, reconcile.ErrCrashed):
			text = "crashed"
		case errors.Is(err, context.DeadlineExceeded):
			text = "deadline"
		case err != nil:
			text = string(apierrors.ReasonForError(err))
		}
		w.say("%s %s", text, value(clusterapi.NewObject(stored)))
		return reconcile.Result{}, nil
	}}
}

func TestFaultsOfCalls(t *testing.T) {
	for _, c := range []struct {
		name   string
		faults reconcile.Faults
		want   []string // one of them
	}{
		{"before", reconcile.Faults{Before: 1}, []string{"0s InternalError 1"}},
		{"after", reconcile.Faults{After: 1}, []string{"0s InternalError 2"}},
		{"conflict", reconcile.Faults{Conflict: 1}, []string{"0s Conflict 1"}},
		{"slow", reconcile.Faults{Slow: 1}, []string{"0s deadline 1", "0s deadline 2"}},
		{"crash", reconcile.Faults{Crash: 1}, []string{"0s crashed 1", "0s crashed 2"}},
		{"others", reconcile.Faults{Before: 1, Processes: []string{"q"}}, []string{"0s nil 2"}},
		{"over", reconcile.Faults{Before: 1, Until: 1}, []string{"0s InternalError 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := one(t, c.faults, write)
			w.run(t, time.Millisecond)
			checktest.FailIf(t, len(w.log) == 0 || !slices.Contains(c.want, w.log[0]),
				"log %q, want one of %q", w.log, c.want)
			fired := len(w.Faults()) > 0
			checktest.FailIf(t, fired != (c.name != "others"), "faults %q", w.Faults())
		})
	}
}

func TestFaultsOfEvents(t *testing.T) {
	for _, c := range []struct {
		name   string
		faults reconcile.Faults
		check  func(log []string) bool
	}{
		{"late", reconcile.Faults{Late: 1}, func(log []string) bool {
			return len(log) == 4 && log[1] != "0s 1 2" && strings.HasSuffix(log[1], " 1 2") && strings.HasSuffix(log[2], " 2 3") && strings.HasSuffix(log[3], " 3 -")
		}},
		{"twice", reconcile.Faults{Double: 1}, func(log []string) bool {
			return cmp.Equal(log, []string{"0s - 1", "0s 1 2", "0s 2 2", "0s 2 3", "0s 3 3", "0s 3 -"})
		}},
		{"merged", reconcile.Faults{Merge: 1}, func(log []string) bool {
			return len(log) == 3 && strings.HasSuffix(log[1], " 1 3") && strings.HasSuffix(log[2], " 3 -")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := one(t, c.faults, func(w *world, _ clusterapi.ClusterAPI) *toy {
				return &toy{name: "r", watches: []reconcile.Watch{{GVK: configMap, Changed: func(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake {
					w.say("%s %s", value(old), value(new))
					return nil
				}}}}
			})
			w.run(t, 0)
			w.put(t, "a", "2")
			w.put(t, "a", "3")
			w.remove(t, "a")
			w.run(t, time.Minute)
			checktest.FailIf(t, !c.check(w.log), "log %q", w.log)
		})
	}
}

func TestStaleReads(t *testing.T) {
	w := one(t, reconcile.Faults{Stale: 1}, func(w *world, api clusterapi.ClusterAPI) *toy {
		return &toy{name: "r", reconcile: func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			o, err := clusterapi.GetShared(ctx, api, configMap, clusterapi.Key("ns", r.Key.Name))
			list, listErr := clusterapi.ListShared(ctx, api, configMap, clusterapi.ListOptions{Namespace: "ns"})
			var values []string
			for _, o := range list {
				values = append(values, value(o))
			}
			w.say("%s %v %v %v", value(o), apierrors.IsNotFound(err), values, listErr)
			return reconcile.Result{}, nil
		}}
	})
	look := func(n string) {
		w.Wake("p", "r", name(n))
		w.run(t, 0)
	}
	w.run(t, time.Minute)
	look("a")
	w.put(t, "a", "2")
	w.put(t, "b", "3")
	look("a")
	look("b")
	w.run(t, 5*time.Second)
	w.put(t, "a", "4") // what changes often keeps nothing else in the past
	look("b")
	w.remove(t, "b")
	look("b")
	w.check(t, "1m0s 1 false [1] <nil>", "1m0s 1 false [1] <nil>", "1m0s - true [1] <nil>", "1m5s 3 false [2 3] <nil>", "1m5s 3 false [2 3] <nil>")
}

func TestClockSetBack(t *testing.T) {
	w := one(t, reconcile.Faults{ClockBack: 1, Until: time.Hour}, func(w *world, _ clusterapi.ClusterAPI) *toy {
		return &toy{name: "r", keys: []reconcile.Key{name("k")}, reconcile: func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			w.say("%v", r.Now.Before(w.Now()))
			return reconcile.Result{At: r.Now.Add(30 * time.Minute)}, nil
		}}
	})
	w.run(t, 90*time.Minute)
	// All keys are looked at every 10 minutes besides.
	w.check(t, "0s true", "10m0s true", "20m0s true", "30m0s true", "40m0s true", "50m0s true",
		"1h0m0s false", "1h10m0s false", "1h20m0s false", "1h30m0s false")
}

func TestOutage(t *testing.T) {
	w := one(t, reconcile.Faults{Outage: 1}, func(w *world, api clusterapi.ClusterAPI) *toy {
		return &toy{name: "r", keys: []reconcile.Key{name("k")}, reconcile: func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			if _, err := clusterapi.GetShared(ctx, api, configMap, clusterapi.Key("ns", "a")); err != nil {
				w.say("%s", apierrors.ReasonForError(err))
			}
			return reconcile.Result{At: r.Now.Add(time.Second)}, nil
		}}
	})
	w.run(t, 10*time.Minute)
	if n := len(w.log); n < 25 || n > 185 {
		t.Errorf("the API was away for %d s of the first 10 minutes, want half a minute to three", n)
	}
}
