package view_test

import (
	"context"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/view"
)

// FuzzAlerts decodes answers of the monitoring's API and checks their alerts. Each
// condition says what it is about, and none of a name comes twice.
func FuzzAlerts(f *testing.F) {
	for _, answer := range []string{
		`{"data":{"alerts":[{"labels":{"alertname":"A","severity":"critical"},"annotations":{"summary":"S"},"state":"firing","activeAt":"2024-02-07T16:31:06.123Z"}]}}`,
		`{"data":{"groups":[{"rules":[{"alerts":[{"labels":{"alertname":"PodDisruptionBudgetAtLimit","namespace":"n"},"state":"pending"},{"labels":{"alertname":"PodDisruptionBudgetLimit","severity":"critical"}}]}]}]}}`,
		`{"data":{"alerts":[{"labels":{"alertname":"VMCannotBeEvicted"}},{"labels":null},{}]}}`,
		`{"data":{"alerts":[{"labels":{"alertname":1}}]}}`,
		`{"data":null}`,
		`[]`,
	} {
		f.Add([]byte(answer))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		seen := map[string]bool{}
		check := view.AlertPrecheck(func(context.Context) ([]clusterapi.Alert, error) { return clusterapi.DecodeAlerts(answer) })
		for _, c := range view.RunPrechecks(t.Context(), check)[0].Conditions {
			if seen[c.Type] || !strings.HasPrefix(c.Type, "recommended/") || c.Reason == "" {
				t.Errorf("condition %+v", c)
			}
			seen[c.Type] = true
			if found := c.Status == "False"; found != (c.AcceptanceName != "") || found != (c.Message != "") {
				t.Errorf("condition %+v", c)
			}
		}
	})
}
