package nodeaction

import "github.com/clusterupdate/clusterupdate/clusterapi"

// The types of events. The Data of each is an [EventData].
const (
	EventNodeStarted clusterapi.EventType = "NodeStarted" // the run has taken a node
	EventNodeResumed clusterapi.EventType = "NodeResumed" // it continues with one that an earlier run of its name began
	EventPhase       clusterapi.EventType = "Phase"       // a node came to another phase
	EventWaiting     clusterapi.EventType = "Waiting"     // the action waits for something
	EventRetry       clusterapi.EventType = "Retry"       // something failed and is tried again
	EventFailed      clusterapi.EventType = "Failed"      // something failed, and the run halts; Err is a [*FailedError]
	EventNodeDone    clusterapi.EventType = "NodeDone"    // a node is finished
	EventNodeSkipped clusterapi.EventType = "NodeSkipped" // a node did not need the action, or is gone
	EventBlocked     clusterapi.EventType = "Blocked"     // no node may be begun now, and Message says why
	EventDrain       clusterapi.EventType = "Drain"       // the drain reports; Data has its event
	EventDone        clusterapi.EventType = "Done"        // all nodes are finished
)

// EventData is the Data of each event of this package. The Subject of an event is
// "node/NAME", or "run/ID" if it is about no node.
type EventData struct {
	Run     string `json:"run"` // the ID of the run
	Phase   string `json:"phase,omitempty"`
	Warning bool   `json:"warning,omitempty"`
	// Drain is an event of package rollout, for EventDrain.
	Drain *clusterapi.Event `json:"drain,omitempty"`
}
