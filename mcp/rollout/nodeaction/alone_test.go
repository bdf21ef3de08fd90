package nodeaction_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
	"github.com/clusterupdate/clusterupdate/mcp/rollout/internal/actiontest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout/nodeaction"
)

// Step by step, for who waits by himself.
func TestStepNode(t *testing.T) {
	w := actiontest.New("x", workers("w0")...)
	a := newPatch(nodeaction.Cordon)
	for i, s := range []struct {
		id   string
		done bool
		left string // the annotation in the end
		ends int    // how often the action has ended
	}{
		{"", false, `"progress":"begun","begun":true`, 0},
		{"", true, "", 1},
		{"a", false, `"progress":"begun","begun":true`, 1},
		{"b", true, `"done":"b"`, 2}, // it goes on with what was begun for another id
		{"b", true, `"done":"b"`, 2}, // and does nothing twice for one
		{"a", false, `"progress":"begun","begun":true`, 2},
		{"a", true, `"done":"a"`, 3},
		{"", false, `"progress":"begun","begun":true`, 3},
		{"", true, "", 4},
	} {
		step, err := nodeaction.StepNode(t.Context(), w.Cluster, a, s.id, "w0")
		left := w.NodeOf("w0").Annotations["clusterupdate.github.io/progress.patch"]
		if err != nil || step.Done != s.done || !s.done && step.After != time.Minute || a.done["w0"] != s.ends ||
			s.left == "" && left != "" || !strings.Contains(left, s.left) {
			t.Errorf("step %d: %+v, %v; %d times; %s", i+1, step, err, a.done["w0"], left)
		}
	}
	if w.NodeOf("w0").Spec.Unschedulable {
		t.Error("the node is cordoned")
	}
	if err := nodeaction.Func(w.Cluster, a, "c")(t.Context(), "nobody"); err == nil {
		t.Error("a node that there is not")
	}
}

// broken is a cluster whose updates fail, as where the connection is refused.
type broken struct {
	clusterapi.ClusterAPI
	fails int // so many more
}

func (b *broken) Update(ctx context.Context, u *unstructured.Unstructured, o clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	if b.fails--; b.fails >= 0 {
		return nil, errors.New("connection refused")
	}
	return b.ClusterAPI.Update(ctx, u, o)
}

// checked is a patch that is asked whether it is needed.
type checked struct {
	*patch
	needed func() bool
}

func (c checked) Needed(context.Context, *corev1.Node) (bool, error) { return c.needed(), nil }

// What is not recorded is not done, and is done again: also the last step, after
// which the action is not needed any more.
func TestStepNotRecorded(t *testing.T) {
	for _, tt := range []struct {
		name  string
		ends  int // at so many calls of the action
		fails int // at so many updates
	}{
		{"a step", 2, 1}, {"the last step", 1, 1}, {"the last step, twice", 1, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := actiontest.New("x", workers("w0")...)
			api, steps := &broken{ClusterAPI: w.Cluster}, 0
			a := checked{newPatch(nodeaction.None), func() bool { return steps == 0 }}
			a.step = func(string, string) (nodeaction.Step, error) {
				if steps++; steps == 1 {
					api.fails = tt.fails
				}
				return nodeaction.Step{Done: steps >= tt.ends, Progress: "under way"}, nil
			}
			p := nodeaction.PlanAction(a)
			c := plan.Call{Plan: "x", API: api, Now: mcptest.Epoch, Step: plan.Step{ID: "s", Args: plan.Args{Node: "w0"}}}
			for c.Times = 1; c.Times < 10; c.Times++ {
				out, err := p.Do(t.Context(), c)
				if err != nil {
					t.Fatalf("call %d: %v", c.Times, err)
				}
				if out.Done {
					break
				}
			}
			if want := max(tt.ends, 1+tt.fails); steps != want {
				t.Errorf("%d steps, want %d", steps, want)
			}
			if got := w.NodeOf("w0").Annotations["clusterupdate.github.io/progress.patch"]; !strings.Contains(got, `"done":"plan x, step s of`) {
				t.Error(got)
			}
		})
	}
}

// A program that was slow does not write over the work of the one that went on.
func TestStepGoneOn(t *testing.T) {
	w := actiontest.New("x", workers("w0")...)
	a, other := newPatch(nodeaction.None), newPatch(nodeaction.None)
	slow := true
	a.step = func(node, _ string) (nodeaction.Step, error) {
		if !slow {
			return nodeaction.Step{}, nil
		}
		slow = false
		if err := nodeaction.Func(w.Cluster, other, "id")(t.Context(), node); err != nil {
			t.Error(err)
		}
		return nodeaction.Step{Progress: "old"}, nil
	}
	other.step = func(string, string) (nodeaction.Step, error) { return nodeaction.Step{Done: true}, nil }
	step, err := nodeaction.StepNode(t.Context(), w.Cluster, a, "id", "w0")
	if err != nil || step.Done || step.After != time.Second {
		t.Errorf("%+v, %v", step, err)
	}
	if got := w.NodeOf("w0").Annotations["clusterupdate.github.io/progress.patch"]; got != `{"version":1,"done":"id"}` {
		t.Error(got)
	}
	if step, err = nodeaction.StepNode(t.Context(), w.Cluster, a, "id", "w0"); err != nil || !step.Done || a.done["w0"] != 0 {
		t.Errorf("%+v, %v, done %d times", step, err, a.done["w0"])
	}
}

// A step that hangs is an error, and is taken again.
func TestPlanActionHangs(t *testing.T) {
	w := actiontest.New("x", workers("w0")...)
	a := hanging{newPatch(nodeaction.None), new(int)}
	p := plan.Plan{Version: plan.Format, ID: "x", Kind: "Custom", Steps: []plan.Step{{ID: "s", Kind: plan.Hook, Args: plan.Args{Node: "w0", Action: "update"}}}}
	err := w.PlayPlan(0, reconcile.Faults{}, time.Hour, a, plan.Options{Plan: p})
	if err != nil || *a.calls != 3 || a.done["w0"] != 1 {
		t.Errorf("%v, called %d times\n%s", err, *a.calls, strings.Join(w.Lines, "\n"))
	}
}

// hanging is a patch that hangs once.
type hanging struct {
	*patch
	calls *int
}

func (h hanging) Step(ctx context.Context, n *corev1.Node, progress string) (nodeaction.Step, error) {
	if *h.calls++; *h.calls == 1 {
		return nodeaction.Step{}, reconcile.Sleep(ctx, 24*time.Hour)
	}
	return h.patch.Step(ctx, n, progress)
}

// once is a patch that must not begin again on a node where it was recorded that
// it had begun.
func once(t *testing.T) *patch {
	a, begun := newPatch(nodeaction.Drain), map[string]bool{}
	a.step = func(node, progress string) (nodeaction.Step, error) {
		if begun[node] && progress == "" {
			t.Errorf("the action begins again on node %s", node)
		}
		begun[node] = begun[node] || progress != ""
		return nodeaction.Step{}, nil
	}
	return a
}

// crashAtEachCall plays a world again and again, with a crash at another call each
// time; play ends where all is done.
func crashAtEachCall(t *testing.T, play func(at int, after bool) (calls int)) {
	calls, step := play(0, false), 1
	if calls < 20 {
		t.Fatalf("only %d calls", calls)
	}
	if israce.Enabled || testing.Short() {
		step = 7
	}
	for at := 1; at <= calls && !t.Failed(); at += step {
		for _, after := range []bool{false, true} {
			if play(at, after); t.Failed() {
				t.Fatalf("crash at call %d, after its effect %v", at, after)
			}
		}
	}
}

// Under a rollout that crashes anywhere, no action begins again.
func TestUpdaterCrashes(t *testing.T) {
	crashAtEachCall(t, func(at int, after bool) int {
		pool := mcptest.Pool("worker", "N")
		w := actiontest.New("x", append(workers("w0", "w1"), mcptest.Topology("HighlyAvailable"), &pool)...)
		r, err := rollout.New(rollout.Options{Mode: rollout.Drive, NodeUpdater: nodeaction.Updater(w.Cluster, once(t))})
		if err != nil {
			t.Fatal(err)
		}
		p := r.Process()
		p.Name = "node action x" // which the world makes crash
		w.CrashAt, w.CrashAfter = at, after
		w.Virtual = reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: w.Cluster, Clock: w.Clock}, p)
		defer w.Close()
		if err := w.Play(time.Hour); err != nil {
			t.Error(err)
		}
		for _, name := range []string{"w0", "w1"} {
			n := w.NodeOf(name)
			if s := mcp.NodeStateOf(n); !s.Done() || s.CurrentConfig != "N" || s.Unschedulable || n.Annotations["clusterupdate.github.io/progress.patch"] != "" {
				t.Errorf("%s: %+v", name, s)
			}
		}
		return w.Calls
	})
}

// In a plan whose runner crashes anywhere, no action begins again.
func TestPlanCrashes(t *testing.T) {
	crashAtEachCall(t, func(at int, after bool) int {
		w := actiontest.New("x", workers("w0", "w1")...)
		w.CrashAt, w.CrashAfter = at, after
		p := plan.Plan{Version: plan.Format, ID: "x", Kind: "Custom"}
		for _, name := range []string{"w0", "w1"} {
			p.Steps = append(p.Steps, plan.Step{ID: name, Kind: plan.Hook, Args: plan.Args{Node: name, Action: "update"}})
		}
		if err := w.PlayPlan(0, reconcile.Faults{}, time.Hour, once(t), plan.Options{Plan: p}); err != nil {
			t.Errorf("%v\n%s", err, strings.Join(w.Lines, "\n"))
		}
		return w.Calls
	})
}

// A step of a plan that names no node fails, and one whose node comes back goes on.
func TestPlanAction(t *testing.T) {
	w := actiontest.New("x", workers("w0")...)
	p := plan.Plan{Version: plan.Format, ID: "x", Kind: "Custom", Steps: []plan.Step{{ID: "s", Kind: plan.Hook, Args: plan.Args{Action: "update"}}}}
	err := w.PlayPlan(0, reconcile.Faults{}, time.Hour, newPatch(nodeaction.None), plan.Options{Plan: p})
	if said := strings.Join(w.Lines, "\n"); err == nil || !strings.Contains(said, "step s names no node to do action patch to") {
		t.Errorf("%v\n%s", err, said)
	}

	a, fails := newPatch(nodeaction.None), 0
	a.step = func(string, string) (nodeaction.Step, error) {
		if fails++; fails < 50 {
			return nodeaction.Step{}, errors.New("not now")
		}
		return nodeaction.Step{}, nil
	}
	p.ID, p.Steps[0].Args.Node = "y", "w0"
	if err := w.PlayPlan(0, reconcile.Faults{}, time.Hour, a, plan.Options{Plan: p}); err != nil || fails < 50 || a.done["w0"] != 1 {
		t.Errorf("%v, called %d times\n%s", err, fails, strings.Join(w.Lines, "\n"))
	}
}
