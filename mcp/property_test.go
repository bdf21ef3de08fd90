package mcp_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/mcp"
)

// The generators draw from few values, so that objects often fit together.
var (
	poolNames  = []string{"master", "worker", "arbiter", "infra", "gpu"}
	configs    = []string{"O", "N", "M"}
	nodeStates = []string{"Done", "Done", "Done", "Working", "Degraded", "Unreconcilable", ""}
)

func genPool(t *rapid.T, name string) mcfgv1.MachineConfigPool {
	p := mcptest.Pool(name, rapid.SampledFrom(configs).Draw(t, "config"))
	p.Spec.Paused = rapid.IntRange(0, 5).Draw(t, "paused") == 0
	switch rapid.IntRange(0, 12).Draw(t, "oddity") {
	case 0:
		p.Spec.NodeSelector = nil
	case 1:
		p.Spec.NodeSelector = &metav1.LabelSelector{}
	case 2:
		p.Spec.Configuration.Name = ""
	case 3:
		invalid(&p)
	case 4:
		now := metav1.NewTime(mcptest.Epoch)
		p.DeletionTimestamp = &now
	}
	if v := rapid.SampledFrom([]string{"", "1", "2", "3", "50%", "-1", "x"}).Draw(t, "maxUnavailable"); v != "" {
		parsed := intstr.Parse(v)
		p.Spec.MaxUnavailable = &parsed
	}
	return p
}

func genNode(t *rapid.T, name string) corev1.Node {
	n := mcptest.Node(name, rapid.SampledFrom(poolNames).Draw(t, "role"), rapid.SampledFrom(configs).Draw(t, "current"))
	if rapid.IntRange(0, 3).Draw(t, "more") == 0 {
		n.Labels[mcp.LabelNodeRolePrefix+rapid.SampledFrom(poolNames).Draw(t, "role2")] = ""
	}
	if rapid.IntRange(0, 20).Draw(t, "windows") == 0 {
		n.Labels[mcp.LabelOS] = "windows"
	}
	if rapid.Bool().Draw(t, "retargeted") {
		mcptest.Desired(rapid.SampledFrom(configs).Draw(t, "desired"))(&n)
	}
	mcptest.State(rapid.SampledFrom(nodeStates).Draw(t, "state"))(&n)
	switch rapid.IntRange(0, 12).Draw(t, "condition") {
	case 0:
		mcptest.Cordoned(&n)
	case 1:
		mcptest.Condition(corev1.NodeReady, isFalse)(&n)
	case 2:
		mcptest.Deleting(&n)
	case 3:
		none(&n)
	case 4:
		mcptest.Taint(&n)
	case 5:
		mcptest.Annotate(mcp.AnnotationDesiredImage, "i")(&n)
	case 6:
		mcptest.Annotate("machineconfiguration.openshift.io/firstPivotConfig", rapid.SampledFrom(configs).Draw(t, "pivot"))(&n)
	case 7:
		mcptest.Reason("bad N")(&n)
	}
	if rapid.Bool().Draw(t, "zoned") {
		mcptest.Zone(rapid.SampledFrom([]string{"", "z1", "z2"}).Draw(t, "zone"))(&n)
	}
	mcptest.Age(rapid.IntRange(0, 3).Draw(t, "age"))(&n)
	return n
}

func genMCN(t *rapid.T, name string) mcfgv1.MachineConfigNode {
	m := mcptest.Mcn(name)
	for _, c := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"Updated", "NodeDegraded"}), 0, 2, rapid.ID).Draw(t, "conditions") {
		m.Status.Conditions = append(m.Status.Conditions, mcptest.Says(c, "from the node"))
	}
	m.Status.ConfigVersion.Desired = rapid.SampledFrom(configs).Draw(t, "mcnDesired")
	return m
}

// world holds objects by name, so that changes can be applied one by one.
type world struct {
	pools   map[string]mcfgv1.MachineConfigPool
	nodes   map[string]corev1.Node
	mcns    map[string]mcfgv1.MachineConfigNode
	moscs   map[string]mcfgv1.MachineOSConfig
	mosbs   map[string]mcfgv1.MachineOSBuild
	configs map[string]mcfgv1.MachineConfig
	pods    map[string]corev1.Pod
	control *mcfgv1.ControllerConfig
}

func newWorld() *world {
	return &world{map[string]mcfgv1.MachineConfigPool{}, map[string]corev1.Node{}, map[string]mcfgv1.MachineConfigNode{},
		map[string]mcfgv1.MachineOSConfig{}, map[string]mcfgv1.MachineOSBuild{}, map[string]mcfgv1.MachineConfig{}, map[string]corev1.Pod{}, nil}
}

func values[T any](m map[string]T) []T {
	var out []T
	for _, k := range slices.Sorted(func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}) {
		out = append(out, m[k])
	}
	return out
}

func (w *world) objects() mcp.Objects {
	return mcp.Objects{Pools: values(w.pools), Nodes: values(w.nodes), MachineConfigNodes: values(w.mcns), MachineOSConfigs: values(w.moscs),
		MachineOSBuilds: values(w.mosbs), MachineConfigs: values(w.configs), Pods: values(w.pods), ControllerConfig: w.control}
}

// step draws one change, makes it and returns it.
func (w *world) step(t *rapid.T) mcp.Change {
	gone := rapid.IntRange(0, 4).Draw(t, "delete") == 0
	switch rapid.SampledFrom([]string{"node", "node", "node", "node", "pool", "mcn", "mosc", "mosb", "config", "pod", "control"}).Draw(t, "kind") {
	case "pool":
		p := genPool(t, rapid.SampledFrom(poolNames).Draw(t, "pool"))
		return put(w.pools, p.Name, p, gone)
	case "mcn":
		m := genMCN(t, fmt.Sprint("n", rapid.IntRange(0, 7).Draw(t, "node")))
		return put(w.mcns, m.Name, m, gone)
	case "mosc":
		c := mcfgv1.MachineOSConfig{}
		c.Name = "mosc"
		c.Spec.MachineConfigPool.Name = rapid.SampledFrom(poolNames).Draw(t, "pool")
		c.Status.CurrentImagePullSpec = mcfgv1.ImageDigestFormat(rapid.SampledFrom([]string{"", "i"}).Draw(t, "image"))
		if rapid.Bool().Draw(t, "annotated") {
			c.Annotations = map[string]string{mcp.AnnotationCurrentMachineOSBuild: "b0"}
		}
		return put(w.moscs, c.Name, c, gone)
	case "mosb":
		b := mcfgv1.MachineOSBuild{}
		b.Name = rapid.SampledFrom([]string{"b0", "b1"}).Draw(t, "build")
		b.Spec.MachineConfig.Name, b.Spec.MachineOSConfig.Name = rapid.SampledFrom(configs).Draw(t, "config"), "mosc"
		b.Status.DigestedImagePushSpec = "i"
		b.Status.Conditions = []metav1.Condition{mcptest.Says(rapid.SampledFrom([]string{"Succeeded", "Building", "Failed"}).Draw(t, "progress"), "")}
		return put(w.mosbs, b.Name, b, gone)
	case "config":
		c := mcfgv1.MachineConfig{}
		c.Name = rapid.SampledFrom(configs).Draw(t, "config")
		c.OwnerReferences = []metav1.OwnerReference{{Name: rapid.SampledFrom(poolNames).Draw(t, "owner")}}
		return put(w.configs, c.Name, c, gone)
	case "pod":
		p := mcptest.OperatorPod(rapid.SampledFrom([]string{"o", "p"}).Draw(t, "pod"), fmt.Sprint("n", rapid.IntRange(0, 7).Draw(t, "node")))
		return put(w.pods, p.Name, p, gone)
	case "control":
		c := mcptest.Topology(rapid.SampledFrom([]string{"HighlyAvailable", "HighlyAvailableArbiter"}).Draw(t, "topology"))
		w.control = c
		if gone {
			w.control = nil
		}
		return mcp.Change{Object: c, Deleted: gone}
	}
	n := genNode(t, fmt.Sprint("n", rapid.IntRange(0, 7).Draw(t, "node")))
	return put(w.nodes, n.Name, n, gone)
}

func put[T any](m map[string]T, name string, o T, gone bool) mcp.Change {
	if gone {
		delete(m, name)
	} else {
		m[name] = o
	}
	return mcp.Change{Object: &o, Deleted: gone}
}

func genOptions(t *rapid.T) mcp.Options {
	o := mcp.Options{Compat: rapid.IntRange(0, 3).Draw(t, "compat") == 0, ImageModeStatusReporting: rapid.Bool().Draw(t, "imageMode")}
	if rapid.Bool().Draw(t, "last") {
		o.Order.Last = []string{"n0", "n3"}
	}
	return o
}

// P4: a State that saw every change says what a new one says.
func TestP4Incremental(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, w := genOptions(t), newWorld()
		s := mcp.NewState(mcp.Objects{}, o)
		prev := mcfgv1.MachineConfigPoolStatus{}
		for range rapid.IntRange(1, 40).Draw(t, "changes") {
			s.Apply(w.step(t))
			fresh := mcp.NewState(w.objects(), o)
			if diff := cmp.Diff(fresh.Pools(), s.Pools()); diff != "" {
				t.Fatal(diff)
			}
			for _, p := range s.Pools() {
				same(t, p+" candidates", errText(fresh.Candidates(p)), errText(s.Candidates(p)))
				same(t, p+" status", fresh.Status(p, prev, mcptest.Epoch), s.Status(p, prev, mcptest.Epoch))
				same(t, p+" taints", fresh.Taints(p), s.Taints(p))
				same(t, p+" nodes", fresh.Nodes(p), s.Nodes(p))
				same(t, p+" verdicts", verdicts(fresh, p), verdicts(s, p))
				a, _ := fresh.Topology(p)
				b, _ := s.Topology(p)
				same(t, p+" topology", a, b)
			}
		}
	})
}

func same(t *rapid.T, what string, want, got any) {
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s: %s", what, diff)
	}
}

// errText makes selections comparable.
func errText(s mcp.Selection) mcp.Selection {
	if s.Err != nil {
		s.Warnings = append(s.Warnings, s.Err.Error())
		s.Err = nil
	}
	return s
}

func verdicts(s *mcp.State, pool string) []mcp.Verdict {
	var all []mcp.Verdict
	for _, v := range s.Explanations(pool) {
		all = append(all, v)
	}
	return all
}

// decided is a snapshot, by which options decisions are made, and the State.
type decided struct {
	o mcp.Options
	w *world
	s *mcp.State
}

// checkDecisions checks what holds of every decision on every snapshot.
func checkDecisions(t *testing.T, check func(*rapid.T, decided)) {
	rapid.Check(t, func(t *rapid.T) {
		o, w := genOptions(t), newWorld()
		for range rapid.IntRange(5, 40).Draw(t, "changes") {
			w.step(t)
		}
		check(t, decided{o, w, mcp.NewState(w.objects(), o)})
	})
}

// taken are the nodes of a pool that are unavailable, and those that take a unit.
func (d decided) taken(pool string) (unavailable, taken sets.Set[string]) {
	unavailable, taken = sets.New[string](), sets.New[string]()
	for _, name := range d.s.Nodes(pool) {
		n, _, _ := d.s.Node(name)
		candidate := n.Candidate(d.s.Goal(pool)) && (d.o.Compat || !n.Deleting)
		if n.Unavailable() {
			unavailable.Insert(name)
		}
		if n.Unavailable() || (!candidate && n.MCDFailing()) {
			taken.Insert(name)
		}
	}
	return unavailable, taken
}

// checkBudget is P1 for one pool.
func (d decided) checkBudget(t *rapid.T, pool string) {
	sel := d.s.Candidates(pool)
	unavailable, taken := d.taken(pool)
	for _, set := range []sets.Set[string]{unavailable, taken} {
		if set.Union(sets.New(sel.Nodes...)).Len() > max(sel.MaxUnavailable, set.Len()) {
			t.Fatalf("%s: %d taken, %v selected, maxUnavailable %d", pool, set.Len(), sel.Nodes, sel.MaxUnavailable)
		}
	}
}

// P1: what is selected never makes more unavailable than allowed.
func TestP1MaxUnavailable(t *testing.T) {
	checkDecisions(t, func(t *rapid.T, d decided) {
		for _, p := range d.s.Pools() {
			d.checkBudget(t, p)
		}
	})
}

// P3: a node counts in one pool or in none.
func TestP3CountedOnce(t *testing.T) {
	checkDecisions(t, func(t *rapid.T, d decided) {
		counted := map[string]string{}
		for _, p := range d.s.Pools() {
			for _, name := range d.s.Nodes(p) {
				if other, twice := counted[name]; twice {
					t.Fatalf("node %s counts in %s and %s", name, other, p)
				}
				counted[name] = p
			}
		}
	})
}

// P7: the order of the input does not matter.
func TestP7Order(t *testing.T) {
	checkDecisions(t, func(t *rapid.T, d decided) {
		objects := d.w.objects()
		slices.Reverse(objects.Pools)
		slices.Reverse(objects.Nodes)
		slices.Reverse(objects.MachineOSBuilds)
		other := mcp.NewState(objects, d.o)
		for _, p := range d.s.Pools() {
			same(t, p, errText(d.s.Candidates(p)), errText(other.Candidates(p)))
		}
	})
}

// P8: a status that was written is written again as it is.
func TestP8StatusAgain(t *testing.T) {
	checkDecisions(t, func(t *rapid.T, d decided) {
		if d.o.Compat {
			return
		}
		for _, p := range d.s.Pools() {
			st := d.s.Status(p, mcfgv1.MachineConfigPoolStatus{}, mcptest.Epoch)
			same(t, p+" status again", st, d.s.Status(p, st, mcptest.Epoch.Add(time.Hour)))
		}
	})
}

// P14: P1 of the control plane, and no master and arbiter are taken down together.
func TestP14ControlPlane(t *testing.T) {
	checkDecisions(t, func(t *rapid.T, d decided) {
		down := map[string]bool{}
		for _, p := range []string{mcp.PoolMaster, mcp.PoolArbiter} {
			if d.s.Pool(p) == nil {
				continue
			}
			d.checkBudget(t, p)
			sel := d.s.Candidates(p)
			unavailable, _ := d.taken(p)
			if len(sel.Nodes) > 0 {
				down[p] = true
			}
			other := map[string]string{mcp.PoolMaster: mcp.PoolArbiter, mcp.PoolArbiter: mcp.PoolMaster}[p]
			if isDown, _ := d.taken(other); d.w.arbiter() && len(sel.Nodes) > 0 && isDown.Len() > 0 && d.s.Pool(other) != nil && !d.o.Compat {
				t.Fatalf("%s: %v selected while %v of %s are down, and %v of it", p, sel.Nodes, isDown, other, unavailable)
			}
		}
		if d.w.arbiter() && down[mcp.PoolMaster] && down[mcp.PoolArbiter] && !d.o.Compat {
			t.Fatal("a master and the arbiter are selected together")
		}
	})
}

// arbiter says that the cluster has an arbiter.
func (w *world) arbiter() bool {
	return w.control != nil && string(w.control.Spec.Infra.Status.ControlPlaneTopology) == mcp.TopologyHighlyAvailableArbiter
}
