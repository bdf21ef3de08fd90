package reconcile_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// shelf is a cache of ConfigMaps with an index by value.
type shelf struct {
	objects *reconcile.Objects
	byValue *reconcile.Index
}

func newShelf() shelf {
	s := shelf{objects: new(reconcile.Objects)}
	s.byValue = s.objects.Index(func(o *clusterapi.Object) []string { return []string{o.Unstructured().GetLabels()["v"]} })
	return s
}

// text is what the cache has of an object, and which objects have the value v.
func (s shelf) text(name, v string) string {
	var same []string
	for _, o := range s.byValue.At(v) {
		same = append(same, o.Name())
	}
	value := "-"
	if o := s.objects.Get(clusterapi.Key("ns", name)); o != nil {
		value = o.Unstructured().GetLabels()["v"]
	}
	return fmt.Sprintf("%s=%s, %d with %s: %s", name, value, s.byValue.Count(v), v, strings.Join(same, " "))
}

// ownWrites are looks that write and read, and log what the cache has at once, and
// what Changed sees after that.
func ownWrites(s shelf, say func(string, ...any)) reconcile.Process {
	return reconcile.Process{Name: "p", New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
		watch := reconcile.Watch{GVK: configMaps, Objects: s.objects, Changed: func(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake {
			say("changed %s: %s", clusterapi.Change{Old: old, New: new}.Object().Name(), s.text("a", "2"))
			return nil
		}}
		look := func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			say("look: %s", s.text("a", "2"))
			for _, name := range []string{"b", "a"} {
				if err := apply(api, configMaps, name, "2"); err != nil {
					return reconcile.Result{}, err
				}
			}
			say("written: %s", s.text("a", "2"))
			err := api.Delete(ctx, configMaps, clusterapi.Key("ns", "b"), clusterapi.DeleteOptions{})
			return reconcile.Result{}, err
		}
		other := watch
		other.Changed = nil
		return []reconcile.Reconciler{
			at(rec{name: "r", watches: []reconcile.Watch{watch}, look: look}, "k"),
			rec{name: "s", watches: []reconcile.Watch{other}},
		}
	}}
}

func TestObjectsRunAheadByOwnWrites(t *testing.T) {
	ahead := []string{"0s changed a: a=1, 0 with 2: ", "0s look: a=1, 0 with 2: ", "0s written: a=2, 2 with 2: a b"}
	for name, hide := range map[string]func(clusterapi.ClusterAPI) clusterapi.ClusterAPI{
		"events": func(api clusterapi.ClusterAPI) clusterapi.ClusterAPI { return api },
		"polls":  func(api clusterapi.ClusterAPI) clusterapi.ClusterAPI { return unwatched{api} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, s, api := newLog(), newShelf(), newCluster(nil)
				checktest.OK(t, apply(api, configMaps, "a", "1"))
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				checktest.OK(t, reconcile.Run(ctx, reconcile.Options{API: hide(api)}, ownWrites(s, l.add)))
				checktest.Same(t, ahead, l.take()[:3])
				checktest.Equal(t, "a=2, 1 with 2: a", s.text("a", "2"), "in the end")
			})
		})
	}
	t.Run("virtual", func(t *testing.T) {
		w := newWorld(reconcile.VirtualOptions{})
		checktest.OK(t, apply(w.cluster, configMaps, "a", "1"))
		w.Add(ownWrites(newShelf(), w.say))
		w.run(t, time.Second)
		w.check(t, ahead[0], ahead[1], ahead[2],
			"0s changed b: a=2, 2 with 2: a b", "0s changed a: a=2, 2 with 2: a b", "0s changed b: a=2, 1 with 2: a")
	})
}

// A write whose answer is lost is not in the cache before its event; one that is
// read meanwhile is.
func TestObjectsOfLostAnswers(t *testing.T) {
	s := newShelf()
	w := newWorld(reconcile.VirtualOptions{
		Faults: reconcile.Faults{After: 1}, Latency: reconcile.Latency{Watch: time.Minute},
	})
	checktest.OK(t, apply(w.cluster, configMaps, "a", "1"))
	w.Add(reconcile.Process{Name: "p", New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
		return []reconcile.Reconciler{&toy{name: "r", watches: []reconcile.Watch{{GVK: configMaps, Objects: s.objects}}, keys: []reconcile.Key{name("k")},
			reconcile: func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
				err := apply(api, configMaps, "a", "2")
				w.say("%v: %s", err != nil, s.text("a", "2"))
				_, err = api.Get(ctx, configMaps, clusterapi.Key("ns", "a"))
				w.say("read: %s", s.text("a", "2"))
				return reconcile.Result{}, err
			}}}
	}})
	w.run(t, 0)
	w.check(t, "0s true: a=1, 0 with 2: ", "0s read: a=2, 1 with 2: a")
}

// What Trim leaves is what the cache has, of events and of writes; the watches
// that name it are one.
func TestObjectsAreTrimmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, lists := newLog(), newLog()
		api := newCluster(func(ctx context.Context, c memory.Call, do func(context.Context) error) error {
			if c.Verb == "Watch" {
				lists.add("%s", c.GVK.Kind)
			}
			return do(ctx)
		})
		checktest.OK(t, apply(api, configMaps, "a", "1"))
		s := newShelf()
		driveWith(t, reconcile.Options{API: api}, time.Second, func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
			watch := reconcile.Watch{GVK: configMaps, Objects: s.objects, Trim: func(u *unstructured.Unstructured) *unstructured.Unstructured {
				out := &unstructured.Unstructured{Object: map[string]any{}}
				out.SetNamespace(u.GetNamespace())
				out.SetName(u.GetName())
				out.SetLabels(u.GetLabels())
				return out
			}}
			data := func() any { return s.objects.Get(clusterapi.Key("ns", "a")).Unstructured().Object["data"] }
			return []reconcile.Reconciler{
				at(rec{name: "r", watches: []reconcile.Watch{watch}, look: func(context.Context, reconcile.Request) (reconcile.Result, error) {
					l.add("%s %v", s.text("a", "2"), data())
					err := apply(api, configMaps, "a", "2")
					l.add("%s %v", s.text("a", "2"), data())
					return reconcile.Result{}, err
				}}, "k"),
				rec{name: "s", watches: []reconcile.Watch{watch}},
			}
		})
		checktest.Same(t, []string{"0s a=1, 0 with 2:  <nil>", "0s a=2, 1 with 2: a <nil>"}, l.take())
		checktest.Same(t, []string{"0s ConfigMap"}, lists.take())
	})
}

// TestObjectsComeToTheClusters: whatever people and the process itself write, read
// and delete, and however late, double and merged the events come, in the end the
// cache and its index have what the cluster has.
func TestObjectsComeToTheClusters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShelf()
		w := newWorld(reconcile.VirtualOptions{
			Seed: rapid.Uint64().Draw(t, "seed"), Faults: reconcile.Faults{Late: 0.5, Double: 0.2, Merge: 0.3, After: 0.1, Stale: 0.3},
		})
		var own clusterapi.ClusterAPI
		w.Add(reconcile.Process{Name: "p", New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
			own = api
			return []reconcile.Reconciler{&toy{name: "r", watches: []reconcile.Watch{{GVK: configMaps, Objects: s.objects}}}}
		}})
		checktest.OK(t, w.RunUntil(w.Now()))
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			api := clusterapi.ClusterAPI(w.cluster)
			if rapid.Bool().Draw(t, "own") {
				api = own
			}
			name := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				_ = apply(api, configMaps, name, rapid.SampledFrom([]string{"1", "2"}).Draw(t, "value"))
			case 2:
				_ = api.Delete(context.Background(), configMaps, clusterapi.Key("ns", name), clusterapi.DeleteOptions{})
			case 3:
				_, _ = api.Get(context.Background(), configMaps, clusterapi.Key("ns", name))
			}
			d := rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute}).Draw(t, "wait")
			checktest.OK(t, w.RunUntil(w.Now().Add(d)))
		}
		checktest.OK(t, w.RunUntil(w.Now().Add(time.Minute)))
		for _, name := range []string{"a", "b"} {
			want := "-"
			if o, err := w.cluster.Get(context.Background(), configMaps, clusterapi.Key("ns", name)); err == nil {
				want = o.GetLabels()["v"]
			}
			got := "-"
			if o := s.objects.Get(clusterapi.Key("ns", name)); o != nil {
				got = o.Unstructured().GetLabels()["v"]
			}
			checktest.Equal(t, want, got, "%s", name)
			for _, v := range []string{"1", "2"} {
				has := strings.Contains(s.text(name, v)+" ", " "+name+" ")
				checktest.FailIf(t, has != (want == v), "%s, which has %s: %s", name, want, s.text(name, v))
			}
		}
	})
}
