package upgrade_test

import (
	"errors"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestMetrics(t *testing.T) {
	m := &upgrade.Metrics{ClusterID: "c-1"}
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
		m := &upgrade.Metrics{}
		m.Observe(upgradeconfig.Event{Type: upgradeconfig.EventPhase, Phase: upgradeconfig.PhaseUpgraded, PrecedingVersion: tt.from, Version: tt.to, Time: start})
		for _, s := range m.Samples() {
			if s.Name == upgrade.MetricUpgradeResult && (s.Labels["stream"] != tt.stream || s.Value != 1) {
				t.Errorf("%+v", s)
			}
		}
	}
	// Events without what they should have do no harm.
	m.Observe(upgradeconfig.Event{Type: upgradeconfig.EventStep})
	m.Observe(upgradeconfig.Event{Type: upgradeconfig.EventNotified})
	check(result)
}
