package action_test

import (
	"context"
	"fmt"
	"log"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/internal/action"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// firmware is an action that takes two minutes.
type firmware struct{}

func (firmware) Name() string { return "firmware" }
func (firmware) Step(_ context.Context, n *corev1.Node, progress string) (action.Step, error) {
	if progress == "" {
		fmt.Println("    flashing", n.Name)
		return action.Step{Progress: "flashing", After: 2 * time.Minute, Waiting: "its firmware"}, nil
	}
	return action.Step{Done: true}, nil
}

// A plan flashes the firmware of a node. In virtual time; with a real cluster, the
// runner's Run takes the place of the driver.
func Example() {
	clock := reconcile.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	cluster := memory.NewOpenShift(memory.Options{Clock: clock})
	n := &corev1.Node{}
	n.Name = "worker-0"
	if _, err := clusterapi.Create(context.Background(), cluster, n, clusterapi.CreateOptions{}); err != nil {
		log.Fatal(err)
	}
	node := plan.Args{Node: n.Name}
	runner, err := plan.New(plan.Options{
		Plan: plan.Plan{Version: plan.Format, ID: "firmware", Kind: "Custom", Steps: []plan.Step{
			{ID: "cordon", Kind: plan.Cordon, Args: node},
			{ID: "drain", Kind: plan.Drain, Args: node},
			{ID: "flash", Kind: plan.Hook, Args: plan.Args{Node: n.Name, Action: "flash"}},
			{ID: "uncordon", Kind: plan.Uncordon, Args: node},
		}},
		Actions: map[string]plan.Action{"flash": action.New(firmware{})},
		Observe: func(e clusterapi.Event) { fmt.Println(e.Message) },
	})
	if err != nil {
		log.Fatal(err)
	}
	v := reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: cluster, Clock: clock, Seed: 1}, runner.Process())
	defer v.Close()
	if err := v.RunUntil(v.Now().Add(time.Hour)); err != nil {
		log.Fatal(err)
	}
	// Output:
	// step cordon: cordon node worker-0
	// step cordon is done
	// step drain: drain node worker-0
	// step drain is done
	// step flash: call flash for node worker-0
	//     flashing worker-0
	// step flash waits: node worker-0 waits for its firmware
	// step flash is done
	// step uncordon: uncordon node worker-0, if this plan cordoned it
	// step uncordon is done
	// plan firmware is Finished
}
