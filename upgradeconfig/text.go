package upgradeconfig

import (
	"fmt"
	"strings"
	"time"
)

// Line says what an event is about (config, sync, upgrade or told) and what
// happened. The text is empty where that is not worth a line.
func (e Event) Line() (subject, text string) {
	switch e.Type {
	case EventSynced:
		if e.Action == ActionNone { // others have events of their own
			return "sync", e.Text
		}
		return "sync", ""
	case EventFailed:
		return "sync", fmt.Sprintf("failed, again in %s: %v", e.Retry.Round(time.Second), e.Err)
	case EventPhase:
		return "upgrade", fmt.Sprintf("%s: %s", e.Version, e.Phase)
	case EventStep:
		if c := e.Condition; c != nil && !strings.HasSuffix(c.Message, " has started") {
			return "upgrade", "  " + c.Message
		}
		return "upgrade", ""
	case EventValidated:
		if e.Err != nil {
			return "upgrade", fmt.Sprintf("not valid: %v", e.Err)
		}
		return "upgrade", ""
	case EventNotified:
		switch {
		case e.Err != nil:
			return "told", e.Err.Error()
		case e.Notification != nil:
			return "told", fmt.Sprintf("%s: %s", e.Notification.State, e.Notification.Description)
		}
		return "told", ""
	}
	text = fmt.Sprintf("%s: %s", e.Type, e.Text)
	for _, c := range e.Changes {
		if e.Type != EventCreated {
			text += "; " + c.String()
		}
	}
	return "config", text
}
