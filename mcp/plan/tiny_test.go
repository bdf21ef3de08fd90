package plan_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// tiny is a plan with a step of each kind that changes something, and a cluster
// in which it takes some minutes. all leaves out that it takes most of it back.
func tiny() plan.Plan {
	yes, no, two := true, false, intstr.FromInt32(2)
	role := mcp.LabelNodeRolePrefix + "blue"
	return plan.Plan{Version: plan.Format, ID: "tiny", Kind: "Custom", Steps: []plan.Step{
		{ID: "check", Kind: plan.CheckAll, Args: plan.Args{Checks: []plan.Check{{Kind: "PoolsUpdated", Pools: []string{"worker"}}}}},
		{ID: "channel", Kind: plan.SetChannel, Args: plan.Args{Channel: "stable-4.21"}},
		{ID: "limit", Kind: plan.SetMaxUnavailable, Args: plan.Args{Pools: []string{"worker"}, MaxUnavailable: &two}},
		{ID: "create", Kind: plan.CreatePool, Args: plan.Args{Pool: "blue", Roles: []string{"worker", "blue"}}},
		{ID: "label", Kind: plan.LabelNodes, Args: plan.Args{Pool: "blue", Nodes: []string{"worker-0", "worker-gone"}, Add: map[string]string{role: ""}}},
		{ID: "pause", Kind: plan.SetPaused, Args: plan.Args{Pools: []string{"blue", "worker", "kept"}, Paused: &yes}},
		{ID: "apply", Kind: plan.ApplyObject, Args: plan.Args{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "notes", "namespace": "default"}, "data": map[string]any{"who": "plan"}}}},
		{ID: "cordon", Kind: plan.Cordon, Args: plan.Args{Node: "worker-1"}},
		{ID: "drain", Kind: plan.Drain, Args: plan.Args{Node: "worker-1"}},
		{ID: "hook", Kind: plan.Hook, Args: plan.Args{Action: "hook", Node: "worker-1"}},
		{ID: "uncordon", Kind: plan.Uncordon, Args: plan.Args{Node: "worker-1"}},
		{ID: "unpause", Kind: plan.SetPaused, Args: plan.Args{Pools: []string{"blue", "worker", "kept"}, Paused: &no}},
		{ID: "return", Kind: plan.LabelNodes, Args: plan.Args{Pool: "worker", Nodes: []string{"worker-0"}, Remove: []string{role}}},
		{ID: "delete", Kind: plan.DeletePool, Args: plan.Args{Pool: "blue"}},
		{ID: "wait", Kind: plan.WaitPools, Args: plan.Args{Pools: []string{"worker"}}},
	}}
}

func tinyActions() map[string]plan.Action {
	return map[string]plan.Action{"hook": plan.ActionFunc(func(context.Context, plan.Call) (plan.Outcome, error) { return plan.Outcome{Done: true}, nil })}
}

func tinyWorld() *world {
	w := newWorld(worldOptions{seed: 1, pools: []simulation.Pool{{Nodes: 2}, {Name: "kept", Nodes: 1, Paused: true}}})
	for _, u := range []*unstructured.Unstructured{{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "notes", "namespace": "default"}, "data": map[string]any{"who": "admin", "when": "always"}}}} {
		if err := w.cluster.Load(u); err != nil {
			panic(err)
		}
	}
	if err := w.RunUntil(w.Now().Add(2 * time.Minute)); err != nil {
		panic(err)
	}
	return w
}

// tinyFields are all fields that the tiny plan may change.
func tinyFields(w *world) map[string]string {
	out := fields(w.cluster)
	u, err := w.cluster.Get(w.context(), schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, clusterapi.Key("default", "notes"))
	if err != nil {
		panic(err)
	}
	out["notes"] = fmt.Sprint(u.Object["data"], marks(u.GetAnnotations()))
	return out
}

// crashing is an API at one of whose calls its process crashes.
type crashing struct {
	clusterapi.ClusterAPI
	calls  *int
	writes *[]int // which of them write
	at     int
	after  bool
	crash  func()
}

var errCrash = errors.New("the process crashes")

func (c crashing) call(writes bool, do func() error) error {
	*c.calls++
	if writes && c.writes != nil {
		*c.writes = append(*c.writes, *c.calls)
	}
	if *c.calls != c.at {
		return do()
	}
	if c.after {
		_ = do()
	}
	c.crash()
	return errCrash
}

func (c crashing) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (u *unstructured.Unstructured, err error) {
	err = c.call(false, func() error { u, err = c.ClusterAPI.Get(ctx, gvk, key); return err })
	return u, err
}

func (c crashing) List(ctx context.Context, gvk schema.GroupVersionKind, o clusterapi.ListOptions) (l *unstructured.UnstructuredList, err error) {
	err = c.call(false, func() error { l, err = c.ClusterAPI.List(ctx, gvk, o); return err })
	return l, err
}

func (c crashing) Create(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.CreateOptions) (u *unstructured.Unstructured, err error) {
	err = c.call(true, func() error { u, err = c.ClusterAPI.Create(ctx, obj, o); return err })
	return u, err
}

func (c crashing) Update(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.UpdateOptions) (u *unstructured.Unstructured, err error) {
	err = c.call(true, func() error { u, err = c.ClusterAPI.Update(ctx, obj, o); return err })
	return u, err
}

func (c crashing) Delete(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, o clusterapi.DeleteOptions) error {
	return c.call(true, func() error { return c.ClusterAPI.Delete(ctx, gvk, key, o) })
}

// startCrashing adds a runner with such an API.
func (w *world) startCrashing(name string, o plan.Options, c crashing) *plan.Runner {
	o.Observe = w.observe("")
	r := must(plan.New(o))
	p := r.Process()
	p.Name = name
	inner := p.New
	if c.crash == nil {
		c.crash = func() { w.Crash(name) }
	}
	p.New = func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
		c.ClusterAPI = api
		return inner(c)
	}
	w.Add(p)
	return r
}

// runTiny runs the tiny plan, and crashes its first runner at a call; with two,
// another one waits for its turn.
func runTiny(t *testing.T, at int, after bool, runners int) (end map[string]string, calls int, writes []int) {
	t.Helper()
	w := tinyWorld()
	defer w.Close()
	var all []*plan.Runner
	for i := range runners {
		c := crashing{calls: new(int)}
		if i == 0 {
			c = crashing{calls: &calls, writes: &writes, at: at, after: after}
		}
		all = append(all, w.startCrashing(fmt.Sprint("runner ", i), plan.Options{Plan: tiny(), Actions: tinyActions()}, c))
	}
	err := w.RunWhile(time.Hour, func() bool {
		return !slices.ContainsFunc(all, func(r *plan.Runner) bool { return r.Progress().State == plan.StateFinished })
	})
	if err == nil {
		err = w.RunUntil(w.Now().Add(10 * time.Minute))
	}
	if err != nil {
		t.Fatalf("crash at call %d, after its effect %v: %v\n%q", at, after, err, w.last(10))
	}
	return tinyFields(w), calls, writes
}

// P10: wherever a runner crashes, before or after a call took effect, another
// one comes to the same end.
func TestCrashAtEveryCall(t *testing.T) {
	want, calls, writes := runTiny(t, 0, false, 1)
	if len(writes) < 30 {
		t.Fatalf("only %d of %d calls write", len(writes), calls)
	}
	w := tinyWorld()
	defer w.Close()
	before := tinyFields(w)
	before["channel"], before["pool worker"], before["notes"] = want["channel"], want["pool worker"], want["notes"]
	checktest.SameIn(t, "what the plan does not take back", before, want)
	every := 3
	if testing.Short() || israce.Enabled {
		every = 9
	}
	for i, at := range writes {
		if i%every == 0 {
			for _, after := range []bool{false, true} {
				got, _, _ := runTiny(t, at, after, 1)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("crash at call %d, after its effect %v:\n%s", at, after, diff)
				}
			}
		}
		if i%(8*every) == 3 {
			got, _, _ := runTiny(t, at-1, false, 2) // a call that reads; with two runners
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("two runners, crash at call %d:\n%s", at-1, diff)
			}
		}
	}
}

// P11: whatever a plan has done so far, Restore gives back each field and leaves no
// pool that the plan created.
func TestRestoreAfterEveryPrefix(t *testing.T) {
	w := tinyWorld()
	want := tinyFields(w)
	w.Close()
	_, _, writes := runTiny(t, 0, false, 1)
	every := 4
	if testing.Short() || israce.Enabled {
		every = 12
	}
	for i := 1; i < len(writes)-1; i += every {
		w := tinyWorld()
		calls := 0
		w.startCrashing("runner", plan.Options{Plan: tiny(), Actions: tinyActions()},
			crashing{calls: &calls, at: writes[i], after: i%2 == 0, crash: func() { w.Stop("runner") }})
		checktest.OK(t, w.RunUntil(w.Now().Add(20*time.Minute)))
		if _, progress, err := plan.Load(w.context(), w.cluster, "", "tiny"); err != nil {
			t.Fatal(err)
		} else if progress.State == plan.StateEnding {
			w.Close()
			break // nothing is to be stopped any more
		}
		if i%4 == 1 { // from the marks alone
			if err := w.cluster.Delete(w.context(), schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, clusterapi.Key("openshift-config", "rollout-tiny"), clusterapi.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		r := w.start("stopper", plan.Options{Plan: tiny(), Claim: plan.TakeOver, Mode: plan.RestoreWithReboots})
		if err := w.ends(r, 20*time.Minute, plan.StateRestored); err != nil && i%4 != 1 {
			t.Fatalf("after write %d: %v", i, err)
		}
		if diff := cmp.Diff(want, tinyFields(w)); diff != "" {
			t.Errorf("after write %d:\n%s", i, diff)
		}
		w.Close()
	}
}
