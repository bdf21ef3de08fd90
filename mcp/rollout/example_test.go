package rollout_test

import (
	"context"
	"fmt"
	"log"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// A rollout follows the two nodes of a simulated cluster in virtual time. With
// a real cluster, Run takes the place of the driver.
func Example() {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := reconcile.NewClock(start)
	cluster, err := simulation.New(simulation.Options{Clock: clock, Release: simulation.Release{Version: "4.20.3"}, Pools: []simulation.Pool{{Name: "worker", Nodes: 2}}})
	if err != nil {
		log.Fatal(err)
	}
	nodes, err := rollout.New(rollout.Options{Mode: rollout.Drive, Observe: func(e clusterapi.Event) {
		if e.Type == rollout.EventNodeDone || e.Type == rollout.EventPoolDone {
			fmt.Println(e.Message)
		}
	}})
	if err != nil {
		log.Fatal(err)
	}
	run := reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: cluster, Clock: clock, Seed: 1}, cluster.Process(), nodes.Process())
	defer run.Close()
	if err := run.RunUntil(start.Add(time.Minute)); err != nil {
		log.Fatal(err)
	}

	// An administrator adds a MachineConfig, and the machine-config operator
	// renders a new configuration for the pool.
	audit := &mcfgv1.MachineConfig{}
	audit.Name, audit.Labels = "50-worker-audit", map[string]string{"machineconfiguration.openshift.io/role": "worker"}
	audit.Spec.KernelArguments = []string{"audit=1"}
	if _, err := clusterapi.Create(context.Background(), cluster, audit, clusterapi.CreateOptions{}); err != nil {
		log.Fatal(err)
	}
	if err := run.RunUntil(start.Add(time.Hour)); err != nil {
		log.Fatal(err)
	}
	// Output:
	// node worker-0 has reached MachineConfig rendered-worker-bbf595119af396bd8a0b1aa79c522c0b
	// node worker-1 has reached MachineConfig rendered-worker-bbf595119af396bd8a0b1aa79c522c0b
	// Pool worker has completed update to MachineConfig rendered-worker-bbf595119af396bd8a0b1aa79c522c0b
}
