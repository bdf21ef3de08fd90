package risk

import (
	"cmp"
	"context"
	"slices"
	"sync"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/internal/schema"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// AlertRisks is the [RiskSource] of alerts that fire: each that bears on updates is
// a risk to all of them. Where the alerts cannot be read, it continues with those
// that it read last, however old; only [AlertRisks.Stale] shows that, as with the
// cluster-version operator. It is safe for concurrent use and must not be copied.
type AlertRisks struct {
	Alerts AlertSource

	mu   sync.Mutex
	last []clusterapi.Alert
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
	firing, err := a.Alerts.Firing(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
	if err == nil {
		a.last = firing
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

// Stale returns the error of the last reading of the alerts, nil if absent.
func (a *AlertRisks) Stale() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

const noRunbookURL = "https://github.com/openshift/runbooks/tree/master/alerts?runbook=notfound"

// OfAlerts makes risks of alerts, sorted by name: of alerts that are critical, that
// slow drains or the redistribution of workloads, or that say themselves that they
// are to be looked at before an update. Pending ones and those without a name are
// left out. Alerts of one name are one risk. Names that a risk cannot have are left
// to [Merge] to refuse.
func OfAlerts(firing []clusterapi.Alert) []configv1.ConditionalUpdateRisk {
	var risks []configv1.ConditionalUpdateRisk
	var messages [][]string
	classes, known := openshift.AlertClasses(), map[string]int{}
	for i := range firing {
		a := (*openshift.Alert)(&firing[i])
		class := openshift.AlertClassOf(classes, a)
		if class < 0 {
			continue
		}
		risk := riskOfAlert(a, classes[class].Why)
		at, ok := known[risk.Name]
		if !ok {
			at = len(risks)
			known[risk.Name] = at
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

func riskOfAlert(a *openshift.Alert, why string) configv1.ConditionalUpdateRisk {
	url := a.Annotations["runbook_url"]
	if url == "" || !schema.IsURI(url) {
		url = noRunbookURL // the API server would refuse it; the message still has it
	}
	reason := "Alert:" + a.State
	if a.State == "" {
		reason = "Alert"
	}
	budget := a.Name() == openshift.BudgetLimit && a.IsCritical() || a.Name() == openshift.BudgetAtLimit && !a.IsCritical()
	return configv1.ConditionalUpdateRisk{
		Name: a.Name(), Message: a.Sentence(), URL: url,
		MatchingRules: []configv1.ClusterCondition{{Type: graph.RuleAlways}},
		Conditions: []metav1.Condition{{
			Type: graph.ConditionApplies, Status: metav1.ConditionTrue, Reason: reason,
			Message: a.Message(why, budget), LastTransitionTime: metav1.NewTime(a.ActiveAt),
		}},
	}
}
