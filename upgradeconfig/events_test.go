package upgradeconfig_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

func TestEventJSON(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		event upgradeconfig.Event
		want  string
	}{
		{upgradeconfig.Event{Type: upgradeconfig.EventSynced, Action: upgradeconfig.ActionNone, Text: "in step"}, `"type":"Synced","action":"` + string(upgradeconfig.ActionNone) + `","message":"in step"`},
		{upgradeconfig.Event{Type: upgradeconfig.EventCreated, Name: "config", Policy: "p-1", Version: "4.21.1"}, `"type":"Created","name":"config","policy":"p-1","version":"4.21.1"`},
		{upgradeconfig.Event{Type: upgradeconfig.EventReplaced, Changes: []upgradeconfig.Change{{Field: "version", Old: "a", New: "b"}}}, `"type":"Replaced","changes":["version: a → b"]`},
		{upgradeconfig.Event{Type: upgradeconfig.EventUpdated}, `"type":"Updated"`},
		{upgradeconfig.Event{Type: upgradeconfig.EventDeleted}, `"type":"Deleted"`},
		{upgradeconfig.Event{Type: upgradeconfig.EventHeld}, `"type":"Held"`},
		{upgradeconfig.Event{Type: upgradeconfig.EventFailed, Err: errors.New("no answer"), Retry: 2 * time.Minute}, `"type":"Failed","error":"no answer","retry":"2m0s"`},
		{upgradeconfig.Event{Type: upgradeconfig.EventIgnored}, `"type":"Ignored"`},
		{upgradeconfig.Event{Type: upgradeconfig.EventPolicyFault}, `"type":"PolicyFault"`},
		{upgradeconfig.Event{Type: upgradeconfig.EventPhase, PrecedingVersion: "4.20.3", Phase: upgradeconfig.PhaseUpgraded, Alerts: []string{"A"}}, `"type":"Phase","precedingVersion":"4.20.3","phase":"Upgraded","alerts":["A"]`},
		{upgradeconfig.Event{Type: upgradeconfig.EventStep, Condition: &upgradeconfig.Condition{Type: upgradeconfig.UpgradeCommenced, Status: "True"}}, `"type":"Step","condition":"UpgradeCommenced","status":"True"`},
		{upgradeconfig.Event{Type: upgradeconfig.EventValidated}, `"type":"Validated"`},
		{upgradeconfig.Event{Type: upgradeconfig.EventBreached}, `"type":"Breached"`},
		{upgradeconfig.Event{Type: upgradeconfig.EventNotified, Notification: &upgradeconfig.Notification{State: upgradeconfig.StateStarted}}, `"type":"Notified","state":"StateStarted"`},
	} {
		c.event.Time = at
		data, err := json.Marshal(c.event)
		if want := `{"time":"2026-01-02T03:04:05Z",` + c.want + `}`; err != nil || string(data) != want {
			t.Errorf("JSON %s, %v\nwant %s", data, err, want)
		}
		if got := c.event.LogValue().String(); !strings.Contains(got, "type="+string(c.event.Type)) {
			t.Errorf("log value %s", got)
		}
	}
}
