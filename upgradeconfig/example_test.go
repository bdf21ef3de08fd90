package upgradeconfig_test

import (
	"context"
	"fmt"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/internal/fixture"
)

// A manager brings a policy to a cluster. Run would do so until it is stopped.
func ExampleManager_Sync() {
	ctx := context.Background()
	cluster := memory.NewOpenShift(memory.Options{})
	if err := cluster.Load(upgradeconfig.Definition()); err != nil {
		fmt.Println(err)
		return
	}
	spec := upgradeconfig.Spec{
		Desired:   upgradeconfig.Update{Version: "4.20.3", Channel: "stable-4.20"},
		UpgradeAt: "2031-02-04T03:00:00Z",
		Type:      upgradeconfig.OSD,
	}
	provider := fixture.ProviderFunc(func(context.Context) ([]upgradeconfig.Policy, error) {
		return []upgradeconfig.Policy{{ID: "p-7", Spec: spec}}, nil
	})
	manager := must(upgradeconfig.NewManager(upgradeconfig.ManagerOptions{API: cluster, Provider: provider}))
	for range 2 {
		result, err := manager.Sync(ctx)
		fmt.Println(result.Action.Kind, result.Changed, err)
	}
	spec.UpgradeAt = "2031-02-04T04:00:00Z"
	result, err := manager.Sync(ctx)
	fmt.Println(result.Action.Kind, result.Action.Changes, err)

	key := clusterapi.Key(upgradeconfig.DefaultNamespace, upgradeconfig.Name)
	object, err := clusterapi.Get[upgradeconfig.UpgradeConfig](ctx, cluster, key)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(object.Spec.Desired.Version, "at", object.Spec.UpgradeAt)
	// Output:
	// Created true <nil>
	//  false <nil>
	// Replaced [upgradeAt: 2031-02-04T03:00:00Z → 2031-02-04T04:00:00Z] <nil>
	// 4.20.3 at 2031-02-04T04:00:00Z
}

func ExampleDiff() {
	action := upgradeconfig.Diff(&upgradeconfig.UpgradeConfig{}, nil, upgradeconfig.DiffOptions{KeepWhileUpgrading: true, InProgress: true})
	fmt.Printf("%s: %s\n", action.Kind, action.Reason)
	// Output: Held: there is no policy, but its upgrade is in progress
}

func ExampleBackoff_Next() {
	var b upgradeconfig.Backoff
	for failure := 1; failure <= 8; failure++ {
		fmt.Print(b.Next(failure).Minutes(), " ")
	}
	// Output: 1 2 4 8 16 32 60 60
}

func ExampleInferChannel() {
	fmt.Println(upgradeconfig.InferChannel("eus", "4.15.9"))
	// Output: eus-4.16 <nil>
}
