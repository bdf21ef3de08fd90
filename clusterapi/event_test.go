package clusterapi_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestEventForms(t *testing.T) {
	type data struct {
		Phase string `json:"phase"`
	}
	full := clusterapi.Event{
		Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Type: "Drained", Subject: "node/worker-0",
		Message: "three pods", Err: errors.New("one stays"), Data: &data{Phase: "Drain"},
	}
	for _, tc := range []struct {
		name      string
		event     clusterapi.Event
		json, log string
		text      string
	}{
		{
			"full", full,
			`{"time":"2026-03-01T12:00:00Z","type":"Drained","subject":"node/worker-0","message":"three pods","error":"one stays","data":{"phase":"Drain"}}`,
			`{"event":{"type":"Drained","subject":"node/worker-0","message":"three pods","error":"one stays","data":{"phase":"Drain"}}}`,
			"Drained node/worker-0: three pods: one stays",
		},
		{"type alone", clusterapi.Event{Type: "Done"}, `{"type":"Done"}`, `{"event":{"type":"Done"}}`, "Done"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := checktest.Get(json.Marshal(tc.event))(t)
			checktest.SameIn(t, "JSON", tc.json, string(got))
			checktest.SameIn(t, "text", tc.text, tc.event.String())
			var out bytes.Buffer
			bare := func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey && a.Value.String() == "step" {
					return slog.Attr{}
				}
				return a
			}
			slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{ReplaceAttr: bare})).Info("step", "event", tc.event)
			checktest.SameIn(t, "log", tc.log+"\n", out.String())
		})
	}
}
