package rollout

import (
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// The types of events. The Data of each is an [EventData].
const (
	// EventPoolBlocked: a pool cannot be updated now, and Message explains why. It
	// comes when the reason changes.
	EventPoolBlocked clusterapi.EventType = "PoolBlocked"
	// EventPool is an event that the machine-config controller would record
	// on the pool, with its Reason and text.
	EventPool clusterapi.EventType = "Pool"
	// EventNodeTargeted: a node got a target.
	EventNodeTargeted clusterapi.EventType = "NodeTargeted"
	// EventNodePhase: a node reached another phase.
	EventNodePhase clusterapi.EventType = "NodePhase"
	// EventNodeDone: a node reached its target.
	EventNodeDone clusterapi.EventType = "NodeDone"
	// EventNodeFailed: a node's daemon reports a failure; Message is its reason.
	EventNodeFailed clusterapi.EventType = "NodeFailed"
	// EventDrainBlocked: a pod may not be evicted now; Err is a [*DrainError].
	EventDrainBlocked clusterapi.EventType = "DrainBlocked"
	// EventDrainRetry: an attempt to drain a node failed and is made again.
	// With Reason DrainThresholdExceeded or DrainFailed it has been failing
	// for long.
	EventDrainRetry clusterapi.EventType = "DrainRetry"
	// EventDrained: a node was drained.
	EventDrained clusterapi.EventType = "Drained"
	// EventHookDone: a hook has run for a node.
	EventHookDone clusterapi.EventType = "HookDone"
	// EventHookFailed: a hook failed, and no further node is updated until another
	// rollout continues; Err is a [*HookError].
	EventHookFailed clusterapi.EventType = "HookFailed"
	// EventPoolProgress: the counts of a pool changed.
	EventPoolProgress clusterapi.EventType = "PoolProgress"
	// EventPoolDone: all nodes of a pool reached its configuration.
	EventPoolDone clusterapi.EventType = "PoolDone"
	// EventStalled: nothing moved in a pool for long; Err is a [*StalledError].
	EventStalled clusterapi.EventType = "Stalled"
	// EventError: something failed and is tried again; Err reports what.
	EventError clusterapi.EventType = "Error"
)

// Reasons of events, as the machine-config controller gives them.
const (
	ReasonSetDesiredConfig           = "SetDesiredConfig"
	ReasonSetDesiredConfigAndOSImage = "SetDesiredConfigAndOSImage"
	ReasonAnnotationChange           = "AnnotationChange"
	ReasonDeferringOperatorNode      = "DeferringOperatorNodeUpdate"
	ReasonUpdating                   = "Updating"
	ReasonCompleted                  = "Completed"
	ReasonSelectingAll               = "SelectingAll"
	ReasonDrainThresholdExceeded     = "DrainThresholdExceeded"
	ReasonDrainFailed                = "DrainFailed"
)

// EventData is the Data of each event of this package. The Subject of an event is
// "node/NAME", or "pool/NAME" if it is about no node, or empty.
type EventData struct {
	Pool string `json:"pool,omitempty"`
	Node string `json:"node,omitempty"`
	// Phase is the node's phase, and Stuck the one that it fails in.
	Phase mcp.Phase `json:"phase,omitempty"`
	Stuck mcp.Phase `json:"stuck,omitempty"`
	// Updated, Unavailable, Degraded and Total count the pool's nodes, for
	// EventPoolProgress.
	Updated     int `json:"updated,omitempty"`
	Unavailable int `json:"unavailable,omitempty"`
	Degraded    int `json:"degraded,omitempty"`
	Total       int `json:"total,omitempty"`
	// Reason is the machine-config controller's. It is empty if that has none.
	Reason  string `json:"reason,omitempty"`
	Warning bool   `json:"warning,omitempty"`
}

// event returns an event about a node or a pool. Without a message, it has the
// error's.
func event(t clusterapi.EventType, d EventData, message string, err error) clusterapi.Event {
	subject := ""
	switch {
	case d.Node != "":
		subject = "node/" + d.Node
	case d.Pool != "":
		subject = "pool/" + d.Pool
	}
	if message == "" && err != nil {
		message = err.Error()
	}
	return clusterapi.Event{Type: t, Subject: subject, Message: message, Err: err, Data: &d}
}
