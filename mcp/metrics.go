package mcp

import (
	"slices"
	"strings"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// The metrics of the machine-config operator, controller (MCC) and daemons (MCD) that
// can be derived from objects.
const (
	metricPoolAlert    = "mcc_pool_alert"   // {node}: a custom role of a control plane node is ignored
	metricDrainError   = "mcc_drain_err"    // {node}: its drain has been failing for more than an hour
	metricState        = "mcd_state"        // {node,state,reason}: the time of the sample, in seconds
	metricConfigDrift  = "mcd_config_drift" // {node}: likewise where files have drifted; 0 elsewhere
	metricMachines     = "mco_machine_count"
	metricUpdated      = "mco_updated_machine_count"
	metricDegraded     = "mco_degraded_machine_count"
	metricUnavailable  = "mco_unavailable_machine_count"
	metricRebootFailed = "mcd_reboots_failed_total"
	metricPivotErrors  = "mcd_pivot_errors_total"
	metricKubelet      = "mcd_kubelet_state"
	metricMissing      = "mcd_missing_mc"
	metricPausedCA     = "machine_config_controller_paused_pool_kubelet_ca"
)

// MetricsInput is what metrics need beside the objects. The zero value is nothing.
type MetricsInput struct {
	Now time.Time
	// DrainErrors are the nodes whose drains have been failing for more than an
	// hour: those for which package rollout has reported DrainFailed, until it
	// reports that they are drained.
	DrainErrors []string
}

// Metrics returns the metrics of pools and nodes, by name and labels. Counts of pools
// are those of their stored status, which is where the operator takes them from. The
// label node of metrics of daemons is the one that a scrape adds. It costs
// O(n log n), and is safe to call while the state is read.
//
// What daemons alone know has no metric: how often a reboot or a change of the OS
// image failed, whether the kubelet answers, and whether a config is missing. [Alerts]
// names the alerts on these too.
func (s *State) Metrics(in MetricsInput) []clusterapi.Sample {
	var out []clusterapi.Sample
	add := func(name string, value float64, labels ...string) {
		m := clusterapi.Sample{Name: name, Labels: make(map[string]string, len(labels)/2), Value: value}
		for i := 0; i+1 < len(labels); i += 2 {
			m.Labels[labels[i]] = labels[i+1]
		}
		out = append(out, m)
	}
	now := float64(in.Now.Unix())
	if in.Now.IsZero() {
		now = 0
	}
	errors := slices.Clone(in.DrainErrors)
	slices.Sort(errors)
	for _, node := range slices.Compact(errors) {
		if s.nodes[node] != nil { // it goes with its node
			add(metricDrainError, 1, "node", node)
		}
	}
	nodes := sortedValues(s.nodes)
	for _, n := range nodes {
		if n.assign.Alert {
			add(metricPoolAlert, 1, "node", n.state.Name)
		}
	}
	for _, n := range nodes {
		if n.state.Managed() {
			drift := 0.0
			if drifted(n.state) {
				drift = now
			}
			add(metricConfigDrift, drift, "node", n.state.Name)
		}
	}
	for _, n := range nodes {
		if n.state.Managed() {
			// A daemon takes a state that is not there for Done.
			state := n.state.State
			if state == "" {
				state = StateDone
			}
			add(metricState, now, "node", n.state.Name, "state", state, "reason", n.state.Reason)
		}
	}
	pools := sortedValues(s.pools)
	for _, m := range []struct {
		name string
		of   func(*poolRecord) int32
	}{
		{metricDegraded, func(p *poolRecord) int32 { return p.pool.Status.DegradedMachineCount }},
		{metricMachines, func(p *poolRecord) int32 { return p.pool.Status.MachineCount }},
		{metricUnavailable, func(p *poolRecord) int32 { return p.pool.Status.UnavailableMachineCount }},
		{metricUpdated, func(p *poolRecord) int32 { return p.pool.Status.UpdatedMachineCount }},
	} {
		for _, p := range pools {
			add(m.name, float64(m.of(p)), "pool", p.name)
		}
	}
	return out
}

// drifted reports that a daemon found files that are not as it wrote them: it is
// degraded and not on its way to anything.
func drifted(n NodeState) bool {
	return n.Degraded() && n.ConfigDone() &&
		(strings.Contains(n.Reason, "content mismatch for file") || strings.Contains(n.Reason, "mode mismatch for file"))
}

// AlertingRule is an alerting rule that clusters have.
type AlertingRule struct {
	Name string
	// Expr is the expression, in the language of Prometheus, and For how long it
	// must hold.
	Expr     string
	For      time.Duration
	Severity string
	// Text describes what it means and what to do.
	Text string
}

// Alerts returns the alerting rules on the metrics of pools and nodes that a cluster of a
// minor version has, such as 4 and 18 for 4.18.
func Alerts(major, minor uint64) []AlertingRule {
	const critical, warning = "critical", "warning"
	all := []AlertingRule{
		{"MCCDrainError", metricDrainError + " > 0", 0, warning,
			"the drain of a node has been failing for more than an hour; see what blocks it and the events DrainFailed of the node"},
		{"MCCPoolAlert", metricPoolAlert + " > 0", 0, warning,
			"a control plane node has the role of a custom pool, which is ignored: remove the label"},
		{"MCDRebootError", metricRebootFailed + " > 0", 5 * time.Minute, critical,
			"a node could not be rebooted, and its update is stuck: reboot it"},
		{"MCDPivotError", metricPivotErrors + " > 0", 2 * time.Minute, warning,
			"a node could not change to its new OS image: see the log of its machine-config-daemon"},
		{"KubeletHealthState", metricKubelet + " > 2", 0, warning,
			"the kubelet of a node does not answer"},
	}
	is := openshift.Minor{Major: major, Minor: minor}
	within := func(first, last openshift.Minor) bool { return !first.Above(is) && !is.Above(last) }
	if within(openshift.Minor{Major: 4, Minor: 17}, openshift.Minor{Major: 4, Minor: 18}) {
		all = append(all, AlertingRule{"MissingMachineConfig", metricMissing + " > 0", 0, warning,
			"a node wants a MachineConfig that does not exist: restore it, or give the node another one"})
	}
	// Later daemons write a new certificate authority whether or not their pool is paused.
	if within(openshift.Minor{Major: 4, Minor: 10}, openshift.Minor{Major: 4, Minor: 13}) {
		all = append(all, AlertingRule{"MachineConfigControllerPausedPoolKubeletCA", metricPausedCA + " > 0", time.Hour, warning,
			"a new certificate authority of kubelets waits for a paused pool: unpause it"})
	}
	return all
}
