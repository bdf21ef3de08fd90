package plan

import (
	"log/slog"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/eventlog"
)

// EventType says what an [Event] is about.
type EventType string

// The types of an [Event].
const (
	// EventStepStarted: a step changes something, calls its action, or waits.
	EventStepStarted EventType = "StepStarted"
	// EventStepDone: a step is done.
	EventStepDone EventType = "StepDone"
	// EventStepSkipped: all was as the step wants it, without it.
	EventStepSkipped EventType = "StepSkipped"
	// EventStepFailed: a step failed; Err is a [*StepError].
	EventStepFailed EventType = "StepFailed"
	// EventWaiting: what a step waits for changed; Text says it.
	EventWaiting EventType = "Waiting"
	// EventDrainBlocked: a pod may not be evicted now.
	EventDrainBlocked EventType = "DrainBlocked"
	// EventNodeGone: a node of the plan does not exist, and is left out.
	EventNodeGone EventType = "NodeGone"
	// EventHeld: another runner has the plan; Holder names it.
	EventHeld EventType = "Held"
	// EventTaken: this runner has the plan now.
	EventTaken EventType = "Taken"
	// EventLeft: what the plan changed and a stop left as it is, or could not put
	// back.
	EventLeft EventType = "Left"
	// EventRestored: something is as it was before the plan.
	EventRestored EventType = "Restored"
	// EventPlanDone: the plan has ended; State says how.
	EventPlanDone EventType = "PlanDone"
	// EventError: something failed and is tried again; Err says what.
	EventError EventType = "Error"
)

// Event is something that happened to a plan.
type Event struct {
	Type EventType
	Time time.Time
	Plan string
	Step string // empty if it is about no step
	Kind StepKind
	Pool string // empty if it is about none, or several
	Node string // empty if it is about none, or several
	// State is that of the plan, for EventPlanDone.
	State State
	// Attempt counts how often the step was started.
	Attempt int
	// Holder is a runner, for EventHeld and EventTaken.
	Holder  string
	Warning bool
	Text    string
	Err     error
}

// fields is the event in the form that all packages' events have.
func (e Event) fields() eventlog.Fields {
	f := eventlog.New(e.Time, string(e.Type))
	f.Add("plan", e.Plan)
	f.Add("step", e.Step)
	f.Add("kind", e.Kind)
	f.Add("pool", e.Pool)
	f.Add("node", e.Node)
	f.Add("state", e.State)
	f.Add("attempt", e.Attempt)
	f.Add("holder", e.Holder)
	f.Add("warning", e.Warning)
	f.Add("message", e.Text)
	f.Add("error", e.Err)
	return f
}

// MarshalJSON writes the event as one flat object.
func (e Event) MarshalJSON() ([]byte, error) { return e.fields().JSON() }

// LogValue implements [slog.LogValuer].
func (e Event) LogValue() slog.Value { return e.fields().LogValue() }
