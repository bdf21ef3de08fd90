package upgradeconfig_test

import (
	"errors"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

func TestEventLine(t *testing.T) {
	down := errors.New("down")
	for _, tt := range []struct {
		e             upgradeconfig.Event
		subject, text string
	}{
		{upgradeconfig.Event{Type: upgradeconfig.EventSynced, Action: upgradeconfig.ActionNone, Text: "nothing to do"}, "sync", "nothing to do"},
		{upgradeconfig.Event{Type: upgradeconfig.EventSynced, Action: "Create", Text: "created"}, "sync", ""},
		{upgradeconfig.Event{Type: upgradeconfig.EventFailed, Err: down, Retry: 61700 * time.Millisecond}, "sync", "failed, again in 1m2s: down"},
		{upgradeconfig.Event{Type: upgradeconfig.EventPhase, Version: "4.21.1", Phase: upgradeconfig.PhaseUpgraded}, "upgrade", "4.21.1: Upgraded"},
		{upgradeconfig.Event{Type: upgradeconfig.EventStep, Condition: &upgradeconfig.Condition{Message: "X is completed"}}, "upgrade", "  X is completed"},
		{upgradeconfig.Event{Type: upgradeconfig.EventStep, Condition: &upgradeconfig.Condition{Message: "X has started"}}, "upgrade", ""},
		{upgradeconfig.Event{Type: upgradeconfig.EventValidated, Err: down}, "upgrade", "not valid: down"},
		{upgradeconfig.Event{Type: upgradeconfig.EventValidated}, "upgrade", ""},
		{upgradeconfig.Event{Type: upgradeconfig.EventNotified, Err: down}, "told", "down"},
		{upgradeconfig.Event{Type: upgradeconfig.EventNotified, Notification: &upgradeconfig.Notification{State: "StateStarted", Description: "begins"}}, "told", "StateStarted: begins"},
		{upgradeconfig.Event{Type: upgradeconfig.EventNotified}, "told", ""},
		{upgradeconfig.Event{Type: upgradeconfig.EventCreated, Text: "there is a policy", Changes: make([]upgradeconfig.Change, 1)}, "config", "Created: there is a policy"},
	} {
		if subject, text := tt.e.Line(); subject != tt.subject || text != tt.text {
			t.Errorf("%s: %q %q, want %q %q", tt.e.Type, subject, text, tt.subject, tt.text)
		}
	}
}
