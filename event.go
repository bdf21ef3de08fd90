package clusterupdate

import (
	"log/slog"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/eventlog"
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
	EventWaiting                    EventType = "Waiting"                    // all that is left of a pass waits for operators
	EventPassFailed                 EventType = "PassFailed"                 // what failed is tried again
	EventCompleted                  EventType = "Completed"                  // every manifest of Release is applied
	EventHookWaiting                EventType = "HookWaiting"                // a hook is not done
	EventHookFailed                 EventType = "HookFailed"                 // and is asked again
	EventHookDone                   EventType = "HookDone"                   // for now
	EventStatus                     EventType = "Status"                     // the status of the ClusterVersion changed
	EventStatusRefused              EventType = "StatusRefused"              // the server refuses it, and says why in Message
)

// Event is a step of an [Updater]. See [Event.MarshalJSON] for its JSON form.
type Event struct {
	Type    EventType
	Time    time.Time
	Release configv1.Release
	Message string
	// Err is the failure of an event that is about one.
	Err error
	// Progress is the event of the pass, on Task events: its Data is a
	// [*runlevel.Progress]. What it points to is not to be changed.
	Progress *clusterapi.Event
	// Verification is set on SignatureVerified: who signed, and under which
	// name. It is not to be changed.
	Verification *signature.Verification
	// Updates that the graph recommends, on RetrievedUpdates.
	Updates []configv1.Release
}

// fields is the event in the form that all packages' events have.
func (e Event) fields() eventlog.Fields {
	f := eventlog.New(e.Time, string(e.Type))
	f.Add("version", e.Release.Version)
	f.Add("image", e.Release.Image)
	f.Add("message", e.Message)
	f.Add("error", e.Err)
	f.Add("updates", e.Updates)
	if p := e.step(); p != nil {
		f.Add("step", e.Progress.Type)
		if p.Task != nil {
			f.Add("task", p.Task.String())
			f.Add("file", p.Task.Manifest.Filename)
		}
		f.Add("level", p.Level)
		f.Add("component", p.Component)
		f.Add("attempt", p.Attempt)
		f.Set("done", p.Done)
		f.Set("skipped", p.Skipped)
		f.Set("total", p.Total)
		f.Add("failedAttempts", p.FailedAttempts)
		if p.Wait != nil {
			f.Set("wait", p.Wait)
		}
		if p.Drift != nil {
			f.Set("drift", p.Drift)
		}
	}
	if v := e.Verification; v != nil {
		var as []string
		var fits []signature.Fit
		for _, s := range v.Signers {
			as, fits = append(as, s.Reference), append(fits, s.Fit)
		}
		// The names under which Release was signed, and of each whether it
		// fits its version ("Same", "Other", or "" where that is not known).
		f.Add("signedAs", as)
		f.Add("versionFits", fits)
	}
	return f
}

// step is the progress of the pass on a Task event, else nil.
func (e Event) step() *runlevel.Progress {
	if e.Progress == nil {
		return nil
	}
	p, _ := e.Progress.Data.(*runlevel.Progress)
	return p
}

// MarshalJSON writes the event as one flat object. Fields may be added to it,
// but none is ever renamed.
func (e Event) MarshalJSON() ([]byte, error) { return e.fields().JSON() }

// LogValue implements [slog.LogValuer].
func (e Event) LogValue() slog.Value { return e.fields().LogValue() }
