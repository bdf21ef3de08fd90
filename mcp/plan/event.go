package plan

import "github.com/clusterupdate/clusterupdate/clusterapi"

// The types of events. The Data of each is an [EventData].
const (
	// EventStepStarted: a step changes something, calls its action, or waits.
	EventStepStarted clusterapi.EventType = "StepStarted"
	// EventStepDone: a step is done.
	EventStepDone clusterapi.EventType = "StepDone"
	// EventStepSkipped: all was as the step wants it, without it.
	EventStepSkipped clusterapi.EventType = "StepSkipped"
	// EventStepFailed: a step failed; Err is a [*StepError].
	EventStepFailed clusterapi.EventType = "StepFailed"
	// EventWaiting: what a step waits for changed; Message says it.
	EventWaiting clusterapi.EventType = "Waiting"
	// EventDrainBlocked: a pod may not be evicted now.
	EventDrainBlocked clusterapi.EventType = "DrainBlocked"
	// EventNodeGone: a node of the plan does not exist, or somebody has moved it to another
	// pool since the plan was made; it is left out.
	EventNodeGone clusterapi.EventType = "NodeGone"
	// EventHeld: another runner has the plan; Holder names it.
	EventHeld clusterapi.EventType = "Held"
	// EventTaken: this runner has the plan now.
	EventTaken clusterapi.EventType = "Taken"
	// EventLeft: what the plan changed and a stop left as it is, or could not put
	// back.
	EventLeft clusterapi.EventType = "Left"
	// EventRestored: something is as it was before the plan.
	EventRestored clusterapi.EventType = "Restored"
	// EventPlanDone: the plan has ended; State reports how.
	EventPlanDone clusterapi.EventType = "PlanDone"
	// EventError: something failed and is tried again; Err reports what.
	EventError clusterapi.EventType = "Error"
)

// EventData is the Data of each event of this package. The Subject of an event is
// "plan/ID".
type EventData struct {
	Step string   `json:"step,omitempty"` // empty if it is about no step
	Kind StepKind `json:"kind,omitempty"`
	Pool string   `json:"pool,omitempty"` // empty if it is about none, or several
	Node string   `json:"node,omitempty"` // empty if it is about none, or several
	// State is the plan's, for EventPlanDone.
	State State `json:"state,omitempty"`
	// Attempt counts how often the step was started.
	Attempt int `json:"attempt,omitempty"`
	// Holder is a runner, for EventHeld and EventTaken.
	Holder  string `json:"holder,omitempty"`
	Warning bool   `json:"warning,omitempty"`
}
