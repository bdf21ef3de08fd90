package preconditions

import (
	"context"
)

func criticalAlertsCheck() Check {
	return documented{Rule{
		Name: "CriticalAlerts", Severities: []Severity{Warning},
		Source: "Preparing to update a cluster", Link: docsPreparing,
		Needs: []string{"Alerts"},
	}, criticalAlerts}
}

func criticalAlerts(ctx context.Context, in *Input) ([]Finding, error) { return nil, errUndone }
