package sshhost_test

import (
	"fmt"

	"golang.org/x/crypto/ssh"

	"github.com/clusterupdate/clusterupdate/mcp/hosts/sshhost"
)

// A host that nobody vouches for gets no command.
func Example() {
	_, err := sshhost.New(sshhost.Options{Auth: []ssh.AuthMethod{ssh.Password("secret")}})
	fmt.Println(err)
	// Output: sshhost.Options: HostKeys is required
}
