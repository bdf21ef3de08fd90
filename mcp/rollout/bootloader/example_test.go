package bootloader_test

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/mcp/rollout/bootloader"
)

// oldHost was installed with an old release.
type oldHost struct{}

func (oldHost) Run(context.Context, *corev1.Node, ...string) (string, error) {
	return `No components installed.
Adoptable: EFI: grub2-efi-x64-1:2.04-31.el8_4.1.x86_64,shim-x64-15-8.el8_1.x86_64
Boot method: EFI
`, nil
}

func Example() {
	action, err := bootloader.New(bootloader.Options{Hosts: oldHost{}})
	if err != nil {
		log.Fatal(err)
	}
	needed, err := action.Needed(context.Background(), &corev1.Node{})
	fmt.Println(needed, err)
	// Output: true <nil>
}
