package upgrade_test

import (
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade"
)

func ExampleDue() {
	for _, now := range []string{"2031-02-04T02:15:00Z", "2031-02-04T03:30:00Z", "2031-02-04T06:00:00Z"} {
		t, _ := time.Parse(time.RFC3339, now)
		fmt.Printf("%+v\n", upgrade.Due("2031-02-04T03:00:00Z", t, 2*time.Hour))
	}
	// Output:
	// {Ready:false Breached:false Wait:45m0s}
	// {Ready:true Breached:false Wait:0s}
	// {Ready:true Breached:true Wait:0s}
}

// What a valid UpgradeConfig needs before it starts: once it is due, the
// provider is asked once more.
func ExampleNext() {
	config := &upgradeconfig.UpgradeConfig{Spec: upgradeconfig.Spec{
		Desired: upgradeconfig.Update{Version: "4.20.3", Channel: "stable-4.20"}, UpgradeAt: "2031-02-04T03:00:00Z", Type: upgradeconfig.OSD,
	}}
	config.Status.SetEntry(upgradeconfig.HistoryEntry{Version: "4.20.3", Phase: upgradeconfig.PhasePending})
	s := upgrade.Situation{
		Config: config, ClusterVersion: &configv1.ClusterVersion{}, Now: time.Date(2031, 2, 4, 1, 0, 0, 0, time.UTC),
		Validated: &upgrade.Validated{Validity: upgradeconfig.Validity{IsValid: true, IsAvailableUpdate: true}},
	}
	d := upgrade.Next(s, upgrade.PhaseOptions{})
	fmt.Println(d.Do, d.After, d.Reason)

	s.Now = s.Now.Add(2*time.Hour + time.Second)
	fmt.Println(upgrade.Next(s, upgrade.PhaseOptions{}).Do)

	s.Refreshed = &upgrade.Refreshed{Differs: true}
	d = upgrade.Next(s, upgrade.PhaseOptions{})
	fmt.Println(d.Do, d.Entry.Phase, d.Reason)
	// Output:
	// None 5m0s the upgrade starts in 2h0m0s
	// Refresh
	// None New the provider has changed the policy
}
