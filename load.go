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
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/signature"
)

// loadRequest is a release to load.
type loadRequest struct {
	release  configv1.Release
	origin   origin
	verify   bool
	force    bool
	gates    gates
	cv       *configv1.ClusterVersion
	restored bool // cv is not as the cluster has it: see [reported.restored] and [planner.withoutPreflights]
	own      configv1.Release
	found    []clusterversion.Preflight               // by preflights; nil: none blocks
	caps     func(has []string) manifest.Capabilities // as they are, in a release that has some
	accepted []string                                 // risks of the release that were accepted
	previous *manifest.Payload                        // what the cluster reconciles now; nil: not read yet
	key      attemptKey
	now      time.Time
}

// loaded is a release that passes may apply.
type loaded struct {
	release       configv1.Release
	payload       *manifest.Payload
	origin        origin
	verified      bool
	verification  *signature.Verification // nil if nothing was verified
	acceptedRisks string
	capabilities  []string // that it has
	implicit      []string // capabilities that it must not lose
	gates         gates
	checked       time.Time // when the checks ran
}

// loader loads, verifies and checks releases while decisions continue.
type loader struct {
	process *process
	trust   trust
	ended   int   // loads
	loads   loads // as they ended; the decider's
}

// loads is how the last loads ended. It is a cache, about one request.
type loads struct {
	target   target  // what was last asked for
	wanted   attempt // at the wanted release
	fallback attempt // at what the cluster has been at, if that is refused
	accepted string  // what ReleaseAccepted says of what passes apply
	checks   recheck // before the first pass
}

// target is a release that is to be applied, and how. Loads of the same target have
// the same result.
type target struct {
	origin         origin
	image, version string
	force          bool
	gates          string
}

// attemptKey is a target and the specification that asked for it. Attempts at one
// back off; another specification is tried at once.
type attemptKey struct {
	target     target
	uid        types.UID
	generation int64
}

// attempt is how the last load of a release ended.
type attempt struct {
	key      attemptKey
	out      *loaded // not applied yet; nil: it failed
	force    bool
	err      *LoadError
	since    time.Time // when it failed first, of failures in a row
	failures int       // in a row
	retry    time.Time
}

// ask drops what is known of another request: a release that was loaded for it, a
// refusal, and the waits after it. applied is the image that passes apply.
func (l *loads) ask(want, base target, applied configv1.Release) {
	if l.wanted.key.target != want {
		l.wanted = attempt{}
	}
	if l.fallback.key.target != base {
		l.fallback = attempt{}
	}
	if applied.Image != "" && l.target.image != "" && l.target.image != want.image && applied.Image == want.image {
		l.accepted = "Payload loaded " + quoted(applied) // a request that was withdrawn is history
	}
	l.target = want
}

// take takes a release out that passes apply from now on.
func (l *loads) take(out *loaded) {
	if l.wanted.out == out {
		l.wanted = attempt{}
	}
	if l.fallback.out == out {
		l.fallback = attempt{}
	}
}

// version is the version of an image that was loaded, empty if that is not known.
func (l *loads) version(image string) string {
	for _, a := range []*attempt{&l.wanted, &l.fallback} {
		if a.out != nil && a.out.release.Image == image {
			return a.out.release.Version
		}
	}
	return ""
}

// note records how a load ended.
func (l *loads) note(r *loadRequest, out *loaded, refusal *LoadError, now time.Time, interval time.Duration) {
	a := &l.wanted
	if r.key.target != l.target {
		a = &l.fallback
	}
	failures, since := 1, now
	if a.key == r.key && a.failures > 0 {
		failures, since = a.failures+1, a.since
	}
	*a = attempt{key: r.key, out: out, force: r.force, err: refusal}
	if refusal != nil {
		a.failures, a.since, a.retry = failures, since, now.Add(loadRetry(failures, interval))
	}
}

// load loads the wanted release if it is not what passes apply already. If that is
// refused, it sees to it that passes apply what the cluster has been at so far.
func (p *planner) load() {
	want, base := p.request(p.d.want, p.d.origin), p.request(p.d.base, p.d.baseOrigin)
	switch {
	case p.applies(want) || p.mem.loads.wanted.out != nil:
	case want.release.Image == "":
		p.wait(stepLoad, want.release, "the release has no image")
	case !p.refused(&p.mem.loads.wanted, want):
		p.begin(want)
		if last := &p.mem.loads.wanted; last.err == nil || last.key != want.key {
			p.loading = want // else the condition ReleaseAccepted reports how it was refused
		}
	case base.release.Image == "" || want.key.target == base.key.target || p.applies(base) || p.mem.loads.fallback.out != nil || p.refused(&p.mem.loads.fallback, base):
	default:
		p.begin(base)
	}
}

func (p *planner) begin(r *loadRequest) {
	p.do(Action{Step: stepLoad, Release: r.release, Reason: map[origin]string{
		running: "the cluster runs it", resumed: "an update to it was started", requested: "it is requested",
	}[r.origin], load: r})
}

// applies reports whether passes apply a release as it would be loaded now.
func (p *planner) applies(r *loadRequest) bool {
	w := &p.mem.work
	return w.applies(r.release) && w.sync.loaded.gates.key() == r.gates.key()
}

// refused reports whether r failed not long ago.
func (p *planner) refused(last *attempt, r *loadRequest) bool {
	if last.err == nil || last.key != r.key || !p.later(last.retry, p.longestWait()) {
		return false
	}
	p.waitUntil(stepLoad, r.release, last.retry, last.err.Message)
	return true
}

// request makes the request to load a release. One that is asked for is verified,
// even if the cluster has been at it: it may have been forced then. What the cluster
// is at was accepted before.
func (p *planner) request(release configv1.Release, from origin) *loadRequest {
	r := &loadRequest{
		release: release, origin: from, force: from != running && from != resumed && p.d.resolution.Force,
		verify: from != running && from != resumed,
		gates:  p.d.gates, cv: p.o.cv, own: p.d.own, now: p.now,
		caps: func(has []string) manifest.Capabilities { return p.capabilities(p.d.gates, nil, has) },
	}
	if p.d.lost != nil {
		r.cv, r.restored = p.o.operators.restored(p.o.cv), true
	}
	if p.d.lost == nil && len(clusterversion.Preflights(&r.cv.Status)) > 0 {
		r.cv, r.restored = p.withoutPreflights(), true
	}
	r.key = attemptKey{p.d.target(release, from), p.o.cv.UID, p.o.cv.Generation}
	if p.mem.work.sync != nil {
		r.previous = p.mem.work.sync.loaded.payload
	}
	if from == requested && p.d.gates.acceptRisks {
		r.accepted = p.mem.updates.acceptedOf(release.Image)
		r.found = clusterversion.Preflights(&p.o.cv.Status)
	}
	return r
}

// target is what a release is wished for.
func (d *intent) target(release configv1.Release, from origin) target {
	return target{from, release.Image, release.Version, from == requested && d.resolution.Force, d.gates.key()}
}

// loadRetry is how long to wait after the n-th failed load in a row: it
// doubles from 15 seconds up to the interval between passes.
func loadRetry(n int, interval time.Duration) time.Duration {
	return min(15*time.Second<<min(n-1, 10), interval)
}

// loadID distinguishes loads. One is under way at a time, and the result of those
// before may have been dropped: the same target may have to be loaded again.
type loadID struct {
	before int // loads that have ended
	target target
}

// job loads a release while decisions continue. done gets how that ended.
func (l *loader) job(r *loadRequest, done func(*loaded, *LoadError)) reconcile.Job {
	return reconcile.Job{
		ID: loadID{l.ended, r.key.target},
		Run: func(ctx context.Context, _ func(any)) (any, error) {
			var out *loaded
			var refusal *LoadError
			// A panic in the verifier or the source of payloads is a failed retrieval.
			if fault := panics.Isolate(func() error {
				out, refusal = l.load(ctx, r)
				return nil
			}); fault != nil {
				l.process.log("the release could not be loaded", fault)
				out, refusal = nil, l.failed(ctx, RetrievePayload, r.release, ReasonRetrievalFailed, fault)
			}
			if refusal != nil {
				return nil, refusal
			}
			return out, nil
		},
		Done: func(out any, err error) []reconcile.Wake {
			release, _ := out.(*loaded)
			refusal, ok := errors.AsType[*LoadError](err)
			if err != nil && !ok {
				refusal = loadFailure(RetrievePayload, r.release, ReasonRetrievalFailed, err)
			}
			l.ended++
			done(release, refusal)
			return []reconcile.Wake{{Key: decideKey}, {Reconciler: saverName, Key: signaturesKey}}
		},
	}
}

// open retrieves, verifies and reads a release; notes are why it is a risk to continue with
// one that is not verified. It writes nothing. When ctx ends, what it returns means
// nothing.
func (l *loader) open(ctx context.Context, r *loadRequest) (out *loaded, notes []string, refusal *LoadError) {
	out = &loaded{origin: r.origin, gates: r.gates, checked: r.now}
	l.process.report(EventRetrievePayload, r.release, "Retrieving and verifying payload "+quoted(r.release))

	retrieval, cancel := reconcile.WithTimeout(ctx, l.process.o.RetrieveTimeout)
	defer cancel()
	if r.verify {
		note, err := l.verify(retrieval, r, out)
		if err != nil {
			return nil, nil, l.failed(ctx, RetrievePayload, r.release, ReasonVerificationFailed,
				fmt.Errorf("The update cannot be verified: %w", err))
		}
		if note != "" {
			notes = append(notes, note)
			l.process.report(EventRetrievePayload, r.release, note)
		}
	}
	fsys, err := l.payload(retrieval, r.release)
	if err != nil {
		return nil, nil, l.failed(ctx, RetrievePayload, r.release, ReasonRetrievalFailed,
			fmt.Errorf("Unable to download and prepare the update: %w", err))
	}

	l.process.report(EventLoadPayload, r.release, "Loading payload "+quoted(r.release))
	payload, err := l.decode(ctx, fsys, r.release, r.gates)
	if err != nil {
		l.discard(ctx, r.release)
		return nil, nil, l.failed(ctx, LoadPayload, r.release, manifestReason(err), err)
	}
	out.payload, out.release = payload, graph.FillRelease(payload.Release, r.release, nil)
	if want, got := r.release.Version, payload.Release.Version; want != "" && want != got {
		l.discard(ctx, r.release)
		return nil, nil, l.failed(ctx, VerifyPayloadVersion, r.release, "",
			fmt.Errorf("release image version %s does not match the expected upstream version %s", got, want))
	}

	note, err := l.checkVersion(r, out)
	if err != nil {
		l.discard(ctx, r.release)
		return nil, nil, l.failed(ctx, RetrievePayload, r.release, ReasonVerificationFailed,
			fmt.Errorf("The update cannot be verified: %w", err))
	}
	if note != "" {
		notes = append(notes, note)
	}
	return out, notes, nil
}

// load retrieves, verifies and checks a release. It writes nothing. When ctx
// ends, what it returns means nothing.
func (l *loader) load(ctx context.Context, r *loadRequest) (*loaded, *LoadError) {
	out, risks, refusal := l.open(ctx, r)
	if refusal != nil {
		return nil, refusal
	}
	payload, accepted := out.payload, r.accepted
	if r.origin == requested {
		if _, err := l.runningPayload(ctx, r); err != nil {
			l.process.log("the running release's payload cannot be read: it is not compared with the requested one", err)
		}
		decision, err := l.precheck(ctx, r, payload)
		switch {
		case err != nil:
			return nil, l.failed(ctx, PreconditionChecks, out.release, ReasonPreconditionFailed, err)
		case decision.Blocked:
			if inapplicable(decision) {
				l.discard(ctx, r.release)
			}
			return nil, l.failed(ctx, PreconditionChecks, out.release, ReasonPreconditionFailed, errors.New(decision.Summary))
		}
		if found := preflightOf(r.found, out.release); found != nil {
			note := openRisks(r, found, out.release)
			if note != "" && !r.force {
				return nil, l.failed(ctx, PreconditionChecks, out.release, ReasonPreconditionFailed, errors.New(note))
			}
			risks = append(risks, note)
			if !r.force {
				accepted = slices.Concat(accepted, found.Risks())
			}
		}
		if decision.AcceptedRisks != "" {
			risks = append(risks, decision.AcceptedRisks)
			const warning = "precondition warning for payload loaded %s: %s"
			l.process.report(EventPreconditionWarn, out.release, fmt.Sprintf(warning, quoted(out.release), decision.AcceptedRisks))
		}
		l.process.report(EventPreconditionsPassed, out.release, "preconditions passed for payload loaded "+quoted(out.release))
	}
	out.acceptedRisks = risk.AcceptedNote(joinLines(risks), r.release.Image, accepted)
	out.capabilities, out.implicit = payload.Capabilities(), l.implicit(r, payload)
	l.process.report(EventPayloadLoaded, out.release, loadedMessage(out.release, l.process.o.architecture(out.release)))
	return out, nil
}

// runningPayload returns the payload that the cluster reconciles, which a new process
// has to read first.
func (l *loader) runningPayload(ctx context.Context, r *loadRequest) (*manifest.Payload, error) {
	if r.previous != nil {
		return r.previous, nil
	}
	if r.own.Image == "" {
		return nil, errors.New("it is not known which release the cluster runs")
	}
	fsys, err := l.payload(ctx, r.own)
	if err != nil {
		return nil, err
	}
	r.previous, err = l.decode(ctx, fsys, r.own, r.gates)
	return r.previous, err
}

// payload asks the source for a release. A panic there is an error.
func (l *loader) payload(ctx context.Context, r configv1.Release) (fsys fs.FS, err error) {
	err = panics.Isolate(func() error {
		var err error
		fsys, err = l.process.o.Payloads.Payload(ctx, r)
		if err == nil && fsys == nil {
			return errors.New("the source returned no file system")
		}
		return err
	})
	return fsys, err
}

func (l *loader) decode(ctx context.Context, fsys fs.FS, r configv1.Release, g gates) (*manifest.Payload, error) {
	filter := manifest.LoadFilter{
		ExcludeIdentifier: l.process.o.ExcludeIdentifier,
		Profile:           &l.process.o.Profile,
		FeatureSet:        &g.featureSet,
		Gates:             g.enabled,
	}
	return manifest.Load(ctx, fsys, manifest.LoadOptions{Image: r.Image, Filter: filter})
}

// input is what checks judge a release by.
func (l *loader) input(r *loadRequest, payload *manifest.Payload) *preconditions.Input {
	in := &preconditions.Input{
		Reader: l.process.o.API, TargetPayload: payload, CurrentPayload: r.previous, Now: r.now, Alerts: l.process.o.Alerts,
	}
	if r.restored {
		in.Reader = restoredReader{l.process.o.API, r.cv}
	}
	in.Transition = preconditions.NewTransition(r.cv, payload.Release, r.force, preconditions.Full)
	return in
}

func (l *loader) precheck(ctx context.Context, r *loadRequest, payload *manifest.Payload) (preconditions.Decision, error) {
	report, err := preconditions.Run(ctx, l.process.o.Checks, l.input(r, payload), preconditions.Options{})
	if err != nil {
		return preconditions.Decision{}, err
	}
	return report.Decide(preconditions.Policy{Bypasses: l.process.o.Bypasses, AcceptedRisks: acceptedRisks(r.cv, r.gates)}), nil
}

// inapplicable reports whether a release was refused for what it is, rather
// than for the state of the cluster.
func inapplicable(d preconditions.Decision) bool {
	return slices.ContainsFunc(d.Results, func(r preconditions.Result) bool {
		return r.Check == "ReleasePrevious" && r.State == preconditions.Failed
	})
}

// implicit returns the capabilities that a release must enable: without them objects
// that the cluster manages become unmanaged.
func (l *loader) implicit(r *loadRequest, payload *manifest.Payload) []string {
	var has []string
	if r.previous != nil {
		has = r.previous.Capabilities()
	}
	caps := r.caps(has)
	return manifest.ImplicitlyEnabled(r.previous, payload, manifest.Filter{Gates: r.gates.enabled, Capabilities: &caps})
}

// discard has a faulty payload removed.
func (l *loader) discard(ctx context.Context, r configv1.Release) {
	if ctx.Err() != nil {
		return // what was called off says nothing about the payload
	}
	if d, ok := l.process.o.Payloads.(manifest.Discarder); ok {
		l.process.log("the payload could not be discarded", panics.Isolate(func() error { return d.Discard(ctx, r) }))
	}
}

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
	// Reason is a machine-readable cause if there is one.
	Reason string
	// Message is the condition ReleaseAccepted's.
	Message string
	Err     error
}

// Error is Message.
func (e *LoadError) Error() string { return e.Message }

// Unwrap returns Err.
func (e *LoadError) Unwrap() error { return e.Err }

// failed words the end of a load, and reports it unless it was called off.
func (l *loader) failed(ctx context.Context, step Step, r configv1.Release, reason string, err error) *LoadError {
	e := loadFailure(step, r, reason, err)
	if ctx.Err() != nil {
		return e
	}
	message := e.Message
	if step == RetrievePayload { // the event tells what the condition leaves out
		message = fmt.Sprintf("Retrieving payload failed %s failure=%s", quoted(r), strings.ReplaceAll(signature.Chain(err), "\n", " // "))
	}
	l.process.emit(clusterapi.Event{Type: loadFailures[step].event, Message: message, Err: err}, EventData{Release: r})
	return e
}

func loadFailure(step Step, r configv1.Release, reason string, err error) *LoadError {
	message := fmt.Sprintf(loadFailures[step].text, quoted(r), err)
	return &LoadError{Step: step, Release: r, Reason: reason, Message: message, Err: err}
}

// loadFailures are the events and the texts of steps that fail.
var loadFailures = map[Step]struct {
	event clusterapi.EventType
	text  string // of the release and the error
}{
	RetrievePayload:      {EventRetrievePayloadFailed, "Retrieving payload failed %s failure=%v"},
	LoadPayload:          {EventLoadPayloadFailed, "Loading payload failed %s failure=%v"},
	VerifyPayloadVersion: {EventVerifyPayloadVersionFailed, "Verifying payload failed %s failure=%v"},
	PreconditionChecks:   {EventPreconditionBlock, "Preconditions failed for payload loaded %s: %v"},
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
