package ocmtest_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/ocm"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/ocm/ocmtest"
)

// How a provider takes an outage.
func Example() {
	const id, token = "7f3c1a52-4a57-4a0e-9d0b-0f1b6f6f2c11", "dG9rZW4="
	ctx := context.Background()
	server := &ocmtest.Server{Token: token}
	server.SetCluster(ocmtest.Cluster{ID: "1a2b", ExternalID: id})
	server.SetPolicy("1a2b", ocmtest.Policy{ID: "p-7", Version: "4.17.4", NextRun: "2031-02-04T03:00:00Z"})
	server.Fail(
		ocmtest.Fault{Path: "/state", Status: http.StatusInternalServerError},
		ocmtest.Fault{Path: "/upgrade_policies", Skip: 1, Body: `{"kind":"UpgradePolicyList"}`},
	)

	cluster := memory.NewOpenShift(memory.Options{})
	for _, o := range ocmtest.Objects(id, token) {
		if _, err := cluster.Create(ctx, o, clusterapi.CreateOptions{}); err != nil {
			fmt.Println(err)
			return
		}
	}
	provider, err := ocm.New(cluster, ocm.Options{URL: "https://ocm.example", Base: ocmtest.Transport(server)})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		policies, err := provider.Policies(ctx)
		fmt.Println(len(policies), err)
	}
	fmt.Println(len(server.Requests()), "requests")
	// Output:
	// 0 can't pull upgrade policy state: GET https://ocm.example/api/clusters_mgmt/v1/clusters/1a2b/upgrade_policies/p-7/state: status 500 Internal Server Error: CLUSTERS-MGMT-500: Internal Server Error (operation id operation-3)
	// 0 could not retrieve provider upgrade policies: can't pull upgrade policies for cluster ID: GET https://ocm.example/api/clusters_mgmt/v1/clusters/1a2b/upgrade_policies?page=1&size=100: malformed answer: it has no total, so it is not a list (operation id operation-5)
	// 1 <nil>
	// 8 requests
}
