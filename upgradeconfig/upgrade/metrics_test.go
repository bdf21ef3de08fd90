package upgrade_test

import (
	"errors"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestMetrics(t *testing.T) {
	m := &upgrade.Metrics{ClusterID: "c-1"}
	var failure error
	start := at("2031-02-04T03:00:00Z")
	send := func(typ clusterapi.EventType, set func(*upgradeconfig.EventData)) {
		start = start.Add(time.Minute)
		d := &upgradeconfig.EventData{Version: "4.20.3", PrecedingVersion: "4.19.9"}
		if set != nil {
			set(d)
		}
		m.Observe(clusterapi.Event{Type: typ, Time: start, Subject: "upgradeconfig/" + upgradeconfig.Name, Data: d, Err: failure})
	}
	phase := func(p upgradeconfig.Phase, alerts ...string) {
		send(upgradeconfig.EventPhase, func(e *upgradeconfig.EventData) { e.Phase, e.Alerts = p, alerts })
	}
	step := func(typ upgradeconfig.ConditionType, status metav1.ConditionStatus, begun *metav1.Time) {
		send(upgradeconfig.EventStep, func(e *upgradeconfig.EventData) {
			e.Condition = &upgradeconfig.Condition{Type: typ, Status: status, StartTime: begun}
		})
	}
	check := func(want ...string) {
		t.Helper()
		var got []string
		for _, s := range m.Samples() {
			got = append(got, s.String())
		}
		checktest.Same(t, want, got)
	}
	check()
	send(upgradeconfig.EventCreated, nil)
	send(upgradeconfig.EventSynced, nil)
	send(upgradeconfig.EventFailed, nil) // changes nothing
	failure = errors.New("bad")
	send(upgradeconfig.EventValidated, nil)
	failure = nil
	const sync = `upgradeoperator_upgradeconfig_sync_timestamp{upgradeconfig_name="managed-upgrade-config"} 1927940520`
	check(sync, `upgradeoperator_upgradeconfig_validation_failed{upgradeconfig_name="managed-upgrade-config"} 1`)
	send(upgradeconfig.EventValidated, nil)
	check(sync, `upgradeoperator_upgradeconfig_validation_failed{upgradeconfig_name="managed-upgrade-config"} 0`)
	notification := &upgradeconfig.Notification{State: upgradeconfig.StateStarted, Version: "4.20.3"}
	failure = errors.New("down")
	send(upgradeconfig.EventNotified, func(e *upgradeconfig.EventData) { e.Notification = notification })
	failure = nil
	const failed = `upgrade_notification_failed{event="StateStarted",upgradeconfig_name="managed-upgrade-config"} `
	check(failed+"1", sync, `upgradeoperator_upgradeconfig_validation_failed{upgradeconfig_name="managed-upgrade-config"} 0`)
	send(upgradeconfig.EventNotified, func(e *upgradeconfig.EventData) { e.Notification = notification })
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
	for _, typ := range []clusterapi.EventType{upgradeconfig.EventDeleted, upgradeconfig.EventCreated, upgradeconfig.EventReplaced} {
		send(upgradeconfig.EventBreached, nil)
		send(typ, nil)
		check(result)
	}
	m.Samples()[0].Labels["stream"] = "changed by a reader"
	check(result)
	for _, tt := range []struct{ from, to, stream string }{{"4.20.1", "4.20.3", "z"}, {"4.22.1", "5.0.0", "y"}, {"", "4.20.3", "unknown"}} {
		m := &upgrade.Metrics{}
		m.Observe(clusterapi.Event{Type: upgradeconfig.EventPhase, Time: start, Data: &upgradeconfig.EventData{Phase: upgradeconfig.PhaseUpgraded, PrecedingVersion: tt.from, Version: tt.to}})
		for _, s := range m.Samples() {
			if s.Name == "upgradeoperator_upgrade_result" && (s.Labels["stream"] != tt.stream || s.Value != 1) {
				t.Errorf("%+v", s)
			}
		}
	}
	// Events without what they should have do no harm.
	m.Observe(clusterapi.Event{Type: upgradeconfig.EventStep})
	m.Observe(clusterapi.Event{Type: upgradeconfig.EventNotified, Data: &upgradeconfig.EventData{}})
	m.Observe(clusterapi.Event{Type: upgradeconfig.EventStep, Data: &upgradeconfig.EventData{}})
	check(result)
}
