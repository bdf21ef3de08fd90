package mcp_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/mcp"
)

func worker(name string, changes ...change) corev1.Node { return node(name, "worker", "O", changes...) }

func master(name string, changes ...change) corev1.Node { return node(name, "master", "O", changes...) }

func updated(n corev1.Node) corev1.Node {
	annotate(mcp.AnnotationCurrentConfig, "N", mcp.AnnotationDesiredConfig, "N")(&n)
	return n
}

func failing(n *corev1.Node) { desired("N")(n); state("Degraded")(n) }

func off() *bool { b := false; return &b }

func on() *bool { b := true; return &b }

func TestCapacity(t *testing.T) {
	old := func(n *corev1.Node) { desired("M")(n); state("Degraded")(n) } // fails on an older config
	for _, tt := range []struct {
		name     string
		max      int
		options  mcp.Options
		nodes    []corev1.Node
		capacity int
		want     []string
	}{
		{"all idle", 2, mcp.Options{}, []corev1.Node{worker("a"), worker("b"), worker("c")}, 2, []string{"a", "b"}},
		{"full", 1, mcp.Options{}, []corev1.Node{worker("a"), worker("b", desired("N"), state("Working"))}, 0, nil},
		{"a cordoned node takes a unit and is not targeted", 2, mcp.Options{}, []corev1.Node{worker("a", cordoned), worker("b"), worker("c")}, 1, []string{"b"}},
		{"a failing node that has the target takes a unit", 2, mcp.Options{}, []corev1.Node{worker("a", failing), worker("b"), worker("c")}, 1, []string{"b"}},
		{"one that fails on an older config takes none, unless held", 1, mcp.Options{HoldFailing: off()},
			[]corev1.Node{worker("a"), worker("b", old)}, 1, []string{"a"}},
		{"failing and cordoned counts once", 2, mcp.Options{}, []corev1.Node{worker("a", failing, cordoned), worker("b")}, 1, []string{"b"}},
		{"failing and cordoned counts twice", 2, mcp.Options{Compat: true}, []corev1.Node{worker("a", failing, cordoned), worker("b")}, 0, nil},
		{"compat: failing and schedulable counts once", 2, mcp.Options{Compat: true}, []corev1.Node{worker("a", failing), worker("b")}, 1, []string{"b"}},
		{"failing, cordoned, stops a pool of one unit", 1, mcp.Options{}, []corev1.Node{worker("a", failing, cordoned), worker("b")}, 0, nil},
		{"working on an older config may be retargeted", 2, mcp.Options{},
			[]corev1.Node{worker("a", desired("M"), state("Working")), worker("b")}, 1, []string{"a"}},
		{"held node goes first and leaves the others less", 2, mcp.Options{}, []corev1.Node{worker("a"), worker("b"), worker("z", old)}, 2, []string{"z", "a"}},
		{"held node goes first, even before the capacity is cut", 1, mcp.Options{}, []corev1.Node{worker("a"), worker("z", old)}, 1, []string{"z"}},
		{"not held under compat", 2, mcp.Options{Compat: true}, []corev1.Node{worker("a"), worker("b"), worker("z", old)}, 2, []string{"a", "b"}},
		{"held under compat if asked for", 2, mcp.Options{Compat: true, HoldFailing: on()}, []corev1.Node{worker("a"), worker("b"), worker("z", old)}, 2, []string{"z", "a"}},
		{"a drifted node is a candidate that takes a unit, not held", 2, mcp.Options{}, []corev1.Node{worker("a"), worker("z", state("Degraded"))}, 1, []string{"a"}},
		{"unreconcilable for its target is not held", 1, mcp.Options{},
			[]corev1.Node{worker("a"), worker("z", desired("M"), state("Unreconcilable"), reason("can't reconcile config O with M: no"))}, 1, []string{"a"}},
		{"unreconcilable for another target is held", 1, mcp.Options{},
			[]corev1.Node{worker("a"), worker("z", desired("M"), state("Unreconcilable"), reason("can't reconcile config O with M2: no"))}, 1, []string{"z"}},
		{"unreconcilable without a target is not held", 1, mcp.Options{},
			[]corev1.Node{worker("a"), worker("z", desired(""), state("Unreconcilable"))}, 1, []string{"a"}},
		{"unmanaged nodes take units and are targeted", 2, mcp.Options{}, []corev1.Node{worker("a", none), worker("b")}, 1, []string{"a"}},
		{"a deleted node is none", 1, mcp.Options{}, []corev1.Node{worker("a", deleting), worker("b")}, 1, []string{"b"}},
		{"a deleted failing node counts as failing", 1, mcp.Options{}, []corev1.Node{worker("a", deleting, old), worker("b")}, 0, nil},
		{"compat: deletion does not matter", 1, mcp.Options{Compat: true}, []corev1.Node{worker("a", deleting), worker("b")}, 1, []string{"a"}},
		{"last goes last", 2, mcp.Options{Order: mcp.Order{Last: []string{"a"}}}, []corev1.Node{worker("a"), worker("b"), worker("c")}, 2, []string{"b", "c"}},
		{"last is not skipped", 3, mcp.Options{Order: mcp.Order{Last: []string{"a"}}}, []corev1.Node{worker("a"), worker("b"), worker("c")}, 3, []string{"b", "c", "a"}},
		{"more held than capacity", 1, mcp.Options{}, []corev1.Node{worker("a"), worker("y", old), worker("z", old)}, 1, []string{"y"}},
		{"held goes before last", 1, mcp.Options{Order: mcp.Order{Last: []string{"z"}}}, []corev1.Node{worker("a"), worker("z", old)}, 1, []string{"z"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := snapshot(pools(pool("worker", "N", atMost(tt.max))), tt.nodes...)
			in.Options = tt.options
			sel := mcp.Candidates(in, "worker")
			if sel.Capacity != tt.capacity {
				t.Errorf("capacity = %d, want %d", sel.Capacity, tt.capacity)
			}
			if diff := cmp.Diff(tt.want, sel.Nodes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOrder(t *testing.T) {
	in := snapshot(pools(pool("worker", "N", atMost(9))),
		worker("none-old", age(99)), worker("none-b"), worker("none-a"),
		worker("z2-old", zone("z2"), age(5)), worker("z1-young", zone("z1")), worker("z1-old", zone("z1"), age(1)),
		worker("empty", zone("")))
	sel := mcp.Candidates(in, "worker")
	want := []string{"empty", "z1-old", "z1-young", "z2-old", "none-old", "none-a", "none-b"}
	if diff := cmp.Diff(want, sel.Nodes); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"", "z1", "z1", "z2", "", "", ""}, sel.Zones); diff != "" {
		t.Error(diff)
	}
	if len(sel.Warnings) != 1 {
		t.Errorf("warnings = %q", sel.Warnings)
	}
}

// The numbers of capacity and order on one small pool.
func TestCapacityAndOrder(t *testing.T) {
	nodes := []corev1.Node{
		updated(worker("a")),
		worker("b", zone("z2"), age(10)),
		worker("c", zone("z1")),
		worker("d", desired("N"), state("Working")),
		worker("e"),
	}
	in := snapshot(pools(pool("worker", "N", atMost(2))), nodes...)
	sel := mcp.Candidates(in, "worker")
	if sel.Capacity != 1 || sel.Candidates != 3 || !cmp.Equal(sel.Nodes, []string{"c"}) {
		t.Errorf("%+v", sel)
	}
	s := mcp.NewState(in.Objects, in.Options)
	if diff := cmp.Diff([]mcp.TaintChange{{"b", true}, {"c", true}, {"e", true}}, s.Taints("worker")); diff != "" {
		t.Error(diff)
	}
	in = snapshot(pools(pool("worker", "N", atMost(4))), nodes...)
	sel = mcp.Candidates(in, "worker")
	if sel.Capacity != 3 || !cmp.Equal(sel.Nodes, []string{"c", "b", "e"}) {
		t.Errorf("%+v", sel)
	}
}

// A node whose new config cannot be reconciled does not go first after the
// pool has moved on; a degraded one does, since it may drain anyhow.
func TestNewConfigAfterFailure(t *testing.T) {
	x := worker("x", desired("N"), state("Unreconcilable"), reason("can't reconcile config O with N: no"))
	y := worker("y", age(1))
	in := snapshot(pools(pool("worker", "N2")), x, y)
	if sel := mcp.Candidates(in, "worker"); !cmp.Equal(sel.Nodes, []string{"y"}) || sel.Capacity != 1 || sel.Candidates != 2 || sel.Held != 0 {
		t.Errorf("%+v", sel)
	}
	state("Degraded")(&in.Nodes[0])
	if sel := mcp.Candidates(in, "worker"); !cmp.Equal(sel.Nodes, []string{"x"}) || sel.Held != 1 {
		t.Errorf("%+v", sel)
	}
}

func operatorPod(name, node string) corev1.Pod {
	p := corev1.Pod{}
	p.Namespace, p.Name = mcp.OperatorNamespace, name
	p.Labels = map[string]string{mcp.LabelApp: mcp.AppOperator}
	p.Spec.NodeName = node
	return p
}

func TestOperatorNode(t *testing.T) {
	in := snapshot(pools(pool("master", "N"), pool("worker", "N")), master("m0"), master("m1"), worker("w0"), worker("w1"))
	in.Pods = []corev1.Pod{operatorPod("o", "m0")}
	sel := mcp.Candidates(in, "master")
	if !cmp.Equal(sel.Nodes, []string{"m1"}) || sel.Deferred != "m0" || sel.Capacity != 1 {
		t.Errorf("two candidates: %+v", sel)
	}
	s := mcp.NewState(in.Objects, in.Options)
	if v := s.Explain("master", "m0"); v.Kind != mcp.VerdictDeferredOperatorNode || v.Text != "Deferring update of machine config operator node m0" {
		t.Errorf("%+v", v)
	}
	// With the other one done it is the only candidate.
	m1 := updated(master("m1"))
	s.Apply(mcp.Change{Object: &m1})
	if sel := s.Candidates("master"); !cmp.Equal(sel.Nodes, []string{"m0"}) || sel.Deferred != "" {
		t.Errorf("one candidate: %+v", sel)
	}
	// Two pods of the operator: nobody is deferred.
	in.Pods = append(in.Pods, operatorPod("p", "m1"))
	if sel := mcp.Candidates(in, "master"); !cmp.Equal(sel.Nodes, []string{"m0"}) {
		t.Errorf("two pods: %+v", sel)
	}
	// Only in pool master.
	in.Pods = []corev1.Pod{operatorPod("o", "w0")}
	if sel := mcp.Candidates(in, "worker"); !cmp.Equal(sel.Nodes, []string{"w0"}) {
		t.Errorf("worker: %+v", sel)
	}
	// A held node is not deferred: the pool would stand still.
	in.Pods = []corev1.Pod{operatorPod("o", "m0")}
	desired("M")(&in.Nodes[0])
	state("Degraded")(&in.Nodes[0])
	if sel := mcp.Candidates(in, "master"); !cmp.Equal(sel.Nodes, []string{"m0"}) || sel.Deferred != "" {
		t.Errorf("held: %+v", sel)
	}
}

func TestCustomPoolBoot(t *testing.T) {
	infraPool := pool("infra", "I", func(p *mcfgv1.MachineConfigPool) {
		p.Spec.NodeSelector.MatchExpressions = []metav1.LabelSelectorRequirement{
			{Key: "one", Operator: metav1.LabelSelectorOpIn, Values: []string{"x"}},
			{Key: "two", Operator: metav1.LabelSelectorOpIn, Values: []string{"x", "y"}},
			{Key: "there", Operator: metav1.LabelSelectorOpExists},
		}
	})
	config := func(name, owner string) mcfgv1.MachineConfig {
		c := mcfgv1.MachineConfig{}
		c.Name = name
		c.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineConfigPool", Name: owner}}
		return c
	}
	first := annotate(mcp.AnnotationFirstPivotConfig, "I0")
	in := snapshot(pools(pool("worker", "N"), infraPool), worker("a", first), worker("b"))
	in.MachineConfigs = []mcfgv1.MachineConfig{config("I0", "infra"), config("W0", "worker")}
	sel := mcp.Candidates(in, "worker")
	want := []mcp.Boot{{Node: "a", Pool: "infra", Labels: map[string]string{"node-role.kubernetes.io/infra": "", "one": "x", "there": ""}}}
	if diff := cmp.Diff(want, sel.Boots); diff != "" {
		t.Error(diff)
	}
	if !cmp.Equal(sel.Nodes, []string{"b"}) {
		t.Errorf("nodes = %v", sel.Nodes)
	}
	s := mcp.NewState(in.Objects, in.Options)
	if v := s.Explain("worker", "a"); v.Kind != mcp.VerdictCustomPoolBoot {
		t.Errorf("%+v", v)
	}
	for name, change := range map[string]change{
		"labels applied":        annotate(mcp.AnnotationCustomPoolLabelsApplied, ""),
		"booted into worker":    annotate(mcp.AnnotationFirstPivotConfig, "W0"),
		"config is not known":   annotate(mcp.AnnotationFirstPivotConfig, "X"),
		"did not boot directly": without(mcp.AnnotationFirstPivotConfig),
	} {
		n := worker("a", first, change)
		s.Apply(mcp.Change{Object: &n})
		if sel := s.Candidates("worker"); len(sel.Boots) > 0 || !cmp.Equal(sel.Nodes, []string{"a"}) {
			t.Errorf("%s: %+v", name, sel)
		}
	}
	// The config's owner may come to be known later.
	n := worker("a", annotate(mcp.AnnotationFirstPivotConfig, "late"))
	s.Apply(mcp.Change{Object: &n})
	late := config("late", "infra")
	if changed := s.Apply(mcp.Change{Object: &late}); !cmp.Equal(changed, []string{"worker"}) || len(s.Candidates("worker").Boots) != 1 {
		t.Errorf("changed %v, %+v", changed, s.Candidates("worker"))
	}
	// Without capacity nobody is labelled.
	down := worker("b", cordoned)
	s.Apply(mcp.Change{Object: &down})
	if v := s.Explain("worker", "a"); v.Kind != mcp.VerdictNoCapacity || len(s.Candidates("worker").Boots) > 0 {
		t.Errorf("%+v", v)
	}
}

func TestArbiter(t *testing.T) {
	arbiter := func(name string, changes ...change) corev1.Node { return node(name, "arbiter", "O", changes...) }
	done := func(n *corev1.Node) { *n = updated(*n) }
	for _, tt := range []struct {
		name    string
		change  func(*mcp.Snapshot)
		blocked string // why the arbiter waits; "" = it is selected
		master  []string
	}{
		{"masters first", func(in *mcp.Snapshot) {}, "3 nodes of pool master are to be updated first", []string{"m0"}},
		{"masters done", func(in *mcp.Snapshot) {
			for i := range 3 {
				done(&in.Nodes[i])
			}
		}, "", nil},
		{"a master is down", func(in *mcp.Snapshot) {
			for i := range 3 {
				done(&in.Nodes[i])
			}
			cordoned(&in.Nodes[0])
		}, "1 nodes of pool master are unavailable", nil},
		{"a master fails, schedulable", func(in *mcp.Snapshot) { failing(&in.Nodes[0]) }, "1 nodes of pool master are failing", nil},
		{"the controller lets the arbiter go ahead then", func(in *mcp.Snapshot) {
			failing(&in.Nodes[0])
			in.Options.Compat = true
		}, "", nil},
		{"masters paused", func(in *mcp.Snapshot) { in.Pools[0].Spec.Paused = true }, "", nil},
		{"masters paused, one down", func(in *mcp.Snapshot) {
			in.Pools[0].Spec.Paused = true
			cordoned(&in.Nodes[1])
		}, "1 nodes of pool master are unavailable", nil},
		{"no pool master", func(in *mcp.Snapshot) { in.Pools = in.Pools[1:] }, "there is no pool master", nil},
		{"another topology", func(in *mcp.Snapshot) { in.ControllerConfig = topology(mcp.TopologyHighlyAvailable) },
			"the control plane topology is not HighlyAvailableArbiter", []string{"m0"}},
		{"masters done, but no sync of theirs can end", func(in *mcp.Snapshot) {
			for i := range 3 {
				done(&in.Nodes[i])
			}
			atMost(-1)(&in.Pools[0])
		}, "pool master cannot be updated: maxUnavailable: -1 is negative: the pool would never update", nil},
		{"the controller has an empty list then, and the arbiter goes", func(in *mcp.Snapshot) {
			atMost(-1)(&in.Pools[0])
			in.Options.Compat = true
		}, "", nil},
		{"a master is deleted and has failed", func(in *mcp.Snapshot) {
			for i := range 3 {
				done(&in.Nodes[i])
			}
			deleting(&in.Nodes[0])
			desired("M")(&in.Nodes[0])
			state("Degraded")(&in.Nodes[0])
		}, "1 nodes of pool master are failing", nil},
		{"masters cannot be updated", func(in *mcp.Snapshot) {
			now := metav1.NewTime(epoch)
			in.Pools[0].DeletionTimestamp = &now
		}, "pool master cannot be updated: the pool is being deleted", nil},
		{"the arbiter is down", func(in *mcp.Snapshot) { cordoned(&in.Nodes[3]) }, "3 nodes of pool master are to be updated first", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := snapshot(pools(pool("master", "N"), pool("arbiter", "N", atMost(3))), master("m0"), master("m1"), master("m2"), arbiter("a0"))
			in.ControllerConfig = topology(mcp.TopologyHighlyAvailableArbiter)
			tt.change(&in)
			sel := mcp.Candidates(in, "arbiter")
			if tt.blocked != "" && (sel.Block.Kind != mcp.BlockArbiterWaits || sel.Block.Text != tt.blocked) {
				t.Errorf("block = %+v", sel.Block)
			}
			if tt.blocked == "" && (!cmp.Equal(sel.Nodes, []string{"a0"}) || sel.MaxUnavailable != 1) {
				t.Errorf("selection = %+v", sel)
			}
			if diff := cmp.Diff(tt.master, mcp.Candidates(in, "master").Nodes); diff != "" {
				t.Error(diff)
			}
		})
	}
	in := snapshot(pools(pool("master", "N")), master("m0"))
	in.ControllerConfig = topology(mcp.TopologyHighlyAvailableArbiter)
	sel := mcp.Candidates(in, "master")
	want := `arbiter pool "arbiter" not found in HighlyAvailableArbiterMode; cluster may be misconfigured`
	if sel.Err == nil || sel.Err.Error() != want {
		t.Errorf("err = %v", sel.Err)
	}
	// Who holds the capacity of the masters is the arbiter.
	in = snapshot(pools(pool("master", "N"), pool("arbiter", "N")), master("m0"), arbiter("a0", cordoned))
	in.ControllerConfig = topology(mcp.TopologyHighlyAvailableArbiter)
	v := mcp.NewState(in.Objects, in.Options).Explain("master", "m0")
	if v.Kind != mcp.VerdictNoCapacity || !cmp.Equal(v.Holders, []string{"a0"}) {
		t.Errorf("%+v", v)
	}
}

func TestExplain(t *testing.T) {
	blocked := func(kind mcp.BlockKind, change func(*mcfgv1.MachineConfigPool)) {
		t.Helper()
		in := snapshot(pools(pool("worker", "N", change)), worker("a"))
		s := mcp.NewState(in.Objects, in.Options)
		if sel := s.Candidates("worker"); sel.Block.Kind != kind || sel.Block.Text == "" || len(sel.Nodes) > 0 {
			t.Errorf("%s: %+v", kind, sel)
		}
		if v := s.Explain("worker", "a"); v.Kind != mcp.VerdictPoolBlocked || v.Block.Kind != kind || v.Text == "" {
			t.Errorf("%s: %+v", kind, v)
		}
	}
	blocked(mcp.BlockPaused, paused)
	blocked(mcp.BlockDeleted, func(p *mcfgv1.MachineConfigPool) { now := metav1.NewTime(epoch); p.DeletionTimestamp = &now })
	blocked(mcp.BlockUnconfigured, func(p *mcfgv1.MachineConfigPool) { p.Spec.Configuration.Name = "" })
	blocked(mcp.BlockSelectingAll, func(p *mcfgv1.MachineConfigPool) { p.Spec.NodeSelector = &metav1.LabelSelector{} })
	blocked(mcp.BlockInvalidSelector, invalid)
	blocked(mcp.BlockInvalidMaxUnavailable, maxUnavailable(intstr.FromString("3")))
	blocked(mcp.BlockInvalidMaxUnavailable, atMost(-1))

	in := snapshot(pools(pool("worker", "N", atMost(5)), pool("infra", "N"), pool("gpu", "N")),
		updated(worker("updated")),
		worker("fails", failing),
		worker("working", desired("N"), state("Working")),
		worker("cordoned", cordoned),
		worker("stuck", desired("M"), state("Degraded"), cordoned),
		worker("deleting", deleting),
		worker("next"), worker("waits"),
		node("twice", "infra", "O", label(mcp.LabelNodeRolePrefix+"gpu", "")),
	)
	s := mcp.NewState(in.Objects, in.Options)
	got := map[string]string{}
	for name, v := range s.Explanations("worker") {
		got[name] = strings.TrimSpace(fmt.Sprint(v.Kind, " ", v.Hint))
		if one := s.Explain("worker", name); !cmp.Equal(one, v) {
			t.Errorf("%s: one %+v, all %+v", name, one, v)
		}
		if v.Text == "" {
			t.Errorf("%s: no text", name)
		}
	}
	want := map[string]string{
		"updated": "UpToDate", "fails": "Failing", "working": "InProgress", "cordoned": "NotReady",
		"stuck": "NotReady StuckFailing", "deleting": "Deleting", "next": "Selected", "waits": "NoCapacity",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if v := s.Explain("worker", "waits"); !cmp.Equal(v.Holders, []string{"cordoned", "fails", "stuck", "working", "next"}) {
		t.Errorf("holders = %v", v.Holders)
	}
	if v := s.Explain("worker", "cordoned"); v.Text != "node cordoned is reporting Unschedulable" {
		t.Errorf("%+v", v)
	}
	if v := s.Explain("infra", "twice"); v.Kind != mcp.VerdictNotInPool || !strings.HasPrefix(v.Text, "node twice belongs to 2 custom roles, cannot proceed with this Node") {
		t.Errorf("%+v", v)
	}
	if v := s.Explain("worker", "nobody"); v.Kind != mcp.VerdictNotInPool {
		t.Errorf("%+v", v)
	}
	var c *mcp.PoolConflictError
	if _, a, ok := s.Node("twice"); !ok || !errors.As(a.Err, &c) || c.Node != "twice" {
		t.Errorf("%+v", a)
	}
}

func TestCompatNegativeMaxUnavailable(t *testing.T) {
	in := snapshot(pools(pool("worker", "N", atMost(-1))), worker("a"))
	in.Options.Compat = true
	if sel := mcp.Candidates(in, "worker"); sel.Err != nil || sel.Capacity != 0 || len(sel.Nodes) > 0 || sel.MaxUnavailable != -1 {
		t.Errorf("%+v", sel)
	}
}

func TestTaintsAndTopology(t *testing.T) {
	both := annotate(mcp.AnnotationCurrentImage, "i", mcp.AnnotationDesiredImage, "i")
	nodes := []corev1.Node{
		worker("waits"), worker("waits-has", taint), worker("failing", desired("M"), state("Degraded")), worker("down", cordoned), worker("new", none),
		worker("targeted-has", desired("N"), taint), updated(worker("done")), updated(worker("leaves-layering", both)),
	}
	in := snapshot(pools(pool("worker", "N")), nodes...)
	in.ControllerConfig = topology(mcp.TopologyHighlyAvailable)
	s := mcp.NewState(in.Objects, in.Options)
	want := []mcp.TaintChange{{"down", true}, {"failing", true}, {"leaves-layering", true}, {"new", true}, {"targeted-has", false}, {"waits", true}}
	if diff := cmp.Diff(want, s.Taints("worker")); diff != "" {
		t.Error(diff)
	}
	right := updated(worker("done", annotate(mcp.AnnotationControlPlaneTopology, mcp.TopologyHighlyAvailable)))
	s.Apply(mcp.Change{Object: &right})
	names, top := s.Topology("worker")
	if len(names) != len(nodes)-1 || top != mcp.TopologyHighlyAvailable {
		t.Errorf("%v %s", names, top)
	}
	p := pool("worker", "N", paused)
	s.Apply(mcp.Change{Object: &p})
	names, _ = s.Topology("worker")
	if taints := s.Taints("worker"); len(taints) > 0 || len(names) > 0 {
		t.Errorf("a paused pool: %v, %v", taints, names)
	}
}

func TestApplyQueues(t *testing.T) {
	ps := pools(pool("master", "N"), pool("worker", "N"), pool("infra", "N"), pool("gpu", "N"))
	role := func(r string) string { return mcp.LabelNodeRolePrefix + r }
	for _, tt := range []struct {
		name          string
		before, after corev1.Node
		want          []string
	}{
		{"nothing that matters", worker("a"), worker("a", annotate("x", "y"), condition(corev1.NodeMemoryPressure, isTrue)), nil},
		{"readiness", worker("a"), worker("a", condition(corev1.NodeReady, isFalse)), []string{"worker"}},
		{"config", worker("a"), worker("a", desired("N")), []string{"worker"}},
		{"state", worker("a"), worker("a", state("Working")), []string{"worker"}},
		{"reason", worker("a"), worker("a", reason("r")), []string{"worker"}},
		{"empty image annotation", worker("a"), worker("a", annotate(mcp.AnnotationDesiredImage, "")), []string{"worker"}},
		{"a drain request is not for pools", worker("a"), worker("a", annotate(mcp.AnnotationDesiredDrain, "drain-N")), nil},
		{"label", worker("a"), worker("a", label("x", "y")), []string{"worker"}},
		{"taint", worker("a"), worker("a", taint), []string{"worker"}},
		{"moved", worker("a"), worker("a", label(role("infra"), "")), []string{"infra", "worker"}},
		{"unmanaged", worker("a", none), worker("a", none, cordoned), nil},
		{"lost its pool", worker("a"), worker("a", unlabel(role("worker"))), nil},
		{"conflict comes", worker("a", label(role("infra"), "")), worker("a", label(role("infra"), ""), label(role("gpu"), "")), nil},
		{"conflict goes", worker("a", label(role("infra"), ""), label(role("gpu"), "")), worker("a"), []string{"gpu", "infra", "worker"}},
	} {
		in := snapshot(ps, tt.before)
		s := mcp.NewState(in.Objects, in.Options)
		if diff := cmp.Diff(tt.want, s.Apply(mcp.Change{Object: &tt.after})); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}
