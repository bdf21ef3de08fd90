package nodeaction_test

import (
	"context"
	"fmt"
	"log"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
	"github.com/clusterupdate/clusterupdate/mcp/rollout/nodeaction"
)

// firmware is an action that takes two minutes.
type firmware struct{}

func (firmware) Name() string                                  { return "firmware" }
func (firmware) Disruption(*corev1.Node) nodeaction.Disruption { return nodeaction.Drain }
func (firmware) Step(_ context.Context, n *corev1.Node, progress string) (nodeaction.Step, error) {
	if progress == "" {
		fmt.Println("    flashing", n.Name)
		return nodeaction.Step{Progress: "flashing", After: 2 * time.Minute, Waiting: "its firmware"}, nil
	}
	return nodeaction.Step{Done: true}, nil
}

// A run flashes the firmware of two nodes, with a hook before each is put back. In
// virtual time; with a real cluster, Run takes the place of the driver.
func Example() {
	clock := reconcile.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	cluster := memory.NewOpenShift(memory.Options{Clock: clock})
	for _, name := range []string{"worker-0", "worker-1"} {
		n := &corev1.Node{}
		n.Name = name
		if _, err := clusterapi.Create(context.Background(), cluster, n, clusterapi.CreateOptions{}); err != nil {
			log.Fatal(err)
		}
	}
	run, err := nodeaction.New(nodeaction.Options{
		ID:     "firmware-2026-01",
		Action: firmware{},
		Nodes:  []string{"worker-0", "worker-1"},
		Hooks: rollout.Hooks{PreUncordon: func(_ context.Context, node string) error {
			fmt.Println("    testing", node)
			return nil
		}},
		Observe: func(e clusterapi.Event) { fmt.Println(e.Message) },
	})
	if err != nil {
		log.Fatal(err)
	}
	v := reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: cluster, Clock: clock, Seed: 1}, run.Process())
	defer v.Close()
	if err := v.RunUntil(v.Now().Add(time.Hour)); err != nil {
		log.Fatal(err)
	}
	// Output:
	// node worker-0 is begun
	// node worker-0: Draining
	// node worker-0 is drained
	// node worker-0: PreUpgrade
	// node worker-0: Acting
	//     flashing worker-0
	// node worker-0 waits for its firmware
	// node worker-0: PreUncordon
	//     testing worker-0
	// node worker-0: PostUpgrade
	// node worker-0 is finished
	// node worker-1 is begun
	// node worker-1: Draining
	// node worker-1 is drained
	// node worker-1: PreUpgrade
	// node worker-1: Acting
	//     flashing worker-1
	// node worker-1 waits for its firmware
	// node worker-1: PreUncordon
	//     testing worker-1
	// node worker-1: PostUpgrade
	// node worker-1 is finished
	// all nodes are finished
}
