package rhel_test

import (
	"fmt"
	"log"

	"github.com/clusterupdate/clusterupdate/mcp/rollout/rhel"
)

// Which hosts can be updated in place.
func ExampleParseRelease() {
	for _, version := range []string{"7.9", "8.4", "8.10"} {
		r, err := rhel.ParseRelease("ID=\"rhel\"\nVERSION_ID=\"" + version + "\"\n")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.Name+":", r.Supported())
	}
	// Output:
	// rhel 7.9: rhel 7.9 cannot be updated in place: replace the machine by one with RHEL 8.6 or later
	// rhel 8.4: rhel 8.4 is too old: update it to RHEL 8.6 or later first
	// rhel 8.10: <nil>
}
