package vmhardware_test

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/mcp/rollout/nodeaction"
	"github.com/clusterupdate/clusterupdate/mcp/rollout/vmhardware"
)

// Without a client for the machines, the action tells a person what to do. A
// plan shows this in its events and its record.
func Example() {
	upgrade, err := vmhardware.New(vmhardware.Options{Version: 19})
	if err != nil {
		log.Fatal(err)
	}
	n := &corev1.Node{}
	n.Name, n.Status.NodeInfo.BootID = "master-0", "f3b1"
	var step nodeaction.Step
	for range 2 {
		if step, err = upgrade.Step(context.Background(), n, step.Progress); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("it waits for", step.Waiting)
	// Output:
	// it waits for somebody to upgrade the hardware of the virtual machine of node master-0: shut down its guest (do not power it off), upgrade its compatibility to hardware version 19 or later, power it on, and annotate the node with clusterupdate.github.io/confirmed.vmhardware=true
}
