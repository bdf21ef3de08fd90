package risk_test

import (
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/graph/risk"
)

func TestRecordedAlerts(t *testing.T) {
	got, err := risk.RecordedAlerts(`{"data":{"groups":[{"rules":[{"alerts":[{"state":"pending"}]}]}]}}`).Firing(t.Context())
	if err != nil || len(got) != 1 || got[0].State != "pending" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := risk.RecordedAlerts("alerts").Firing(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "recorded alerts: ") {
		t.Error(err)
	}
}
