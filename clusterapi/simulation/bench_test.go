package simulation_test

import (
	"fmt"
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

func BenchmarkNew(b *testing.B) {
	for _, nodes := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := simulation.New(simulation.Options{Release: simulation.Release{Version: "4.20.3"},
					Pools: []simulation.Pool{{Nodes: nodes}}})
				checktest.OK(b, err)
			}
		})
	}
}

func BenchmarkApplied(b *testing.B) {
	want := operatorDeployment("dns", "4.20.3")
	stored := want.DeepCopy()
	b.ReportAllocs()
	for b.Loop() {
		if !simulation.Applied(stored, want) {
			b.Fatal("not applied")
		}
	}
}

// BenchmarkUpdate is the update of a cluster's nodes, from the machine-config
// operator's workload to the last node, with the library's machine-config
// controller alongside the simulation. Workloads have budgets of one pod.
func BenchmarkUpdate(b *testing.B) {
	for _, size := range []struct{ nodes, pods int }{{30, 0}, {30, 180}, {2000, 0}, {2000, 2000}, {10000, 0}} {
		b.Run(fmt.Sprintf("nodes=%d/pods=%d", size.nodes, size.pods), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				changes := updateNodes(b, size.nodes, size.pods)
				b.ReportMetric(float64(changes), "changes/op")
			}
		})
	}
}

// updateNodes returns how often an object changed.
func updateNodes(b *testing.B, nodes, pods int) (changes int) {
	one, share := intstr.FromInt32(1), intstr.FromString("10%")
	o := simulation.Options{Release: release("4.20.3", "machine-config"), Pools: []simulation.Pool{{Nodes: nodes, MaxUnavailable: &share}}}
	for i := range pods / 6 {
		o.Workloads = append(o.Workloads, simulation.Workload{Namespace: fmt.Sprintf("apps-%d", i%10), Name: fmt.Sprintf("app-%d", i), Replicas: 6, MaxUnavailable: &one})
	}
	c := start(b, o)
	rolling := checktest.Get(rollout.New(rollout.Options{API: c, Mode: rollout.Drive}))(b)
	c.Add(rolling.Process())
	all := c.Follow()
	defer all.Close()
	to := release("4.21.1", "machine-config")
	c.Expect(to)
	c.pass(time.Minute)
	if _, err := c.Apply(b.Context(), to.Operators[0].Workloads[0], clusterapi.ApplyOptions{FieldManager: clusterapi.ManagerPayload}); err != nil {
		b.Fatal(err)
	}
	c.pass(10 * time.Minute)
	done := func() bool {
		for _, name := range []string{"master", "worker"} {
			p, err := clusterapi.Read[mcfgv1.MachineConfigPool](b.Context(), c, clusterapi.Key("", name))
			if err != nil || p.Status.UpdatedMachineCount != p.Status.MachineCount || p.Status.Configuration.Name != p.Spec.Configuration.Name {
				return false
			}
		}
		return true
	}
	for limit := 0; !done(); limit++ {
		if limit > 300 {
			b.Fatal("the nodes were not updated within 50 hours")
		}
		c.pass(10 * time.Minute)
	}
	for _, ok := all.Next(); ok; _, ok = all.Next() {
		changes++
	}
	return changes
}
