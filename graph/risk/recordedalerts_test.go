package risk_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/graph/risk"
)

func TestRecordedAlerts(t *testing.T) {
	const alert = `{"labels":{"alertname":"A","severity":"warning"},"annotations":{"summary":"S"},"state":"firing","activeAt":"2026-01-02T03:04:05.678Z","value":"1e+00"}`
	want := []risk.Alert{{
		Labels: map[string]string{"alertname": "A", "severity": "warning"}, Annotations: map[string]string{"summary": "S"},
		State: "firing", ActiveAt: time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC),
	}}
	var many strings.Builder
	for i := range 101 {
		fmt.Fprintf(&many, `%q:"",`, fmt.Sprint("l", i))
	}
	for _, tt := range []struct {
		name, answer, err string
		want              []risk.Alert
	}{
		{"alerts", `{"status":"success","data":{"alerts":[` + alert + `]}}`, "", want},
		{"rules", `{"data":{"groups":[{"rules":[{"name":"x"},{"alerts":[` + alert + `]}]},{}]}}`, "", want},
		{"none", `{}`, "", []risk.Alert{}},
		{"no JSON", `alerts`, "recorded alerts: decoding alerts: invalid character", nil},
		{"another type", `{"data":{"alerts":[{"state":1}]}}`, "recorded alerts: decoding alerts: json: cannot unmarshal number", nil},
		{"too many labels", `{"data":{"alerts":[{"labels":{` + strings.TrimSuffix(many.String(), ",") + `}}]}}`, "alert 0 exceeds the limit of 100 labels", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := risk.RecordedAlerts(tt.answer).Firing(t.Context())
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("error %v, want %s", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
