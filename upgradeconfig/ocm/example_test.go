package ocm_test

import (
	"context"
	"fmt"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/ocm"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/ocm/ocmtest"
)

// A cluster asks OCM, a fake one here, for its policies, and tells it that the
// upgrade has started.
func Example() {
	const id = "7f3c1a52-4a57-4a0e-9d0b-0f1b6f6f2c11"
	ctx := context.Background()
	cluster := memory.NewOpenShift(memory.Options{})
	if err := cluster.Load(upgradeconfig.Definition()); err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range ocmtest.Objects(id, "dG9rZW4=") {
		if _, err := cluster.Create(ctx, o, clusterapi.CreateOptions{}); err != nil {
			fmt.Println(err)
			return
		}
	}
	server := &ocmtest.Server{}
	server.SetCluster(ocmtest.Cluster{
		ID: "1a2b", ExternalID: id, ChannelGroup: "fast", DrainMinutes: 45,
		Policies: []ocmtest.Policy{{ID: "p-7", Version: "4.17.4", NextRun: "2031-02-04T03:00:00Z"}},
	})

	provider, err := ocm.New(cluster, ocm.Options{Type: upgradeconfig.OSD, Base: ocmtest.Transport(server)})
	if err != nil {
		fmt.Println(err)
		return
	}
	policies, err := provider.Policies(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range policies {
		fmt.Println(p.ID, p.State, p.Spec.Desired.Version, p.Spec.Desired.Channel, p.Spec.UpgradeAt)
	}

	err = provider.Notify(ctx, upgradeconfig.Notification{
		State:       upgradeconfig.StateStarted,
		Config:      &upgradeconfig.UpgradeConfig{Spec: policies[0].Spec},
		Description: "Cluster is currently being upgraded to version 4.17.4",
	})
	p, _ := server.Policy("1a2b", "p-7")
	fmt.Println(p.State, err)
	// Output:
	// p-7 scheduled 4.17.4 fast-4.17 2031-02-04T03:00:00Z
	// started <nil>
}

// A Manager that takes OCM's address from the operator's ConfigMap.
func ExampleFromConfig() {
	cluster := memory.NewOpenShift(memory.Options{}) // or a real one
	if err := cluster.Load(upgradeconfig.Definition()); err != nil {
		fmt.Println(err)
		return
	}
	manager := must(upgradeconfig.NewManager(upgradeconfig.ManagerOptions{
		API:        cluster,
		FromConfig: ocm.FromConfig(cluster, ocm.Options{Kind: ocm.Auto}),
	}))

	_, err := manager.Sync(context.Background())
	fmt.Println(err)
	// Output: configmaps "managed-upgrade-operator-config" not found
}
