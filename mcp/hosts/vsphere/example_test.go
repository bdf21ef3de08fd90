package vsphere_test

import (
	"context"
	"fmt"
	"log"
	"net/url"

	"github.com/clusterupdate/clusterupdate/mcp/hosts/vmhardware"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/vsphere"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// The action of a plan that upgrades the virtual hardware of nodes through vCenter.
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
	o := plan.Options{Actions: map[string]plan.Action{"upgrade": upgrade}}
	fmt.Println(len(o.Actions))
	// Output: 1
}
