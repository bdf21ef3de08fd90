package upgrade_test

import (
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade"
)

func TestDue(t *testing.T) {
	now := at("2031-02-04T03:00:00Z")
	for _, tt := range []struct {
		name, upgradeAt string
		timeOut         time.Duration
		want            upgrade.Schedule
	}{
		{"not a time", "tomorrow", time.Hour, upgrade.Schedule{}},
		{"empty", "", time.Hour, upgrade.Schedule{}},
		{"later", "2031-02-04T04:30:00Z", time.Hour, upgrade.Schedule{Wait: 90 * time.Minute}},
		{"another zone", "2031-02-04T04:30:00+01:00", time.Hour, upgrade.Schedule{Wait: 30 * time.Minute}},
		{"exactly now", "2031-02-04T03:00:00Z", time.Hour, upgrade.Schedule{}},
		{"a moment ago", "2031-02-04T02:59:59Z", time.Hour, upgrade.Schedule{Ready: true}},
		{"just within", "2031-02-04T02:00:01Z", time.Hour, upgrade.Schedule{Ready: true}},
		{"window just over", "2031-02-04T02:00:00Z", time.Hour, upgrade.Schedule{Ready: true, Breached: true}},
		{"days late", "2031-02-01T02:00:00Z", time.Hour, upgrade.Schedule{Ready: true, Breached: true}},
		{"no window", "2031-02-04T02:59:59Z", 0, upgrade.Schedule{Ready: true, Breached: true}},
	} {
		checktest.SameIn(t, tt.name, tt.want, upgrade.Due(tt.upgradeAt, now, tt.timeOut))
	}
}

// TestDueInvariants: an upgrade waits or is ready, never both, and is ready
// right after its wait.
func TestDueInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := time.Unix(rapid.Int64Range(1e9, 4e9).Draw(t, "at"), 0).UTC()
		now := start.Add(time.Duration(rapid.Int64Range(-1e15, 1e15).Draw(t, "offset")))
		timeOut := time.Duration(rapid.Int64Range(0, 1e15).Draw(t, "timeOut"))
		s := upgrade.Due(start.Format(time.RFC3339), now, timeOut)
		if s.Ready && s.Wait != 0 || s.Breached && !s.Ready || s.Wait < 0 {
			t.Fatalf("%+v", s)
		}
		if !s.Ready {
			next := upgrade.Due(start.Format(time.RFC3339), now.Add(s.Wait+1), timeOut)
			if !next.Ready {
				t.Fatalf("%+v, and after the wait %+v", s, next)
			}
		}
	})
}

func TestOverdueAndDelayed(t *testing.T) {
	started := upgradeconfig.HistoryEntry{StartTime: &metav1.Time{Time: at("2031-02-04T03:00:00Z")}}
	for _, tt := range []struct {
		name             string
		typ              upgradeconfig.UpgradeType
		entry            upgradeconfig.HistoryEntry
		commenced        bool
		now              string
		limit            time.Duration
		overdue, delayed bool
	}{
		{"within", upgradeconfig.OSD, started, false, "2031-02-04T03:59:59Z", time.Hour, false, false},
		{"at the limit", upgradeconfig.OSD, started, false, "2031-02-04T04:00:00Z", time.Hour, false, false},
		{"past it", upgradeconfig.OSD, started, false, "2031-02-04T04:00:01Z", time.Hour, true, true},
		{"no limit", upgradeconfig.OSD, started, false, "2031-03-04T04:00:01Z", 0, false, false},
		{"commenced", upgradeconfig.OSD, started, true, "2031-02-04T04:00:01Z", time.Hour, false, false},
		{"ARO never fails by time", upgradeconfig.ARO, started, false, "2031-02-04T04:00:01Z", time.Hour, false, true},
		{"not started", upgradeconfig.OSD, upgradeconfig.HistoryEntry{}, false, "2031-02-04T04:00:01Z", time.Hour, false, false},
	} {
		checktest.Equal(t, tt.overdue, upgrade.Overdue(tt.typ, tt.entry, tt.commenced, at(tt.now), tt.limit),
			"%s: overdue", tt.name)
		checktest.Equal(t, tt.delayed, upgrade.Delayed(tt.entry, tt.commenced, at(tt.now), tt.limit), "%s: delayed",
			tt.name)
	}
}

func TestCommenced(t *testing.T) {
	const image = "quay.io/a/b@sha256:1"
	for _, tt := range []struct {
		name    string
		desired upgradeconfig.Update
		update  *configv1.Update
		want    bool
		err     string
	}{
		{name: "no request", desired: upgradeconfig.Update{Version: "4.2.0", Channel: "c"}},
		{name: "version", desired: upgradeconfig.Update{Version: "4.2.0", Channel: "c"}, update: &configv1.Update{Version: "4.2.0"}, want: true},
		{name: "other version", desired: upgradeconfig.Update{Version: "4.2.0", Channel: "c"}, update: &configv1.Update{Version: "4.2.1"}},
		{name: "image", desired: upgradeconfig.Update{Image: image}, update: &configv1.Update{Image: image}, want: true},
		{name: "image wins", desired: upgradeconfig.Update{Version: "4.2.0", Channel: "c", Image: image}, update: &configv1.Update{Version: "4.2.0"}},
		{name: "a check", desired: upgradeconfig.Update{Version: "4.2.0", Channel: "c"}, update: &configv1.Update{Version: "4.2.0", Mode: configv1.UpdateModePreflight}},
		{name: "a migration", desired: upgradeconfig.Update{Version: "4.2.0", Channel: "c"}, update: &configv1.Update{Version: "4.2.0", Architecture: "Multi"}},
		{name: "no channel", desired: upgradeconfig.Update{Version: "4.2.0"}, err: "cannot find the correct upgrade spec source"},
		{name: "nothing", err: "cannot find the correct upgrade spec source"},
	} {
		got, err := upgrade.Commenced(tt.desired, &configv1.ClusterVersion{Spec: configv1.ClusterVersionSpec{DesiredUpdate: tt.update}})
		if got != tt.want || errText(err) != tt.err {
			t.Errorf("%s: %v, %v", tt.name, got, err)
		}
	}
}

func TestVersions(t *testing.T) {
	for _, tt := range []struct {
		name                        string
		at                          string
		history                     []configv1.UpdateHistory
		desired, preceding, current string
	}{
		{"before", "4.1.0", history([2]string{"4.1.0", "2030-01-01T00:00:00Z"}), "4.2.0", "4.1.0", "4.1.0"},
		{"under way", "4.2.0", history([2]string{"4.2.0", ""}, [2]string{"4.1.0", "2030-01-01T00:00:00Z"}), "4.2.0", "4.1.0", "4.1.0"},
		{"over", "4.2.0", history([2]string{"4.2.0", "2030-02-01T00:00:00Z"}, [2]string{"", "2030-01-02T00:00:00Z"}, [2]string{"4.1.0", "2030-01-01T00:00:00Z"}), "4.2.0", "4.1.0", "4.2.0"},
		{"installed with it", "4.2.0", history([2]string{"4.2.0", "2030-02-01T00:00:00Z"}), "4.2.0", "4.2.0", "4.2.0"},
		{"latest is not first", "4.1.0", history([2]string{"4.1.0", "2030-01-01T00:00:00Z"}, [2]string{"4.0.9", "2030-01-03T00:00:00Z"}), "4.2.0", "4.1.0", "4.0.9"},
	} {
		cv := &configv1.ClusterVersion{Status: configv1.ClusterVersionStatus{Desired: configv1.Release{Version: tt.at}, History: tt.history}}
		checktest.Equal(t, tt.preceding, upgrade.PrecedingVersion(tt.desired, cv), "%s: preceding", tt.name)
		if got, _ := upgradeconfig.CurrentVersion(cv); got != tt.current {
			t.Errorf("%s: current %s, want %s", tt.name, got, tt.current)
		}
	}
	if got, ok := upgradeconfig.CurrentVersion(&configv1.ClusterVersion{}); ok {
		t.Errorf("no history has current version %q", got)
	}
}

func TestRequest(t *testing.T) {
	const image, risky = "quay.io/a/b@sha256:1", "quay.io/a/b@sha256:2"
	earlier := &configv1.Update{Version: "4.1.9", Architecture: "Multi", Force: true, Mode: configv1.UpdateModePreflight, AcceptRisks: []configv1.AcceptRisk{{Name: "A"}}}
	for _, tt := range []struct {
		name    string
		desired upgradeconfig.Update
		had     *configv1.Update
		want    *configv1.Update
	}{
		{"available", upgradeconfig.Update{Version: "4.2.0", Channel: "c"}, nil, &configv1.Update{Version: "4.2.0"}},
		{"its image is removed", upgradeconfig.Update{Version: "4.2.0", Channel: "c"}, &configv1.Update{Image: "old"}, &configv1.Update{Version: "4.2.0"}},
		{"conditional", upgradeconfig.Update{Version: "4.2.1", Channel: "c"}, nil, &configv1.Update{Version: "4.2.1", Image: risky}},
		{"not listed", upgradeconfig.Update{Version: "4.2.2", Channel: "c"}, nil, nil},
		{"listed without an image", upgradeconfig.Update{Version: "4.2.3", Channel: "c"}, nil, nil},
		{"image", upgradeconfig.Update{Image: "any"}, &configv1.Update{Version: "4.0.0"}, &configv1.Update{Image: "any"}},
		{"image wins", upgradeconfig.Update{Version: "4.2.0", Channel: "c", Image: "any"}, nil, &configv1.Update{Image: "any"}},
		{"nothing of an earlier request stays", upgradeconfig.Update{Version: "4.2.0", Channel: "c"}, earlier, &configv1.Update{Version: "4.2.0"}},
		{"nor beside an image", upgradeconfig.Update{Image: "any"}, earlier, &configv1.Update{Image: "any"}},
		{"nor under a risk", upgradeconfig.Update{Version: "4.2.1", Channel: "c"}, earlier, &configv1.Update{Version: "4.2.1", Image: risky}},
	} {
		cv := &configv1.ClusterVersion{
			Spec: configv1.ClusterVersionSpec{DesiredUpdate: tt.had},
			Status: configv1.ClusterVersionStatus{
				AvailableUpdates:   []configv1.Release{{Version: "4.2.0", Image: image}, {Version: "4.2.3"}},
				ConditionalUpdates: []configv1.ConditionalUpdate{{Release: configv1.Release{Version: "4.2.1", Image: risky}}},
			},
		}
		checktest.Equal(t, tt.want != nil, upgrade.Request(tt.desired, cv), "%s", tt.name)
		checktest.SameIn(t, tt.name, tt.want, cv.Spec.DesiredUpdate)
	}
}

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
		checktest.Equal(t, tt.want, errText(upgrade.CheckUpgradeable(s, cv)), "%s to %s", tt.current, tt.desired)
	}
}
