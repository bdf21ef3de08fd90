package rollout

import (
	"log/slog"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/eventlog"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// EventType says what an [Event] is about.
type EventType string

// The types of an [Event].
const (
	// EventPoolBlocked: a pool cannot be updated now, and Text says why. It
	// comes when the reason changes.
	EventPoolBlocked EventType = "PoolBlocked"
	// EventPool is an event that the machine-config controller would record
	// on the pool, with its Reason and text.
	EventPool EventType = "Pool"
	// EventNodeTargeted: a node was told what to reach.
	EventNodeTargeted EventType = "NodeTargeted"
	// EventNodePhase: a node came to another phase.
	EventNodePhase EventType = "NodePhase"
	// EventNodeDone: a node reached its target.
	EventNodeDone EventType = "NodeDone"
	// EventNodeFailed: a node's daemon reports a failure; Text is its reason.
	EventNodeFailed EventType = "NodeFailed"
	// EventDrainBlocked: a pod may not be evicted now; Err is a [*DrainError].
	EventDrainBlocked EventType = "DrainBlocked"
	// EventDrainRetry: an attempt to drain a node failed and is made again.
	// With Reason DrainThresholdExceeded or DrainFailed it has been failing
	// for long.
	EventDrainRetry EventType = "DrainRetry"
	// EventDrained: a node was drained.
	EventDrained EventType = "Drained"
	// EventHookDone: a hook has run for a node.
	EventHookDone EventType = "HookDone"
	// EventHookFailed: a hook failed, and no further node is updated until
	// another rollout goes on; Err is a [*HookError].
	EventHookFailed EventType = "HookFailed"
	// EventPoolProgress: the counts of a pool changed.
	EventPoolProgress EventType = "PoolProgress"
	// EventPoolDone: all nodes of a pool reached its configuration.
	EventPoolDone EventType = "PoolDone"
	// EventStalled: nothing moved in a pool for long; Err is a [*StalledError].
	EventStalled EventType = "Stalled"
	// EventDifference: the cluster's machine-config controller decided otherwise than
	// this package would have; Difference says in what. Only with Options.Shadow.
	EventDifference EventType = "Difference"
	// EventError: something failed and is tried again; Err says what.
	EventError EventType = "Error"
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

// Event is something that happened in a rollout.
type Event struct {
	Type EventType
	Time time.Time
	Pool string // empty if it is about no pool
	Node string // empty if it is about no node
	// Phase is the node's phase, and Stuck the one that it fails in.
	Phase, Stuck mcp.Phase
	// Updated, Unavailable, Degraded and Total count the pool's nodes, for
	// EventPoolProgress.
	Updated, Unavailable, Degraded, Total int
	// Reason is the machine-config controller's; empty where it has none.
	Reason  string
	Warning bool
	Text    string
	Err     error
	// Difference is what another controller decided otherwise, for EventDifference;
	// Reason is its kind.
	Difference *mcp.Difference
}

// fields is the event in the form that all packages' events have.
func (e Event) fields() eventlog.Fields {
	f := eventlog.New(e.Time, string(e.Type))
	f.Add("pool", e.Pool)
	f.Add("node", e.Node)
	f.Add("phase", e.Phase)
	f.Add("stuck", e.Stuck)
	if e.Type == EventPoolProgress {
		f.Set("updated", e.Updated)
		f.Set("unavailable", e.Unavailable)
		f.Set("degraded", e.Degraded)
		f.Set("total", e.Total)
	}
	f.Add("reason", e.Reason)
	f.Add("warning", e.Warning)
	f.Add("message", e.Text)
	f.Add("error", e.Err)
	return f
}

// MarshalJSON writes the event as one flat object.
func (e Event) MarshalJSON() ([]byte, error) { return e.fields().JSON() }

// LogValue implements [slog.LogValuer].
func (e Event) LogValue() slog.Value { return e.fields().LogValue() }
