package nodeaction

import (
	"log/slog"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/eventlog"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// EventType says what an [Event] is about.
type EventType string

// The types of an [Event].
const (
	EventNodeStarted EventType = "NodeStarted" // the run has taken a node
	EventNodeResumed EventType = "NodeResumed" // it goes on with one that an earlier run of its name began
	EventPhase       EventType = "Phase"       // a node came to another phase
	EventWaiting     EventType = "Waiting"     // the action waits for something
	EventRetry       EventType = "Retry"       // something failed and is tried again
	EventFailed      EventType = "Failed"      // something failed, and the run halts; Err is a [*FailedError]
	EventNodeDone    EventType = "NodeDone"    // a node is finished
	EventNodeSkipped EventType = "NodeSkipped" // a node did not need the action, or is gone
	EventBlocked     EventType = "Blocked"     // no node may be begun now, and Text says why
	EventDrain       EventType = "Drain"       // Drain says what happened
	EventDone        EventType = "Done"        // all nodes are finished
)

// Event is something that happened in a run.
type Event struct {
	Type    EventType
	Time    time.Time
	Run     string // the ID of the run
	Node    string // empty if it is about no node
	Phase   Phase
	Warning bool
	Text    string
	Err     error
	Drain   *rollout.Event // for EventDrain
}

// fields is the event in the form that all packages' events have.
func (e Event) fields() eventlog.Fields {
	f := eventlog.New(e.Time, string(e.Type))
	f.Add("run", e.Run)
	f.Add("node", e.Node)
	f.Add("phase", e.Phase)
	f.Add("warning", e.Warning)
	f.Add("message", e.Text)
	f.Add("error", e.Err)
	return f
}

// MarshalJSON writes the event as one flat object.
func (e Event) MarshalJSON() ([]byte, error) { return e.fields().JSON() }

// LogValue implements [slog.LogValuer].
func (e Event) LogValue() slog.Value { return e.fields().LogValue() }
