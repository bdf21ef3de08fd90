package vmhardware_test

import (
	"context"
	"fmt"
	"log"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/vmhardware"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// Without a client for the machines, the action tells a person what to do. A plan's
// runner makes these calls, and shows the text in its events and its record.
func Example() {
	ctx := context.Background()
	cluster := memory.NewOpenShift(memory.Options{})
	n := &corev1.Node{}
	n.Name = "master-0"
	if _, err := clusterapi.Create(ctx, cluster, n, clusterapi.CreateOptions{}); err != nil {
		log.Fatal(err)
	}
	upgrade, err := vmhardware.New(vmhardware.Options{Version: 19})
	if err != nil {
		log.Fatal(err)
	}
	step := plan.Step{ID: "upgrade-master-0", Kind: plan.Hook, Args: plan.Args{Node: n.Name, Action: "vmhardware"}}
	call := plan.Call{Plan: "hardware", Step: step, API: cluster, Now: time.Now(), Times: 1}
	var out plan.Outcome
	for out.Text == "" {
		out, err = upgrade.Do(ctx, call)
		if err != nil {
			log.Fatal(err)
		}
		call.Times++
	}
	fmt.Println(out.Text)
	// Output:
	// node master-0 waits for somebody to upgrade the hardware of the virtual machine of node master-0: shut down its guest (do not power it off), upgrade its compatibility to hardware version 19 or later, power it on, and annotate the node with clusterupdate.github.io/confirmed.vmhardware=true
}
