package clusterupdate

import (
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/runlevel"
	"github.com/clusterupdate/clusterupdate/signature"
)

// The types of the events of an [Updater]. The Subject is "release" and its version, or
// its image where the version is not known; Data is always an [*EventData].
const (
	EventRetrievedUpdates           clusterapi.EventType = "RetrievedUpdates"           // the graph failed to answer, or answered otherwise than before
	EventPreflight                  clusterapi.EventType = "Preflight"                  // the check of Release starts, or has ended; Message says with what
	EventUpdateRequested            clusterapi.EventType = "UpdateRequested"            // automatic mode asks for Release
	EventRequestIgnored             clusterapi.EventType = "RequestIgnored"             // the request changes nothing; Message explains why
	EventRetrievePayload            clusterapi.EventType = "RetrievePayload"            // retrieval starts, or continues unverified
	EventRetrievePayloadFailed      clusterapi.EventType = "RetrievePayloadFailed"      // not verified, or not to be had
	EventLoadPayload                clusterapi.EventType = "LoadPayload"                // contents are being read
	EventLoadPayloadFailed          clusterapi.EventType = "LoadPayloadFailed"          // contents are faulty
	EventSignatureVerified          clusterapi.EventType = "SignatureVerified"          // Message says by whom
	EventVerifyPayloadVersionFailed clusterapi.EventType = "VerifyPayloadVersionFailed" // another version than requested
	EventPreconditionsPassed        clusterapi.EventType = "PreconditionsPassed"        // also after a warning
	EventPreconditionWarn           clusterapi.EventType = "PreconditionWarn"           // accepted in spite of Message
	EventPreconditionBlock          clusterapi.EventType = "PreconditionBlock"          // refused
	EventPayloadLoaded              clusterapi.EventType = "PayloadLoaded"              // accepted
	EventTask                       clusterapi.EventType = "Task"                       // a step of a pass: Pass of the data
	EventWaiting                    clusterapi.EventType = "Waiting"                    // all that is left of a pass waits; no failure
	EventPassFailed                 clusterapi.EventType = "PassFailed"                 // what failed is tried again
	EventCompleted                  clusterapi.EventType = "Completed"                  // every manifest of Release is applied
	EventHookWaiting                clusterapi.EventType = "HookWaiting"                // a hook is not done
	EventHookFailed                 clusterapi.EventType = "HookFailed"                 // and is asked again
	EventHookDone                   clusterapi.EventType = "HookDone"                   // for now
	EventStatus                     clusterapi.EventType = "Status"                     // the status of the ClusterVersion changed
	EventFailed                     clusterapi.EventType = "Failed"                     // a read or write of the cluster failed, such as the write of a status that the server refuses, and is tried again
	EventRecovered                  clusterapi.EventType = "Recovered"                  // none does any more
)

// EventData is the Data of an Updater's events. It is plain data.
type EventData struct {
	Release configv1.Release `json:"release"`
	// Updates are those that the graph recommends, for EventRetrievedUpdates.
	Updates []configv1.Release `json:"updates,omitempty"`
	// Verification names who signed Release, and as what, for EventSignatureVerified.
	Verification *signature.Verification `json:"verification,omitempty"`
	// Awaits are what the pass waits for, for EventWaiting and EventPassFailed.
	Awaits []Cause `json:"awaits,omitempty"`
	// Pass is an event of package runlevel, for EventTask.
	Pass *clusterapi.Event `json:"pass,omitempty"`
}

// PassProgress returns the version of a release, how many of its manifests a pass has
// applied and has in all, and how many attempts at that have failed, for EventTask; it is
// what clusterversion.PayloadProgress observes. The data of other events has zeros.
func (d *EventData) PassProgress() (version string, done, total, failed int) {
	if d.Pass == nil {
		return "", 0, 0, 0
	}
	step, ok := d.Pass.Data.(*runlevel.Progress)
	if !ok {
		return "", 0, 0, 0
	}
	return d.Release.Version, step.Done, step.Total, step.FailedAttempts
}
