package mcp_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/mcp"
)

// The JSON of every type of event.
func TestEventJSON(t *testing.T) {
	blocked := &mcp.DrainError{Node: "w0", Pod: "app/web-0", Budget: "web-pdb", Kind: mcp.DrainBudget, Err: errors.New("not now")}
	var got []string
	for _, e := range []mcp.Event{
		{Type: mcp.EventPoolBlocked, Pool: "worker", Text: "paused"},
		{Type: mcp.EventPool, Pool: "worker", Reason: mcp.ReasonSetDesiredConfig, Text: "Targeted node w0 to MachineConfig: N"},
		{Type: mcp.EventNodeTargeted, Pool: "worker", Node: "w0", Phase: mcp.PhaseTargeted, Text: "node w0 is to reach N"},
		{Type: mcp.EventNodePhase, Pool: "worker", Node: "w0", Phase: mcp.PhaseDraining, Text: "node w0: Draining"},
		{Type: mcp.EventNodeDone, Pool: "worker", Node: "w0", Phase: mcp.PhaseDone, Text: "node w0 has reached N"},
		{Type: mcp.EventNodeFailed, Pool: "worker", Node: "w0", Phase: mcp.PhaseFailed, Stuck: mcp.PhaseApplying, Warning: true, Text: "disk full"},
		{Type: mcp.EventDrainBlocked, Pool: "worker", Node: "w0", Phase: mcp.PhaseDraining, Text: "not now", Err: blocked},
		{Type: mcp.EventDrainRetry, Pool: "worker", Node: "w0", Phase: mcp.PhaseDraining, Reason: mcp.ReasonDrainFailed, Warning: true, Text: "late"},
		{Type: mcp.EventDrained, Pool: "worker", Node: "w0", Text: "node w0 is drained"},
		{Type: mcp.EventPoolProgress, Pool: "worker", Updated: 1, Unavailable: 1, Total: 3, Text: "1 of 3"},
		{Type: mcp.EventPoolDone, Pool: "worker", Text: "done"},
		{Type: mcp.EventStalled, Pool: "worker", Node: "w0", Phase: mcp.PhaseDraining, Warning: true, Err: &mcp.StalledError{Node: "w0", Phase: mcp.PhaseDraining, Since: epoch}},
		{Type: mcp.EventError, Warning: true, Text: "away", Err: errors.New("away")},
	} {
		e.Time = epoch
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.TrimPrefix(string(data), `{"time":"2026-01-01T00:00:00Z",`))
	}
	want := []string{
		`"type":"PoolBlocked","pool":"worker","message":"paused"}`,
		`"type":"Pool","pool":"worker","reason":"SetDesiredConfig","message":"Targeted node w0 to MachineConfig: N"}`,
		`"type":"NodeTargeted","pool":"worker","node":"w0","phase":"Targeted","message":"node w0 is to reach N"}`,
		`"type":"NodePhase","pool":"worker","node":"w0","phase":"Draining","message":"node w0: Draining"}`,
		`"type":"NodeDone","pool":"worker","node":"w0","phase":"Done","message":"node w0 has reached N"}`,
		`"type":"NodeFailed","pool":"worker","node":"w0","phase":"Failed","stuck":"Applying","warning":true,"message":"disk full"}`,
		`"type":"DrainBlocked","pool":"worker","node":"w0","phase":"Draining","message":"not now","error":` + text(blocked) + `}`,
		`"type":"DrainRetry","pool":"worker","node":"w0","phase":"Draining","reason":"DrainFailed","warning":true,"message":"late"}`,
		`"type":"Drained","pool":"worker","node":"w0","message":"node w0 is drained"}`,
		`"type":"PoolProgress","pool":"worker","updated":1,"unavailable":1,"degraded":0,"total":3,"message":"1 of 3"}`,
		`"type":"PoolDone","pool":"worker","message":"done"}`,
		`"type":"Stalled","pool":"worker","node":"w0","phase":"Draining","warning":true,"error":` +
			text(&mcp.StalledError{Node: "w0", Phase: mcp.PhaseDraining, Since: epoch}) + `}`,
		`"type":"Error","warning":true,"message":"away","error":"away"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("mcp", "event", mcp.Event{Type: mcp.EventDrained, Pool: "worker", Node: "w0"})
	if !strings.Contains(log.String(), "event.type=Drained event.pool=worker event.node=w0\n") {
		t.Error(log.String())
	}
}

// text is an error's text as JSON.
func text(err error) string {
	data, _ := json.Marshal(err.Error())
	return string(data)
}
