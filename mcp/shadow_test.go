package mcp_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
)

// follower feeds a shadow with what another controller does.
type follower struct {
	*mcp.Shadow
	now   time.Time
	found []string
}

// follow begins with three workers on O, of different ages, whose pool wants N, with
// taints and status as they should be.
func follow(o mcp.ShadowOptions, limit int, more ...corev1.Node) *follower {
	pool := mcptest.Pool("worker", "N", mcptest.AtMost(limit))
	objs := mcp.Objects{Pools: mcptest.Pools(pool), ControllerConfig: mcptest.Topology(""), Nodes: append([]corev1.Node{
		mcptest.Worker("a", mcptest.Taint, mcptest.Age(3)), mcptest.Worker("b", mcptest.Taint, mcptest.Age(2)), mcptest.Worker("c", mcptest.Taint, mcptest.Age(1))}, more...)}
	objs.Pools[0].Status = mcp.PoolStatus(mcp.Snapshot{Objects: objs}, "worker")
	return &follower{Shadow: mcp.NewShadow(mcp.NewState(objs, mcp.Options{}), o, mcptest.Epoch), now: mcptest.Epoch}
}

func (f *follower) note(found []mcp.Difference) {
	for _, d := range found {
		f.found = append(f.found, fmt.Sprintf("%v %s %s%s", d.Time.Sub(mcptest.Epoch), d.Kind, d.Pool+"/", d.Node))
	}
}

// wait lets time pass, and checks when the shadow asks for it.
func (f *follower) wait(d time.Duration) {
	for end := f.now.Add(d); ; {
		if next := f.Next(); next.IsZero() || next.After(end) {
			f.now = end
			return
		} else if next.After(f.now) {
			f.now = next
		}
		f.note(f.Check(f.now))
	}
}

func (f *follower) see(object any) {
	_, found := f.Apply(f.now, mcp.Change{Object: object})
	f.note(found)
}

func (f *follower) node(name string, age int, changes ...mcptest.Change) {
	n := mcptest.Worker(name, append([]mcptest.Change{mcptest.Age(age)}, changes...)...)
	f.see(&n)
}

// status is the pool as a controller writes it that goes by the rules.
func (f *follower) status(change ...func(*mcfgv1.MachineConfigPool)) {
	p := f.State().Pool("worker").DeepCopy()
	p.Status = f.State().Status("worker", p.Status, f.now)
	for _, c := range change {
		c(p)
	}
	f.see(p)
}

func TestShadow(t *testing.T) {
	targeted := mcptest.Desired("N")
	down := func(n *corev1.Node) { targeted(n); mcptest.State(mcp.StateWorking)(n) }
	for _, c := range []struct {
		name string
		o    mcp.ShadowOptions
		act  func(*follower)
		want []string
	}{
		{"by the rules", mcp.ShadowOptions{}, func(f *follower) {
			f.wait(5 * time.Second)
			f.node("a", 3, targeted)
			f.status()
			f.wait(3 * time.Minute)
		}, nil},
		{"the second first", mcp.ShadowOptions{}, func(f *follower) {
			f.node("b", 2, targeted)
			f.status()
			f.wait(3 * time.Minute)
		}, []string{"0s NotSelected worker/b"}},
		{"two at once", mcp.ShadowOptions{}, func(f *follower) {
			f.node("a", 3, targeted)
			f.node("b", 2, targeted)
			f.status()
			f.wait(3 * time.Minute)
		}, []string{"0s NotSelected worker/b"}},
		{"decided before a node was seen to fail", mcp.ShadowOptions{}, func(f *follower) {
			f.wait(5 * time.Second)
			f.node("c", 1, mcptest.Taint, mcptest.Condition(corev1.NodeReady, corev1.ConditionUnknown))
			f.node("a", 3, targeted)
			f.status()
			f.wait(3 * time.Minute)
		}, nil},
		{"decided before a pool was paused", mcp.ShadowOptions{}, func(f *follower) {
			f.status(mcptest.Paused)
			f.node("a", 3, targeted)
			f.status(mcptest.Paused)
			f.wait(3 * time.Minute)
		}, nil},
		{"paused for long", mcp.ShadowOptions{}, func(f *follower) {
			f.status(mcptest.Paused)
			f.status(mcptest.Paused)
			f.wait(2 * time.Minute)
			f.node("a", 3, targeted)
			f.status(mcptest.Paused)
			f.wait(3 * time.Minute)
		}, []string{"2m0s NotSelected worker/a"}},
		{"for a reason that is seen later", mcp.ShadowOptions{}, func(f *follower) {
			f.node("a", 3, targeted)
			f.status()
			f.node("b", 2, targeted) // a has left
			f.wait(5 * time.Second)
			_, found := f.Apply(f.now, mcp.Change{Object: &corev1.Node{ObjectMeta: mcptest.Worker("a").ObjectMeta}, Deleted: true})
			f.note(found)
			f.status()
			f.wait(3 * time.Minute)
		}, nil},
		{"that is seen too late", mcp.ShadowOptions{Skew: -1}, func(f *follower) {
			f.node("a", 3, targeted)
			f.status()
			f.node("b", 2, targeted)
			f.wait(5 * time.Second)
			_, found := f.Apply(f.now, mcp.Change{Object: &corev1.Node{ObjectMeta: mcptest.Worker("a").ObjectMeta}, Deleted: true})
			f.note(found)
			f.status()
			f.wait(3 * time.Minute)
		}, []string{"0s NotSelected worker/b"}},
		{"another config", mcp.ShadowOptions{}, func(f *follower) {
			f.node("a", 3, mcptest.Desired("M"), mcptest.Taint)
			f.status()
			f.wait(3 * time.Minute)
		}, []string{"0s Target worker/a"}},
		{"nobody", mcp.ShadowOptions{}, func(f *follower) { f.wait(5 * time.Minute) }, []string{"1m0s Idle worker/a"}},
		{"a wrong count", mcp.ShadowOptions{}, func(f *follower) {
			f.node("a", 3, targeted)
			f.status(func(p *mcfgv1.MachineConfigPool) { p.Status.ReadyMachineCount = 3 })
			f.wait(3 * time.Minute)
		}, []string{"0s Status worker/"}},
		{"a status that is not kept up", mcp.ShadowOptions{}, func(f *follower) {
			f.node("a", 3, down)
			f.wait(5 * time.Minute)
		}, []string{"1m0s Status worker/"}},
		{"a taint too many", mcp.ShadowOptions{}, func(f *follower) {
			f.node("a", 3, targeted, mcptest.Taint)
			f.status()
			f.wait(4 * time.Minute)
		}, []string{"1m0s Taint worker/a"}},
		{"a new node brings its first target", mcp.ShadowOptions{}, func(f *follower) {
			f.node("a", 3, targeted)
			f.node("d", 0, mcptest.Without(mcp.AnnotationCurrentConfig, mcp.AnnotationDesiredConfig, mcp.AnnotationState), mcptest.Taint)
			f.node("d", 0, mcptest.Taint)
			f.status()
			f.wait(3 * time.Minute)
		}, nil},
		{"a pool that goes", mcp.ShadowOptions{}, func(f *follower) {
			_, found := f.Apply(f.now, mcp.Change{Object: f.State().Pool("worker"), Deleted: true})
			f.note(found)
			f.wait(time.Hour)
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := follow(c.o, 1)
			c.act(f)
			if diff := cmp.Diff(c.want, f.found); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Nodes of one age go in any order, but each unit is given once.
func TestShadowTies(t *testing.T) {
	var twins []corev1.Node
	for _, name := range []string{"x", "y", "z"} {
		twins = append(twins, mcptest.Worker(name, mcptest.Taint, mcptest.Age(9)))
	}
	f := follow(mcp.ShadowOptions{}, 2, twins...)
	f.node("z", 9, mcptest.Desired("N"))
	f.node("y", 9, mcptest.Desired("N"))
	f.status()
	f.wait(30 * time.Second)
	if len(f.found) > 0 {
		t.Error(f.found)
	}
	f.node("x", 9, mcptest.Desired("N"))
	f.status()
	f.wait(3 * time.Minute)
	if diff := cmp.Diff([]string{"30s NotSelected worker/x"}, f.found); diff != "" {
		t.Error(diff)
	}
}

// A difference says what each decided, and why.
func TestShadowTells(t *testing.T) {
	f := follow(mcp.ShadowOptions{Grace: -1, Skew: -1}, 1)
	b := mcptest.Worker("b", mcptest.Age(2), mcptest.Desired("N"))
	_, found := f.Apply(f.now, mcp.Change{Object: &b})
	want := []mcp.Difference{{Kind: "NotSelected", Time: mcptest.Epoch, Pool: "worker", Node: "b",
		Theirs: "targeted to MachineConfig N", Ours: "NoCapacity: maxUnavailable is 1, taken by a",
		Verdict: mcp.Verdict{Kind: "NoCapacity", Text: "maxUnavailable is 1, taken by a", Holders: []string{"a"}}}}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
	f.status(func(p *mcfgv1.MachineConfigPool) { p.Status.UpdatedMachineCount = 7 })
	found = f.Check(f.now)
	if len(found) == 0 || found[0].Kind != "Status" || found[0].Theirs != "updatedMachineCount 7" || found[0].Ours != "updatedMachineCount 0" {
		t.Errorf("%+v", found)
	}
}

func BenchmarkShadowApply(b *testing.B) {
	for _, n := range sizes {
		objs := bigPool(n)
		h := mcp.NewShadow(mcp.NewState(objs, mcp.Options{}), mcp.ShadowOptions{}, mcptest.Epoch)
		nodes := make([]corev1.Node, 100)
		for i := range nodes {
			nodes[i] = objs.Nodes[i*n/100]
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				w := nodes[i%100]
				w.Spec.Unschedulable = i/100%2 == 0
				h.Apply(mcptest.Epoch.Add(time.Duration(i)*time.Second), mcp.Change{Object: &w})
			}
		})
	}
}
