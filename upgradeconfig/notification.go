package upgradeconfig

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
)

// Notifier hears how an upgrade goes. It is an optional ability of a
// [Provider]. It must be safe for concurrent use.
type Notifier interface {
	// Notify passes n on, or does nothing if n is not wanted, for instance
	// because the policy's state does not allow it. After an error it is called
	// again with the same notification.
	Notify(ctx context.Context, n Notification) error
}

// State is an event in the life of an upgrade that a [Notifier] hears of.
type State string

// The states. Those whose name ends in SL make a service log and nothing else.
const (
	StatePending      State = "StatePending"
	StateScheduled    State = "StateScheduled"
	StateStarted      State = "StateStarted"
	StateScaleSkipped State = "StateScaleSkipped"
	StateDelayed      State = "StateDelayed"
	StateSkipped      State = "StateSkipped"
	StateCompleted    State = "StateCompleted"
	StateFailed       State = "StateFailed"
	StateCancelled    State = "StateCancelled"

	StateControlPlaneStartedSL  State = "StateControlPlaneStartedSL"
	StateControlPlaneFinishedSL State = "StateControlPlaneFinishedSL"
	StateWorkerPlaneFinishedSL  State = "StateWorkerPlaneFinishedSL"
	StateHealthCheckSL          State = "StateHealthCheckSL"
	StatePreHealthCheckSL       State = "StatePreHealthCheckSL"
)

// ServiceLog reports whether the state makes a service log and nothing else.
func (s State) ServiceLog() bool { return strings.HasSuffix(string(s), "SL") }

// Notification is what a [Notifier] hears.
type Notification struct {
	State State `json:"state"`
	// Config is the UpgradeConfig that this is about. Its spec identifies the
	// policy: the one with this version and time.
	Config *UpgradeConfig `json:"-"`
	// Version is the desired one.
	Version string `json:"version,omitempty"`
	// Description is the text that users see.
	Description string `json:"description,omitempty"`
	// Summary is the headline of a service log; empty for other states.
	Summary string `json:"summary,omitempty"`
	// References are documents that a service log points to; mostly none.
	References []string `json:"references,omitempty"`
}

// String names the notification in logs: its state and version.
func (n Notification) String() string { return fmt.Sprintf("%s %s", n.State, n.Version) }

// Allows reports whether a provider that has a policy in this state is to hear of
// another. What is not allowed is not sent, and that counts as success.
func (s State) Allows(to State) bool {
	switch s {
	case StateScheduled:
		return to == StateStarted
	case StateStarted:
		return to == StateScaleSkipped || to == StateDelayed || to == StateCompleted || to == StateFailed
	case StateScaleSkipped:
		return to == StateSkipped || to == StateDelayed || to == StateCompleted || to == StateFailed
	case StateDelayed:
		return to == StateSkipped || to == StateCompleted || to == StateFailed
	case StateSkipped:
		return to == StateCompleted || to == StateFailed
	}
	return false
}

// Log writes the notification to a log, for those that no provider wants.
func (n Notification) Log(ctx context.Context, log *slog.Logger) {
	log.InfoContext(ctx, fmt.Sprintf("Upgrade-State: %s Description: %s", n.State, n.Description))
}
