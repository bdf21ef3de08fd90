package bootloader_test

import (
	"fmt"
	"log"

	"github.com/clusterupdate/clusterupdate/mcp/rollout/bootloader"
)

// What bootupctl says of a host that was installed with an old release.
func ExampleParseStatus() {
	s, err := bootloader.ParseStatus(`No components installed.
Adoptable: EFI: grub2-efi-x64-1:2.04-31.el8_4.1.x86_64,shim-x64-15-8.el8_1.x86_64
Boot method: EFI
`)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Needed(), s.Adoptable[0].Name)
	// Output: true EFI
}
