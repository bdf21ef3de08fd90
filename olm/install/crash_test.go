package install_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/install"
	"github.com/clusterupdate/clusterupdate/olm/install/installtest"
)

// crashing is a cluster whose caller crashes at its n-th call, before or after
// the call took effect; then its calls fail until it is restarted.
type crashing struct {
	*managed
	calls, crash int
	after        bool
	dead, off    bool
}

func (c *crashing) intercept(ctx context.Context, call memory.Call, do func(context.Context) error) error {
	if c.off {
		return do(ctx)
	}
	if c.dead {
		return errCrash
	}
	if c.calls++; c.calls == c.crash {
		if c.dead = true; !c.after {
			return errCrash
		}
		return errors.Join(do(ctx), errCrash)
	}
	return do(ctx)
}

// finish makes passes of new controllers until all has settled.
func (c *crashing) finish() {
	c.t.Helper()
	for quiet, rounds := 0, 0; quiet < 3; rounds++ {
		c.off = false
		if rounds == 60 {
			c.t.Fatalf("crash at call %d: does not settle: %v", c.crash, c.states())
		}
		r, err := c.controller().Sync(context.Background(), ns)
		if err != nil && !c.dead {
			c.t.Fatal(err)
		}
		c.clock.Step(time.Second)
		quiet++
		if r.Changed || c.dead {
			quiet = 0
		}
		c.dead, c.off = false, true
		for more := true; more; {
			more = checktest.Get(installtest.OLM{}.Advance(context.Background(), c.Cluster, ns))(c.t)
		}
	}
}

// Wherever a controller crashes while it installs two operators that need each
// other, and updates them together, the next one ends as if nothing had
// happened: with one plan for each, both of them Complete.
func TestControllerSurvivesCrashesOfExecution(t *testing.T) {
	first := []string{"a.v1 A -B", "b.v1 B -A"}
	second := append([]string{"a.v2 A2 -B2 >a.v1", "b.v2 B2 -A2 >b.v1"}, first...)
	further := map[string][]string{}
	for _, line := range second {
		name := strings.Fields(line)[0]
		further[name] = []string{fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s-config"}}`, name)}
	}
	catalogs := [][]string{first, second}
	run := func(crash int, after bool) (state []string, crashed bool) {
		c := &crashing{after: after, crash: crash, off: true}
		c.managed = manageWith(t, c.intercept, contents(first...), ptr(sub("a", "")))
		c.options.Unpacker, c.options.Execute = bundles(t, second, further), true
		for _, lines := range catalogs {
			c.catalogs[catalogKey] = contents(lines...)
			c.finish()
			state = slices.Concat(state, c.plans(), c.states())
			for _, csv := range list[olmapi.ClusterServiceVersion](c.managed) {
				state = append(state, csv.Name)
			}
			maps := checktest.Get(c.List(context.Background(), configMapKind, clusterapi.ListOptions{Namespace: ns}))(t)
			for _, m := range maps.Items {
				state = append(state, m.GetName())
			}
		}
		return state, c.calls >= crash
	}
	want, _ := run(0, false)
	expect(t, "without a crash", want, []string{
		"1 Automatic Complete [a.v1 b.v1]", "a AtLatestKnown a.v1/a.v1", "b-stable-c-olm AtLatestKnown b.v1/b.v1", "a.v1", "b.v1", "a.v1-config", "b.v1-config",
		"1 Automatic Complete [a.v1 b.v1]", "2 Automatic Complete [a.v2 b.v2]", "a AtLatestKnown a.v2/a.v2", "b-stable-c-olm AtLatestKnown b.v2/b.v2",
		"a.v2", "b.v2", "a.v2-config", "b.v2-config",
	})
	stride := 1
	if testing.Short() {
		stride = 7
	}
	for _, after := range []bool{false, true} {
		crash := 1
		for ; ; crash += stride {
			got, crashed := run(crash, after)
			if !crashed {
				break
			}
			checktest.SameIn(t, fmt.Sprintf("crash at call %d (after its effect: %v)", crash, after), want, got)
		}
		if crash < 100 {
			t.Errorf("there were only %d calls", crash)
		}
	}
}

// A plan that somebody superseded after it was read is not carried out, and a
// status decided from an old state is not written.
func TestControllerNoticesChanges(t *testing.T) {
	var w *managed
	var meanwhile func(call memory.Call)
	w = manageWith(t, func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
		if f := meanwhile; f != nil && call.Verb == "Get" && call.GVK.Kind != "ConfigMap" {
			meanwhile = nil
			f(call)
		}
		return do(ctx)
	}, contents("a.v1 X"), ptr(sub("a", "", manual)))
	w.options.Unpacker, w.options.Execute = bundles(t, []string{"a.v1 X"}, nil), true
	name := w.settle().Plan
	w.approve(name)
	meanwhile = func(call memory.Call) { // before the plan's status is written: it is about another plan now
		if call.GVK.Kind != "InstallPlan" {
			t.Fatalf("read %s first", call.GVK.Kind)
		}
		checktest.OK(t, change(w.Cluster, name, func(p *olmapi.InstallPlan) { p.Spec.Approved = false }))
	}
	w.settle()
	expect(t, "plans", w.plans(), []string{"1 Manual RequiresApproval [a.v1]"})

	w.approve(name)
	w.sync()
	expect(t, "plans", w.plans(), []string{"1 Manual Installing [a.v1]"})
	meanwhile = func(memory.Call) {
		w.catalogs[catalogKey] = contents("b.v1 Y")
		checktest.OK(t, change(w.Cluster, name, func(p *olmapi.InstallPlan) { p.Status.Message = "seen" }, inStatus))
	}
	w.settle()
	expect(t, "plans", w.plans(), []string{"1 Manual Failed [a.v1]"})
	if csvs := list[olmapi.ClusterServiceVersion](w); len(csvs) > 0 {
		t.Errorf("%s was created", csvs[0].Name)
	}
}

// staleLists does not list InstallPlans yet.
type staleLists struct {
	clusterapi.ClusterAPI
	stale *bool
}

func (s staleLists) List(ctx context.Context, gvk schema.GroupVersionKind, o clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	if *s.stale && gvk.Kind == "InstallPlan" {
		return &unstructured.UnstructuredList{}, nil
	}
	return s.ClusterAPI.List(ctx, gvk, o)
}

// Two passes that were decided from the same state make one plan.
func TestControllerMakesOnePlan(t *testing.T) {
	w := manage(t, contents("a.v1 X"), ptr(sub("a", "")))
	stale := false
	c, err := install.New(install.Options{
		API:             staleLists{w.Cluster, &stale},
		SnapshotOptions: install.SnapshotOptions{Catalogs: w.catalogs, GlobalNamespace: "olm"},
	})
	checktest.OK(t, err)
	checktest.OK(t, checktest.Err(c.Sync(context.Background(), ns)))
	checktest.OK(t, change(w.Cluster, "a", func(s *olmapi.Subscription) {
		s.Status = olmapi.SubscriptionStatus{}
	}, inStatus))
	stale = true // the plan is not seen
	if _, err := c.Sync(context.Background(), ns); !apierrors.IsAlreadyExists(err) {
		t.Errorf("got %v", err)
	}
	expect(t, "plans", w.plans(), []string{"1 Automatic Installing [a.v1]"})
}

// What belongs to an operator that is there is written whatever becomes of its
// plan: the plan that holds nothing else becomes Complete, one whose rest is no
// longer asked for is superseded.
func TestControllerFinishesWhatHasBegun(t *testing.T) {
	for _, tc := range []struct {
		name    string
		crash   string // the CSV at whose creation the controller crashes
		channel string // of b then
		want    []string
	}{
		{"all are there", "Service", "none", []string{"1 Automatic Complete [a.v1 b.v1]"}},
		{"one is there", "b.v1", "none", []string{"1 Automatic Failed [a.v1 b.v1]"}},
		{"one is there, and the other still asked for", "b.v1", "stable", []string{"1 Automatic Complete [a.v1 b.v1]"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			crashed := false
			w := manageWith(t, func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
				if crashed || call.Verb != "Create" && call.Verb != "Apply" || call.Key.Name != tc.crash && call.GVK.Kind != tc.crash {
					return do(ctx)
				}
				crashed = true
				return errCrash
			}, contents("a.v1 X", "b.v1 Y"), ptr(sub("a", "")), ptr(sub("b", "")))
			w.options.Execute = true
			w.options.Unpacker = bundles(t, []string{"a.v1 X", "b.v1 Y"}, map[string][]string{"a.v1": {
				`{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"},"spec":{"ports":[{"port":80}]}}`,
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`}})
			for range 30 {
				if _, err := w.controller().Sync(context.Background(), ns); err != nil && !errors.Is(err, errCrash) {
					t.Fatal(err)
				}
				if crashed {
					break
				}
			}
			checktest.OK(t, change(w.Cluster, "b", func(s *olmapi.Subscription) { s.Spec.Channel = tc.channel }))
			w.settle()
			expect(t, "plans", w.plans(), tc.want)
			checktest.Good(t, checktest.Err(w.Get(context.Background(), configMapKind, clusterapi.Key(ns, "c"))))
			if s := w.subscription("a").Status; s.InstalledCSV != "a.v1" || s.State != olmapi.StateAtLatestKnown {
				t.Errorf("a: %+v", s)
			}
		})
	}
}
