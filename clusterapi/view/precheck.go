package view

import (
	"context"
	"fmt"
	"strconv"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// Precheck is what a check before an update found. It is plain data. The
// conditions count even beside an error.
type Precheck struct {
	Conditions []PrecheckCondition
	Err        error // why not all could be checked; nil if it was
}

// PrecheckCondition is one finding: anything but True is a cause for concern. It is
// plain data.
type PrecheckCondition struct {
	Condition
	// AcceptanceName is the name of the issue, by which it is accepted. Empty
	// means the condition's type.
	AcceptanceName string `json:"acceptanceName,omitempty"`
	// Accepted is a result: [AssessRecommend] sets it.
	Accepted bool `json:"accepted,omitempty"`
}

// PrecheckFunc looks for causes for concern. It may return conditions together with
// an error, which explains why there may be more. It need not be safe for
// concurrent use.
type PrecheckFunc func(context.Context) ([]PrecheckCondition, error)

// runPrechecks calls the checks one after the other. A check that panics has
// failed with an error that says so. It can be called concurrently if the checks
// can.
func runPrechecks(ctx context.Context, checks ...PrecheckFunc) []Precheck {
	found := make([]Precheck, len(checks))
	for i, check := range checks {
		found[i].Err = panics.Catch(func() (err error) {
			found[i].Conditions, err = check(ctx)
			return err
		})
	}
	return found
}

// alertPrecheck returns a check of the alerts that a function returns, such as the
// method Firing of a source. The check fails when the function does.
func alertPrecheck(firing func(context.Context) ([]clusterapi.Alert, error)) PrecheckFunc {
	return func(ctx context.Context) ([]PrecheckCondition, error) {
		alerts, err := firing(ctx)
		if err != nil {
			return nil, fmt.Errorf("fetching alerts: %w", err)
		}
		return checkAlerts(alerts), nil
	}
}

// checkAlerts looks for alerts that should be looked at before an update: a
// condition that is False for each, in their order, then one that is True for
// each class without any. It can be called concurrently.
func checkAlerts(firing []clusterapi.Alert) []PrecheckCondition {
	conditions := []PrecheckCondition{}
	classes := openshift.AlertClasses()
	hit := map[string]bool{}
	for i := range firing {
		a := (*openshift.Alert)(&firing[i])
		at := openshift.AlertClassOf(classes, a)
		if at < 0 {
			continue
		}
		class := classes[at]
		hit[class.Name] = true
		criticalBudget := a.IsCritical() && a.Name() == openshift.BudgetLimit
		if criticalBudget {
			hit["PodDisruptionBudgetAlerts"] = true
		}
		conditions = append(conditions, PrecheckCondition{
			Condition: Condition{
				Type:    "recommended/" + class.Name + "/" + a.Name() + "/" + strconv.Itoa(len(conditions)),
				Status:  statusFalse,
				Reason:  "Alert:" + a.State,
				Message: a.Message(class.Why, criticalBudget || a.Name() == openshift.BudgetAtLimit),
				Since:   a.ActiveAt,
			},
			AcceptanceName: a.Name(),
		})
	}
	for _, class := range classes {
		if !hit[class.Name] && !class.Optional {
			conditions = append(conditions, PrecheckCondition{Condition: Condition{Type: "recommended/" + class.Name, Status: statusTrue, Reason: "AsExpected"}})
		}
	}
	return conditions
}
