package clusterupdate

import (
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterupdate/clusterupdate/graph"
)

// Outcome says how a request for an update was answered.
type Outcome string

// The outcomes of [Resolve].
const (
	// Resolved: the request names a release to update to.
	Resolved Outcome = "Resolved"
	// OwnRelease: the cluster stays with what it runs; Why says why.
	OwnRelease Outcome = "OwnRelease"
	// NotFound: no list that counts has the requested version.
	NotFound Outcome = "NotFound"
	// Invalid: the request has a fault and is treated as none.
	Invalid Outcome = "Invalid"
)

// Resolution is the answer to spec.desiredUpdate.
type Resolution struct {
	Outcome Outcome `json:"outcome"`
	// Release is what the cluster is to reconcile: the requested release when
	// Resolved, else the base.
	Release configv1.Release `json:"release"`
	Force   bool             `json:"force,omitempty"`
	// Why explains an outcome other than Resolved to an administrator; empty
	// where there is nothing to explain.
	Why string `json:"why,omitempty"`
}

// Resolve answers the request of a ClusterVersion whose faults have been
// cleared (see [Clear]). base is what the cluster reconciles without a
// request: an update that has been started, else the release it runs.
// faulty says that the request was dropped for its faults.
//
// A started update is never turned around by a request that disappears, gets a
// fault, or whose version is not offered any more: only by one for another release.
func Resolve(cv *configv1.ClusterVersion, base configv1.Release, faulty bool) Resolution {
	stay := Resolution{Outcome: OwnRelease, Release: base}
	u := cv.Spec.DesiredUpdate
	switch {
	case u == nil && faulty:
		stay.Outcome, stay.Why = Invalid, "the request is invalid"
		return stay
	case u == nil:
		return stay
	case u.Image != "":
		return resolved(cv, base, u.Version, u.Image, u.Force)
	}

	version := u.Version
	multi := u.Architecture == configv1.ClusterVersionArchitectureMulti && base.Architecture != configv1.ClusterVersionArchitectureMulti
	if multi {
		version = cv.Status.Desired.Version
	} else if version == base.Version {
		return stay // satisfied, or being worked on: bound to its image
	}
	for _, r := range cv.Status.AvailableUpdates {
		if r.Version == version && r.Image != "" {
			return resolved(cv, base, version, r.Image, u.Force)
		}
	}
	if version == "" { // only risks are accepted
		return stay
	}
	stay.Outcome = NotFound
	switch {
	case multi:
		stay.Why = fmt.Sprintf("no multi-architecture release of %s is available", version)
	case historyImage(cv, version) != "":
		stay.Why = fmt.Sprintf("version %s is known from the history, but is not an available update: request it with its image %s", version, historyImage(cv, version))
	default:
		stay.Why = notRecommended(cv, version)
	}
	return stay
}

// resolved completes a release with what the available updates say about its image.
func resolved(cv *configv1.ClusterVersion, base configv1.Release, version, image string, force bool) Resolution {
	r := configv1.Release{Version: version, Image: image}
	if image == base.Image && (version == "" || version == base.Version) {
		return Resolution{Outcome: OwnRelease, Release: base, Force: force}
	}
	for _, known := range cv.Status.AvailableUpdates {
		if known.Image == image && (version == "" || known.Version == version) {
			r = *known.DeepCopy()
			break
		}
	}
	return Resolution{Outcome: Resolved, Release: r, Force: force}
}

// conditional returns the update to a version that has risks; nil: there is
// none.
func conditional(cv *configv1.ClusterVersion, version string) *configv1.ConditionalUpdate {
	for i := range cv.Status.ConditionalUpdates {
		if c := &cv.Status.ConditionalUpdates[i]; c.Release.Version == version {
			return c
		}
	}
	return nil
}

func notRecommended(cv *configv1.ClusterVersion, version string) string {
	if c := conditional(cv, version); c != nil {
		var names []string
		for _, risk := range c.Risks {
			names = append(names, risk.Name)
		}
		return fmt.Sprintf("version %s is not recommended for this cluster because of the risks %s: to accept them, request it with its image %s",
			version, strings.Join(names, ", "), c.Release.Image)
	}
	return fmt.Sprintf("version %s is not an available update", version)
}

// origin says how a release came to be wanted, and so how far it is trusted.
type origin string

const (
	running   origin = "running"   // the cluster runs it already
	resumed   origin = "resumed"   // an update to it had been accepted before
	requested origin = "requested" // somebody asks for it
)

// decision is the answer to a ClusterVersion.
type decision struct {
	faults     field.ErrorList
	cleared    *configv1.ClusterVersion // with the available updates as they were retrieved last
	resolution Resolution
	own, base  configv1.Release
	want       configv1.Release
	origin     origin
	baseOrigin origin
	verified   bool // resumed: it was verified when it was accepted
	installing bool // no release was ever completed
	gates      gates
}

// decide answers a ClusterVersion. It is a pure function.
func decide(o object, s session, l availableUpdates, set settings) decision {
	cv := o.cv
	if available, conditional, ok := l.answer(cv.Spec, true); ok { // what was retrieved counts, published or not
		cv = cv.DeepCopy()
		cv.Status.AvailableUpdates, cv.Status.ConditionalUpdates = available, conditional
	}
	d := decision{own: o.own, gates: o.gates, installing: !everCompleted(&cv.Status)}
	d.faults = Validate(cv, o.gates.acceptRisks)
	d.cleared = Clear(cv, d.faults)
	asks, faulty := d.cleared, cv.Spec.DesiredUpdate != nil && d.cleared.Spec.DesiredUpdate == nil
	if faulty && slices.ContainsFunc(d.faults, isNotAvailable) {
		if set.Graph != nil && l.unjudged(acceptedRisks(cv, o.gates)) {
			// The version may well be available: not known is not invalid.
			d.faults = slices.DeleteFunc(d.faults, isNotAvailable)
			faulty = false
		} else if conditional(cv, cv.Spec.DesiredUpdate.Version) != nil {
			asks, faulty = cv, false // it is known what stands against it
		}
	}

	d.base, d.baseOrigin = o.own, running
	if h := started(cv, o.own); h != nil {
		d.base, d.baseOrigin, d.verified = configv1.Release{Version: h.Version, Image: h.Image}, resumed, h.Verified
	}
	var applied configv1.Release
	if s.sync != nil {
		applied = s.sync.release
	}
	d.base = graph.FillRelease(graph.FillRelease(d.base, applied, nil), cv.Status.Desired, nil)

	d.resolution = Resolve(asks, d.base, faulty)
	if d.resolution.Outcome == Resolved && d.installing {
		d.resolution = Resolution{Outcome: OwnRelease, Release: d.base, Why: "the cluster is still being installed"}
	}
	d.want, d.origin = d.resolution.Release, d.baseOrigin
	if d.resolution.Outcome == Resolved {
		d.origin = requested
	}
	return d
}

const notAvailableDetail = "when image is empty the update must be an available update"

func isNotAvailable(err *field.Error) bool { return err.Detail == notAvailableDetail }

func everCompleted(s *configv1.ClusterVersionStatus) bool {
	return slices.ContainsFunc(s.History, func(h configv1.UpdateHistory) bool {
		return h.State == configv1.CompletedUpdate
	})
}

// started returns the entry of an update that was begun, nil where there is
// none. What has been going on since the installation is not an update.
func started(cv *configv1.ClusterVersion, own configv1.Release) *configv1.UpdateHistory {
	h := cv.Status.History
	if len(h) == 0 || h[0].State == configv1.CompletedUpdate || h[0].Image == own.Image || !everCompleted(&cv.Status) {
		return nil
	}
	return &h[0]
}

// reconciledVersion is the version that the cluster is at, or on its way to.
func reconciledVersion(cv *configv1.ClusterVersion, own configv1.Release) string {
	if h := started(cv, own); h != nil {
		return h.Version
	}
	return own.Version
}

// resolve asks for the newest recommended update in automatic mode, once the
// cluster has finished the one before. A request of somebody else that is not
// fulfilled yet goes first.
func (p *planner) resolve() {
	if why := p.d.resolution.Why; why != "" {
		p.wait(stepResolve, configv1.Release{}, why)
	}
	cv, s := p.o.cv, &p.s
	if !p.Auto || p.d.installing || s.sync == nil || !s.report.Reconciling || cv.Status.History[0].State != configv1.CompletedUpdate {
		return
	}
	if u := cv.Spec.DesiredUpdate; u != nil && p.d.resolution.Outcome != OwnRelease && !equality.Semantic.DeepEqual(u, s.asked) {
		return
	}
	state := graph.AutoState{
		Current:     p.status.Desired.Version,
		Available:   p.status.AvailableUpdates,
		Desired:     cv.Spec.DesiredUpdate,
		Progressing: conditionTrue(p.status.Conditions, configv1.OperatorProgressing),
	}
	next, _ := graph.NextUpdate(state, p.AutoPolicy)
	if next == nil || equality.Semantic.DeepEqual(next, cv.Spec.DesiredUpdate) {
		return
	}
	release := configv1.Release{Version: next.Version, Image: next.Image}
	p.do(Action{Step: stepResolve, Release: release, Reason: "automatic mode: the newest recommended update", ask: next})
}
