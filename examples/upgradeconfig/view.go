package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

// view prints what happens, line by line, by the cluster's time.
type view struct {
	clock clock.Clock
	start time.Time

	mu  sync.Mutex
	out io.Writer
	// last is the last line of each subject: repetitions are not news.
	last map[string]string
}

func newView(out io.Writer, c clock.Clock) *view {
	return &view{clock: c, start: c.Now(), out: out, last: map[string]string{}}
}

func (v *view) say(subject, format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	if v.last[subject] == text {
		return
	}
	v.last[subject] = text
	at := time.Time{}.Add(v.clock.Since(v.start))
	fmt.Fprintf(v.out, "%s  %-10s %s\n", at.Format(time.TimeOnly), subject, text)
}

// config takes events about the UpgradeConfig.
func (v *view) config(e upgradeconfig.Event) {
	switch e.Type {
	case upgradeconfig.EventSynced:
		if e.Action == upgradeconfig.ActionNone { // others have events of their own
			v.say("sync", "%s", e.Text)
		}
	case upgradeconfig.EventFailed:
		v.say("sync", "failed, again in %s: %v", e.Retry.Round(time.Second), e.Err)
	case upgradeconfig.EventPhase:
		v.say("upgrade", "%s: %s", e.Version, e.Phase)
	case upgradeconfig.EventStep:
		if c := e.Condition; c != nil && !strings.HasSuffix(c.Message, " has started") {
			v.say("upgrade", "  %s", c.Message)
		}
	case upgradeconfig.EventNotified:
		if e.Err != nil {
			v.say("told", "%v", e.Err)
		} else if e.Notification != nil {
			v.say("told", "%s: %s", e.Notification.State, e.Notification.Description)
		}
	case upgradeconfig.EventValidated:
		if e.Err != nil {
			v.say("upgrade", "not valid: %v", e.Err)
		}
	default:
		v.say("config", "%s: %s", e.Type, text(e))
	}
}

func text(e upgradeconfig.Event) string {
	out := e.Text
	for _, c := range e.Changes {
		if e.Type != upgradeconfig.EventCreated {
			out += "; " + c.String()
		}
	}
	return out
}

// update takes events of the version operator.
func (v *view) update(e clusterupdate.Event) {
	switch e.Type {
	case clusterupdate.EventPreconditionsPassed, clusterupdate.EventPreconditionBlock, clusterupdate.EventPayloadLoaded, clusterupdate.EventCompleted:
		v.say("version", "%s", e.Message)
	}
}

// node takes events of the node rollout.
func (v *view) node(e rollout.Event) {
	switch e.Type {
	case rollout.EventNodeDone:
		v.say("nodes", "%s of pool %s is updated", e.Node, e.Pool)
	case rollout.EventPoolDone:
		v.say("nodes", "all nodes of pool %s are updated", e.Pool)
	}
}
