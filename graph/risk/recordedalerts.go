package risk

import (
	"context"
	"fmt"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// RecordedAlerts is an [AlertSource] of alerts that were recorded: an answer of
// the monitoring's API to /api/v1/alerts, or to /api/v1/rules as a must-gather has
// it. It is safe for concurrent use.
type RecordedAlerts []byte

// Firing returns the alerts of the recording, pending ones too. It fails as
// [clusterapi.DecodeAlerts] does.
func (r RecordedAlerts) Firing(context.Context) ([]clusterapi.Alert, error) {
	alerts, err := clusterapi.DecodeAlerts(r)
	if err != nil {
		return nil, fmt.Errorf("recorded alerts: %w", err)
	}
	return alerts, nil
}
