package clusterupdate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
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
	restored bool // cv is not as the cluster has it: see [reported.restored]
	own      configv1.Release
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
	verification  *signature.Verification // nil where nothing was verified
	acceptedRisks string
	capabilities  []string // that it has
	implicit      []string // capabilities that it must not lose
	gates         gates
	checked       time.Time // when the checks ran
}

// load loads the wanted release where it is not what passes apply already.
// Where that is refused, it sees to it that passes apply what the cluster has
// been at so far.
func (p *planner) load() {
	want, base := p.request(p.d.want, p.d.origin), p.request(p.d.base, p.d.baseOrigin)
	switch {
	case p.applies(want) || p.s.load.out != nil:
	case want.release.Image == "":
		p.wait(stepLoad, want.release, "the release has no image")
	case !p.refused(&p.s.load, want):
		p.begin(want)
		p.loading = want
	case base.release.Image == "" || want.key.target == base.key.target || p.applies(base) || p.s.fallback.out != nil || p.refused(&p.s.fallback, base):
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
	w := p.s.sync
	return w != nil && w.release.Image == r.release.Image && w.gates.key() == r.gates.key()
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
		release: release, origin: from, force: from == requested && p.d.resolution.Force,
		verify: from == requested,
		gates:  p.d.gates, cv: p.o.cv, own: p.d.own, now: p.now,
		caps: func(has []string) manifest.Capabilities { return p.capabilities(p.d.gates, nil, has) },
	}
	if p.d.lost != nil {
		r.cv, r.restored = p.o.operators.restored(p.o.cv), true
	}
	r.key = attemptKey{p.d.target(release, from), p.o.cv.UID, p.o.cv.Generation}
	if p.s.sync != nil {
		r.previous = p.s.sync.payload
	}
	if from == requested && p.d.gates.acceptRisks {
		r.accepted = p.updates.acceptedOf(release.Image)
	}
	return r
}

// target is what a release is wished for.
func (d *decision) target(release configv1.Release, from origin) target {
	return target{from, release.Image, release.Version, from == requested && d.resolution.Force, d.gates.key()}
}

// loadRetry is how long to wait after the n-th failed load in a row: it
// doubles from 15 seconds up to the interval between passes.
func loadRetry(n int, interval time.Duration) time.Duration {
	return min(15*time.Second<<min(n-1, 10), interval)
}

// loadID tells loads apart. One is under way at a time, and what came of those
// before may have been dropped: the same target may have to be loaded again.
type loadID struct {
	before int // loads that have ended
	target target
}

// loadJob loads a release while decisions go on. done gets how that ended.
func (c *core) loadJob(r *loadRequest, done func(*loadRequest, *loaded, *LoadError)) reconcile.Job {
	return reconcile.Job{
		ID: loadID{c.loads, r.key.target},
		Run: func(ctx context.Context, _ func(any)) (any, error) {
			var out *loaded
			var refusal *LoadError
			// A panic in the verifier or the source of payloads is a failed retrieval.
			if fault := panics.Isolate(func() error {
				out, refusal = c.load(ctx, r)
				return nil
			}); fault != nil {
				c.log("the release could not be loaded", fault)
				out, refusal = nil, c.failed(ctx, RetrievePayload, EventRetrievePayloadFailed, r.release, ReasonRetrievalFailed, fault)
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
				refusal = c.failure(RetrievePayload, r.release, ReasonRetrievalFailed, err)
			}
			c.loads++
			done(r, release, refusal)
			return []reconcile.Wake{{Key: decideKey}, {Reconciler: saverName, Key: signaturesKey}}
		},
	}
}

// load retrieves, verifies and checks a release. It writes nothing. When ctx
// ends, what it returns means nothing.
func (c *core) load(ctx context.Context, r *loadRequest) (*loaded, *LoadError) {
	out := &loaded{origin: r.origin, gates: r.gates, checked: r.now}
	c.emit(clusterapi.Event{Type: EventRetrievePayload, Message: "Retrieving and verifying payload " + quoted(r.release)}, EventData{Release: r.release})

	retrieval, cancel := reconcile.WithTimeout(ctx, c.o.RetrieveTimeout)
	defer cancel()
	var risks []string
	if r.verify {
		note, err := c.verify(retrieval, r, out)
		if err != nil {
			return nil, c.failed(ctx, RetrievePayload, EventRetrievePayloadFailed, r.release, ReasonVerificationFailed,
				fmt.Errorf("The update cannot be verified: %w", err))
		}
		if note != "" {
			risks = append(risks, note)
			c.emit(clusterapi.Event{Type: EventRetrievePayload, Message: note}, EventData{Release: r.release})
		}
	}
	fsys, err := c.payload(retrieval, r.release)
	if err != nil {
		return nil, c.failed(ctx, RetrievePayload, EventRetrievePayloadFailed, r.release, ReasonRetrievalFailed,
			fmt.Errorf("Unable to download and prepare the update: %w", err))
	}

	c.emit(clusterapi.Event{Type: EventLoadPayload, Message: "Loading payload " + quoted(r.release)}, EventData{Release: r.release})
	payload, err := c.decode(ctx, fsys, r.release, r.gates)
	if err != nil {
		c.discard(ctx, r.release)
		return nil, c.failed(ctx, LoadPayload, EventLoadPayloadFailed, r.release, manifestReason(err), err)
	}
	out.payload, out.release = payload, graph.FillRelease(payload.Release, r.release, nil)
	if want, got := r.release.Version, payload.Release.Version; want != "" && want != got {
		c.discard(ctx, r.release)
		return nil, c.failed(ctx, VerifyPayloadVersion, EventVerifyPayloadVersionFailed, r.release, "",
			fmt.Errorf("release image version %s does not match the expected upstream version %s", got, want))
	}

	note, err := c.checkVersion(r, out)
	if err != nil {
		c.discard(ctx, r.release)
		return nil, c.failed(ctx, RetrievePayload, EventRetrievePayloadFailed, r.release, ReasonVerificationFailed,
			fmt.Errorf("The update cannot be verified: %w", err))
	}
	if note != "" {
		risks = append(risks, note)
	}

	if r.origin == requested {
		if _, err := c.runningPayload(ctx, r); err != nil {
			c.log("the running release's payload cannot be read: it is not compared with the requested one", err)
		}
		decision, err := c.precheck(ctx, r, payload)
		switch {
		case err != nil:
			return nil, c.failed(ctx, PreconditionChecks, EventPreconditionBlock, out.release, ReasonPreconditionFailed, err)
		case decision.Blocked:
			if inapplicable(decision) {
				c.discard(ctx, r.release)
			}
			return nil, c.failed(ctx, PreconditionChecks, EventPreconditionBlock, out.release, ReasonPreconditionFailed, errors.New(decision.Summary))
		case decision.AcceptedRisks != "":
			risks = append(risks, decision.AcceptedRisks)
			c.emit(clusterapi.Event{Type: EventPreconditionWarn,
				Message: fmt.Sprintf("precondition warning for payload loaded %s: %s", quoted(out.release), decision.AcceptedRisks)}, EventData{Release: out.release})
		}
		c.emit(clusterapi.Event{Type: EventPreconditionsPassed, Message: "preconditions passed for payload loaded " + quoted(out.release)}, EventData{Release: out.release})
	}
	out.acceptedRisks = risk.AcceptedNote(joinLines(risks), r.release.Image, r.accepted)
	out.capabilities, out.implicit = payload.Capabilities(), c.implicit(r, payload)
	c.emit(clusterapi.Event{Type: EventPayloadLoaded, Message: loadedMessage(out.release, c.o.architecture(out.release))}, EventData{Release: out.release})
	return out, nil
}

// runningPayload returns the payload that the cluster reconciles, which a new process
// has to read first.
func (c *core) runningPayload(ctx context.Context, r *loadRequest) (*manifest.Payload, error) {
	if r.previous != nil {
		return r.previous, nil
	}
	if r.own.Image == "" {
		return nil, errors.New("it is not known which release the cluster runs")
	}
	fsys, err := c.payload(ctx, r.own)
	if err != nil {
		return nil, err
	}
	r.previous, err = c.decode(ctx, fsys, r.own, r.gates)
	return r.previous, err
}

// payload asks the source for a release. A panic there is an error.
func (c *core) payload(ctx context.Context, r configv1.Release) (fsys fs.FS, err error) {
	err = panics.Isolate(func() error {
		var err error
		fsys, err = c.o.Payloads.Payload(ctx, r)
		if err == nil && fsys == nil {
			return errors.New("the source returned no file system")
		}
		return err
	})
	return fsys, err
}

func (c *core) decode(ctx context.Context, fsys fs.FS, r configv1.Release, g gates) (*manifest.Payload, error) {
	filter := manifest.LoadFilter{
		ExcludeIdentifier: c.o.ExcludeIdentifier,
		Profile:           &c.o.Profile,
		FeatureSet:        &g.featureSet,
		Gates:             g.enabled,
	}
	return manifest.Load(ctx, fsys, manifest.LoadOptions{Image: r.Image, Filter: filter})
}

func (c *core) precheck(ctx context.Context, r *loadRequest, payload *manifest.Payload) (preconditions.Decision, error) {
	t := preconditions.NewTransition(r.cv, payload.Release, r.force, preconditions.Full)
	in := &preconditions.Input{Reader: c.o.API, Transition: t, TargetPayload: payload, Now: r.now}
	if r.restored {
		in.Reader = restoredReader{c.o.API, r.cv}
	}
	in.CurrentPayload = r.previous
	report, err := preconditions.Run(ctx, c.o.Checks, in, preconditions.Options{})
	if err != nil {
		return preconditions.Decision{}, err
	}
	return report.Decide(preconditions.Policy{Bypasses: c.o.Bypasses, AcceptedRisks: acceptedRisks(r.cv, r.gates)}), nil
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
func (c *core) implicit(r *loadRequest, payload *manifest.Payload) []string {
	var has []string
	if r.previous != nil {
		has = r.previous.Capabilities()
	}
	caps := r.caps(has)
	return manifest.ImplicitlyEnabled(r.previous, payload, manifest.Filter{Gates: r.gates.enabled, Capabilities: &caps})
}

// discard has a faulty payload removed.
func (c *core) discard(ctx context.Context, r configv1.Release) {
	if ctx.Err() != nil {
		return // what was called off says nothing about the payload
	}
	if d, ok := c.o.Payloads.(manifest.Discarder); ok {
		c.log("the payload could not be discarded", panics.Isolate(func() error { return d.Discard(ctx, r) }))
	}
}
