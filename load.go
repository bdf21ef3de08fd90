package clusterupdate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/preconditions"
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

// loadRequest is a release to load.
type loadRequest struct {
	release  configv1.Release
	origin   origin
	verify   bool
	force    bool
	gates    gates
	cv       *configv1.ClusterVersion
	own      configv1.Release
	caps     manifest.Capabilities
	accepted []string          // risks of the release that were accepted
	previous *manifest.Payload // what the cluster reconciles now; nil: not read yet
	wish     string            // what it is about: another wish makes a result void
	key      string            // the wish and the specification that it came from
	cancel   context.CancelFunc
}

// loadEnd is how a load ended.
type loadEnd struct {
	request *loadRequest
	out     *loaded
	err     *LoadError
}

// loaded is a release that passes may apply.
type loaded struct {
	release       configv1.Release
	payload       *manifest.Payload
	origin        origin
	verified      bool
	verification  *signature.Verification // nil where nothing was verified
	acceptedRisks string
	implicit      []string // capabilities that it must not lose
	gates         gates
}

// loadState is how far the last load came.
type loadState struct {
	key      string
	step     Step
	message  string
	err      *LoadError
	attempts int
	retry    time.Time
}

// attemptsOf counts the failed attempts at one and the same request.
func (s *loadState) attemptsOf(key string) int {
	if s.key != key {
		return 0
	}
	return s.attempts
}

// load retrieves, verifies and checks a release. It writes nothing. When ctx
// ends, what it returns means nothing.
func (u *Updater) load(ctx context.Context, r *loadRequest) (*loaded, *LoadError) {
	out := &loaded{origin: r.origin, gates: r.gates}
	u.emit(Event{Type: EventRetrievePayload, Release: r.release, Message: "Retrieving and verifying payload " + quoted(r.release)})

	retrieval, cancel := ctx, context.CancelFunc(func() {})
	if _, ok := ctx.Deadline(); !ok {
		retrieval, cancel = clockTimeout(ctx, u.o.Clock, u.o.RetrieveTimeout)
	}
	defer cancel()
	var risks []string
	if r.verify {
		risk, err := u.verify(retrieval, r, out)
		if err != nil {
			return nil, u.failed(ctx, RetrievePayload, EventRetrievePayloadFailed, r.release, ReasonVerificationFailed,
				fmt.Errorf("The update cannot be verified: %w", err))
		}
		if risk != "" {
			risks = append(risks, risk)
			u.emit(Event{Type: EventRetrievePayload, Release: r.release, Message: risk})
		}
	}
	fsys, err := u.payload(retrieval, r.release)
	if err != nil {
		return nil, u.failed(ctx, RetrievePayload, EventRetrievePayloadFailed, r.release, ReasonRetrievalFailed,
			fmt.Errorf("Unable to download and prepare the update: %w", err))
	}

	u.emit(Event{Type: EventLoadPayload, Release: r.release, Message: "Loading payload " + quoted(r.release)})
	payload, err := u.decode(ctx, fsys, r.release, r.gates)
	if err != nil {
		u.discard(ctx, r.release)
		return nil, u.failed(ctx, LoadPayload, EventLoadPayloadFailed, r.release, manifestReason(err), err)
	}
	out.payload, out.release = payload, graph.FillRelease(payload.Release, r.release, nil)
	if want, got := r.release.Version, payload.Release.Version; want != "" && want != got {
		u.discard(ctx, r.release)
		return nil, u.failed(ctx, VerifyPayloadVersion, EventVerifyPayloadVersionFailed, r.release, "",
			fmt.Errorf("release image version %s does not match the expected upstream version %s", got, want))
	}

	risk, err := u.checkVersion(r, out)
	if err != nil {
		u.discard(ctx, r.release)
		return nil, u.failed(ctx, RetrievePayload, EventRetrievePayloadFailed, r.release, ReasonVerificationFailed,
			fmt.Errorf("The update cannot be verified: %w", err))
	}
	if risk != "" {
		risks = append(risks, risk)
	}

	if r.origin == requested {
		if _, err := u.current(ctx, r); err != nil {
			u.log("the running release's payload cannot be read: it is not compared with the requested one", err)
		}
		decision, err := u.precheck(ctx, r, payload)
		switch {
		case err != nil:
			return nil, u.failed(ctx, PreconditionChecks, EventPreconditionBlock, out.release, ReasonPreconditionFailed, err)
		case decision.Blocked:
			if inapplicable(decision) {
				u.discard(ctx, r.release)
			}
			return nil, u.failed(ctx, PreconditionChecks, EventPreconditionBlock, out.release, ReasonPreconditionFailed, errors.New(decision.Summary))
		case decision.AcceptedRisks != "":
			risks = append(risks, decision.AcceptedRisks)
			u.emit(Event{Type: EventPreconditionWarn, Release: out.release,
				Message: fmt.Sprintf("precondition warning for payload loaded %s: %s", quoted(out.release), decision.AcceptedRisks)})
		}
		u.emit(Event{Type: EventPreconditionsPassed, Release: out.release, Message: "preconditions passed for payload loaded " + quoted(out.release)})
	}
	out.acceptedRisks = graph.AcceptedNote(joinLines(risks), r.release.Image, r.accepted)
	out.implicit = u.implicit(r, payload)
	u.emit(Event{Type: EventPayloadLoaded, Release: out.release, Message: loadedMessage(out.release, u.architecture(out.release))})
	return out, nil
}

// verify checks the signature of a release image. An update that is forced
// goes on without one; why that is a risk is returned.
func (u *Updater) verify(ctx context.Context, r *loadRequest, out *loaded) (risk string, err error) {
	verifier := u.o.Verifier
	if verifier == nil {
		verifier, err = u.payloadVerifier(ctx, r)
	}
	if err == nil {
		left := u.o.RetrieveTimeout
		if deadline, ok := ctx.Deadline(); ok {
			left = time.Until(deadline)
		}
		half, cancel := clockTimeout(ctx, u.o.Clock, left/2)
		defer cancel()
		if out.verification, err = u.verifySigner(half, verifier, r.release); err == nil {
			out.verified = true
			u.noteVerified()
			u.emit(Event{Type: EventSignatureVerified, Release: r.release, Message: out.verification.String(), Verification: out.verification})
			return "", nil
		}
	}
	if r.force && ctx.Err() == nil {
		return forcedRisk(r.release, err), nil
	}
	return "", err
}

// forcedRisk is why it is a risk to go on with a release that is not verified.
func forcedRisk(r configv1.Release, err error) string {
	return signature.Chain(fmt.Errorf("Target release %s cannot be verified, but continuing anyway because the update was forced: %w", quoted(r), err))
}

// verifySigner verifies a release, and that it was signed under a name that
// counts. Without a version, the version in that name plays no part.
func (u *Updater) verifySigner(ctx context.Context, verifier signature.Verifier, r configv1.Release) (*signature.Verification, error) {
	identity := u.o.Identity
	if r.Version == "" && identity.Version {
		identity.Version = false
		if v, ok := verifier.(*signature.OpenPGP); ok && u.o.Verifier == nil {
			verifier = v.WithIdentity(identity)
		}
	}
	digest := signature.Digest(r.Image)
	var v *signature.Verification
	err := panics.Isolate(func() (err error) {
		if of, ok := verifier.(signature.ReleaseVerifier); ok {
			v, err = of.VerifyRelease(ctx, r)
		} else {
			v, err = verifier.Verify(ctx, digest)
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case v == nil:
		return nil, &signature.Error{Digest: digest, Err: fmt.Errorf("verifier %T returned neither a proof nor an error", verifier)}
	case v.Digest != "" && v.Digest != digest:
		return nil, &signature.Error{Digest: digest, Err: fmt.Errorf("verifier %T vouches for %s instead", verifier, v.Digest)}
	}
	if err := identity.CheckAll(v, r.Version); err != nil {
		return nil, &signature.Error{Digest: digest, Err: err}
	}
	return v.For(r.Version), nil
}

// checkVersion compares the names under which a release was signed with its
// version, where that was not known before its contents were read.
func (u *Updater) checkVersion(r *loadRequest, out *loaded) (risk string, err error) {
	if out.verification == nil || r.release.Version != "" {
		return "", nil
	}
	v := out.verification.For(out.release.Version)
	err = u.o.Identity.CheckAll(v, v.Version)
	switch {
	case err == nil && slices.ContainsFunc(v.Signers, func(s signature.Signer) bool { return s.Fit == signature.FitOther }):
		u.emit(Event{Type: EventSignatureVerified, Release: out.release, Message: v.String(), Verification: v})
	case err != nil && r.force:
		out.verified = false
		risk = forcedRisk(out.release, err)
		u.emit(Event{Type: EventRetrievePayload, Release: out.release, Message: risk})
		return risk, nil
	}
	return "", err
}

// current returns the payload that the cluster reconciles, which a new process
// has to read first.
func (u *Updater) current(ctx context.Context, r *loadRequest) (*manifest.Payload, error) {
	if r.previous != nil {
		return r.previous, nil
	}
	fsys, err := u.payload(ctx, r.own)
	if err != nil {
		return nil, err
	}
	r.previous, err = u.decode(ctx, fsys, r.own, r.gates)
	return r.previous, err
}

// payload asks the source for a release. A panic there is an error.
func (u *Updater) payload(ctx context.Context, r configv1.Release) (fsys fs.FS, err error) {
	err = panics.Isolate(func() error {
		var err error
		if fsys, err = u.o.Payloads.Payload(ctx, r); err == nil && fsys == nil {
			return errors.New("the source returned no file system")
		}
		return err
	})
	return fsys, err
}

func (u *Updater) decode(ctx context.Context, fsys fs.FS, r configv1.Release, g gates) (*manifest.Payload, error) {
	filter := manifest.LoadFilter{
		ExcludeIdentifier: u.o.ExcludeIdentifier,
		Profile:           &u.o.Profile,
		FeatureSet:        &g.featureSet,
		Gates:             g.enabled,
	}
	return manifest.Load(ctx, fsys, manifest.LoadOptions{Image: r.Image, Filter: filter})
}

func (u *Updater) precheck(ctx context.Context, r *loadRequest, payload *manifest.Payload) (preconditions.Decision, error) {
	t := preconditions.NewTransition(r.cv, payload.Release, r.force, preconditions.Full)
	in := &preconditions.Input{Reader: u.o.API, Transition: t, TargetPayload: payload, Now: u.o.Clock.Now()}
	in.CurrentPayload = r.previous
	report, err := preconditions.Run(ctx, u.o.Checks, in, preconditions.Options{})
	if err != nil {
		return preconditions.Decision{}, err
	}
	return report.Decide(preconditions.Policy{Bypasses: u.o.Bypasses, AcceptedRisks: acceptedRisks(r.cv, r.gates)}), nil
}

// inapplicable reports whether a release was refused for what it is, rather
// than for the state of the cluster.
func inapplicable(d preconditions.Decision) bool {
	return slices.ContainsFunc(d.Results, func(r preconditions.Result) bool {
		return r.Check == (preconditions.ReleasePrevious{}).Name() && r.State == preconditions.Failed
	})
}

// implicit returns the capabilities that a release must enable, lest objects
// that the cluster manages become unmanaged.
func (u *Updater) implicit(r *loadRequest, payload *manifest.Payload) []string {
	return manifest.ImplicitlyEnabled(r.previous, payload, manifest.Filter{Gates: r.gates.enabled, Capabilities: &r.caps})
}

func (u *Updater) architecture(r configv1.Release) string {
	if r.Architecture != "" {
		return string(r.Architecture)
	}
	return u.o.Architecture
}

// discard has a faulty payload removed.
func (u *Updater) discard(ctx context.Context, r configv1.Release) {
	if ctx.Err() != nil {
		return // what was called off says nothing about the payload
	}
	if d, ok := u.o.Payloads.(manifest.Discarder); ok {
		u.log("the payload could not be discarded", panics.Isolate(func() error { return d.Discard(ctx, r) }))
	}
}

// failed words the end of a load. One that was called off is no failure.
func (u *Updater) failed(ctx context.Context, step Step, event EventType, r configv1.Release, reason string, err error) *LoadError {
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
	if ctx.Err() != nil {
		return e
	}
	message := e.Message
	if step == RetrievePayload { // the event tells what the condition leaves out
		message = fmt.Sprintf("Retrieving payload failed %s failure=%s", quoted(r), strings.ReplaceAll(signature.Chain(err), "\n", " // "))
	}
	u.emit(Event{Type: event, Release: r, Message: message, Err: err})
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
