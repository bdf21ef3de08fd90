package upgradeconfig

import (
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// The types of the events of this package, of upgrade and of ocm. Subject is
// "upgradeconfig/" and the name of the object, Message says in a sentence what
// happened, and Data is an [*EventData].
const (
	// EventSynced: a sync succeeded; Action is what it did.
	EventSynced clusterapi.EventType = "Synced"
	// EventCreated, EventReplaced, EventUpdated and EventDeleted: the UpgradeConfig
	// was written; Changes reports how it differed.
	EventCreated  clusterapi.EventType = "Created"
	EventReplaced clusterapi.EventType = "Replaced"
	EventUpdated  clusterapi.EventType = "Updated"
	EventDeleted  clusterapi.EventType = "Deleted"
	// EventHeld: the UpgradeConfig is not what the provider says, and stays as
	// it is while its upgrade is in progress.
	EventHeld clusterapi.EventType = "Held"
	// EventFailed: a sync failed with Err, and is tried again after Retry.
	EventFailed clusterapi.EventType = "Failed"
	// EventIgnored: the provider has a policy that waits for an earlier one.
	EventIgnored clusterapi.EventType = "Ignored"
	// EventPolicyFault: a policy that is not the next one cannot be read; Err
	// explains why.
	EventPolicyFault clusterapi.EventType = "PolicyFault"
	// EventPhase: the upgrade to Version entered Phase.
	EventPhase clusterapi.EventType = "Phase"
	// EventStep: a step of the upgrade changed; Condition is its new state.
	EventStep clusterapi.EventType = "Step"
	// EventValidated: the UpgradeConfig was validated; Err is what is wrong with
	// it, nil if it is fine.
	EventValidated clusterapi.EventType = "Validated"
	// EventBreached: an upgrade has not started within its window.
	EventBreached clusterapi.EventType = "Breached"
	// EventClosed: the upgrade to Version ended before its time; the extra capacity
	// and maintenance windows that it had left open are closed.
	EventClosed clusterapi.EventType = "Closed"
	// EventNotified: the provider got Notification; with Err it did not.
	EventNotified clusterapi.EventType = "Notified"
)

// EventData is the Data of an event. The event's type reports which fields are set.
type EventData struct {
	// Action of a sync, and what it found to differ.
	Action  clusterapi.EventType `json:"action,omitempty"`
	Changes []Change             `json:"changes,omitempty"`
	// Policy that this is about; empty if it is about none, or not known.
	Policy string `json:"policy,omitempty"`
	// Version that the upgrade is to, and the one before it.
	Version          string        `json:"version,omitempty"`
	PrecedingVersion string        `json:"precedingVersion,omitempty"`
	Phase            Phase         `json:"phase,omitempty"`
	Condition        *Condition    `json:"condition,omitempty"`
	Notification     *Notification `json:"notification,omitempty"`
	// Alerts are the paging alerts that fired during the upgrade, when it enters
	// phase Upgraded.
	Alerts []string `json:"alerts,omitempty"`
	// Retry is how long until it is tried again, in JSON in nanoseconds; 0: by
	// the caller.
	Retry time.Duration `json:"retry,omitempty"`
}
