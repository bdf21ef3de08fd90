package view_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/internal/limit"
)

func TestDecodeAlertsIsBounded(t *testing.T) {
	many := strings.Repeat("{},", 1<<20) + "{}"
	for _, text := range []string{
		`{"data":{"alerts":[` + many + `]}}`,
		`{"data":{"groups":[{"rules":[{"alerts":[` + many + `]}]}]}}`,
		`{"data":{"groups":[` + many + many + `]}}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := view.DecodeAlerts([]byte(text))
		runtime.ReadMemStats(&after)
		if made := after.TotalAlloc - before.TotalAlloc; made > limit.Heap {
			t.Errorf("%.60s: %d bytes allocated, %v", text, made, err)
		}
		if strings.Contains(text, "alerts") && !errors.As(err, new(*limit.LimitError)) {
			t.Errorf("%.60s: %v", text, err)
		}
	}
}

func TestDecodeAlertsIsCaseSensitive(t *testing.T) {
	alerts, err := view.DecodeAlerts([]byte(`{"Data":{"alerts":[{}]},"data":{"Alerts":[{}],"alerts":[{"labels":{"alertname":"a"},"State":"firing"}]}}`))
	if err != nil || len(alerts) != 1 || alerts[0].State != "" || alerts[0].Labels["alertname"] != "a" {
		t.Errorf("got %v, %v", alerts, err)
	}
}
