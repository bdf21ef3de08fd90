package openshift

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Alert is what clusterapi.Alert is: values of one convert to the other. Its texts are
// those of oc and the cluster-version operator.
type Alert struct {
	Labels      map[string]string
	Annotations map[string]string
	State       string
	ActiveAt    time.Time
}

// Alerts of budgets that pods are at, or below.
const (
	BudgetAtLimit = "PodDisruptionBudgetAtLimit"
	BudgetLimit   = "PodDisruptionBudgetLimit"
)

// NoRunbook is the text for an alert without a runbook_url annotation.
const NoRunbook = "<alert does not have a runbook_url annotation>"

// AlertClass is a kind of alerts that should be looked at before an update.
type AlertClass struct {
	Name     string
	Why      string // to look at it
	Optional bool   // oc does not mention the class if no alert has it

	has func(*Alert) bool
}

const slowsNodes = "which may slow workload redistribution during rolling node updates"

// AlertClasses returns the classes in the order in which they are tried.
func AlertClasses() []AlertClass {
	return []AlertClass{
		{Name: "CriticalAlerts", Why: "suggesting significant cluster issues worth investigating", has: (*Alert).IsCritical},
		{Name: "PodDisruptionBudgetAlerts", Why: "which might slow node drains", has: hasName(BudgetAtLimit)},
		{Name: "PodImagePullAlerts", Why: slowsNodes, has: hasName("KubeContainerWaiting")},
		{Name: "NodeAlerts", Why: slowsNodes,
			has: hasName("KubeletHealthState", "KubeNodeNotReady", "KubeNodeReadinessFlapping", "KubeNodeUnreachable")},
		{Name: "UpdatePrecheckAlerts", Why: "suggesting issues worth investigating before updating the cluster",
			has: func(a *Alert) bool { return a.Labels["openShiftUpdatePrecheck"] == "true" }},
		{Name: "VirtAlerts", Why: slowsNodes, has: hasName("VirtHandlerDaemonSetRolloutFailing", "VMCannotBeEvicted"), Optional: true},
	}
}

// AlertClassOf returns the index of the first of the classes that has the alert. It
// returns -1 if none has, and if the alert does not count.
func AlertClassOf(classes []AlertClass, a *Alert) int {
	if !a.Counts() {
		return -1
	}
	return slices.IndexFunc(classes, func(c AlertClass) bool { return c.has(a) })
}

func hasName(names ...string) func(*Alert) bool {
	return func(a *Alert) bool { return slices.Contains(names, a.Name()) }
}

// Name returns the name of the alert's rule.
func (a *Alert) Name() string { return a.Labels["alertname"] }

// Counts reports whether the alert has a name and is not pending.
func (a *Alert) Counts() bool { return a.Name() != "" && a.State != "pending" }

// IsCritical reports whether the alert's severity is critical.
func (a *Alert) IsCritical() bool { return a.Labels["severity"] == "critical" }

// Summary returns the alert's own summary, or its name.
func (a *Alert) Summary() string { return cmp.Or(a.Annotations["summary"], a.Name()) }

// Sentence returns the summary with a full stop.
func (a *Alert) Sentence() string {
	summary := a.Summary()
	if !strings.HasSuffix(summary, ".") {
		summary += "."
	}
	return summary
}

// Description returns what the alert says of itself beyond its summary.
func (a *Alert) Description() string {
	description, message := a.Annotations["description"], a.Annotations["message"]
	switch {
	case description != "" && message != "":
		return "The alert description is: " + description + " | " + message
	case description != "" || message != "":
		return "The alert description is: " + description + message
	}
	return "The alert has no description."
}

// Runbook returns the alert's runbook_url, or [NoRunbook].
func (a *Alert) Runbook() string { return cmp.Or(a.Annotations["runbook_url"], NoRunbook) }

// Message reports that the alert fires and why to look at it. With budget it names
// the budget that the alert is about.
func (a *Alert) Message(why string, budget bool) string {
	text := a.Labels["severity"] + " alert " + a.Name() + " " + a.State + ", " + why + ". "
	if budget {
		text += "Namespace=" + a.Labels["namespace"] + ", PodDisruptionBudget=" + a.Labels["poddisruptionbudget"] + ". "
	}
	return text + a.Sentence() + " " + a.Description() + " " + a.Runbook()
}
