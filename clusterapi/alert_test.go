package clusterapi_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/limit"
)

func TestDecodeAlerts(t *testing.T) {
	const alert = `{"labels":{"alertname":"A","severity":"warning"},"annotations":{"summary":"S"},"state":"firing",` +
		`"activeAt":"2026-01-02T03:04:05.678Z","value":"1e+00"}`
	want := []clusterapi.Alert{{
		Labels: map[string]string{"alertname": "A", "severity": "warning"}, Annotations: map[string]string{"summary": "S"},
		State: "firing", ActiveAt: time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC),
	}}
	var labels []string
	for i := range 101 {
		labels = append(labels, fmt.Sprintf(`"l%d":""`, i))
	}
	for name, tt := range map[string]struct {
		answer, err string
		want        []clusterapi.Alert
	}{
		"alerts": {answer: `{"status":"success","data":{"alerts":[` + alert + `]}}`, want: want},
		"rules":  {answer: `{"data":{"groups":[{"rules":[{"name":"x"},{"alerts":[` + alert + `]}]},{}]}}`, want: want},
		"Alertmanager": {answer: ` [{"labels":{"alertname":"A","severity":"warning"},"annotations":{"summary":"S"},` +
			`"startsAt":"2026-01-02T03:04:05.678Z","endsAt":"2026-01-02T03:09:05Z","status":{"state":"suppressed"}}]`, want: want},
		"no list": {answer: `[1]`, err: "decoding alerts: json: cannot unmarshal number"},
		"none":    {answer: `{"status":"success","data":{"alerts":[]}}`},
		"no data": {answer: `{}`, err: "decoding alerts: the answer has no data"},
		"a failure": {answer: `{"status":"error","errorType":"unavailable","error":"not ready","data":{}}`,
			err: `decoding alerts: the answer has the status "error": "not ready"`},
		"case":           {answer: `{"Data":{"alerts":[{}]},"data":{"Alerts":[{}],"alerts":[{"State":"firing"}]}}`, want: make([]clusterapi.Alert, 1)},
		"no JSON":        {answer: `alerts`, err: "decoding alerts: invalid character"},
		"another type":   {answer: `{"data":{"alerts":[{"state":1}]}}`, err: "decoding alerts: json: cannot unmarshal number"},
		"many labels":    {answer: `{"data":{"alerts":[{"labels":{` + strings.Join(labels, ",") + `}}]}}`, err: "alert 0: more than 100 labels"},
		"long":           {answer: `{"data":{"alerts":[{},{"labels":{"a":"` + strings.Repeat("x", 64<<10) + `"}}]}}`, err: "alert 1: more than 65536 bytes"},
		"many of a text": {answer: `{"data":{"groups":[{"rules":[{"alerts":[` + strings.Repeat("{},", 1<<20) + `{}]}]}]}}`, err: "more than 268435456 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got, err := clusterapi.DecodeAlerts([]byte(tt.answer))
			runtime.ReadMemStats(&after)
			made := after.TotalAlloc - before.TotalAlloc
			checktest.FailIf(t, made > limit.Heap, "%d bytes allocated", made)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("error %v, want %s", err, tt.err)
			}
			passed := strings.Contains(tt.err, "more than")
			checktest.FailIf(t, errors.As(err, new(*clusterapi.LimitError)) != passed, "a limit error: %v", !passed)
			checktest.Same(t, tt.want, got)
		})
	}
}
