package risk

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/internal/schema"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AlertRisks is the [RiskSource] of alerts that fire: each that bears on
// updates is a risk to all of them. Where the alerts cannot be read, it goes on
// with those that it read last, however old; [AlertRisks.Stale] alone
// tells, as with the cluster-version operator. It is safe for concurrent use and
// must not be copied.
type AlertRisks struct {
	Alerts AlertSource

	mu   sync.Mutex
	last []Alert
	err  error
}

var (
	_ RiskSource = (*AlertRisks)(nil)
	_ Targeter   = (*AlertRisks)(nil)
)

// Name is Alert.
func (a *AlertRisks) Name() string { return "Alert" }

// Risks returns the risks; the versions do not matter. The error is nil: see
// [AlertRisks.Stale].
func (a *AlertRisks) Risks(ctx context.Context, _ []string) ([]configv1.ConditionalUpdateRisk, error) {
	alerts, err := a.Alerts.Firing(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
	if err == nil {
		a.last = alerts
	}
	return OfAlerts(a.last), nil
}

// Targets returns the risks for all versions. The error is nil.
func (a *AlertRisks) Targets(ctx context.Context, versions []string) (Set, error) {
	risks, err := a.Risks(ctx, versions)
	r := Set{Risks: risks, Versions: map[string][]string{}}
	for _, risk := range risks {
		r.Versions[risk.Name] = versions
	}
	return r, err
}

// Stale returns the error of the last reading of the alerts, nil if there was
// none.
func (a *AlertRisks) Stale() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

const (
	noRunbookURL  = "https://github.com/openshift/runbooks/tree/master/alerts?runbook=notfound"
	noRunbookText = "<alert does not have a runbook_url annotation>"
)

// impactOf says what an alert means for an update, "" for nothing.
func impactOf(name string, labels map[string]string) string {
	switch {
	case labels["severity"] == "critical":
		return "suggesting significant cluster issues worth investigating"
	case name == "PodDisruptionBudgetAtLimit":
		return "which might slow node drains"
	}
	switch name {
	case "KubeContainerWaiting", "KubeletHealthState", "KubeNodeNotReady", "KubeNodeReadinessFlapping", "KubeNodeUnreachable",
		"VirtHandlerDaemonSetRolloutFailing", "VMCannotBeEvicted":
		return "which may slow workload redistribution during rolling node updates"
	}
	if labels["openShiftUpdatePrecheck"] == "true" {
		return "suggesting issues worth investigating before updating the cluster"
	}
	return ""
}

// OfAlerts makes risks of alerts, sorted by name: of those that are
// critical, that slow drains or the redistribution of workloads, or that say
// themselves that they are to be looked at before an update. Pending ones and
// those without a name are left out. Alerts of one name are one risk. Names that a
// risk cannot have are left to [Merge] to refuse.
func OfAlerts(alerts []Alert) []configv1.ConditionalUpdateRisk {
	var risks []configv1.ConditionalUpdateRisk
	var messages [][]string
	known := map[string]int{}
	for _, a := range alerts {
		name := a.Labels["alertname"]
		if name == "" || a.State == "pending" {
			continue
		}
		impact := impactOf(name, a.Labels)
		if impact == "" {
			continue
		}
		risk := riskOfAlert(name, impact, a)
		at, ok := known[name]
		if !ok {
			at = len(risks)
			known[name] = at
			risks, messages = append(risks, risk), append(messages, nil)
		}
		have, add := &risks[at].Conditions[0], risk.Conditions[0]
		messages[at] = append(messages[at], add.Message)
		if add.LastTransitionTime.Before(&have.LastTransitionTime) {
			have.LastTransitionTime = add.LastTransitionTime
		}
	}
	for i := range risks {
		risks[i].Conditions[0].Message = schema.JoinMessages(messages[i], "; ")
	}
	slices.SortFunc(risks, func(a, b configv1.ConditionalUpdateRisk) int { return cmp.Compare(a.Name, b.Name) })
	return risks
}

func riskOfAlert(name, impact string, a Alert) configv1.ConditionalUpdateRisk {
	summary := a.Annotations["summary"]
	if summary == "" {
		summary = name
	}
	if !strings.HasSuffix(summary, ".") {
		summary += "."
	}
	description, message := a.Annotations["description"], a.Annotations["message"]
	switch {
	case description != "" && message != "":
		description = " The alert description is: " + description + " | " + message
	case description != "" || message != "":
		description = " The alert description is: " + description + message
	default:
		description = " The alert has no description."
	}
	runbook, url := a.Annotations["runbook_url"], a.Annotations["runbook_url"]
	if runbook == "" {
		runbook, url = noRunbookText, noRunbookURL
	}
	if !schema.IsURI(url) {
		url = noRunbookURL // the API server would refuse it; the message has it all the same
	}
	details := summary + description + " " + runbook
	severity := a.Labels["severity"]
	reason := "Alert:" + a.State
	if a.State == "" {
		reason = "Alert"
	}
	if name == "PodDisruptionBudgetLimit" && severity == "critical" || name == "PodDisruptionBudgetAtLimit" && severity != "critical" {
		details = fmt.Sprintf("Namespace=%s, PodDisruptionBudget=%s. %s", a.Labels["namespace"], a.Labels["poddisruptionbudget"], details)
	}
	return configv1.ConditionalUpdateRisk{
		Name: name, Message: summary, URL: url,
		MatchingRules: []configv1.ClusterCondition{{Type: graph.RuleAlways}},
		Conditions: []metav1.Condition{{
			Type: graph.ConditionApplies, Status: metav1.ConditionTrue, Reason: reason,
			Message:            fmt.Sprintf("%s alert %s %s, %s. %s", severity, name, a.State, impact, details),
			LastTransitionTime: metav1.NewTime(a.ActiveAt),
		}},
	}
}
