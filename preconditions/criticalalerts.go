package preconditions

import (
	"context"
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph/risk"
)

// CriticalAlerts warns of alerts that fire: critical ones, and those that tell of
// slow drains or ask to be looked at before an update. It needs Input.Alerts. It is
// safe for concurrent use.
type CriticalAlerts struct {
	// Platform judges critical alerts as the managed-upgrade operator does: only
	// those of the platform's own namespaces (openshift.*, kube-.*, default)
	// count, and they block.
	Platform bool
}

func criticalAlertsCheck() Check { return CriticalAlerts{} }

// Name returns CriticalAlerts.
func (CriticalAlerts) Name() string { return "CriticalAlerts" }

// Applies is true for every step.
func (CriticalAlerts) Applies(Transition) bool { return true }

// Rule describes the check.
func (c CriticalAlerts) Rule() Rule {
	severities := []Severity{Warning}
	if c.Platform {
		severities = append(severities, Blocking)
	}
	return Rule{
		Name: c.Name(), Severities: severities, Needs: []string{"Alerts"},
		Source: "Preparing to update a cluster, Critical alerts", Link: docsPreparing,
	}
}

// Run judges. Without a source of alerts the error is a [*NoSourceError], else it is
// that of the source.
func (c CriticalAlerts) Run(ctx context.Context, in *Input) ([]Finding, error) {
	if in.Alerts == nil {
		return nil, &NoSourceError{Source: "Alerts"}
	}
	alerts, err := in.Alerts.Firing(ctx)
	if err != nil {
		return nil, err
	}
	platform := regexp.MustCompile(`^(openshift.*|kube-.*|default)$`)
	var critical, others []clusterapi.Alert
	for _, a := range alerts {
		switch {
		case len(risk.OfAlerts([]clusterapi.Alert{a})) == 0: // it does not bear on updates
		case a.Labels["severity"] != "critical":
			others = append(others, a)
		case !c.Platform || platform.MatchString(a.Labels["namespace"]):
			critical = append(critical, a)
		}
	}
	var findings []Finding
	add := func(s Severity, reason, meaning string, of []clusterapi.Alert, remedy string) {
		if len(of) > 0 {
			f := newFinding(s, reason, meaning, alertObjects(of), remedy)
			f.Source = c.Rule().Source
			findings = append(findings, f)
		}
	}
	severity := Warning
	if c.Platform {
		severity = Blocking
	}
	add(severity, "CriticalAlert", "Critical alerts fire", critical, "Resolve what they tell of before the update")
	add(Warning, "AlertBeforeUpdate", "Alerts fire that tell of slow drains, or that ask to be looked at before an update", others, "Look into them: each may make the update slow or stop it")
	return findings, nil
}

// alertObjects are the alerts, each name once a namespace.
func alertObjects(alerts []clusterapi.Alert) []Object {
	type key struct{ name, namespace string }
	count := map[key]int{}
	var objects []Object
	for _, a := range alerts {
		k := key{a.Labels["alertname"], a.Labels["namespace"]}
		if count[k]++; count[k] > 1 {
			continue
		}
		objects = append(objects, Object{GVK: schema.GroupVersionKind{Kind: "Alert"}, Namespace: k.namespace, Name: k.name, Value: a.State})
	}
	for i := range objects {
		o := &objects[i]
		if n := count[key{o.Name, o.Namespace}]; n > 1 {
			o.Note = fmt.Sprintf("%d times", n)
		}
	}
	sortObjects(objects)
	return objects
}
