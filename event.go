package clusterupdate

import (
	"encoding/json"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/runlevel"
	"github.com/clusterupdate/clusterupdate/signature"
)

// EventType says what an [Event] is about.
type EventType string

// The types of an [Event]. Those in the words of the cluster-version operator's
// own events carry its texts in Message.
const (
	EventRetrievedUpdates           EventType = "RetrievedUpdates"           // the graph answered, or failed to
	EventUpdateRequested            EventType = "UpdateRequested"            // automatic mode asks for Release
	EventRequestIgnored             EventType = "RequestIgnored"             // the request changes nothing; Message says why
	EventRetrievePayload            EventType = "RetrievePayload"            // retrieval begins, or goes on unverified
	EventRetrievePayloadFailed      EventType = "RetrievePayloadFailed"      // not verified, or not to be had
	EventLoadPayload                EventType = "LoadPayload"                // contents are being read
	EventLoadPayloadFailed          EventType = "LoadPayloadFailed"          // contents are faulty
	EventSignatureVerified          EventType = "SignatureVerified"          // Message says by whom
	EventVerifyPayloadVersionFailed EventType = "VerifyPayloadVersionFailed" // another version than requested
	EventPreconditionsPassed        EventType = "PreconditionsPassed"        // also after a warning
	EventPreconditionWarn           EventType = "PreconditionWarn"           // accepted in spite of Message
	EventPreconditionBlock          EventType = "PreconditionBlock"          // refused
	EventPayloadLoaded              EventType = "PayloadLoaded"              // accepted
	EventTask                       EventType = "Task"                       // progress of a pass: see Progress
	EventPassFailed                 EventType = "PassFailed"                 // a pass ended; another follows
	EventCompleted                  EventType = "Completed"                  // every manifest of Release is applied
	EventStatus                     EventType = "Status"                     // the status of the ClusterVersion changed
)

// Event is a step of an [Updater]. See [Event.MarshalJSON] for its JSON form.
type Event struct {
	Type    EventType
	Time    time.Time
	Release configv1.Release
	Message string
	// Err is the failure of an event that is about one.
	Err error
	// Progress is set on Task events. What it points to is not to be changed.
	Progress *runlevel.Event
	// Verification is set on SignatureVerified: who signed, and under which
	// name. It is not to be changed.
	Verification *signature.Verification
	// Updates that the graph recommends, on RetrievedUpdates.
	Updates []configv1.Release
}

// MarshalJSON writes the event as one flat object. Fields may be added to it,
// but none is ever renamed.
func (e Event) MarshalJSON() ([]byte, error) {
	out := struct {
		Type      EventType          `json:"type"`
		Time      time.Time          `json:"time"`
		Version   string             `json:"version,omitempty"`
		Image     string             `json:"image,omitempty"`
		Message   string             `json:"message,omitempty"`
		Error     string             `json:"error,omitempty"`
		Updates   []configv1.Release `json:"updates,omitempty"`
		Step      runlevel.EventType `json:"step,omitempty"`
		Task      string             `json:"task,omitempty"`
		File      string             `json:"file,omitempty"`
		Level     string             `json:"level,omitempty"`
		Component string             `json:"component,omitempty"`
		Attempt   int                `json:"attempt,omitempty"`
		Done      *int               `json:"done,omitempty"`
		Skipped   *int               `json:"skipped,omitempty"`
		Total     *int               `json:"total,omitempty"`
		Wait      *runlevel.Wait     `json:"wait,omitempty"`
		// The names under which Release was signed, and of each whether it
		// fits its version ("Same", "Other", or "" where that is not known).
		SignedAs    []string        `json:"signedAs,omitempty"`
		VersionFits []signature.Fit `json:"versionFits,omitempty"`
	}{
		Type: e.Type, Time: e.Time, Version: e.Release.Version, Image: e.Release.Image, Message: e.Message, Updates: e.Updates,
	}
	if e.Err != nil {
		out.Error = e.Err.Error()
	}
	if p := e.Progress; p != nil {
		out.Step, out.Level, out.Component, out.Attempt, out.Wait = p.Type, p.Level, p.Component, p.Attempt, p.Wait
		out.Done, out.Skipped, out.Total = &p.Done, &p.Skipped, &p.Total
		if p.Task != nil {
			out.Task, out.File = p.Task.String(), p.Task.Manifest.Filename
		}
	}
	if v := e.Verification; v != nil {
		for _, s := range v.Signers {
			out.SignedAs, out.VersionFits = append(out.SignedAs, s.Reference), append(out.VersionFits, s.Fit)
		}
	}
	return json.Marshal(out)
}
