package rhel_test

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/mcp/rollout/rhel"
)

// oldHost has RHEL 7.
type oldHost struct{}

func (oldHost) Run(context.Context, *corev1.Node, ...string) (string, error) {
	return "ID=\"rhel\"\nVERSION_ID=\"7.9\"\n", nil
}

// A host that cannot be updated in place is not touched.
func Example() {
	action, err := rhel.New(rhel.Options{Hosts: oldHost{}, Version: "4.18.15"})
	if err != nil {
		log.Fatal(err)
	}
	_, err = action.Step(context.Background(), &corev1.Node{}, "")
	fmt.Println(err)
	// Output: rhel 7.9 cannot be updated in place: replace the machine by one with RHEL 8.6 or later
}
