package sshhost_test

import (
	"fmt"
	"log"

	"github.com/clusterupdate/clusterupdate/mcp/rollout/sshhost"
)

// Words reach a host's command as they are.
func ExampleQuote() {
	line, err := sshhost.Quote("echo", "it's $HOME", "plain")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(line)
	// Output: echo 'it'\''s $HOME' plain
}
