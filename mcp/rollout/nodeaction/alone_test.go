package nodeaction_test

import (
	"errors"
	"strings"
	"testing"
	"time"

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
		left := w.NodeOf("w0").Annotations[nodeaction.ProgressAnnotation("patch")]
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
		w := actiontest.New("x", append(workers("w0", "w1"), mcptest.Topology(mcp.TopologyHighlyAvailable), &pool)...)
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
			if s := mcp.NodeStateOf(n); !s.Done() || s.CurrentConfig != "N" || s.Unschedulable || n.Annotations[nodeaction.ProgressAnnotation("patch")] != "" {
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
		p := plan.Plan{Version: plan.Format, ID: "x", Kind: plan.KindCustom}
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
	p := plan.Plan{Version: plan.Format, ID: "x", Kind: plan.KindCustom, Steps: []plan.Step{{ID: "s", Kind: plan.Hook, Args: plan.Args{Action: "update"}}}}
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
