package upgradeconfig_test

import (
	"testing"

	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	configv1 "github.com/openshift/api/config/v1"
)

func TestCheckUpgradeable(t *testing.T) {
	for _, tt := range []struct {
		current, desired string
		status           configv1.ConditionStatus
		want             string
	}{
		{"4.20.3", "4.20.9", configv1.ConditionFalse, ""},
		{"4.20.3", "4.21.0", configv1.ConditionTrue, ""},
		{"4.20.3", "4.21.0", configv1.ConditionUnknown, ""},
		{"4.20.3", "4.21.0", configv1.ConditionFalse, "cluster upgrade to version 4.21.0 on Tue Feb  4 03:00:00 UTC 2031 has been cancelled: Blocked: ack it"},
		{"4.22.3", "5.0.1", configv1.ConditionFalse, "cluster upgrade to version 5.0.1 on Tue Feb  4 03:00:00 UTC 2031 has been cancelled: Blocked: ack it"},
		{"4.20.3", "3.99.0", configv1.ConditionFalse, ""},
		{"4.20.3", "", configv1.ConditionFalse, ""},
		{"4.20.3", "4.21", configv1.ConditionFalse, "failed to parse upgrade config desired version 4.21 as semver: invalid semantic version"},
	} {
		cv := &configv1.ClusterVersion{Status: configv1.ClusterVersionStatus{
			History:    history([2]string{tt.current, "2030-01-01T00:00:00Z"}),
			Conditions: []configv1.ClusterOperatorStatusCondition{{Type: configv1.OperatorUpgradeable, Status: tt.status, Reason: "Blocked", Message: "ack it"}},
		}}
		s := upgradeconfig.Spec{Desired: upgradeconfig.Update{Version: tt.desired}, UpgradeAt: "2031-02-04T04:00:00+01:00"}
		if got := errText(upgradeconfig.CheckUpgradeable(s, cv)); got != tt.want {
			t.Errorf("%s to %s: %s", tt.current, tt.desired, got)
		}
	}
}
