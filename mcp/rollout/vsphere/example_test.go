package vsphere_test

import (
	"context"
	"fmt"
	"log"
	"net/url"

	"github.com/clusterupdate/clusterupdate/mcp/rollout/nodeaction"
	"github.com/clusterupdate/clusterupdate/mcp/rollout/vmhardware"
	"github.com/clusterupdate/clusterupdate/mcp/rollout/vsphere"
)

// A run that upgrades the virtual hardware of three masters through vCenter. Its
// Options need the cluster's API, too; then Run does it.
func Example() {
	machines, err := vsphere.New(vsphere.Options{
		URL: "https://vcenter.example/sdk",
		Credentials: func(context.Context) (*url.Userinfo, error) {
			return url.UserPassword("updater", "from a vault"), nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	upgrade, err := vmhardware.New(vmhardware.Options{Machines: machines})
	if err != nil {
		log.Fatal(err)
	}
	_, err = nodeaction.New(nodeaction.Options{ID: "hardware-15", Action: upgrade, Nodes: []string{"master-0", "master-1", "master-2"}})
	fmt.Println(err)
	// Output: <nil>
}
