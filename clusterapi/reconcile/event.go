package reconcile

import (
	"log/slog"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/eventlog"
)

// EventType says what an [Event] is about.
type EventType string

// The types of an [Event].
const (
	// EventFailed: a key failed and is tried again at Retry. It comes with the
	// first failure, and again each time the failure has lasted ten times as
	// long, not with every attempt.
	EventFailed EventType = "Failed"
	// EventRecovered: a key that had failed no longer does.
	EventRecovered EventType = "Recovered"
	// EventWatchFailed: a watch cannot be begun, or broke; it is begun again at
	// Retry. It comes as seldom as EventFailed.
	EventWatchFailed EventType = "WatchFailed"
	// EventWatchRecovered: a watch that had failed has been listed again.
	EventWatchRecovered EventType = "WatchRecovered"
	// EventNotServed: the cluster does not serve a kind; it is looked for again
	// at Retry.
	EventNotServed EventType = "NotServed"
	// EventServerBusy: the server asked to be left alone until Retry.
	EventServerBusy EventType = "ServerBusy"
	// EventCrashed: a simulated process crashed and is made again.
	EventCrashed EventType = "Crashed"
	// EventFault: a simulated fault took place; Message names it.
	EventFault EventType = "Fault"
)

// Event is something that a driver met. Reconcilers tell their subjects' events
// themselves.
type Event struct {
	Type       EventType
	Time       time.Time
	Process    string
	Reconciler string
	Key        Key
	// Watch is the kind that a watch is about.
	Watch string
	// Failures counts those in a row.
	Failures int
	// Retry is when it is tried again.
	Retry   time.Time
	Message string
	Err     error
}

// fields is the event in the form that all packages' events have.
func (e Event) fields() eventlog.Fields {
	f := eventlog.New(e.Time, string(e.Type))
	f.Add("process", e.Process)
	f.Add("reconciler", e.Reconciler)
	f.Add("key", e.Key)
	f.Add("watch", e.Watch)
	f.Add("failures", e.Failures)
	f.Add("retry", e.Retry)
	f.Add("message", e.Message)
	f.Add("error", e.Err)
	return f
}

// MarshalJSON writes the event as one flat object.
func (e Event) MarshalJSON() ([]byte, error) { return e.fields().JSON() }

// LogValue implements [slog.LogValuer].
func (e Event) LogValue() slog.Value { return e.fields().LogValue() }
