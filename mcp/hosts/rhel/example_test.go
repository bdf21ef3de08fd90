package rhel_test

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/rhel"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// oldHost has RHEL 7.
type oldHost struct{}

func (oldHost) Run(context.Context, *corev1.Node, ...string) (string, error) {
	return "ID=\"rhel\"\nVERSION_ID=\"7.9\"\n", nil
}

// A host that cannot be updated in place is not touched. A plan's runner makes these calls.
func Example() {
	ctx := context.Background()
	cluster := memory.NewOpenShift(memory.Options{})
	n := &corev1.Node{}
	n.Name = "worker-0"
	if _, err := clusterapi.Create(ctx, cluster, n, clusterapi.CreateOptions{}); err != nil {
		log.Fatal(err)
	}
	update, err := rhel.New(rhel.Options{Hosts: oldHost{}, Version: "4.18.15"})
	if err != nil {
		log.Fatal(err)
	}
	step := plan.Step{ID: "update-worker-0", Kind: plan.Hook, Args: plan.Args{Node: n.Name, Action: "rhel"}}
	_, err = update.Do(ctx, plan.Call{Plan: "hosts", Step: step, API: cluster, Times: 1})
	fmt.Println(err)
	// Output: rhel 7.9 cannot be updated in place: replace the machine by one with RHEL 8.6 or later
}
