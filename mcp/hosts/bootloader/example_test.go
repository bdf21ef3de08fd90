package bootloader_test

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/bootloader"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// newHost has a boot loader that is up to date.
type newHost struct{}

func (newHost) Run(_ context.Context, _ *corev1.Node, argv ...string) (string, error) {
	fmt.Println(argv)
	return `Component EFI
  Installed: grub2-efi-x64-1:2.04-31.el8_4.1.x86_64,shim-x64-15-8.el8_1.x86_64
  Update: At latest version
`, nil
}

// A host that needs nothing is left alone. A plan's runner makes these calls.
func Example() {
	ctx := context.Background()
	cluster := memory.NewOpenShift(memory.Options{})
	n := &corev1.Node{}
	n.Name = "worker-0"
	if _, err := clusterapi.Create(ctx, cluster, n, clusterapi.CreateOptions{}); err != nil {
		log.Fatal(err)
	}
	update, err := bootloader.New(bootloader.Options{Hosts: newHost{}})
	if err != nil {
		log.Fatal(err)
	}
	step := plan.Step{ID: "update-worker-0", Kind: plan.Hook, Args: plan.Args{Node: n.Name, Action: "bootloader"}}
	out, err := update.Do(ctx, plan.Call{Plan: "loaders", Step: step, API: cluster, Times: 1})
	fmt.Println(out.Done, err)
	// Output:
	// [bootupctl status]
	// true <nil>
}
