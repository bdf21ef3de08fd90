package mcp_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/mcp"
)

func failing(n *corev1.Node) { mcptest.Desired("N")(n); mcptest.State("Degraded")(n) }

func TestCapacity(t *testing.T) {
	old := func(n *corev1.Node) { mcptest.Desired("M")(n); mcptest.State("Degraded")(n) } // fails on an older config
	for _, tt := range []struct {
		name     string
		max      int
		options  mcp.Options
		nodes    []corev1.Node
		capacity int
		want     []string
	}{
		{"all idle", 2, mcp.Options{}, []corev1.Node{mcptest.Worker("a"), mcptest.Worker("b"), mcptest.Worker("c")}, 2, []string{"a", "b"}},
		{"full", 1, mcp.Options{}, []corev1.Node{mcptest.Worker("a"), mcptest.Worker("b", mcptest.Desired("N"), mcptest.State("Working"))}, 0, nil},
		{"a cordoned node takes a unit and is not targeted", 2, mcp.Options{}, []corev1.Node{mcptest.Worker("a", mcptest.Cordoned), mcptest.Worker("b"), mcptest.Worker("c")}, 1, []string{"b"}},
		{"a failing node that has the target takes a unit", 2, mcp.Options{}, []corev1.Node{mcptest.Worker("a", failing), mcptest.Worker("b"), mcptest.Worker("c")}, 1, []string{"b"}},
		{"one that fails on an older config takes none, unless held", 1, mcp.Options{HoldFailing: new(false)},
			[]corev1.Node{mcptest.Worker("a"), mcptest.Worker("b", old)}, 1, []string{"a"}},
		{"failing and cordoned counts once", 2, mcp.Options{}, []corev1.Node{mcptest.Worker("a", failing, mcptest.Cordoned), mcptest.Worker("b")}, 1, []string{"b"}},
		{"failing and cordoned counts twice", 2, mcp.Options{Compat: true}, []corev1.Node{mcptest.Worker("a", failing, mcptest.Cordoned), mcptest.Worker("b")}, 0, nil},
		{"compat: failing and schedulable counts once", 2, mcp.Options{Compat: true}, []corev1.Node{mcptest.Worker("a", failing), mcptest.Worker("b")}, 1, []string{"b"}},
		{"failing, cordoned, stops a pool of one unit", 1, mcp.Options{}, []corev1.Node{mcptest.Worker("a", failing, mcptest.Cordoned), mcptest.Worker("b")}, 0, nil},
		{"working on an older config may be retargeted", 2, mcp.Options{},
			[]corev1.Node{mcptest.Worker("a", mcptest.Desired("M"), mcptest.State("Working")), mcptest.Worker("b")}, 1, []string{"a"}},
		{"held node goes first and leaves the others less", 2, mcp.Options{}, []corev1.Node{mcptest.Worker("a"), mcptest.Worker("b"), mcptest.Worker("z", old)}, 2, []string{"z", "a"}},
		{"held node goes first, even before the capacity is cut", 1, mcp.Options{}, []corev1.Node{mcptest.Worker("a"), mcptest.Worker("z", old)}, 1, []string{"z"}},
		{"not held under compat", 2, mcp.Options{Compat: true}, []corev1.Node{mcptest.Worker("a"), mcptest.Worker("b"), mcptest.Worker("z", old)}, 2, []string{"a", "b"}},
		{"held under compat if asked for", 2, mcp.Options{Compat: true, HoldFailing: new(true)}, []corev1.Node{mcptest.Worker("a"), mcptest.Worker("b"), mcptest.Worker("z", old)}, 2, []string{"z", "a"}},
		{"a drifted node is a candidate that takes a unit, not held", 2, mcp.Options{}, []corev1.Node{mcptest.Worker("a"), mcptest.Worker("z", mcptest.State("Degraded"))}, 1, []string{"a"}},
		{"unreconcilable for its target is not held", 1, mcp.Options{},
			[]corev1.Node{mcptest.Worker("a"), mcptest.Worker("z", mcptest.Desired("M"), mcptest.State("Unreconcilable"), mcptest.Reason("can't reconcile config O with M: no"))}, 1, []string{"a"}},
		{"unreconcilable for another target is held", 1, mcp.Options{},
			[]corev1.Node{mcptest.Worker("a"), mcptest.Worker("z", mcptest.Desired("M"), mcptest.State("Unreconcilable"), mcptest.Reason("can't reconcile config O with M2: no"))}, 1, []string{"z"}},
		{"unreconcilable without a target is not held", 1, mcp.Options{},
			[]corev1.Node{mcptest.Worker("a"), mcptest.Worker("z", mcptest.Desired(""), mcptest.State("Unreconcilable"))}, 1, []string{"a"}},
		{"unmanaged nodes take units and are targeted", 2, mcp.Options{}, []corev1.Node{mcptest.Worker("a", none), mcptest.Worker("b")}, 1, []string{"a"}},
		{"a deleted node is none", 1, mcp.Options{}, []corev1.Node{mcptest.Worker("a", mcptest.Deleting), mcptest.Worker("b")}, 1, []string{"b"}},
		{"a deleted failing node counts as failing", 1, mcp.Options{}, []corev1.Node{mcptest.Worker("a", mcptest.Deleting, old), mcptest.Worker("b")}, 0, nil},
		{"compat: deletion does not matter", 1, mcp.Options{Compat: true}, []corev1.Node{mcptest.Worker("a", mcptest.Deleting), mcptest.Worker("b")}, 1, []string{"a"}},
		{"last goes last", 2, mcp.Options{Order: mcp.Order{Last: []string{"a"}}}, []corev1.Node{mcptest.Worker("a"), mcptest.Worker("b"), mcptest.Worker("c")}, 2, []string{"b", "c"}},
		{"last is not skipped", 3, mcp.Options{Order: mcp.Order{Last: []string{"a"}}}, []corev1.Node{mcptest.Worker("a"), mcptest.Worker("b"), mcptest.Worker("c")}, 3, []string{"b", "c", "a"}},
		{"more held than capacity", 1, mcp.Options{}, []corev1.Node{mcptest.Worker("a"), mcptest.Worker("y", old), mcptest.Worker("z", old)}, 1, []string{"y"}},
		{"held goes before last", 1, mcp.Options{Order: mcp.Order{Last: []string{"z"}}}, []corev1.Node{mcptest.Worker("a"), mcptest.Worker("z", old)}, 1, []string{"z"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := mcptest.Snapshot(mcptest.Pools(mcptest.Pool("worker", "N", mcptest.AtMost(tt.max))), tt.nodes...)
			in.Options = tt.options
			sel := mcp.Candidates(in, "worker")
			if sel.Capacity != tt.capacity {
				t.Errorf("capacity = %d, want %d", sel.Capacity, tt.capacity)
			}
			checktest.Same(t, tt.want, sel.Nodes)
		})
	}
}

// The numbers of capacity and order on one small pool.
func TestCapacityAndOrder(t *testing.T) {
	nodes := []corev1.Node{
		mcptest.Updated(mcptest.Worker("a")),
		mcptest.Worker("b", mcptest.Zone("z2"), mcptest.Age(10)),
		mcptest.Worker("c", mcptest.Zone("z1")),
		mcptest.Worker("d", mcptest.Desired("N"), mcptest.State("Working")),
		mcptest.Worker("e"),
	}
	in := mcptest.Snapshot(mcptest.Pools(mcptest.Pool("worker", "N", mcptest.AtMost(2))), nodes...)
	sel := mcp.Candidates(in, "worker")
	if sel.Capacity != 1 || sel.Candidates != 3 || !cmp.Equal(sel.Nodes, []string{"c"}) {
		t.Errorf("%+v", sel)
	}
	s := mcp.NewState(in.Objects, in.Options)
	checktest.Same(t, []mcp.TaintChange{{"b", true}, {"c", true}, {"e", true}}, s.Taints("worker"))
	in = mcptest.Snapshot(mcptest.Pools(mcptest.Pool("worker", "N", mcptest.AtMost(4))), nodes...)
	sel = mcp.Candidates(in, "worker")
	if sel.Capacity != 3 || !cmp.Equal(sel.Nodes, []string{"c", "b", "e"}) {
		t.Errorf("%+v", sel)
	}
}

func TestOperatorNode(t *testing.T) {
	in := mcptest.Snapshot(mcptest.Pools(mcptest.Pool("master", "N"), mcptest.Pool("worker", "N")), mcptest.Master("m0"), mcptest.Master("m1"), mcptest.Worker("w0"), mcptest.Worker("w1"))
	in.Pods = []corev1.Pod{mcptest.OperatorPod("o", "m0")}
	sel := mcp.Candidates(in, "master")
	if !cmp.Equal(sel.Nodes, []string{"m1"}) || sel.Deferred != "m0" || sel.Capacity != 1 {
		t.Errorf("two candidates: %+v", sel)
	}
	s := mcp.NewState(in.Objects, in.Options)
	if v := s.Explain("master", "m0"); v.Kind != "DeferredOperatorNode" || v.Text != "Deferring update of machine config operator node m0" {
		t.Errorf("%+v", v)
	}
	// With the other one done it is the only candidate.
	m1 := mcptest.Updated(mcptest.Master("m1"))
	s.Apply(mcp.Change{Object: &m1})
	if sel := s.Candidates("master"); !cmp.Equal(sel.Nodes, []string{"m0"}) || sel.Deferred != "" {
		t.Errorf("one candidate: %+v", sel)
	}
	// Two pods of the operator: nobody is deferred.
	in.Pods = append(in.Pods, mcptest.OperatorPod("p", "m1"))
	if sel := mcp.Candidates(in, "master"); !cmp.Equal(sel.Nodes, []string{"m0"}) {
		t.Errorf("two pods: %+v", sel)
	}
	// Only in pool master.
	in.Pods = []corev1.Pod{mcptest.OperatorPod("o", "w0")}
	if sel := mcp.Candidates(in, "worker"); !cmp.Equal(sel.Nodes, []string{"w0"}) {
		t.Errorf("worker: %+v", sel)
	}
	// A held node is not deferred: the pool would stand still.
	in.Pods = []corev1.Pod{mcptest.OperatorPod("o", "m0")}
	mcptest.Desired("M")(&in.Nodes[0])
	mcptest.State("Degraded")(&in.Nodes[0])
	if sel := mcp.Candidates(in, "master"); !cmp.Equal(sel.Nodes, []string{"m0"}) || sel.Deferred != "" {
		t.Errorf("held: %+v", sel)
	}
}

func TestCustomPoolBoot(t *testing.T) {
	infraPool := mcptest.Pool("infra", "I", func(p *mcfgv1.MachineConfigPool) {
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
	first := mcptest.Annotate("machineconfiguration.openshift.io/firstPivotConfig", "I0")
	in := mcptest.Snapshot(mcptest.Pools(mcptest.Pool("worker", "N"), infraPool), mcptest.Worker("a", first), mcptest.Worker("b"))
	in.MachineConfigs = []mcfgv1.MachineConfig{config("I0", "infra"), config("W0", "worker")}
	sel := mcp.Candidates(in, "worker")
	want := []mcp.Boot{{Node: "a", Pool: "infra", Labels: map[string]string{"node-role.kubernetes.io/infra": "", "one": "x", "there": ""}}}
	checktest.Same(t, want, sel.Boots)
	if !cmp.Equal(sel.Nodes, []string{"b"}) {
		t.Errorf("nodes = %v", sel.Nodes)
	}
	s := mcp.NewState(in.Objects, in.Options)
	if v := s.Explain("worker", "a"); v.Kind != "CustomPoolBoot" {
		t.Errorf("%+v", v)
	}
	for name, change := range map[string]mcptest.Change{
		"labels applied":        mcptest.Annotate(mcp.AnnotationCustomPoolLabelsApplied, ""),
		"booted into worker":    mcptest.Annotate("machineconfiguration.openshift.io/firstPivotConfig", "W0"),
		"config is not known":   mcptest.Annotate("machineconfiguration.openshift.io/firstPivotConfig", "X"),
		"did not boot directly": mcptest.Without("machineconfiguration.openshift.io/firstPivotConfig"),
	} {
		n := mcptest.Worker("a", first, change)
		s.Apply(mcp.Change{Object: &n})
		if sel := s.Candidates("worker"); len(sel.Boots) > 0 || !cmp.Equal(sel.Nodes, []string{"a"}) {
			t.Errorf("%s: %+v", name, sel)
		}
	}
	// The config's owner may come to be known later.
	n := mcptest.Worker("a", mcptest.Annotate("machineconfiguration.openshift.io/firstPivotConfig", "late"))
	s.Apply(mcp.Change{Object: &n})
	late := config("late", "infra")
	if changed := s.Apply(mcp.Change{Object: &late}); !cmp.Equal(changed, []string{"worker"}) || len(s.Candidates("worker").Boots) != 1 {
		t.Errorf("changed %v, %+v", changed, s.Candidates("worker"))
	}
	// Without capacity nobody is labelled.
	down := mcptest.Worker("b", mcptest.Cordoned)
	s.Apply(mcp.Change{Object: &down})
	if v := s.Explain("worker", "a"); v.Kind != "NoCapacity" || len(s.Candidates("worker").Boots) > 0 {
		t.Errorf("%+v", v)
	}
}

func TestArbiter(t *testing.T) {
	arbiter := func(name string, changes ...mcptest.Change) corev1.Node {
		return mcptest.Node(name, "arbiter", "O", changes...)
	}
	done := func(n *corev1.Node) { *n = mcptest.Updated(*n) }
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
			mcptest.Cordoned(&in.Nodes[0])
		}, "1 nodes of pool master are unavailable", nil},
		{"a master fails, schedulable", func(in *mcp.Snapshot) { failing(&in.Nodes[0]) }, "1 nodes of pool master are failing", nil},
		{"the controller lets the arbiter go ahead then", func(in *mcp.Snapshot) {
			failing(&in.Nodes[0])
			in.Options.Compat = true
		}, "", nil},
		{"masters paused", func(in *mcp.Snapshot) { in.Pools[0].Spec.Paused = true }, "", nil},
		{"masters paused, one down", func(in *mcp.Snapshot) {
			in.Pools[0].Spec.Paused = true
			mcptest.Cordoned(&in.Nodes[1])
		}, "1 nodes of pool master are unavailable", nil},
		{"no pool master", func(in *mcp.Snapshot) { in.Pools = in.Pools[1:] }, "there is no pool master", nil},
		{"another topology", func(in *mcp.Snapshot) { in.ControllerConfig = mcptest.Topology("HighlyAvailable") },
			"the control plane topology is not HighlyAvailableArbiter", []string{"m0"}},
		{"masters done, but no sync of theirs can end", func(in *mcp.Snapshot) {
			for i := range 3 {
				done(&in.Nodes[i])
			}
			mcptest.AtMost(-1)(&in.Pools[0])
		}, "pool master cannot be updated: maxUnavailable: -1 is negative: the pool would never update", nil},
		{"the controller has an empty list then, and the arbiter goes", func(in *mcp.Snapshot) {
			mcptest.AtMost(-1)(&in.Pools[0])
			in.Options.Compat = true
		}, "", nil},
		{"a master is deleted and has failed", func(in *mcp.Snapshot) {
			for i := range 3 {
				done(&in.Nodes[i])
			}
			mcptest.Deleting(&in.Nodes[0])
			mcptest.Desired("M")(&in.Nodes[0])
			mcptest.State("Degraded")(&in.Nodes[0])
		}, "1 nodes of pool master are failing", nil},
		{"masters cannot be updated", func(in *mcp.Snapshot) {
			now := metav1.NewTime(mcptest.Epoch)
			in.Pools[0].DeletionTimestamp = &now
		}, "pool master cannot be updated: the pool is being deleted", nil},
		{"the arbiter is down", func(in *mcp.Snapshot) { mcptest.Cordoned(&in.Nodes[3]) }, "3 nodes of pool master are to be updated first", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := mcptest.Snapshot(mcptest.Pools(mcptest.Pool("master", "N"), mcptest.Pool("arbiter", "N", mcptest.AtMost(3))), mcptest.Master("m0"), mcptest.Master("m1"), mcptest.Master("m2"), arbiter("a0"))
			in.ControllerConfig = mcptest.Topology(mcp.TopologyHighlyAvailableArbiter)
			tt.change(&in)
			sel := mcp.Candidates(in, "arbiter")
			if tt.blocked != "" && (sel.Block.Kind != mcp.BlockArbiterWaits || sel.Block.Text != tt.blocked) {
				t.Errorf("block = %+v", sel.Block)
			}
			if tt.blocked == "" && (!cmp.Equal(sel.Nodes, []string{"a0"}) || sel.MaxUnavailable != 1) {
				t.Errorf("selection = %+v", sel)
			}
			checktest.Same(t, tt.master, mcp.Candidates(in, "master").Nodes)
		})
	}
	in := mcptest.Snapshot(mcptest.Pools(mcptest.Pool("master", "N")), mcptest.Master("m0"))
	in.ControllerConfig = mcptest.Topology(mcp.TopologyHighlyAvailableArbiter)
	sel := mcp.Candidates(in, "master")
	want := `arbiter pool "arbiter" not found in HighlyAvailableArbiterMode; cluster may be misconfigured`
	if sel.Err == nil || sel.Err.Error() != want {
		t.Errorf("err = %v", sel.Err)
	}
	// Who holds the capacity of the masters is the arbiter.
	in = mcptest.Snapshot(mcptest.Pools(mcptest.Pool("master", "N"), mcptest.Pool("arbiter", "N")), mcptest.Master("m0"), arbiter("a0", mcptest.Cordoned))
	in.ControllerConfig = mcptest.Topology(mcp.TopologyHighlyAvailableArbiter)
	v := mcp.NewState(in.Objects, in.Options).Explain("master", "m0")
	if v.Kind != "NoCapacity" || !cmp.Equal(v.Holders, []string{"a0"}) {
		t.Errorf("%+v", v)
	}
}

func TestExplain(t *testing.T) {
	blocked := func(kind mcp.BlockKind, change func(*mcfgv1.MachineConfigPool)) {
		t.Helper()
		in := mcptest.Snapshot(mcptest.Pools(mcptest.Pool("worker", "N", change)), mcptest.Worker("a"))
		s := mcp.NewState(in.Objects, in.Options)
		if sel := s.Candidates("worker"); sel.Block.Kind != kind || sel.Block.Text == "" || len(sel.Nodes) > 0 {
			t.Errorf("%s: %+v", kind, sel)
		}
		if v := s.Explain("worker", "a"); v.Kind != "PoolBlocked" || v.Block.Kind != kind || v.Text == "" {
			t.Errorf("%s: %+v", kind, v)
		}
	}
	blocked(mcp.BlockPaused, mcptest.Paused)
	blocked(mcp.BlockDeleted, func(p *mcfgv1.MachineConfigPool) { now := metav1.NewTime(mcptest.Epoch); p.DeletionTimestamp = &now })
	blocked(mcp.BlockUnconfigured, func(p *mcfgv1.MachineConfigPool) { p.Spec.Configuration.Name = "" })
	blocked(mcp.BlockSelectingAll, func(p *mcfgv1.MachineConfigPool) { p.Spec.NodeSelector = &metav1.LabelSelector{} })
	blocked(mcp.BlockInvalidSelector, invalid)
	blocked(mcp.BlockInvalidMaxUnavailable, mcptest.MaxUnavailable(intstr.FromString("3")))
	blocked(mcp.BlockInvalidMaxUnavailable, mcptest.AtMost(-1))

	in := mcptest.Snapshot(mcptest.Pools(mcptest.Pool("worker", "N", mcptest.AtMost(5)), mcptest.Pool("infra", "N"), mcptest.Pool("gpu", "N")),
		mcptest.Updated(mcptest.Worker("updated")),
		mcptest.Worker("fails", failing),
		mcptest.Worker("working", mcptest.Desired("N"), mcptest.State("Working")),
		mcptest.Worker("cordoned", mcptest.Cordoned),
		mcptest.Worker("stuck", mcptest.Desired("M"), mcptest.State("Degraded"), mcptest.Cordoned),
		mcptest.Worker("deleting", mcptest.Deleting),
		mcptest.Worker("next"), mcptest.Worker("waits"),
		mcptest.Node("twice", "infra", "O", mcptest.Label(mcp.LabelNodeRolePrefix+"gpu", "")),
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
	checktest.Same(t, want, got)
	if v := s.Explain("worker", "waits"); !cmp.Equal(v.Holders, []string{"cordoned", "fails", "stuck", "working", "next"}) {
		t.Errorf("holders = %v", v.Holders)
	}
	if v := s.Explain("worker", "cordoned"); v.Text != "node cordoned is reporting Unschedulable" {
		t.Errorf("%+v", v)
	}
	if v := s.Explain("infra", "twice"); v.Kind != "NotInPool" || !strings.HasPrefix(v.Text, "node twice belongs to 2 custom roles, cannot proceed with this Node") {
		t.Errorf("%+v", v)
	}
	if v := s.Explain("worker", "nobody"); v.Kind != "NotInPool" {
		t.Errorf("%+v", v)
	}
	var c *mcp.PoolConflictError
	if _, a, ok := s.Node("twice"); !ok || !errors.As(a.Err, &c) || c.Node != "twice" {
		t.Errorf("%+v", a)
	}
}

func TestTaintsAndTopology(t *testing.T) {
	both := mcptest.Annotate(mcp.AnnotationCurrentImage, "i", mcp.AnnotationDesiredImage, "i")
	nodes := []corev1.Node{
		mcptest.Worker("waits"), mcptest.Worker("waits-has", mcptest.Taint), mcptest.Worker("failing", mcptest.Desired("M"), mcptest.State("Degraded")), mcptest.Worker("down", mcptest.Cordoned), mcptest.Worker("new", none),
		mcptest.Worker("targeted-has", mcptest.Desired("N"), mcptest.Taint), mcptest.Updated(mcptest.Worker("done")), mcptest.Updated(mcptest.Worker("leaves-layering", both)),
	}
	in := mcptest.Snapshot(mcptest.Pools(mcptest.Pool("worker", "N")), nodes...)
	in.ControllerConfig = mcptest.Topology("HighlyAvailable")
	s := mcp.NewState(in.Objects, in.Options)
	want := []mcp.TaintChange{{"down", true}, {"failing", true}, {"leaves-layering", true}, {"new", true}, {"targeted-has", false}, {"waits", true}}
	checktest.Same(t, want, s.Taints("worker"))
	right := mcptest.Updated(mcptest.Worker("done", mcptest.Annotate(mcp.AnnotationControlPlaneTopology, "HighlyAvailable")))
	s.Apply(mcp.Change{Object: &right})
	names, top := s.Topology("worker")
	if len(names) != len(nodes)-1 || top != "HighlyAvailable" {
		t.Errorf("%v %s", names, top)
	}
	p := mcptest.Pool("worker", "N", mcptest.Paused)
	s.Apply(mcp.Change{Object: &p})
	names, _ = s.Topology("worker")
	if taints := s.Taints("worker"); len(taints) > 0 || len(names) > 0 {
		t.Errorf("a paused pool: %v, %v", taints, names)
	}
}

func TestApplyQueues(t *testing.T) {
	ps := mcptest.Pools(mcptest.Pool("master", "N"), mcptest.Pool("worker", "N"), mcptest.Pool("infra", "N"), mcptest.Pool("gpu", "N"))
	role := func(r string) string { return mcp.LabelNodeRolePrefix + r }
	for _, tt := range []struct {
		name          string
		before, after corev1.Node
		want          []string
	}{
		{"nothing that matters", mcptest.Worker("a"), mcptest.Worker("a", mcptest.Annotate("x", "y"), mcptest.Condition(corev1.NodeMemoryPressure, isTrue)), nil},
		{"readiness", mcptest.Worker("a"), mcptest.Worker("a", mcptest.Condition(corev1.NodeReady, isFalse)), []string{"worker"}},
		{"config", mcptest.Worker("a"), mcptest.Worker("a", mcptest.Desired("N")), []string{"worker"}},
		{"state", mcptest.Worker("a"), mcptest.Worker("a", mcptest.State("Working")), []string{"worker"}},
		{"reason", mcptest.Worker("a"), mcptest.Worker("a", mcptest.Reason("r")), []string{"worker"}},
		{"empty image annotation", mcptest.Worker("a"), mcptest.Worker("a", mcptest.Annotate(mcp.AnnotationDesiredImage, "")), []string{"worker"}},
		{"a drain request is not for pools", mcptest.Worker("a"), mcptest.Worker("a", mcptest.Annotate(mcp.AnnotationDesiredDrain, "drain-N")), nil},
		{"label", mcptest.Worker("a"), mcptest.Worker("a", mcptest.Label("x", "y")), []string{"worker"}},
		{"taint", mcptest.Worker("a"), mcptest.Worker("a", mcptest.Taint), []string{"worker"}},
		{"moved", mcptest.Worker("a"), mcptest.Worker("a", mcptest.Label(role("infra"), "")), []string{"infra", "worker"}},
		{"unmanaged", mcptest.Worker("a", none), mcptest.Worker("a", none, mcptest.Cordoned), nil},
		{"lost its pool", mcptest.Worker("a"), mcptest.Worker("a", mcptest.Unlabel(role("worker"))), []string{"worker"}},
		{"conflict comes", mcptest.Worker("a", mcptest.Label(role("infra"), "")), mcptest.Worker("a", mcptest.Label(role("infra"), ""), mcptest.Label(role("gpu"), "")), []string{"infra", "worker"}},
		{"conflict goes", mcptest.Worker("a", mcptest.Label(role("infra"), ""), mcptest.Label(role("gpu"), "")), mcptest.Worker("a"), []string{"gpu", "infra", "worker"}},
	} {
		in := mcptest.Snapshot(ps, tt.before)
		s := mcp.NewState(in.Objects, in.Options)
		if diff := cmp.Diff(tt.want, s.Apply(mcp.Change{Object: &tt.after})); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// Under Compat a node that gets two custom roles leaves the count of its old pool standing
// until that is synced for another reason, as the controller does.
func TestCompatLeavesCounts(t *testing.T) {
	ps := mcptest.Pools(mcptest.Pool("worker", "N"), mcptest.Pool("infra", "N"), mcptest.Pool("gpu", "N"))
	in := mcptest.Snapshot(ps, mcptest.Node("a", "infra", "O"))
	in.Options.Compat = true
	s := mcp.NewState(in.Objects, in.Options)
	two := mcptest.Node("a", "infra", "O", mcptest.Label(mcp.LabelNodeRolePrefix+"gpu", ""))
	if got := s.Apply(mcp.Change{Object: &two}); got != nil {
		t.Error(got)
	}
}
