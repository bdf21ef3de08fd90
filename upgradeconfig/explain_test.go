package upgradeconfig_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

func TestExplain(t *testing.T) {
	policy := func(id, state string, spec upgradeconfig.Spec) upgradeconfig.Policy {
		return upgradeconfig.Policy{ID: id, State: state, Spec: spec, NextRun: at(spec.UpgradeAt)}
	}
	later := with(specA, func(s *upgradeconfig.Spec) { s.UpgradeAt = "2031-02-04T04:00:00Z" })
	never := with(specA, func(s *upgradeconfig.Spec) { s.UpgradeAt = "soon" })
	now := at("2031-02-04T01:00:00Z")
	started := metav1.NewTime(at("2031-02-04T00:30:00Z"))
	running := object(specA, underWay("4.20.3"))
	running.Status.History[0].StartTime = &started
	running.Status.History[0].Conditions[0].Message = "StartedNotificationSent is completed"
	finished := func(phase upgradeconfig.Phase, complete *metav1.Time) *upgradeconfig.UpgradeConfig {
		return object(specA, upgradeconfig.Status{History: []upgradeconfig.HistoryEntry{{Version: "4.20.3", Phase: phase, CompleteTime: complete}}})
	}
	const counts = "policy p-7 counts: 4.20.3 from stable-4.20 at 2031-02-04T03:00:00Z"
	const inStep = "nothing to do: the UpgradeConfig has the policy's spec"
	for _, tt := range []struct {
		name     string
		policies []upgradeconfig.Policy
		current  *upgradeconfig.UpgradeConfig
		now      time.Time
		o        upgradeconfig.ExplainOptions
		want     []string
	}{
		{name: "nothing", want: []string{"no policy counts", "nothing to do: there is no policy and no UpgradeConfig"}},
		{name: "ignored", policies: []upgradeconfig.Policy{policy("p-7", "Pending", specA)}, current: running,
			want: []string{"policy p-7 ignored: pending", "no policy counts", "will delete: there is no policy"}},
		{name: "create", policies: []upgradeconfig.Policy{policy("p-9", "scheduled", specB), policy("p-7", "scheduled", specA)},
			want: []string{counts, "policy p-9 has to wait for policy p-7", "will create: there is a policy but no UpgradeConfig", "starts in 2h0m, window ends 2031-02-04T05:00:00Z"}},
		{name: "replace", policies: []upgradeconfig.Policy{policy("p-7", "", later)}, current: object(specA, upgradeconfig.Status{}), o: upgradeconfig.ExplainOptions{Faults: []error{errors.New("4.20.3 is not in fast-4.20")}},
			want: []string{"policy p-7 counts: 4.20.3 from stable-4.20 at 2031-02-04T04:00:00Z", "will replace: the UpgradeConfig differs from the policy (upgradeAt: 2031-02-04T03:00:00Z → 2031-02-04T04:00:00Z)",
				"starts in 3h0m, window ends 2031-02-04T06:00:00Z", "not valid: 4.20.3 is not in fast-4.20"}},
		{name: "replace while it upgrades", policies: []upgradeconfig.Policy{policy("p-7", "", later)}, current: running,
			want: []string{"policy p-7 counts: 4.20.3 from stable-4.20 at 2031-02-04T04:00:00Z", "will replace: the UpgradeConfig differs from the policy (upgradeAt: 2031-02-04T03:00:00Z → 2031-02-04T04:00:00Z)",
				"starts in 3h0m, window ends 2031-02-04T06:00:00Z"}},
		{name: "update", policies: []upgradeconfig.Policy{policy("p-7", "", later)}, current: object(specA, upgradeconfig.Status{}), o: upgradeconfig.ExplainOptions{DiffOptions: upgradeconfig.DiffOptions{Update: true}},
			want: []string{"policy p-7 counts: 4.20.3 from stable-4.20 at 2031-02-04T04:00:00Z", "will update in place: the UpgradeConfig differs from the policy, but not in its release (upgradeAt: 2031-02-04T03:00:00Z → 2031-02-04T04:00:00Z)",
				"starts in 3h0m, window ends 2031-02-04T06:00:00Z"}},
		{name: "hold", current: running, o: upgradeconfig.ExplainOptions{DiffOptions: upgradeconfig.DiffOptions{KeepWhileUpgrading: true, InProgress: true}},
			want: []string{"no policy counts", "will leave it as it is: there is no policy, but its upgrade is in progress", "upgrading for 30m, StartedNotificationSent: StartedNotificationSent is completed"}},
		{name: "due", policies: []upgradeconfig.Policy{policy("p-7", "", specA)}, current: object(specA, upgradeconfig.Status{}), now: at("2031-02-04T03:00:10Z"),
			want: []string{counts, inStep, "due for 10s, window ends 2031-02-04T05:00:00Z"}},
		{name: "late", policies: []upgradeconfig.Policy{policy("p-7", "", specA)}, current: object(specA, upgradeconfig.Status{}), now: at("2031-02-04T05:00:00Z"),
			want: []string{counts, inStep, "due for 2h0m, window ended 2031-02-04T05:00:00Z"}},
		{name: "own window", policies: []upgradeconfig.Policy{policy("p-7", "", specA)}, current: object(specA, upgradeconfig.Status{}), o: upgradeconfig.ExplainOptions{TimeOut: time.Hour},
			want: []string{counts, inStep, "starts in 2h0m, window ends 2031-02-04T04:00:00Z"}},
		{name: "no window", policies: []upgradeconfig.Policy{policy("p-7", "", specA)}, current: object(specA, upgradeconfig.Status{}), o: upgradeconfig.ExplainOptions{TimeOut: -1},
			want: []string{counts, inStep, "starts in 2h0m"}},
		{name: "no time", policies: []upgradeconfig.Policy{{ID: "p-7", Spec: never}}, current: object(never, upgradeconfig.Status{}),
			want: []string{"policy p-7 counts: 4.20.3 from stable-4.20 at soon", inStep, `never starts: upgradeAt "soon" is not a time`}},
		{name: "upgraded", policies: []upgradeconfig.Policy{policy("p-7", "", specA)}, current: finished(upgradeconfig.PhaseUpgraded, &started),
			want: []string{counts, inStep, "upgraded at 2031-02-04T00:30:00Z"}},
		{name: "failed", policies: []upgradeconfig.Policy{policy("p-7", "", specA)}, current: finished(upgradeconfig.PhaseFailed, nil),
			want: []string{counts, inStep, "the upgrade failed, and is not tried again for this UpgradeConfig"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.now.IsZero() {
				tt.now = now
			}
			if d := cmp.Diff(tt.want, upgradeconfig.Explain(tt.policies, tt.current, tt.now, tt.o)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestMetrics(t *testing.T) {
	m := &upgradeconfig.Metrics{ClusterID: "c-1"}
	start := at("2031-02-04T03:00:00Z")
	send := func(typ upgradeconfig.EventType, set func(*upgradeconfig.Event)) {
		start = start.Add(time.Minute)
		e := upgradeconfig.Event{Type: typ, Time: start, Name: upgradeconfig.Name, Version: "4.20.3", PrecedingVersion: "4.19.9"}
		if set != nil {
			set(&e)
		}
		m.Observe(e)
	}
	phase := func(p upgradeconfig.Phase, alerts ...string) {
		send(upgradeconfig.EventPhase, func(e *upgradeconfig.Event) { e.Phase, e.Alerts = p, alerts })
	}
	step := func(typ upgradeconfig.ConditionType, status metav1.ConditionStatus, begun *metav1.Time) {
		send(upgradeconfig.EventStep, func(e *upgradeconfig.Event) {
			e.Condition = &upgradeconfig.Condition{Type: typ, Status: status, StartTime: begun}
		})
	}
	check := func(want ...string) {
		t.Helper()
		var got []string
		for _, s := range m.Samples() {
			got = append(got, s.String())
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
	check()
	send(upgradeconfig.EventCreated, nil)
	send(upgradeconfig.EventSynced, nil)
	send(upgradeconfig.EventFailed, nil) // changes nothing
	send(upgradeconfig.EventValidated, func(e *upgradeconfig.Event) { e.Err = errors.New("bad") })
	const sync = `upgradeoperator_upgradeconfig_sync_timestamp{upgradeconfig_name="managed-upgrade-config"} 1927940520`
	check(sync, `upgradeoperator_upgradeconfig_validation_failed{upgradeconfig_name="managed-upgrade-config"} 1`)
	send(upgradeconfig.EventValidated, nil)
	check(sync, `upgradeoperator_upgradeconfig_validation_failed{upgradeconfig_name="managed-upgrade-config"} 0`)
	notification := &upgradeconfig.Notification{State: upgradeconfig.StateStarted, Version: "4.20.3"}
	send(upgradeconfig.EventNotified, func(e *upgradeconfig.Event) { e.Notification, e.Err = notification, errors.New("down") })
	const failed = `upgrade_notification_failed{event="StateStarted",upgradeconfig_name="managed-upgrade-config"} `
	check(failed+"1", sync, `upgradeoperator_upgradeconfig_validation_failed{upgradeconfig_name="managed-upgrade-config"} 0`)
	send(upgradeconfig.EventNotified, func(e *upgradeconfig.Event) { e.Notification = notification })
	send(upgradeconfig.EventBreached, nil)
	phase(upgradeconfig.PhaseUpgrading)
	step(upgradeconfig.UpgradeCommenced, metav1.ConditionFalse, nil)
	step(upgradeconfig.UpgradeCommenced, metav1.ConditionTrue, nil)
	step(upgradeconfig.ControlPlaneUpgraded, metav1.ConditionTrue, nil)
	begun := metav1.NewTime(start)
	step(upgradeconfig.WorkerNodesUpgraded, metav1.ConditionFalse, &begun)
	step(upgradeconfig.WorkerNodesUpgraded, metav1.ConditionFalse, &begun)
	step(upgradeconfig.WorkerNodesUpgraded, metav1.ConditionTrue, &begun)
	phase(upgradeconfig.PhaseUpgraded, "KubeAPIDown", `Quoted"Alert`)
	const labels = `{_id="c-1",upgradeconfig_name="managed-upgrade-config",version="4.20.3"} `
	const result = `upgradeoperator_upgrade_result{alerts="KubeAPIDown,Quoted\"Alert",preceding_version="4.19.9",stream="y",upgradeconfig_name="managed-upgrade-config",version="4.20.3"} 0`
	check(
		failed+"0",
		"upgradeoperator_controlplane_upgrade_completed_timestamp"+labels+"1927941120",
		"upgradeoperator_controlplane_upgrade_started_timestamp"+labels+"1927941060",
		"upgradeoperator_upgrade_completed_timestamp"+labels+"1927941360",
		`upgradeoperator_upgrade_notification{event="StateStarted",upgradeconfig_name="managed-upgrade-config",version="4.20.3"} 1`,
		result,
		"upgradeoperator_upgrade_started_timestamp"+labels+"1927940940",
		`upgradeoperator_upgrade_window_breached{upgradeconfig_name="managed-upgrade-config"} 1`,
		sync,
		`upgradeoperator_upgradeconfig_validation_failed{upgradeconfig_name="managed-upgrade-config"} 0`,
		"upgradeoperator_workernode_upgrade_completed_timestamp"+labels+"1927941300",
		"upgradeoperator_workernode_upgrade_started_timestamp"+labels+"1927941120",
	)
	for _, typ := range []upgradeconfig.EventType{upgradeconfig.EventDeleted, upgradeconfig.EventCreated, upgradeconfig.EventReplaced} {
		send(upgradeconfig.EventBreached, nil)
		send(typ, nil)
		check(result)
	}
	m.Samples()[0].Labels["stream"] = "changed by a reader"
	check(result)
	for _, tt := range []struct{ from, to, stream string }{{"4.20.1", "4.20.3", "z"}, {"4.22.1", "5.0.0", "y"}, {"", "4.20.3", "unknown"}} {
		m := &upgradeconfig.Metrics{}
		m.Observe(upgradeconfig.Event{Type: upgradeconfig.EventPhase, Phase: upgradeconfig.PhaseUpgraded, PrecedingVersion: tt.from, Version: tt.to, Time: start})
		for _, s := range m.Samples() {
			if s.Name == upgradeconfig.MetricUpgradeResult && (s.Labels["stream"] != tt.stream || s.Value != 1) {
				t.Errorf("%+v", s)
			}
		}
	}
	// Events without what they should have do no harm.
	m.Observe(upgradeconfig.Event{Type: upgradeconfig.EventStep})
	m.Observe(upgradeconfig.Event{Type: upgradeconfig.EventNotified})
	check(result)
}
