package view

import (
	"fmt"
	"slices"
	"time"

	kjson "sigs.k8s.io/json"

	"github.com/clusterupdate/clusterupdate/internal/limit"
)

// Alert is one alert of the platform's monitoring. It is plain data.
type Alert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	State       string            `json:"state"`    // firing or pending
	ActiveAt    time.Time         `json:"activeAt"` // zero if it is not known
}

// DecodeAlerts reads the alerts from an answer of the monitoring's API: that of
// /api/v1/alerts, or that of /api/v1/rules, as a must-gather has it. It fails for
// a text that is not JSON, and for a field of another type. An answer without
// alerts has none. It fails for one that would make more than 256
// MiB. It can be called concurrently.
func DecodeAlerts(answer []byte) ([]Alert, error) {
	var a struct {
		Data struct {
			Alerts []Alert `json:"alerts"`
			Groups []struct {
				Rules []struct {
					Alerts []Alert `json:"alerts"`
				} `json:"rules"`
			} `json:"groups"`
		} `json:"data"`
	}
	if err := limit.JSON(answer, &a); err != nil {
		return nil, fmt.Errorf("decoding alerts: %w", err)
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(answer, &a); err != nil {
		return nil, fmt.Errorf("decoding alerts: %w", err)
	}
	alerts := a.Data.Alerts
	more := 0
	for _, group := range a.Data.Groups {
		for _, rule := range group.Rules {
			more += len(rule.Alerts)
		}
	}
	alerts = slices.Grow(alerts, more)
	for _, group := range a.Data.Groups {
		for _, rule := range group.Rules {
			alerts = append(alerts, rule.Alerts...)
		}
	}
	return alerts, nil
}

// name is that of the alert's rule.
func (a *Alert) name() string { return a.Labels["alertname"] }

// summary is the alert's own, or its name.
func (a *Alert) summary() string {
	if s := a.Annotations["summary"]; s != "" {
		return s
	}
	return a.name()
}

// noRunbook stands where an alert does not say where to read on.
const noRunbook = "<alert does not have a runbook_url annotation>"

// description is what the alert says of itself beyond its summary.
func (a *Alert) description() string {
	d, m := a.Annotations["description"], a.Annotations["message"]
	switch {
	case d != "" && m != "":
		return "The alert description is: " + d + " | " + m
	case d != "":
		return "The alert description is: " + d
	case m != "":
		return "The alert description is: " + m
	}
	return "The alert has no description."
}

// runbook is where to read on.
func (a *Alert) runbook() string {
	if url := a.Annotations["runbook_url"]; url != "" {
		return url
	}
	return noRunbook
}
