package clusterupdate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/signature"
)

// Step is a step of loading a release, as the reason of the condition
// ReleaseAccepted names it.
type Step string

// The steps of loading a release, in their order.
const (
	RetrievePayload      Step = "RetrievePayload"
	LoadPayload          Step = "LoadPayload"
	VerifyPayloadVersion Step = "VerifyPayloadVersion"
	PreconditionChecks   Step = "PreconditionChecks"
	PayloadLoaded        Step = "PayloadLoaded"
)

// Reasons of a [LoadError] that users know from the operator.
const (
	ReasonVerificationFailed = "ImageVerificationFailed"
	ReasonRetrievalFailed    = "UpdatePayloadRetrievalFailed"
	ReasonPreconditionFailed = "UpgradePreconditionCheckFailed"
)

// LoadError says at which step a release could not be accepted, and why. The
// cluster stays with what it ran.
type LoadError struct {
	Step    Step
	Release configv1.Release
	// Reason is a machine-readable cause where there is one.
	Reason string
	// Message is that of the condition ReleaseAccepted.
	Message string
	Err     error
}

// Error is Message.
func (e *LoadError) Error() string { return e.Message }

// Unwrap returns Err.
func (e *LoadError) Unwrap() error { return e.Err }

// failed words the end of a load, and tells of it unless it was called off.
func (l *loader) failed(ctx context.Context, step Step, event clusterapi.EventType, r configv1.Release, reason string, err error) *LoadError {
	e := l.failure(step, r, reason, err)
	if ctx.Err() != nil {
		return e
	}
	message := e.Message
	if step == RetrievePayload { // the event tells what the condition leaves out
		message = fmt.Sprintf("Retrieving payload failed %s failure=%s", quoted(r), strings.ReplaceAll(signature.Chain(err), "\n", " // "))
	}
	l.process.emit(clusterapi.Event{Type: event, Message: message, Err: err}, EventData{Release: r})
	return e
}

func (l *loader) failure(step Step, r configv1.Release, reason string, err error) *LoadError {
	e := &LoadError{Step: step, Release: r, Reason: reason, Err: err}
	switch step {
	case RetrievePayload:
		e.Message = fmt.Sprintf("Retrieving payload failed %s failure=%v", quoted(r), err)
	case LoadPayload:
		e.Message = fmt.Sprintf("Loading payload failed %s failure=%v", quoted(r), err)
	case VerifyPayloadVersion:
		e.Message = fmt.Sprintf("Verifying payload failed %s failure=%v", quoted(r), err)
	default:
		e.Message = fmt.Sprintf("Preconditions failed for payload loaded %s: %v", quoted(r), err)
	}
	return e
}

func loadedMessage(r configv1.Release, architecture string) string {
	return fmt.Sprintf("Payload loaded %s architecture=%q", quoted(r), architecture)
}

func manifestReason(err error) string {
	var m *manifest.Error
	if errors.As(err, &m) {
		return m.Reason
	}
	return ""
}
