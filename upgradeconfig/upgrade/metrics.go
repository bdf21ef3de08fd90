package upgrade

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

// Metrics turns events into the metrics of the managed-upgrade operator. They are
// plain data: the caller publishes them. The zero value
// works, and is safe for concurrent use.
type Metrics struct {
	// ClusterID is the label _id of times; may be empty.
	ClusterID string

	mu      sync.Mutex
	samples map[string]clusterapi.Sample
}

// The names of metrics.
const (
	metricSyncTimestamp      = "upgradeoperator_upgradeconfig_sync_timestamp"
	metricValidationFailed   = "upgradeoperator_upgradeconfig_validation_failed"
	metricWindowBreached     = "upgradeoperator_upgrade_window_breached"
	metricNotification       = "upgradeoperator_upgrade_notification"
	metricNotificationFailed = "upgrade_notification_failed" // without a prefix
	metricUpgradeResult      = "upgradeoperator_upgrade_result"

	metricUpgradeStarted        = "upgradeoperator_upgrade_started_timestamp"
	metricUpgradeCompleted      = "upgradeoperator_upgrade_completed_timestamp"
	metricControlPlaneStarted   = "upgradeoperator_controlplane_upgrade_started_timestamp"
	metricControlPlaneCompleted = "upgradeoperator_controlplane_upgrade_completed_timestamp"
	metricWorkersStarted        = "upgradeoperator_workernode_upgrade_started_timestamp"
	metricWorkersCompleted      = "upgradeoperator_workernode_upgrade_completed_timestamp"
)

// Observe takes an event; it is a function for Observe of options. When the
// UpgradeConfig is created, replaced or deleted, all metrics but the results of
// upgrades go.
func (m *Metrics) Observe(e clusterapi.Event) {
	d, ok := e.Data.(*upgradeconfig.EventData)
	if !ok {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	name := map[string]string{"upgradeconfig_name": strings.TrimPrefix(e.Subject, "upgradeconfig/")}
	timed := with(name, "_id", m.ClusterID, "version", d.Version)
	switch e.Type {
	case upgradeconfig.EventCreated, upgradeconfig.EventReplaced, upgradeconfig.EventDeleted:
		maps.DeleteFunc(m.samples, func(_ string, s clusterapi.Sample) bool { return s.Name != metricUpgradeResult })
	case upgradeconfig.EventSynced:
		m.set(metricSyncTimestamp, name, unix(e.Time))
	case upgradeconfig.EventValidated:
		m.set(metricValidationFailed, name, number(e.Err != nil))
	case upgradeconfig.EventBreached:
		m.set(metricWindowBreached, name, 1)
	case upgradeconfig.EventNotified:
		if d.Notification == nil {
			return
		}
		event := with(name, "event", string(d.Notification.State))
		m.set(metricNotificationFailed, event, number(e.Err != nil))
		if e.Err == nil {
			m.set(metricNotification, with(event, "version", d.Notification.Version), 1)
		}
	case upgradeconfig.EventPhase:
		switch d.Phase {
		case upgradeconfig.PhaseUpgrading:
			m.set(metricUpgradeStarted, timed, unix(e.Time))
		case upgradeconfig.PhaseUpgraded:
			m.set(metricUpgradeCompleted, timed, unix(e.Time))
			m.set(metricUpgradeResult, with(name, "version", d.Version, "preceding_version", d.PrecedingVersion,
				"stream", stream(d.PrecedingVersion, d.Version), "alerts", strings.Join(d.Alerts, ",")), number(len(d.Alerts) == 0))
		}
	case upgradeconfig.EventStep:
		if d.Condition == nil {
			return
		}
		done := d.Condition.Status == "True"
		switch t := d.Condition.Type; {
		case t == upgradeconfig.UpgradeCommenced && done:
			m.set(metricControlPlaneStarted, timed, unix(e.Time))
		case t == upgradeconfig.ControlPlaneUpgraded && done:
			m.set(metricControlPlaneCompleted, timed, unix(e.Time))
		case t == upgradeconfig.WorkerNodesUpgraded && done:
			m.set(metricWorkersCompleted, timed, unix(e.Time))
		case t == upgradeconfig.WorkerNodesUpgraded && d.Condition.StartTime != nil:
			m.set(metricWorkersStarted, timed, unix(d.Condition.StartTime.Time)) // not the time of a later look at it
		}
	}
}

// Samples returns the metrics, sorted by their names and labels.
func (m *Metrics) Samples() []clusterapi.Sample {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []clusterapi.Sample
	for _, key := range slices.Sorted(maps.Keys(m.samples)) {
		s := m.samples[key]
		s.Labels = maps.Clone(s.Labels)
		out = append(out, s)
	}
	return out
}

func (m *Metrics) set(name string, labels map[string]string, value float64) {
	if m.samples == nil {
		m.samples = map[string]clusterapi.Sample{}
	}
	s := clusterapi.Sample{Name: name, Labels: labels}
	key := s.String()
	s.Value = value
	m.samples[key] = s
}

// with returns labels and more of them: names and values in turn.
func with(labels map[string]string, more ...string) map[string]string {
	labels = maps.Clone(labels)
	for i := 0; i < len(more); i += 2 {
		labels[more[i]] = more[i+1]
	}
	return labels
}

// stream reports whether an upgrade is to another minor version, y, or within one,
// z.
func stream(from, to string) string {
	a, errA := semver.NewVersion(from)
	b, errB := semver.NewVersion(to)
	switch {
	case errA != nil || errB != nil:
		return "unknown"
	case a.Major() == b.Major() && a.Minor() == b.Minor():
		return "z"
	}
	return "y"
}

func unix(t time.Time) float64 { return float64(t.Unix()) }

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
