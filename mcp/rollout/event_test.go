package rollout_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// The JSON of every type of event.
func TestEventJSON(t *testing.T) {
	blocked := &rollout.DrainError{Node: "w0", Pod: "app/web-0", Budget: "web-pdb", Kind: rollout.DrainBudget, Err: errors.New("not now")}
	var got []string
	for _, e := range []rollout.Event{
		{Type: rollout.EventPoolBlocked, Pool: "worker", Text: "paused"},
		{Type: rollout.EventPool, Pool: "worker", Reason: rollout.ReasonSetDesiredConfig, Text: "Targeted node w0 to MachineConfig: N"},
		{Type: rollout.EventNodeTargeted, Pool: "worker", Node: "w0", Phase: mcp.PhaseTargeted, Text: "node w0 is to reach N"},
		{Type: rollout.EventNodePhase, Pool: "worker", Node: "w0", Phase: mcp.PhaseDraining, Text: "node w0: Draining"},
		{Type: rollout.EventNodeDone, Pool: "worker", Node: "w0", Phase: mcp.PhaseDone, Text: "node w0 has reached N"},
		{Type: rollout.EventNodeFailed, Pool: "worker", Node: "w0", Phase: mcp.PhaseFailed, Stuck: mcp.PhaseApplying, Warning: true, Text: "disk full"},
		{Type: rollout.EventDrainBlocked, Pool: "worker", Node: "w0", Phase: mcp.PhaseDraining, Text: "not now", Err: blocked},
		{Type: rollout.EventDrainRetry, Pool: "worker", Node: "w0", Phase: mcp.PhaseDraining, Reason: rollout.ReasonDrainFailed, Warning: true, Text: "late"},
		{Type: rollout.EventDrained, Pool: "worker", Node: "w0", Text: "node w0 is drained"},
		{Type: rollout.EventPoolProgress, Pool: "worker", Updated: 1, Unavailable: 1, Total: 3, Text: "1 of 3"},
		{Type: rollout.EventPoolDone, Pool: "worker", Text: "done"},
		{Type: rollout.EventStalled, Pool: "worker", Node: "w0", Phase: mcp.PhaseDraining, Warning: true, Err: &rollout.StalledError{Node: "w0", Phase: mcp.PhaseDraining, Since: mcptest.Epoch}},
		{Type: rollout.EventDifference, Pool: "worker", Node: "w0", Reason: string(mcp.DifferenceIdle), Warning: true, Text: "not targeted", Difference: &mcp.Difference{}},
		{Type: rollout.EventError, Warning: true, Text: "away", Err: errors.New("away")},
	} {
		e.Time = mcptest.Epoch
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
			text(&rollout.StalledError{Node: "w0", Phase: mcp.PhaseDraining, Since: mcptest.Epoch}) + `}`,
		`"type":"Difference","pool":"worker","node":"w0","reason":"Idle","warning":true,"message":"not targeted"}`,
		`"type":"Error","warning":true,"message":"away","error":"away"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("mcp", "event", rollout.Event{Type: rollout.EventDrained, Pool: "worker", Node: "w0"})
	if !strings.Contains(log.String(), "event.type=Drained event.pool=worker event.node=w0\n") {
		t.Error(log.String())
	}
}

// text is an error's text as JSON.
func text(err error) string {
	data, _ := json.Marshal(err.Error())
	return string(data)
}
