package clusterapi

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	kjson "sigs.k8s.io/json"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
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
// /api/v1/alerts, of /api/v1/rules, as a must-gather has it, or of the Alertmanager's
// /api/v2/alerts, as an Insights archive has it: a list of alerts, which all fire. An
// answer with data and without alerts has none. It returns an error for a text that is not
// JSON or has a field of another type, for an answer without data or with another status
// than success, and a [*LimitError] for one that would make more than 256 MiB, or has an
// alert with more than 100 labels or annotations, or 64 KiB of them.
func DecodeAlerts(answer []byte) ([]Alert, error) {
	decode := decodePrometheus
	if begin := bytes.TrimLeft(answer, " \t\r\n"); len(begin) > 0 && begin[0] == '[' {
		decode = decodeAlertmanager
	}
	alerts, err := decode(answer)
	if err != nil {
		return nil, fmt.Errorf("decoding alerts: %w", err)
	}
	for i, alert := range alerts {
		if err := alert.check(); err != nil {
			err.Where = fmt.Sprintf("decoding alerts: alert %d", i)
			return nil, err
		}
	}
	return alerts, nil
}

// decodePrometheus reads an answer with alerts, or with rules and theirs.
func decodePrometheus(answer []byte) ([]Alert, error) {
	var a struct {
		Status string `json:"status"`
		Error  string `json:"error"`
		Data   *struct {
			Alerts []Alert `json:"alerts"`
			Groups []struct {
				Rules []struct {
					Alerts []Alert `json:"alerts"`
				} `json:"rules"`
			} `json:"groups"`
		} `json:"data"`
	}
	if err := decodeAnswer(answer, &a); err != nil {
		return nil, err
	}
	switch {
	case a.Status != "" && a.Status != "success":
		return nil, fmt.Errorf("the answer has the status %s: %s", bounded.Quote(a.Status), bounded.Quote(a.Error))
	case a.Data == nil:
		return nil, errors.New("the answer has no data")
	}
	lists := [][]Alert{a.Data.Alerts}
	for _, group := range a.Data.Groups {
		for _, rule := range group.Rules {
			lists = append(lists, rule.Alerts)
		}
	}
	return slices.Concat(lists...), nil
}

// decodeAlertmanager reads a list of alerts. The Alertmanager has those alone that
// fire.
func decodeAlertmanager(answer []byte) ([]Alert, error) {
	var list []struct {
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
		StartsAt    time.Time         `json:"startsAt"`
	}
	if err := decodeAnswer(answer, &list); err != nil {
		return nil, err
	}
	alerts := make([]Alert, len(list))
	for i, a := range list {
		alerts[i] = Alert{Labels: a.Labels, Annotations: a.Annotations, State: "firing", ActiveAt: a.StartsAt}
	}
	return alerts, nil
}

func decodeAnswer(answer []byte, into any) error {
	if err := limit.JSON(answer, into); err != nil {
		return err
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(answer, into)
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
