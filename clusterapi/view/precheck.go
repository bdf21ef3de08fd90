package view

import (
	"context"
	"fmt"
	"strconv"

	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// Precheck is what a check before an update found. It is plain data. The
// conditions count even beside an error.
type Precheck struct {
	Conditions []PrecheckCondition
	Err        error // why not all could be checked; nil if it was
}

// PrecheckCondition is one finding: True is no cause for concern, anything else
// is one. It is plain data.
type PrecheckCondition struct {
	Condition
	// AcceptanceName is the name of the issue, by which it is accepted. Empty
	// means the condition's type.
	AcceptanceName string `json:"acceptanceName,omitempty"`
	// Accepted is a result: [AssessRecommend] sets it.
	Accepted bool `json:"accepted,omitempty"`
}

// PrecheckFunc looks for causes for concern. It may return conditions together
// with an error, which says why there may be more. It need not be safe for
// concurrent use.
type PrecheckFunc func(context.Context) ([]PrecheckCondition, error)

// RunPrechecks calls the checks one after the other. A check that panics has
// failed with an error that says so. It can be called concurrently if the checks
// can.
func RunPrechecks(ctx context.Context, checks ...PrecheckFunc) []Precheck {
	found := make([]Precheck, len(checks))
	for i, check := range checks {
		found[i].Err = panics.Catch(func() (err error) {
			found[i].Conditions, err = check(ctx)
			return err
		})
	}
	return found
}

// AlertPrecheck returns a check of the alerts that fetch returns as an answer of
// the monitoring's API (see [DecodeAlerts]). The check fails when fetch does, and
// for an answer that cannot be decoded.
func AlertPrecheck(fetch func(context.Context) ([]byte, error)) PrecheckFunc {
	return func(ctx context.Context) ([]PrecheckCondition, error) {
		answer, err := fetch(ctx)
		if err != nil {
			return nil, fmt.Errorf("fetching alerts: %w", err)
		}
		alerts, err := DecodeAlerts(answer)
		if err != nil {
			return nil, err
		}
		return CheckAlerts(alerts), nil
	}
}

// alertClass is a kind of alerts that should be looked at before an update.
type alertClass struct {
	name string
	why  string // to look at it
	has  func(*Alert) bool
	// optional classes are not mentioned without a hit.
	optional bool
}

const slowsNodes = "which may slow workload redistribution during rolling node updates."

// alertClasses are in the order in which they are tried and mentioned.
var alertClasses = []alertClass{
	{name: "CriticalAlerts", why: "suggesting significant cluster issues worth investigating.", has: (*Alert).isCritical},
	{name: "PodDisruptionBudgetAlerts", why: "which might slow node drains.", has: hasName(budgetAtLimit)},
	{name: "PodImagePullAlerts", why: slowsNodes, has: hasName("KubeContainerWaiting")},
	{name: "NodeAlerts", why: slowsNodes, has: hasName("KubeletHealthState", "KubeNodeNotReady", "KubeNodeReadinessFlapping", "KubeNodeUnreachable")},
	{name: "UpdatePrecheckAlerts", why: "suggesting issues worth investigating before updating the cluster.", has: func(a *Alert) bool { return a.Labels["openShiftUpdatePrecheck"] == "true" }},
	{name: "VirtAlerts", why: slowsNodes, has: hasName("VirtHandlerDaemonSetRolloutFailing", "VMCannotBeEvicted"), optional: true},
}

// Alerts of budgets that pods are at, or below.
const (
	budgetAtLimit = "PodDisruptionBudgetAtLimit"
	budgetLimit   = "PodDisruptionBudgetLimit"
)

// CheckAlerts looks for alerts that should be looked at before an update: a
// condition that is False for each, in their order, then one that is True for
// each class without any. It can be called concurrently.
func CheckAlerts(alerts []Alert) []PrecheckCondition {
	conditions := []PrecheckCondition{}
	hit := make([]bool, len(alertClasses))
	for i := range alerts {
		a := &alerts[i]
		if a.name() == "" || a.State == "pending" {
			continue
		}
		class := classOf(a)
		if class < 0 {
			continue
		}
		hit[class] = true
		if a.isCritical() && a.name() == budgetLimit {
			hit[1] = true // a budget's alert as well
		}
		conditions = append(conditions, a.condition(&alertClasses[class], len(conditions)))
	}
	for i, class := range alertClasses {
		if !hit[i] && !class.optional {
			conditions = append(conditions, PrecheckCondition{Condition: Condition{Type: "recommended/" + class.name, Status: statusTrue, Reason: "AsExpected"}})
		}
	}
	return conditions
}

// classOf returns the index of the first class that has the alert, -1 without
// one.
func classOf(a *Alert) int {
	for i, class := range alertClasses {
		if class.has(a) {
			return i
		}
	}
	return -1
}

// condition says why to look at the alert; number tells it from others of its
// name.
func (a *Alert) condition(class *alertClass, number int) PrecheckCondition {
	summary := a.summary()
	if summary[len(summary)-1] != '.' {
		summary += "."
	}
	details := summary + " " + a.description() + " " + a.runbook()
	if a.name() == budgetAtLimit || a.isCritical() && a.name() == budgetLimit {
		details = "Namespace=" + a.Labels["namespace"] + ", PodDisruptionBudget=" + a.Labels["poddisruptionbudget"] + ". " + details
	}
	return PrecheckCondition{
		Condition: Condition{
			Type:    "recommended/" + class.name + "/" + a.name() + "/" + strconv.Itoa(number),
			Status:  statusFalse,
			Reason:  "Alert:" + a.State,
			Message: a.Labels["severity"] + " alert " + a.name() + " " + a.State + ", " + class.why + " " + details,
			Since:   a.ActiveAt,
		},
		AcceptanceName: a.name(),
	}
}

func (a *Alert) isCritical() bool { return a.Labels["severity"] == "critical" }

// hasName returns whether an alert has one of the names.
func hasName(names ...string) func(*Alert) bool {
	return func(a *Alert) bool {
		for _, name := range names {
			if a.name() == name {
				return true
			}
		}
		return false
	}
}
