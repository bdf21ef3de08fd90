package clusterapi

import (
	"fmt"
	"slices"
	"time"

	kjson "sigs.k8s.io/json"

	"github.com/clusterupdate/clusterupdate/internal/limit"
)

// Alert is an alert of the cluster's monitoring. It is plain data.
type Alert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	State       string            `json:"state"`    // firing or pending
	ActiveAt    time.Time         `json:"activeAt"` // zero if it is not known
}

const (
	maxAlertLabels = 100      // and as many annotations
	maxAlertBytes  = 64 << 10 // of labels and annotations
)

// DecodeAlerts reads the alerts from an answer of the monitoring's API: of
// /api/v1/alerts, or of /api/v1/rules, as a must-gather has it. An answer without
// alerts has none. It returns an error for a text that is not JSON or has a field
// of another type, and a [*LimitError] for one that would make more than 256 MiB,
// or has an alert with more than 100 labels or annotations, or 64 KiB of them.
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
	lists := [][]Alert{a.Data.Alerts}
	for _, group := range a.Data.Groups {
		for _, rule := range group.Rules {
			lists = append(lists, rule.Alerts)
		}
	}
	alerts := slices.Concat(lists...)
	for i, alert := range alerts {
		if err := alert.check(); err != nil {
			err.Where = fmt.Sprintf("decoding alerts: alert %d", i)
			return nil, err
		}
	}
	return alerts, nil
}

// check returns the first limit that the alert passes, or nil.
func (a *Alert) check() *LimitError {
	bytes := 0
	for _, texts := range []map[string]string{a.Labels, a.Annotations} {
		if len(texts) > maxAlertLabels {
			return &LimitError{Max: maxAlertLabels, What: "labels or annotations"}
		}
		for key, value := range texts {
			bytes += len(key) + len(value)
		}
	}
	if bytes > maxAlertBytes {
		return &LimitError{Max: maxAlertBytes, What: "bytes of labels and annotations"}
	}
	return nil
}
