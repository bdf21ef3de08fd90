package upgrade_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade"
)

func TestNext(t *testing.T) {
	const now = "2031-02-04T03:00:00Z"
	noon := &metav1.Time{Time: at(now)}
	hourAgo := &metav1.Time{Time: at("2031-02-04T01:59:59Z")}
	commencedEntry := upgradeconfig.HistoryEntry{Phase: upgradeconfig.PhaseUpgrading, StartTime: hourAgo, Conditions: []upgradeconfig.Condition{{Type: upgradeconfig.UpgradeCommenced, Status: "True"}}}
	upgradedEntry := commencedEntry
	upgradedEntry.Conditions = append(slices.Clone(commencedEntry.Conditions), upgradeconfig.Condition{Type: upgradeconfig.ControlPlaneUpgraded, Status: "True"})
	valid := &upgrade.Validated{Validity: upgradeconfig.Validity{IsValid: true, IsAvailableUpdate: true}}
	phase := func(p upgradeconfig.Phase) *upgradeconfig.HistoryEntry { return &upgradeconfig.HistoryEntry{Phase: p} }
	fault := errors.New("fault")
	hour := upgrade.PhaseOptions{TimeOut: time.Hour}

	for _, tt := range []struct {
		name      string
		entry     *upgradeconfig.HistoryEntry // version is filled in
		upgradeAt string
		spec      func(*upgradeconfig.Spec)
		commenced bool
		history   []configv1.UpdateHistory
		deleted   bool
		situation upgrade.Situation
		o         upgrade.PhaseOptions

		do      upgrade.Activity
		phase   upgradeconfig.Phase // to be stored; empty: nothing is
		started *metav1.Time
		after   time.Duration
		delayed bool
		err     string
	}{
		{name: "no entry", do: upgrade.ActivityDecide, phase: upgradeconfig.PhaseNew},
		{name: "no entry, commenced", commenced: true, do: upgrade.ActivityDecide, phase: upgradeconfig.PhaseUpgrading, started: noon},
		{name: "no entry, no target", spec: func(s *upgradeconfig.Spec) { s.Desired.Channel = "" }, do: upgrade.ActivityNone, after: time.Minute,
			err: "could not tell if cluster was upgrading: cannot find the correct upgrade spec source"},
		{name: "being deleted", deleted: true, entry: phase(upgradeconfig.PhaseUpgrading), do: upgrade.ActivityNone, after: 5 * time.Minute},

		{name: "new", entry: phase(upgradeconfig.PhaseNew), do: upgrade.ActivityNone, phase: upgradeconfig.PhasePending, after: time.Minute},
		{name: "new, health check", entry: phase(upgradeconfig.PhaseNew), upgradeAt: "2031-02-04T05:01:00Z", o: upgrade.PhaseOptions{PreHealthCheck: true}, do: upgrade.ActivityHealthCheck},
		{name: "new, health check is off", entry: phase(upgradeconfig.PhaseNew), upgradeAt: "2031-02-04T05:01:00Z", do: upgrade.ActivityNone, phase: upgradeconfig.PhasePending, after: time.Minute},
		{name: "new, 120 whole minutes", entry: phase(upgradeconfig.PhaseNew), upgradeAt: "2031-02-04T05:00:59Z", o: upgrade.PhaseOptions{PreHealthCheck: true},
			do: upgrade.ActivityNone, phase: upgradeconfig.PhasePending, after: time.Minute},
		{name: "new, checked", entry: phase(upgradeconfig.PhaseNew), upgradeAt: "2031-02-04T05:01:00Z", o: upgrade.PhaseOptions{PreHealthCheck: true},
			situation: upgrade.Situation{HealthChecked: true}, do: upgrade.ActivityNone, phase: upgradeconfig.PhasePending, after: time.Minute},

		{name: "pending", entry: phase(upgradeconfig.PhasePending), do: upgrade.ActivityValidate},
		{name: "pending, unknown type", entry: phase(upgradeconfig.PhasePending), spec: func(s *upgradeconfig.Spec) { s.Type = "X" }, do: upgrade.ActivityNone, after: 5 * time.Minute,
			err: `spec.type: "X" is not one of OSD, ARO`},
		{name: "pending, fault", entry: phase(upgradeconfig.PhasePending), situation: upgrade.Situation{Validated: &upgrade.Validated{Err: fault}}, do: upgrade.ActivityNone, after: 5 * time.Minute, err: "fault"},
		{name: "pending, valid with an error", entry: phase(upgradeconfig.PhasePending), do: upgrade.ActivityNone, after: 5 * time.Minute, err: "fault",
			situation: upgrade.Situation{Validated: &upgrade.Validated{Validity: upgradeconfig.Validity{IsValid: true}, Err: fault}}},
		{name: "pending, invalid", entry: phase(upgradeconfig.PhasePending), situation: upgrade.Situation{Validated: &upgrade.Validated{}}, do: upgrade.ActivityNone, after: 5 * time.Minute},
		{name: "pending, nothing to do", entry: phase(upgradeconfig.PhasePending), do: upgrade.ActivityNone, after: 5 * time.Minute,
			situation: upgrade.Situation{Validated: &upgrade.Validated{Validity: upgradeconfig.Validity{IsValid: true}}}},
		{name: "pending, hours to go", entry: phase(upgradeconfig.PhasePending), upgradeAt: "2031-02-04T06:00:00Z", situation: upgrade.Situation{Validated: valid}, do: upgrade.ActivityNone, after: 5 * time.Minute},
		{name: "pending, five minutes to go", entry: phase(upgradeconfig.PhasePending), upgradeAt: "2031-02-04T03:05:00Z", situation: upgrade.Situation{Validated: valid}, do: upgrade.ActivityNone, after: 5 * time.Minute},
		{name: "pending, minutes to go", entry: phase(upgradeconfig.PhasePending), upgradeAt: "2031-02-04T03:04:59Z", situation: upgrade.Situation{Validated: valid}, do: upgrade.ActivityNone, after: 4*time.Minute + 59*time.Second},
		{name: "pending, this very moment", entry: phase(upgradeconfig.PhasePending), upgradeAt: now, situation: upgrade.Situation{Validated: valid}, do: upgrade.ActivityNone, after: time.Second},
		{name: "pending, not a time", entry: phase(upgradeconfig.PhasePending), upgradeAt: "now", situation: upgrade.Situation{Validated: valid}, do: upgrade.ActivityNone, after: 5 * time.Minute},
		{name: "pending, due", entry: phase(upgradeconfig.PhasePending), situation: upgrade.Situation{Validated: valid}, do: upgrade.ActivityRefresh},
		{name: "pending, days late", entry: phase(upgradeconfig.PhasePending), upgradeAt: "2031-02-01T00:00:00Z", o: hour, situation: upgrade.Situation{Validated: valid}, do: upgrade.ActivityRefresh},
		{name: "pending, days late, skipped", entry: phase(upgradeconfig.PhasePending), upgradeAt: "2031-02-01T00:00:00Z", o: upgrade.PhaseOptions{TimeOut: time.Hour, SkipBreached: true},
			situation: upgrade.Situation{Validated: valid}, do: upgrade.ActivityNone, after: 5 * time.Minute},
		{name: "pending, days late, no window", entry: phase(upgradeconfig.PhasePending), upgradeAt: "2031-02-01T00:00:00Z", o: upgrade.PhaseOptions{SkipBreached: true},
			situation: upgrade.Situation{Validated: valid}, do: upgrade.ActivityRefresh},
		{name: "kill switch: unchanged", entry: phase(upgradeconfig.PhasePending), situation: upgrade.Situation{Validated: valid, Refreshed: &upgrade.Refreshed{}},
			do: upgrade.ActivityDecide, phase: upgradeconfig.PhaseUpgrading, started: noon},
		{name: "kill switch: changed", entry: phase(upgradeconfig.PhasePending), situation: upgrade.Situation{Validated: valid, Refreshed: &upgrade.Refreshed{Differs: true}},
			do: upgrade.ActivityNone, phase: upgradeconfig.PhaseNew, after: time.Minute},
		{name: "kill switch: no provider", entry: phase(upgradeconfig.PhasePending), situation: upgrade.Situation{Validated: valid, Refreshed: &upgrade.Refreshed{Err: upgradeconfig.ErrNotConfigured}},
			do: upgrade.ActivityDecide, phase: upgradeconfig.PhaseUpgrading, started: noon},
		{name: "kill switch: no answer", entry: phase(upgradeconfig.PhasePending), situation: upgrade.Situation{Validated: valid, Refreshed: &upgrade.Refreshed{Err: fault}},
			do: upgrade.ActivityNone, after: time.Minute, err: "fault"},

		{name: "upgrading", entry: &upgradeconfig.HistoryEntry{Phase: upgradeconfig.PhaseUpgrading, StartTime: noon}, o: hour, do: upgrade.ActivitySteps},
		{name: "upgrading, too long", entry: &upgradeconfig.HistoryEntry{Phase: upgradeconfig.PhaseUpgrading, StartTime: hourAgo}, o: hour, do: upgrade.ActivityGiveUp},
		{name: "upgrading, too long, ARO", entry: &upgradeconfig.HistoryEntry{Phase: upgradeconfig.PhaseUpgrading, StartTime: hourAgo}, spec: func(s *upgradeconfig.Spec) { s.Type = upgradeconfig.ARO }, o: hour, do: upgrade.ActivitySteps},
		{name: "upgrading, commenced", entry: &upgradeconfig.HistoryEntry{Phase: upgradeconfig.PhaseUpgrading, StartTime: hourAgo}, commenced: true, o: hour, do: upgrade.ActivitySteps},
		{name: "upgrading, commenced once", entry: &commencedEntry, history: history([2]string{"4.20.3", ""}, [2]string{"4.20.2", "2031-02-01T00:00:00Z"}), o: hour, do: upgrade.ActivitySteps},
		{name: "upgrading, commenced and completed", entry: &commencedEntry, history: history([2]string{"4.20.4", ""}, [2]string{"4.20.3", "2031-02-04T02:30:00Z"}), o: hour, do: upgrade.ActivitySteps},
		{name: "upgrading, completed long before", entry: &commencedEntry, history: history([2]string{"4.20.4", ""}, [2]string{"4.20.3", "2031-02-04T01:30:00Z"}), o: hour, do: upgrade.ActivityWithdrawn},
		{name: "upgrading, request taken back", entry: &commencedEntry, history: history([2]string{"4.20.2", "2031-02-01T00:00:00Z"}), o: hour, do: upgrade.ActivityWithdrawn},
		{name: "upgrading, aimed elsewhere", entry: &commencedEntry, history: history([2]string{"4.20.4", ""}, [2]string{"4.20.3", ""}), do: upgrade.ActivityWithdrawn},
		{name: "upgrading, control plane is", entry: &upgradedEntry, history: history([2]string{"4.20.4", ""}), o: hour, do: upgrade.ActivitySteps},
		{name: "upgrading, delayed", entry: &upgradeconfig.HistoryEntry{Phase: upgradeconfig.PhaseUpgrading, StartTime: hourAgo}, o: upgrade.PhaseOptions{DelayTrigger: time.Hour}, do: upgrade.ActivitySteps, delayed: true},
		{name: "upgraded", entry: phase(upgradeconfig.PhaseUpgraded), do: upgrade.ActivityNone, after: 5 * time.Minute},
		{name: "failed", entry: phase(upgradeconfig.PhaseFailed), do: upgrade.ActivityNone, after: 5 * time.Minute},
		{name: "damaged", entry: phase("Sleeping"), do: upgrade.ActivityNone, after: 5 * time.Minute,
			err: `upgradeconfig: the history entry of version "4.20.3" has the phase "Sleeping", which does not exist`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := specA
			spec.UpgradeAt = "2031-02-04T02:59:00Z"
			if tt.upgradeAt != "" {
				spec.UpgradeAt = tt.upgradeAt
			}
			if tt.spec != nil {
				tt.spec(&spec)
			}
			c := object(spec, upgradeconfig.Status{})
			if tt.deleted {
				c.DeletionTimestamp = noon
			}
			if tt.entry != nil {
				e := *tt.entry
				e.Version = spec.Desired.Version
				c.Status.SetEntry(e)
			}
			before := slices.Clone(c.Status.History)
			cv := &configv1.ClusterVersion{}
			cv.Status.Desired.Version, cv.Status.History = "4.20.2", tt.history
			if tt.commenced {
				cv.Spec.DesiredUpdate = &configv1.Update{Version: spec.Desired.Version}
			}
			s := tt.situation
			s.Config, s.ClusterVersion, s.Now = c, cv, at(now)
			d := upgrade.Next(s, tt.o)
			if d.Do != tt.do || d.After != tt.after || d.Delayed != tt.delayed || errText(d.Err) != tt.err {
				t.Errorf("got %+v", d)
			}
			checktest.Equal(t, d.After > 0, d.Do == upgrade.ActivityNone, "%s, and again after %s", d.Do, d.After)
			var got upgradeconfig.Phase
			var started *metav1.Time
			if d.Entry != nil {
				got, started = d.Entry.Phase, d.Entry.StartTime
			}
			if got != tt.phase || !started.Equal(tt.started) {
				t.Errorf("entry is %+v", d.Entry)
			}
			if tt.entry == nil && d.Entry != nil && d.Entry.PrecedingVersion != "4.20.2" {
				t.Errorf("preceding version is %q", d.Entry.PrecedingVersion)
			}
			checktest.SameIn(t, "the object was changed", before, c.Status.History)
		})
	}
}

// TestNothingKnown: without a UpgradeConfig or a ClusterVersion nothing happens.
func TestNothingKnown(t *testing.T) {
	if d := upgrade.Next(upgrade.Situation{}, upgrade.PhaseOptions{}); d.Do != upgrade.ActivityNone || d.Reason != "there is no UpgradeConfig" || d.After <= 0 {
		t.Errorf("%+v", d)
	}
	c := object(specA, upgradeconfig.Status{})
	d := upgrade.Next(upgrade.Situation{Config: c}, upgrade.PhaseOptions{})
	if d.Entry == nil || d.Entry.Phase != upgradeconfig.PhaseNew || d.Entry.PrecedingVersion != "" {
		t.Errorf("%+v", d)
	}
	checktest.Fails(t, upgrade.CheckUpgradeable(specA, nil), "nobody knows whether it is upgradeable")
	if upgrade.Request(specA.Desired, nil) || upgrade.Request(upgradeconfig.Update{Image: "x"}, nil) {
		t.Error("a request to nobody")
	}
	if v, err := upgradeconfig.Validate(t.Context(), specA, nil, upgradeconfig.ValidateOptions{}); err == nil || v.IsValid {
		t.Errorf("%+v, %v", v, err)
	}
	if n := upgrade.NewNotification(upgradeconfig.StateStarted, nil, nil); n.Config != nil || n.State != upgradeconfig.StateStarted {
		t.Errorf("%+v", n)
	}
}

func TestSteps(t *testing.T) {
	osd := []upgradeconfig.ConditionType{
		"StartedNotificationSent", "IsClusterUpgradable", "ClusterHealthyBeforeUpgrade", "ExternalDependenciesAvailable",
		"ComputeCapacityReserved", "ControlPlaneMaintenanceWindowCreated", "UpgradeCommenced", "ControlPlaneUpgraded",
		"ControlPlaneMaintenanceWindowRemoved", "WorkersMaintenanceWindowCreated", "WorkerNodesUpgraded", "ComputeCapacityRemoved",
		"WorkersMaintenanceWindowRemoved", "ClusterHealthyAfterUpgrade", "PostUpgradeTasksCompleted", "CompletedNotificationSent",
	}
	aro := slices.DeleteFunc(slices.Clone(osd), func(c upgradeconfig.ConditionType) bool {
		return c == "IsClusterUpgradable" || c == "PostUpgradeTasksCompleted"
	})
	for typ, want := range map[upgradeconfig.UpgradeType][]upgradeconfig.ConditionType{"OSD": osd, "ARO": aro, "": aro} {
		got, err := upgrade.Steps(typ)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v %s", typ, err, diff)
		}
	}
	checktest.Fails(t, checktest.Err(upgrade.Steps("osd")), "a type of another letter case passes")
}

// TestNextStep: what is done is not done again, but for what has to hold until
// the upgrade commences.
func TestNextStep(t *testing.T) {
	steps, _ := upgrade.Steps(upgradeconfig.OSD)
	var e upgradeconfig.HistoryEntry
	for _, s := range steps[:6] {
		upgrade.EndStep(&e, s, true, nil, at("2031-02-04T03:00:00Z"))
	}
	all := func(commenced bool) (out []upgradeconfig.ConditionType) {
		for s, ok := upgrade.NextStep(steps, e, "", commenced); ok; s, ok = upgrade.NextStep(steps, e, s, commenced) {
			out = append(out, s)
		}
		return out
	}
	checktest.Same(t, slices.Concat(steps[1:5], steps[6:]), all(false))
	checktest.Same(t, steps[6:], all(true))
}

func TestStepConditions(t *testing.T) {
	const step = upgradeconfig.ComputeCapacityReserved
	clock := func(minute int) *metav1.Time {
		return &metav1.Time{Time: at("2031-02-04T03:00:00Z").Add(time.Duration(minute) * time.Minute)}
	}
	var e upgradeconfig.HistoryEntry
	check := func(want upgradeconfig.Condition) {
		t.Helper()
		want.Type = step
		got, _ := e.Condition(step)
		checktest.Same(t, want, got)
	}
	if !upgrade.StartStep(&e, step, clock(0).Time) || upgrade.StartStep(&e, step, clock(1).Time) {
		t.Error("a step starts once")
	}
	check(upgradeconfig.Condition{Status: "False", Reason: "ComputeCapacityReserved not done", Message: "ComputeCapacityReserved has started", StartTime: clock(0), LastProbeTime: clock(0), LastTransitionTime: clock(0)})
	upgrade.EndStep(&e, step, false, nil, clock(1).Time)
	check(upgradeconfig.Condition{Status: "False", Reason: "ComputeCapacityReserved not done", Message: "ComputeCapacityReserved still in progress", StartTime: clock(0), LastProbeTime: clock(1), LastTransitionTime: clock(0)})
	upgrade.EndStep(&e, step, false, errors.New("no quota"), clock(2).Time)
	check(upgradeconfig.Condition{Status: "False", Reason: "ComputeCapacityReserved not done", Message: "no quota", StartTime: clock(0), LastProbeTime: clock(2), LastTransitionTime: clock(0)})
	upgrade.EndStep(&e, step, true, nil, clock(3).Time)
	check(upgradeconfig.Condition{Status: "True", Reason: "ComputeCapacityReserved done", Message: "ComputeCapacityReserved is completed", StartTime: clock(0), CompleteTime: clock(3), LastProbeTime: clock(3), LastTransitionTime: clock(3)})
	if upgrade.EndStep(&e, step, true, nil, clock(4).Time) {
		t.Error("done again is a change")
	}
	check(upgradeconfig.Condition{Status: "True", Reason: "ComputeCapacityReserved done", Message: "ComputeCapacityReserved is completed", StartTime: clock(0), CompleteTime: clock(3), LastProbeTime: clock(4), LastTransitionTime: clock(3)})
	upgrade.EndStep(&e, step, false, nil, clock(5).Time)
	check(upgradeconfig.Condition{Status: "False", Reason: "ComputeCapacityReserved done", Message: "ComputeCapacityReserved still in progress", StartTime: clock(0), LastProbeTime: clock(5), LastTransitionTime: clock(5)})

	e.Phase = upgradeconfig.PhaseUpgrading
	upgrade.GiveUp(&e, errors.New("no answer"), clock(6).Time)
	if c, _ := e.Condition(upgradeconfig.FailedUpgrade); e.Phase != upgradeconfig.PhaseUpgrading || c.Status != "False" || c.Message != "no answer" {
		t.Errorf("%s, %+v", e.Phase, c)
	}
	upgrade.GiveUp(&e, nil, clock(7).Time)
	if c, _ := e.Condition(upgradeconfig.FailedUpgrade); e.Phase != upgradeconfig.PhaseFailed || c.Status != "True" || c.Reason != "Upgrade failed" || c.Message != "FailedUpgrade notification sent" {
		t.Errorf("%s, %+v", e.Phase, c)
	}
	checktest.Equal(t, upgradeconfig.FailedUpgrade, e.Conditions[0].Type, "the newest condition is not first")
}
