package upgrade

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

// Metrics turns events into the metrics of the managed-upgrade operator. They are
// plain data: the caller publishes them. The zero value
// works, and is safe for concurrent use.
type Metrics struct {
	// ClusterID is the label _id of times; may be empty.
	ClusterID string

	mu      sync.Mutex
	samples map[string]Sample
}

// Sample is a metric with its labels and its value. Times are in seconds since
// 1970.
type Sample struct {
	Name   string
	Labels map[string]string
	Value  float64
}

// String is the sample in the text format of Prometheus.
func (s Sample) String() string {
	var labels []string
	for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
		value := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s.Labels[name])
		labels = append(labels, name+`="`+value+`"`)
	}
	return fmt.Sprintf("%s{%s} %.15g", s.Name, strings.Join(labels, ","), s.Value)
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
func (m *Metrics) Observe(e upgradeconfig.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := map[string]string{"upgradeconfig_name": e.Name}
	switch e.Type {
	case upgradeconfig.EventCreated, upgradeconfig.EventReplaced, upgradeconfig.EventDeleted:
		maps.DeleteFunc(m.samples, func(_ string, s Sample) bool { return s.Name != metricUpgradeResult })
	case upgradeconfig.EventSynced:
		m.set(metricSyncTimestamp, name, unix(e.Time))
	case upgradeconfig.EventValidated:
		m.set(metricValidationFailed, name, number(e.Err != nil))
	case upgradeconfig.EventBreached:
		m.set(metricWindowBreached, name, 1)
	case upgradeconfig.EventNotified:
		m.notified(e, name)
	case upgradeconfig.EventPhase:
		m.phase(e, name)
	case upgradeconfig.EventStep:
		m.step(e, name)
	}
}

// Samples returns the metrics, sorted by their names and labels.
func (m *Metrics) Samples() []Sample {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Sample
	for _, key := range slices.Sorted(maps.Keys(m.samples)) {
		s := m.samples[key]
		s.Labels = maps.Clone(s.Labels)
		out = append(out, s)
	}
	return out
}

func (m *Metrics) notified(e upgradeconfig.Event, labels map[string]string) {
	if e.Notification == nil {
		return
	}
	labels["event"] = string(e.Notification.State)
	m.set(metricNotificationFailed, maps.Clone(labels), number(e.Err != nil))
	if e.Err == nil {
		labels["version"] = e.Notification.Version
		m.set(metricNotification, labels, 1)
	}
}

func (m *Metrics) phase(e upgradeconfig.Event, labels map[string]string) {
	switch e.Phase {
	case upgradeconfig.PhaseUpgrading:
		m.time(metricUpgradeStarted, e, labels)
	case upgradeconfig.PhaseUpgraded:
		m.time(metricUpgradeCompleted, e, maps.Clone(labels))
		labels["version"], labels["preceding_version"] = e.Version, e.PrecedingVersion
		labels["stream"] = stream(e.PrecedingVersion, e.Version)
		labels["alerts"] = strings.Join(e.Alerts, ",")
		m.set(metricUpgradeResult, labels, number(len(e.Alerts) == 0))
	}
}

func (m *Metrics) step(e upgradeconfig.Event, labels map[string]string) {
	if e.Condition == nil {
		return
	}
	done := e.Condition.Status == "True"
	switch {
	case e.Condition.Type == upgradeconfig.UpgradeCommenced && done:
		m.time(metricControlPlaneStarted, e, labels)
	case e.Condition.Type == upgradeconfig.ControlPlaneUpgraded && done:
		m.time(metricControlPlaneCompleted, e, labels)
	case e.Condition.Type == upgradeconfig.WorkerNodesUpgraded && done:
		m.time(metricWorkersCompleted, e, labels)
	case e.Condition.Type == upgradeconfig.WorkerNodesUpgraded && e.Condition.StartTime != nil:
		e.Time = e.Condition.StartTime.Time // not that of a later look at it
		m.time(metricWorkersStarted, e, labels)
	}
}

func (m *Metrics) time(name string, e upgradeconfig.Event, labels map[string]string) {
	labels["_id"], labels["version"] = m.ClusterID, e.Version
	m.set(name, labels, unix(e.Time))
}

func (m *Metrics) set(name string, labels map[string]string, value float64) {
	if m.samples == nil {
		m.samples = map[string]Sample{}
	}
	s := Sample{Name: name, Labels: labels}
	key := s.String()
	s.Value = value
	m.samples[key] = s
}

// stream says whether an upgrade is to another minor version, y, or within one,
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
