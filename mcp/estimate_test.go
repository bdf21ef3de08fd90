package mcp_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
)

const minute = time.Minute

// noDelay leaves out the time between a node that is done and the next one.
var noDelay = mcp.StepTimes{Target: mcp.Exactly(-1)}

func minutes(m ...int) (nodes []mcp.EstimateNode) {
	for i, n := range m {
		nodes = append(nodes, mcp.EstimateNode{Name: fmt.Sprint("n", i), Time: mcp.Exactly(time.Duration(n) * minute)})
	}
	return nodes
}

// The two scenarios of the documentation.
func TestEstimateDocumented(t *testing.T) {
	scenario := func(compute int) mcp.EstimateInput {
		return mcp.EstimateInput{Node: mcp.Exactly(5 * minute), ClusterVersion: mcp.Exactly(60 * minute), Pools: []mcp.EstimatePool{
			{Name: "master", Size: 3, MaxUnavailable: 1}, {Name: "worker", Size: 6, MaxUnavailable: compute},
			{Name: "paused", Size: 100, Paused: true},
		}}
	}
	for maxUnavailable, want := range map[int]time.Duration{1: 90 * minute, 2: 75 * minute, 4: 75 * minute, 6: 75 * minute, 0: 90 * minute} {
		in := scenario(maxUnavailable)
		if got := mcp.EstimateDocumented(in); got != want {
			t.Errorf("%d at a time: %v, want %v", maxUnavailable, got, want)
		}
		// The refined estimate says the same of nodes that take equal times.
		in.Steps = noDelay
		if got := mcp.EstimateUpdate(in); got.Expected != want || got.Max == nil || *got.Max != want {
			t.Errorf("%d at a time: %v", maxUnavailable, got)
		}
		in.ClusterVersion, in.Node = mcp.Span{}, mcp.Span{}
		if got := mcp.EstimateDocumented(in); got != want {
			t.Errorf("%d at a time, by default: %v, want %v", maxUnavailable, got, want)
		}
	}
	done := scenario(1)
	done.ClusterVersionDone = true
	if got := mcp.EstimateDocumented(done); got != 30*minute {
		t.Error(got)
	}
	if got := mcp.EstimateDocumented(mcp.EstimateInput{}); got != 60*minute {
		t.Error(got)
	}
}

// E9: a node that takes long, in the middle.
func TestEstimateOneSlowNode(t *testing.T) {
	in := mcp.EstimateInput{ClusterVersionDone: true, Steps: noDelay,
		Pools: []mcp.EstimatePool{{Name: "worker", MaxUnavailable: 2, Nodes: minutes(5, 5, 15, 5, 5, 5)}}}
	got := mcp.EstimateUpdate(in)
	var ends []time.Duration
	for _, n := range got.PerPool[0].Nodes {
		ends = append(ends, n.Done.Expected/minute)
	}
	if diff := cmp.Diff([]time.Duration{5, 5, 20, 10, 15, 20}, ends); diff != "" || got.Expected != 20*minute || *got.Max != 20*minute || got.Min != 20*minute {
		t.Errorf("%s %v", diff, got)
	}
	if got := criticalNodes(got); got != "n0 n2" {
		t.Error(got)
	}
	in.Node = mcp.Exactly(5 * minute)
	if got := mcp.EstimateDocumented(in); got != 15*minute {
		t.Error(got)
	}
	in.Node = mcp.Exactly(15 * minute)
	if got := mcp.EstimateDocumented(in); got != 45*minute {
		t.Error(got)
	}
	// With the time that it takes to target the next one.
	in.Steps = mcp.StepTimes{}
	if got := mcp.EstimateUpdate(in); got.Expected != 20*minute+20*time.Second {
		t.Error(got)
	}
}

// criticalNodes names the nodes of the critical path; the cluster-version operator is
// "cvo".
func criticalNodes(e mcp.Estimate) string {
	var names []string
	for i, s := range e.Critical {
		if s.Node == "" {
			s.Node = "cvo"
		}
		names = append(names, s.Node)
		if i > 0 && e.Critical[i-1].Done > s.Start {
			names = append(names, "OVERLAPS")
		}
	}
	return strings.Join(names, " ")
}

// What one node takes, step by step.
func TestEstimateSteps(t *testing.T) {
	second := time.Second
	steps := mcp.StepTimes{Wave: mcp.Exactly(minute), Apply: mcp.Exactly(2 * minute), Reboot: mcp.Exactly(3 * minute), Ready: mcp.Exactly(30 * second), Uncordon: mcp.Exactly(10 * second)}
	waves := func(n int) *mcp.Drain {
		d := &mcp.Drain{}
		for range n {
			d.Waves = append(d.Waves, nil)
		}
		return d
	}
	// Target and daemon, drain queue and poll, apply, reboot, ready, uncordon.
	const rest = 6*time.Second + 2*minute + 3*minute + 30*time.Second + 10*time.Second
	const asked, seen = 5 * time.Second, 5 * time.Second
	for _, c := range []struct {
		name string
		pool mcp.EstimatePool
		node mcp.EstimateNode
		want time.Duration
	}{
		{"not predicted", mcp.EstimatePool{}, mcp.EstimateNode{}, rest + asked + seen + minute},
		{"no pods", mcp.EstimatePool{}, mcp.EstimateNode{Drain: waves(0)}, rest + asked + seen},
		{"one wave", mcp.EstimatePool{}, mcp.EstimateNode{Drain: waves(1)}, rest + asked + seen + minute},
		{"three waves: a try every 5 s", mcp.EstimatePool{}, mcp.EstimateNode{Drain: waves(3)}, rest + asked + seen + 3*minute + 5*second},
		{"in the first row of attempts", mcp.EstimatePool{}, mcp.EstimateNode{Drain: waves(13)}, rest + asked + seen + 13*minute + 5*second},
		{"E7: a budget frees at 14:00, the next attempt is at 17:00", mcp.EstimatePool{}, mcp.EstimateNode{Drain: waves(14)}, rest + asked + seen + 17*minute + second},
		{"within that attempt", mcp.EstimatePool{}, mcp.EstimateNode{Drain: waves(18)}, rest + asked + seen + 18*minute + 5*second},
		{"the one after it is at 23:30", mcp.EstimatePool{}, mcp.EstimateNode{Drain: waves(19)}, rest + asked + seen + 23*minute + 31*second},
		{"single node clusters", mcp.EstimatePool{}, mcp.EstimateNode{Drain: &mcp.Drain{NotRequired: true}}, rest},
		{"equal content", mcp.EstimatePool{SameContent: true}, mcp.EstimateNode{}, 25 * second},
		{"in its drain", mcp.EstimatePool{}, mcp.EstimateNode{Phase: mcp.PhaseDraining, In: 20 * second}, rest - 6*second + asked + seen + minute - 20*second},
		{"applies", mcp.EstimatePool{}, mcp.EstimateNode{Phase: mcp.PhaseApplying}, rest - 6*second},
		{"reboots, for longer than expected", mcp.EstimatePool{}, mcp.EstimateNode{Phase: mcp.PhaseRebooting, In: time.Hour}, 40 * second},
		{"a third of a known time is left", mcp.EstimatePool{SameContent: true}, mcp.EstimateNode{Phase: mcp.PhaseUncordoning, Time: mcp.Exactly(11 * minute)}, 10 * minute},
	} {
		c.pool.Name, c.pool.Nodes = "worker", []mcp.EstimateNode{c.node}
		got := mcp.EstimateUpdate(mcp.EstimateInput{ClusterVersionDone: true, Steps: steps, Pools: []mcp.EstimatePool{c.pool}})
		if got.Expected != c.want {
			t.Errorf("%s: %v, want %v", c.name, got.Expected, c.want)
		}
		if got.Min > got.Expected || *got.Max < got.Expected {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// E8: what blocks a drain has no end, and neither has the estimate.
func TestEstimateUnbounded(t *testing.T) {
	v := drainView(mcp.DrainObjects{
		Pods:    []*corev1.Pod{drainedPod("db-0", "n0", "db"), drainedPod("web-0", "n1", "web")},
		Budgets: []*policyv1.PodDisruptionBudget{drainBudget("db", "db", 1, 1, 1)},
	})
	blocked, free := mcp.DrainPlan("n0", v), mcp.DrainPlan("n1", v)
	nodes := minutes(10, 10, 10)
	nodes[0].Drain, nodes[1].Drain = &blocked, &free
	in := mcp.EstimateInput{ClusterVersionDone: true, Steps: noDelay, Pools: []mcp.EstimatePool{
		{Name: "worker", MaxUnavailable: 2, Nodes: nodes},
		{Name: "infra", Nodes: minutes(50), MaxUnavailable: 2, Stuck: []mcp.Blocker{{Node: "i9", Text: "node i9 is reporting Unschedulable"}}},
		{Name: "held", Nodes: nodes[:1], Paused: true},
	}}
	got := mcp.EstimateUpdate(in)
	if got.Max != nil || got.Expected != 50*minute || got.Min != 50*minute {
		t.Error(got)
	}
	want := []mcp.Blocker{
		{Pool: "worker", Node: "n0", Text: "pod ns/db-0: NeverAllows: The disruption budget db needs 1 healthy pods and has 1 currently"},
		{Pool: "infra", Node: "i9", Text: "node i9 is reporting Unschedulable"},
	}
	if diff := cmp.Diff(want, got.Unbounded); diff != "" {
		t.Error(diff)
	}
	if p := got.PerPool; !p[0].Unbounded || !p[1].Unbounded || p[1].Slots != 1 || !p[2].Paused || p[2].Unbounded || len(p) != 3 {
		t.Errorf("%+v", p)
	}
	text := got.String()
	for _, want := range []string{"50m0s (50m0s to without end)\n", "pool held: paused\n", "blocked: pool worker, node n0: pod ns/db-0: NeverAllows", "assumed: pool held is paused: its 1 nodes are not updated\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %q", text, want)
		}
	}
	// A drain that is over blocks nobody any more.
	nodes[0].Phase = mcp.PhaseApplying
	in.Pools = in.Pools[:1]
	if got := mcp.EstimateUpdate(in); got.Max == nil {
		t.Error(got)
	}
	in.Pools[0].Nodes[0].Phase = mcp.PhaseFailed
	if got := mcp.EstimateUpdate(in); got.Max != nil || got.Unbounded[0].Text != "node n0 failed" {
		t.Error(got)
	}
}

// Pods of a budget that go one after the other wait for what replaces them: where
// that fits no other node the drain may not end, and the estimate warns.
func TestEstimateNowhereToGo(t *testing.T) {
	for name, tt := range map[string]struct {
		other bool // there is another node
		pods  int32
		phase mcp.Phase
		warns bool
	}{
		"the only node":       {pods: 2, warns: true},
		"another node":        {pods: 2, other: true},
		"one pod of the node": {pods: 1},
		"drained already":     {pods: 2, phase: mcp.PhaseApplying},
	} {
		n := mcptest.Node("n0", "worker", "O")
		nodes := []*corev1.Node{&n}
		if tt.other {
			m := mcptest.Node("n1", "worker", "O")
			nodes = append(nodes, &m)
		}
		var pods []*corev1.Pod
		for i := range tt.pods {
			pods = append(pods, drainedPod(fmt.Sprint("web-", i), "n0", "web"))
		}
		d := mcp.DrainPlan("n0", drainView(mcp.DrainObjects{Pods: pods, Nodes: nodes, Budgets: []*policyv1.PodDisruptionBudget{drainBudget("web", "web", tt.pods, tt.pods-1, tt.pods)}}))
		e := mcp.EstimateUpdate(mcp.EstimateInput{ClusterVersionDone: true, Pools: []mcp.EstimatePool{{Name: "worker", Nodes: []mcp.EstimateNode{{Name: "n0", Drain: &d, Phase: tt.phase}}}}})
		var want []string
		if tt.warns {
			want = []string{"the drains of 1 nodes may not end: a budget lets their pods go one after the other, and what replaces those fits no other node: n0"}
		}
		if diff := cmp.Diff(want, e.Warnings); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// Pools are updated in parallel, the arbiter after the masters, all of them once the
// cluster-version operator is done.
func TestEstimateOverlap(t *testing.T) {
	in := mcp.EstimateInput{Steps: noDelay, ClusterVersion: mcp.Span{Min: 60 * minute, Expected: 70 * minute, Max: 120 * minute}, Pools: []mcp.EstimatePool{
		{Name: "arbiter", Nodes: minutes(7)},
		{Name: "worker", Nodes: minutes(5, 5, 5), MaxUnavailable: 3},
		{Name: "master", Nodes: minutes(10, 10, 10)},
	}}
	got := mcp.EstimateUpdate(in)
	if got.Min != 97*minute || got.Expected != 107*minute || *got.Max != 157*minute {
		t.Error(got)
	}
	if p := criticalNodes(got); p != "cvo n0 n1 n2 n0" || got.PerPool[0].Begin.Expected != 100*minute || got.PerPool[1].End.Expected != 75*minute {
		t.Errorf("%s %+v", p, got.PerPool)
	}
	// A node on its way does not wait for anything.
	in.Pools = in.Pools[1:2]
	in.Pools[0].Nodes[0] = mcp.EstimateNode{Name: "slow", Phase: mcp.PhasePreparing, Time: mcp.Exactly(90 * minute)}
	if got := mcp.EstimateUpdate(in); got.Expected != 90*minute || criticalNodes(got) != "slow" {
		t.Error(got, criticalNodes(got))
	}
	in.Pools[0].MaxUnavailable = 6
	in.Pools[0].Size = 20
	if got := mcp.EstimateUpdate(in); len(got.Warnings) != 1 || len(got.PerPool[0].Nodes) != 20 {
		t.Error(got)
	}
	if got := mcp.EstimateUpdate(mcp.EstimateInput{}); got.Expected != 60*minute || *got.Max != 120*minute || criticalNodes(got) != "cvo" {
		t.Error(got)
	}
}

// What is left of an update is told by the nodes themselves.
func TestEstimateRunning(t *testing.T) {
	at := mcptest.Annotate
	objs := mcp.Objects{Pools: mcptest.Pools(mcptest.Pool("worker", "N", mcptest.AtMost(4)), mcptest.Pool("infra", "N", mcptest.Paused), mcptest.Pool("master", "N")), Nodes: []corev1.Node{
		mcptest.Updated(mcptest.Worker("done")),
		mcptest.Worker("drains", mcptest.Desired("N"), mcptest.State(mcp.StateWorking), mcptest.Cordoned, at(mcp.AnnotationDesiredDrain, "drain-N", mcp.AnnotationLastAppliedDrain, "uncordon-O")),
		mcptest.Worker("applies", mcptest.Desired("N"), mcptest.State(mcp.StateWorking), mcptest.Cordoned, at(mcp.AnnotationDesiredDrain, "drain-N", mcp.AnnotationLastAppliedDrain, "drain-N")),
		mcptest.Worker("fails", mcptest.Desired("N"), mcptest.State(mcp.StateDegraded), mcptest.Reason("disk full")),
		mcptest.Worker("cordoned", mcptest.Cordoned),
		mcptest.Updated(mcptest.Worker("kept", mcptest.Cordoned)),
		mcptest.Worker("young", mcptest.Age(1)), mcptest.Worker("old", mcptest.Age(9)), mcptest.Worker("last", mcptest.Age(10)),
		mcptest.Master("m0"), mcptest.Master("m1"),
	}, Pods: []corev1.Pod{mcptest.OperatorPod("o", "m0")}}
	s := mcp.NewState(objs, mcp.Options{Order: mcp.Order{Last: []string{"last"}}})
	var history mcp.History
	history.Add("drains", mcp.PhaseDraining, mcptest.Epoch)
	v := drainView(mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("p", "old", "x")}})
	got := s.EstimatePool("worker", mcp.EstimateView{Drains: &v, History: &history, Now: mcptest.Epoch.Add(minute)})
	var nodes []string
	for _, n := range got.Nodes {
		drain := "-"
		if n.Drain != nil {
			drain = fmt.Sprint(len(n.Drain.Waves))
		}
		nodes = append(nodes, fmt.Sprintf("%s %s %v %s", n.Name, n.Phase, n.In, drain))
	}
	if diff := cmp.Diff([]string{"applies Applying 0s -", "drains Draining 1m0s 0", "old  0s 1", "young  0s 0", "last  0s 0"}, nodes); diff != "" {
		t.Error(diff)
	}
	want := []mcp.Blocker{{Pool: "worker", Node: "cordoned", Text: "node cordoned is reporting Unschedulable"},
		{Pool: "worker", Node: "fails", Text: "node fails: Failed in Preparing: disk full"},
		{Pool: "worker", Node: "kept", Text: "node kept is reporting Unschedulable"}}
	if diff := cmp.Diff(want, got.Stuck); diff != "" || got.MaxUnavailable != 4 {
		t.Error(diff, got.MaxUnavailable)
	}
	if p := s.EstimatePool("infra", mcp.EstimateView{}); !p.Paused {
		t.Errorf("%+v", p)
	}
	if p := s.EstimatePool("master", mcp.EstimateView{}); len(p.Nodes) != 2 || p.Nodes[1].Name != "m0" {
		t.Errorf("%+v", p)
	}
	// What keeps a whole pool from being updated takes no unit.
	objs.Pools[0].Spec.Configuration.Name = ""
	mcptest.MaxUnavailable(intstr.FromString("x"))(&objs.Pools[2])
	s = mcp.NewState(objs, mcp.Options{})
	in := mcp.EstimateInput{Pools: []mcp.EstimatePool{s.EstimatePool("worker", mcp.EstimateView{}), s.EstimatePool("master", mcp.EstimateView{})}}
	in.Pools[0].Stuck = in.Pools[0].Stuck[:1]
	e := mcp.EstimateUpdate(in)
	if e.Max != nil || len(e.Unbounded) != 2 || e.Unbounded[0].Text != "the pool has no rendered configuration yet" ||
		!strings.HasPrefix(e.Unbounded[1].Text, "maxUnavailable: ") || e.PerPool[0].Slots != 4 {
		t.Errorf("%v %+v", e, in.Pools[0])
	}
	if p := s.EstimatePool("none", mcp.EstimateView{}); len(p.Nodes)+len(p.Stuck) != 0 {
		t.Errorf("%+v", p)
	}
}

// The pool's config changes while nodes are on their way: those that cannot be given
// the new target now finish the old one first, and are not stuck.
func TestEstimateRetargeted(t *testing.T) {
	at := mcptest.Annotate
	objs := mcp.Objects{Pools: mcptest.Pools(mcptest.Pool("worker", "N2", mcptest.AtMost(2))), Nodes: []corev1.Node{
		mcptest.Worker("drains", mcptest.Desired("N"), mcptest.State(mcp.StateWorking), mcptest.Cordoned, at(mcp.AnnotationDesiredDrain, "drain-N")),
		mcptest.Worker("reboots", mcptest.Desired("N"), mcptest.State(mcp.StateWorking), mcptest.Cordoned, mcptest.Condition(corev1.NodeReady, corev1.ConditionUnknown),
			at(mcp.AnnotationDesiredDrain, "drain-N", mcp.AnnotationLastAppliedDrain, "drain-N")),
		mcptest.Worker("waits"),
		mcptest.Worker("fails", mcptest.Desired("N"), mcptest.State(mcp.StateDegraded), mcptest.Cordoned),
		mcptest.Worker("joins", mcptest.Without(mcp.AnnotationState), mcptest.Condition(corev1.NodeReady, corev1.ConditionFalse)),
	}}
	v := drainView(mcp.DrainObjects{Pods: []*corev1.Pod{drainedPod("db-0", "drains", "db")}, Budgets: []*policyv1.PodDisruptionBudget{drainBudget("db", "db", 1, 1, 1)}})
	p := mcp.NewState(objs, mcp.Options{}).EstimatePool("worker", mcp.EstimateView{Drains: &v})
	var nodes, stuck []string
	for _, n := range p.Nodes {
		nodes = append(nodes, n.Name+" "+string(n.Phase))
	}
	for _, b := range p.Stuck {
		stuck = append(stuck, b.Node)
	}
	if diff := cmp.Diff([]string{"drains Draining", "reboots Rebooting", "waits ", "drains ", "reboots "}, nodes); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"fails", "joins"}, stuck); diff != "" {
		t.Error(diff)
	}
	p.Stuck = nil
	e := mcp.EstimateUpdate(mcp.EstimateInput{ClusterVersionDone: true, Steps: noDelay, Node: mcp.Exactly(10 * minute), Pools: []mcp.EstimatePool{p}})
	if len(e.Unbounded) != 1 || e.Unbounded[0].Node != "drains" || e.Expected <= 20*minute {
		t.Error(e)
	}
}

// A history tells how long steps took, of nodes that were seen from their beginning and
// did not fail.
func TestHistory(t *testing.T) {
	var h mcp.History
	at := func(node string, m int, p mcp.Phase) { h.Add(node, p, mcptest.Epoch.Add(time.Duration(m)*minute)) }
	for node, start := range map[string]int{"a": 0, "b": 100} {
		extra := start / 100
		at(node, start, mcp.PhaseTargeted)
		at(node, start+1, mcp.PhaseCordoning)
		at(node, start+2, mcp.PhaseDraining)
		at(node, start+4+extra, mcp.PhaseApplying)
		at(node, start+6+extra, mcp.PhaseRebooting)
		at(node, start+9+3*extra, mcp.PhaseUncordoning)
		at(node, start+10+3*extra, mcp.PhaseDone)
	}
	at("late", 0, mcp.PhaseRebooting)
	at("late", 500, mcp.PhaseDone)
	at("bad", 0, mcp.PhaseTargeted)
	at("bad", 1, mcp.PhaseApplying)
	at("bad", 2, mcp.PhaseFailed)
	at("bad", 600, mcp.PhaseApplying)
	at("bad", 700, mcp.PhaseDone)
	span := func(a, b, c float64) mcp.Span {
		d := func(m float64) time.Duration { return time.Duration(m * float64(minute)) }
		return mcp.Span{Min: d(a), Expected: d(b), Max: d(c)}
	}
	want := mcp.StepTimes{Drain: span(3, 3.5, 4), Apply: span(2, 2, 2), Reboot: span(3, 4, 5), Ready: mcp.Exactly(-1), Uncordon: span(1, 1, 1)}
	if diff := cmp.Diff(want, h.Times()); diff != "" || h.Nodes() != 2 {
		t.Error(diff, h.Nodes())
	}
	if since, ok := h.Since("late"); !ok || !since.Equal(mcptest.Epoch.Add(500*minute)) {
		t.Error(since, ok)
	}
	h.Forget("late")
	if _, ok := h.Since("late"); ok {
		t.Error("it is still there")
	}
	got := mcp.EstimateUpdate(mcp.EstimateInput{ClusterVersionDone: true, Steps: h.Times(), Pools: []mcp.EstimatePool{{Size: 1}}})
	if want := 6*time.Second + 10*minute + 30*time.Second; got.Expected != want {
		t.Errorf("%v, want %v", got.Expected, want)
	}
	var none mcp.History
	if diff := cmp.Diff(mcp.StepTimes{}, none.Times()); diff != "" || none.Nodes() != 0 {
		t.Error(diff)
	}
}

// MachineConfigNodes tell the same, whenever they are looked at.
func TestHistoryOfMachineConfigNodes(t *testing.T) {
	over := func(t mcfgv1.StateProgress, m int) metav1.Condition {
		c := mcptest.Says(string(t), "")
		c.LastTransitionTime = metav1.NewTime(mcptest.Epoch.Add(time.Duration(m) * minute))
		return c
	}
	steps := []metav1.Condition{
		over(mcfgv1.MachineConfigNodeUpdatePrepared, 1), over(mcfgv1.MachineConfigNodeUpdateCordoned, 2), over(mcfgv1.MachineConfigNodeUpdateDrained, 5),
		over(mcfgv1.MachineConfigNodeUpdateFilesAndOS, 7), over(mcfgv1.MachineConfigNodeUpdateRebooted, 11), over(mcfgv1.MachineConfigNodeUpdateUncordoned, 12),
	}
	want := mcp.StepTimes{Drain: mcp.Exactly(3 * minute), Apply: mcp.Exactly(2 * minute), Reboot: mcp.Exactly(4 * minute), Ready: mcp.Exactly(-1), Uncordon: mcp.Exactly(minute)}
	for _, looks := range [][]int{{6}, {1, 2, 3, 4, 5, 6}, {2, 2, 5, 6, 6}} {
		var h mcp.History
		for _, n := range looks {
			m := mcptest.Mcn("w", steps[:n]...)
			h.AddMachineConfigNode(&m)
		}
		if diff := cmp.Diff(want, h.Times()); diff != "" || h.Nodes() != 1 {
			t.Errorf("%v: %s", looks, diff)
		}
	}
	// One that has not begun, or that says nothing of a step, tells of none.
	var h mcp.History
	m := mcptest.Mcn("w", mcptest.Says(string(mcfgv1.MachineConfigNodeUpdated), ""))
	h.AddMachineConfigNode(&m)
	if _, ok := h.Since("w"); ok || h.Nodes() != 0 {
		t.Error("it tells of a step")
	}
}

// P12: more nodes or fewer slots never make an update shorter, and nodes that take
// equal times take as many turns as they must.
func TestP12EstimateIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := rapid.SampledFrom([]mcp.StepTimes{noDelay, {}}).Draw(t, "steps")
		var nodes []mcp.EstimateNode
		for i := range rapid.IntRange(0, 12).Draw(t, "nodes") {
			lengths := []int{rapid.IntRange(0, 30).Draw(t, "min"), rapid.IntRange(0, 30).Draw(t, "expected"), rapid.IntRange(0, 30).Draw(t, "max")}
			slices.Sort(lengths)
			n := mcp.EstimateNode{Name: fmt.Sprint(i), Time: mcp.Span{Min: time.Duration(lengths[0]+1) * minute, Expected: time.Duration(lengths[1]+1) * minute, Max: time.Duration(lengths[2]+1) * minute}}
			if rapid.IntRange(0, 4).Draw(t, "on its way") == 0 {
				n.Phase = mcp.PhasePreparing
			}
			nodes = append(nodes, n)
		}
		slots := rapid.IntRange(1, 6).Draw(t, "slots")
		estimate := func(nodes []mcp.EstimateNode, slots int) mcp.Estimate {
			return mcp.EstimateUpdate(mcp.EstimateInput{ClusterVersionDone: true, Steps: steps, Pools: []mcp.EstimatePool{{Name: "worker", Nodes: nodes, MaxUnavailable: slots}}})
		}
		shorter := func(a, b mcp.Estimate) bool { return a.Min < b.Min || a.Expected < b.Expected || *a.Max < *b.Max }
		whole := estimate(nodes, slots)
		if fewer := estimate(nodes, slots+1); shorter(whole, fewer) {
			t.Errorf("%d slots: %v, %d: %v", slots, whole, slots+1, fewer)
		}
		if len(nodes) > 0 {
			at := rapid.IntRange(0, len(nodes)-1).Draw(t, "left out")
			if less := estimate(slices.Delete(slices.Clone(nodes), at, at+1), slots); shorter(whole, less) {
				t.Errorf("all: %v, without %d: %v", whole, at, less)
			}
		}
		if whole.Min > whole.Expected || whole.Expected > *whole.Max {
			t.Error(whole)
		}
		// Never less than the longest node, nor than the work shared by all slots.
		n, d := len(nodes), time.Duration(rapid.IntRange(1, 30).Draw(t, "length"))*minute
		equal := mcp.EstimateUpdate(mcp.EstimateInput{ClusterVersionDone: true, Steps: steps, Node: mcp.Exactly(d), Pools: []mcp.EstimatePool{{Size: n, MaxUnavailable: slots}}})
		turns := time.Duration((n + slots - 1) / slots)
		overhead := 5 * time.Second * turns
		if steps == noDelay {
			overhead = 0
		}
		if want := turns*d + overhead; equal.Expected != want || *equal.Max != want {
			t.Errorf("%d nodes of %v, %d at a time: %v, want %v", n, d, slots, equal, want)
		}
	})
}

func BenchmarkEstimateUpdate(b *testing.B) {
	for _, n := range sizes {
		nodes := make([]mcp.EstimateNode, n)
		for i := range nodes {
			nodes[i] = mcp.EstimateNode{Name: fmt.Sprint("w", i), Time: mcp.Exactly(time.Duration(i%7+1) * minute)}
		}
		in := mcp.EstimateInput{Pools: []mcp.EstimatePool{{Name: "worker", MaxUnavailable: n/50 + 2, Nodes: nodes}}}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if e := mcp.EstimateUpdate(in); e.Max == nil {
					b.Fatal(e)
				}
			}
		})
		s := mcp.NewState(bigPool(n), mcp.Options{})
		b.Run(fmt.Sprint("state/", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if p := s.EstimatePool("worker", mcp.EstimateView{}); len(p.Nodes) == 0 {
					b.Fatal(p)
				}
			}
		})
	}
}
