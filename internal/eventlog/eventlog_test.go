package eventlog_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/eventlog"
)

func fields() eventlog.Fields {
	f := eventlog.New(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), "DrainRetry")
	f.Add("node", "worker-0")
	f.Add("pool", "")
	f.Add("after", 90*time.Second)
	f.Add("names", []string{})
	f.Set("done", 0)
	f.Add("error", errors.New("a <pod> stays"))
	return f
}

func TestJSON(t *testing.T) {
	got, err := fields().JSON()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"time":"2026-01-02T03:04:05Z","type":"DrainRetry","node":"worker-0","after":"1m30s","done":0,"error":"a \u003cpod\u003e stays"}`
	if string(got) != want {
		t.Errorf("JSON() = %s\nwant     %s", got, want)
	}
}

func TestLogValue(t *testing.T) {
	var out bytes.Buffer
	slog.New(slog.NewTextHandler(&out, nil)).Info("event", "event", fields().LogValue())
	want := `event.type=DrainRetry event.node=worker-0 event.after=1m30s event.done=0 event.error="a <pod> stays"`
	if !strings.Contains(out.String(), want) || strings.Contains(out.String(), "2026-01-02") {
		t.Errorf("log line %s lacks %s", out.String(), want)
	}
}
