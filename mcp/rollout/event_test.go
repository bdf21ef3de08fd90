package rollout_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

func TestEventJSON(t *testing.T) {
	e := clusterapi.Event{Type: rollout.EventNodeFailed, Time: mcptest.Epoch, Subject: "node/w0", Message: "disk full", Err: errors.New("away"),
		Data: &rollout.EventData{Pool: "worker", Node: "w0", Phase: mcp.PhaseFailed, Stuck: mcp.PhaseApplying, Updated: 1, Unavailable: 2,
			Degraded: 3, Total: 6, Reason: rollout.ReasonDrainFailed, Warning: true}}
	got, err := json.Marshal(e)
	want := `{"time":"2026-01-01T00:00:00Z","type":"NodeFailed","subject":"node/w0","message":"disk full","error":"away",` +
		`"data":{"pool":"worker","node":"w0","phase":"Failed","stuck":"Applying","updated":1,"unavailable":2,"degraded":3,"total":6,` +
		`"reason":"DrainFailed","warning":true}}`
	if string(got) != want || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
}
