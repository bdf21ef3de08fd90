package rollout_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// What is estimated when the pools have got their new configs is what simulated
// rollouts then take.
func TestEstimateHolds(t *testing.T) {
	worlds := 15
	if israce.Enabled || testing.Short() {
		worlds = 2
	}
	for i := range worlds {
		r := rand.New(rand.NewPCG(uint64(i), 1))
		upTo := func(n int) int { return 1 + r.IntN(n) }
		nodes := 1 + upTo(6)
		limit, budget := intstr.FromInt32(int32(upTo(min(3, nodes-1)))), intstr.FromInt32(int32(upTo(3))) // pods that leave have somewhere to go
		timing := simulation.Timing{Apply: seconds(20 + upTo(300)), Reboot: seconds(30 + upTo(900)), PodStop: seconds(upTo(30)), PodStart: seconds(upTo(60))}
		workload := simulation.Workload{Name: "web", Replicas: upTo(6), MaxUnavailable: &budget}
		clock := reconcile.NewClock(mcptest.Epoch)
		c, err := simulation.New(simulation.Options{Clock: clock, Release: machineConfig("4.20.3"), Timing: timing,
			Pools: []simulation.Pool{{Nodes: nodes, MaxUnavailable: &limit}}, Workloads: []simulation.Workload{workload}})
		if err != nil {
			t.Fatal(err)
		}
		e, took := updateNodes(t, c, clock, timing)
		name := fmt.Sprintf("%d workers, %s at a time, %d pods with a budget of %s, %+v", nodes, limit.String(), workload.Replicas, budget.String(), timing)
		wave := timing.PodStop + timing.PodStart // pods that moved to a node that is drained later may take one more
		if e.Max == nil || took < e.Min-look || took > *e.Max+look+wave {
			t.Errorf("%s took %s; the estimate was %s", name, took, e)
		}
		if off := (took - e.Expected).Abs(); off > took/10+look {
			t.Errorf("%s took %s; expected were %s", name, took, e.Expected)
		}
	}
}

// look is between two looks at a rollout; its end is seen so late.
const look = 15 * time.Second

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// updateNodes gives a simulated cluster another config, and returns what is
// estimated as soon as its pools have it, and how long it takes.
func updateNodes(t *testing.T, c *simulation.Cluster, clock *reconcile.Clock, timing simulation.Timing) (mcp.Estimate, time.Duration) {
	t.Helper()
	r, err := rollout.New(rollout.Options{Mode: rollout.Drive})
	if err != nil {
		t.Fatal(err)
	}
	v := reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: c, Clock: clock, Seed: 1}, c.Process(), r.Process())
	defer v.Close()
	runUntil := func(every time.Duration, done func() bool) {
		for end := v.Now().Add(24 * time.Hour); !done(); {
			if err := v.RunUntil(v.Now().Add(every)); err != nil {
				t.Fatal(err)
			}
			if v.Now().After(end) {
				t.Fatal("it does not end")
			}
		}
	}
	if err := v.RunUntil(mcptest.Epoch.Add(10 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	to := machineConfig("4.21.1")
	c.Expect(to)
	if _, err := c.Apply(context.Background(), to.Operators[0].Workloads[0], clusterapi.ApplyOptions{FieldManager: clusterapi.ManagerPayload}); err != nil {
		t.Fatal(err)
	}
	runUntil(time.Second, func() bool { return begun(t, c) })
	start := v.Now()
	e := mcp.EstimateUpdate(estimateInput(t, c, timing, start))
	runUntil(look, func() bool { return updated(t, c) })
	return e, v.Now().Sub(start)
}

// begun reports whether all pools have their new configs.
func begun(t *testing.T, c clusterapi.Reader) bool {
	for _, p := range list[mcfgv1.MachineConfigPool](t, c) {
		if p.Spec.Configuration.Name == p.Status.Configuration.Name {
			return false
		}
	}
	return true
}

func updated(t *testing.T, c clusterapi.Reader) bool {
	for _, p := range list[mcfgv1.MachineConfigPool](t, c) {
		if p.Spec.Configuration.Name != p.Status.Configuration.Name || mcptest.ConditionOf(p.Status, mcfgv1.MachineConfigPoolUpdated).Status != corev1.ConditionTrue {
			return false
		}
	}
	return true
}

func list[T any](t *testing.T, c clusterapi.Reader) []T {
	all, err := clusterapi.List[T](context.Background(), c, clusterapi.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// estimateInput is what is known of a simulated cluster.
func estimateInput(t *testing.T, c clusterapi.Reader, timing simulation.Timing, now time.Time) mcp.EstimateInput {
	objs := mcp.Objects{Pools: list[mcfgv1.MachineConfigPool](t, c), Nodes: list[corev1.Node](t, c), MachineConfigs: list[mcfgv1.MachineConfig](t, c),
		ControllerConfig: &list[mcfgv1.ControllerConfig](t, c)[0], Pods: list[corev1.Pod](t, c)}
	state := mcp.NewState(objs, mcp.Options{})
	drains := mcp.DrainObjects{Topology: state.ControlPlaneTopology(), Now: now, Pods: pointers(objs.Pods), Nodes: pointers(objs.Nodes), Budgets: pointers(list[policyv1.PodDisruptionBudget](t, c))}
	view := mcp.NewDrainView(drains)
	replaced := timing.PodStop + timing.PodStart
	in := mcp.EstimateInput{ClusterVersionDone: true, Steps: mcp.StepTimes{
		Apply: mcp.Exactly(timing.Apply), Reboot: mcp.Exactly(timing.Reboot), Ready: mcp.Span{Expected: -1},
		Wave: mcp.Span{Min: timing.PodStop, Expected: replaced, Max: replaced + 30*time.Second},
	}}
	for _, pool := range state.Pools() {
		in.Pools = append(in.Pools, state.EstimatePool(pool, mcp.EstimateView{Drains: &view, Now: now}))
	}
	return in
}

func pointers[T any](all []T) []*T {
	out := make([]*T, len(all))
	for i := range all {
		out[i] = &all[i]
	}
	return out
}
