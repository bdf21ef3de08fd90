package risk

import (
	"context"
	"fmt"

	"github.com/clusterupdate/clusterupdate/clusterapi/view"
)

// RecordedAlerts is an [AlertSource] of alerts that were recorded: an answer of
// the monitoring's API to /api/v1/alerts, or to /api/v1/rules as a must-gather has
// it. It is safe for concurrent use.
type RecordedAlerts []byte

// Firing returns the alerts of the recording, pending ones too. It fails for an
// answer that cannot be decoded, and for an alert with more than 100 labels or
// annotations.
func (r RecordedAlerts) Firing(context.Context) ([]Alert, error) {
	recorded, err := view.DecodeAlerts(r)
	if err != nil {
		return nil, fmt.Errorf("recorded alerts: %w", err)
	}
	alerts := make([]Alert, len(recorded))
	for i, a := range recorded {
		if max(len(a.Labels), len(a.Annotations)) > maxLabels {
			return nil, fmt.Errorf("recorded alerts: alert %d exceeds the limit of %d labels or annotations", i, maxLabels)
		}
		alerts[i] = Alert(a)
	}
	return alerts, nil
}
