package upgradeconfig

import (
	"log/slog"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/eventlog"
)

// EventType says what an [Event] is about.
type EventType string

// The types of an [Event].
const (
	// EventSynced: a sync succeeded; Action is what it did.
	EventSynced EventType = "Synced"
	// EventCreated, EventReplaced, EventUpdated and EventDeleted: the
	// UpgradeConfig was written; Changes says how it differed.
	EventCreated  EventType = "Created"
	EventReplaced EventType = "Replaced"
	EventUpdated  EventType = "Updated"
	EventDeleted  EventType = "Deleted"
	// EventHeld: the UpgradeConfig is not what the provider says, and stays as
	// it is while its upgrade is in progress.
	EventHeld EventType = "Held"
	// EventFailed: a sync failed with Err, and is tried again after Retry.
	EventFailed EventType = "Failed"
	// EventIgnored: the provider has a policy that has to wait for another
	// one.
	EventIgnored EventType = "Ignored"
	// EventPolicyFault: a policy that is not the next one cannot be read; Err
	// says why.
	EventPolicyFault EventType = "PolicyFault"

	// EventPhase: the upgrade to Version came to Phase.
	EventPhase EventType = "Phase"
	// EventStep: a step of the upgrade changed; Condition is its new state.
	EventStep EventType = "Step"
	// EventValidated: the UpgradeConfig was validated; Err says what is wrong
	// with it, nil that it is fine.
	EventValidated EventType = "Validated"
	// EventBreached: an upgrade has not begun within its window.
	EventBreached EventType = "Breached"
	// EventClosed: the upgrade to Version ended before its time; the extra capacity
	// and maintenance windows that it had left open are closed.
	EventClosed EventType = "Closed"
	// EventNotified: the provider was told Notification; with Err it was not.
	EventNotified EventType = "Notified"
)

// Event is something that happened to the UpgradeConfig. Which fields are set
// depends on Type.
type Event struct {
	Type EventType
	Time time.Time
	// Name of the UpgradeConfig.
	Name string
	// Text says in a sentence what happened.
	Text string

	// Action of a sync, and what it found to differ.
	Action  ActionKind
	Changes []Change
	// Policy that this is about; empty if it is about none, or not known.
	Policy string

	// Version that the upgrade is to, and the one before it.
	Version, PrecedingVersion string
	Phase                     Phase
	Condition                 *Condition
	Notification              *Notification
	// Alerts are the paging alerts that fired during the upgrade, when it came to
	// phase Upgraded.
	Alerts []string

	// Err is what went wrong.
	Err error
	// Retry is how long until it is tried again; 0: by the caller.
	Retry time.Duration
}

// fields is the event in the form that all packages' events have.
func (e Event) fields() eventlog.Fields {
	f := eventlog.New(e.Time, string(e.Type))
	f.Add("name", e.Name)
	f.Add("action", e.Action)
	var changes []string
	for _, c := range e.Changes {
		changes = append(changes, c.String())
	}
	f.Add("changes", changes)
	f.Add("policy", e.Policy)
	f.Add("version", e.Version)
	f.Add("precedingVersion", e.PrecedingVersion)
	f.Add("phase", e.Phase)
	if e.Condition != nil {
		f.Add("condition", e.Condition.Type)
		f.Add("status", e.Condition.Status)
	}
	if e.Notification != nil {
		f.Add("state", e.Notification.State)
	}
	f.Add("alerts", e.Alerts)
	f.Add("message", e.Text)
	f.Add("error", e.Err)
	f.Add("retry", e.Retry)
	return f
}

// MarshalJSON writes the event as one flat object.
func (e Event) MarshalJSON() ([]byte, error) { return e.fields().JSON() }

// LogValue implements [slog.LogValuer].
func (e Event) LogValue() slog.Value { return e.fields().LogValue() }
