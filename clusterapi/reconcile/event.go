package reconcile

import (
	"cmp"
	"strings"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// The types of the events of a driver. The Data of each is an [*Attempt], and the
// Subject is its key, its watch or its process. Reconcilers send their subjects'
// events themselves.
const (
	// EventFailed: a key failed and is tried again at Retry. It is sent with the
	// first failure, and again each time the failure has lasted ten times as long,
	// not with every attempt.
	EventFailed clusterapi.EventType = "Failed"
	// EventRecovered: a key that had failed no longer does.
	EventRecovered clusterapi.EventType = "Recovered"
	// EventWatchFailed: a watch cannot be started, or broke; it is started again at
	// Retry. It is sent as seldom as EventFailed.
	EventWatchFailed clusterapi.EventType = "WatchFailed"
	// EventWatchRecovered: a watch that had failed has been listed again.
	EventWatchRecovered clusterapi.EventType = "WatchRecovered"
	// EventNotServed: the cluster does not serve a kind; it is looked for again
	// at Retry.
	EventNotServed clusterapi.EventType = "NotServed"
	// EventServerBusy: the server asked to be left alone until Retry.
	EventServerBusy clusterapi.EventType = "ServerBusy"
	// EventCrashed: a simulated process crashed and is made again.
	EventCrashed clusterapi.EventType = "Crashed"
	// EventFault: a simulated fault took place; Message names it.
	EventFault clusterapi.EventType = "Fault"
)

// Attempt is what an event of a driver is about. Fields that do not apply are zero.
type Attempt struct {
	Process    string `json:"process,omitempty"`
	Reconciler string `json:"reconciler,omitempty"`
	Key        Key    `json:"-"` // the Subject of the event
	// Watch is the kind that a watch is about.
	Watch string `json:"watch,omitempty"`
	// Failures counts those in a row.
	Failures int `json:"failures,omitempty"`
	// Retry is when it is tried again.
	Retry time.Time `json:"retry,omitzero"`
}

// eventAbout is the event about an attempt.
func eventAbout(t clusterapi.EventType, a Attempt, err error) clusterapi.Event {
	subject := ""
	switch {
	case a.Watch != "":
		subject = "watch/" + strings.ToLower(a.Watch)
	case a.Key != (Key{}):
		name := Key{Namespace: a.Key.Namespace, Name: a.Key.Name}
		subject = strings.TrimSuffix(strings.ToLower(cmp.Or(a.Key.Kind, a.Reconciler))+"/"+name.String(), "/")
	case a.Process != "":
		subject = "process/" + a.Process
	}
	return clusterapi.Event{Type: t, Subject: subject, Err: err, Data: &a}
}
