package upgrade_test

import (
	"context"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade"
)

// An upgrade waits for its time, then for the cluster's health, and then tells
// the cluster to update.
func ExampleController_Sync() {
	ctx := context.Background()
	cluster := clusterWith(upgradeconfig.Spec{
		Desired: upgradeconfig.Update{Version: "4.20.3", Channel: "stable-4.20"}, UpgradeAt: "2031-02-04T03:00:00Z", Type: upgradeconfig.OSD,
	})
	clock := clocktesting.NewFakeClock(time.Date(2031, 2, 4, 1, 0, 0, 0, time.UTC))
	sick := true
	controller, err := upgrade.New(upgrade.Options{API: cluster, Clock: clock, Health: func(context.Context, *upgradeconfig.UpgradeConfig) ([]string, error) {
		if sick {
			return []string{"etcd has no leader"}, nil
		}
		return nil, nil
	}})
	if err != nil {
		panic(err)
	}
	pass := func() {
		p, err := controller.Sync(ctx)
		if err != nil {
			p.Reason = "failed: " + err.Error()
		}
		fmt.Printf("%s, again in %s: %s\n", p.Phase, p.After, p.Reason)
	}
	pass()
	pass()
	clock.Step(2*time.Hour + time.Second)
	pass()
	sick = false
	pass()
	v, err := clusterapi.Get[configv1.ClusterVersion](ctx, cluster, clusterapi.Key("", "version"))
	fmt.Println(v.Spec.DesiredUpdate.Version, err)
	// Output:
	// Pending, again in 1m0s: the upgrade is pending
	// Pending, again in 5m0s: the upgrade starts in 2h0m0s
	// Upgrading, again in 1m0s: failed: the cluster is not healthy: etcd has no leader
	// Upgrading, again in 1m0s: ControlPlaneUpgraded still in progress
	// 4.20.3 <nil>
}

// clusterWith is a cluster at 4.20.2 that can be updated to 4.20.3.
func clusterWith(spec upgradeconfig.Spec) *memory.Cluster {
	cluster := memory.NewOpenShift(memory.Options{})
	cv := &configv1.ClusterVersion{}
	cv.Name, cv.Spec.ClusterID, cv.Spec.Channel = "version", "b2d0a7a5-2a39-4a5c-9e1d-0123456789ab", "stable-4.20"
	cv.Status.Desired.Version = "4.20.2"
	cv.Status.History = history([2]string{"4.20.2", "2030-01-01T00:00:00Z"})
	cv.Status.AvailableUpdates = []configv1.Release{{Version: "4.20.3", Image: "quay.io/ocp/release@sha256:1"}}
	for _, o := range []any{upgradeconfig.Definition(), cv, object(spec, upgradeconfig.Status{})} {
		u, err := clusterapi.ToUnstructured(o)
		if err != nil {
			panic(err)
		}
		if err := cluster.Load(u); err != nil {
			panic(err)
		}
	}
	return cluster
}
