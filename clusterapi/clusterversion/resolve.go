package clusterversion

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
)

// Outcome describes how a request for an update was answered.
type Outcome string

// The outcomes of [Resolve].
const (
	// Resolved: the request names a release to update to.
	Resolved Outcome = "Resolved"
	// UnderWay: the update that the request names was started, and continues.
	UnderWay Outcome = "UnderWay"
	// OwnRelease: the cluster stays with what it runs; Why explains why.
	OwnRelease Outcome = "OwnRelease"
	// NotFound: no list that counts has the requested version.
	NotFound Outcome = "NotFound"
	// Invalid: the request has a fault and is treated as none.
	Invalid Outcome = "Invalid"
)

// Row is the rule that decided about a request.
type Row string

// The rules of [Resolve], in the order in which they are looked at.
const (
	RowInvalid    Row = "Invalid"    // the request has a fault
	RowNone       Row = "None"       // nothing is requested, or only that risks are accepted
	RowImage      Row = "Image"      // an image is requested: as it is, whatever lists say
	RowCurrent    Row = "Current"    // the version or image that the cluster is at, or on its way to
	RowAvailable  Row = "Available"  // the version is an available update
	RowMultiArch  Row = "MultiArch"  // its own version for several architectures, which is available
	RowHistory    Row = "History"    // the version is in the history, and may be taken from it
	RowAtRisk     Row = "AtRisk"     // the version has known issues, which are accepted
	RowNotFound   Row = "NotFound"   // no list that counts has the version
	RowInstalling Row = "Installing" // nothing was ever completed: what is asked for waits
	RowPreflight  Row = "Preflight"  // a release is to be checked, and no update is requested
	RowNoHistory  Row = "NoHistory"  // the history was lost, and starts again with what the cluster runs
)

// ResolveOptions say where else than among the available updates a requested version
// may be found. The zero value is what the cluster-version operator does. It is plain
// data.
type ResolveOptions struct {
	// History takes the image of a version that the history has, unless it is an update
	// with known issues that is not recommended.
	History bool
	// Accepted takes a conditional update where desiredUpdate.acceptRisks names all
	// of its risks, or if it is recommended after all.
	Accepted bool
	// Conditional takes a conditional update whatever its risks.
	Conditional bool
}

// Resolution is the answer to spec.desiredUpdate.
type Resolution struct {
	Outcome Outcome `json:"outcome"`
	// Row is the rule that decided.
	Row Row `json:"row"`
	// Release is what the cluster is to reconcile: the requested release when
	// Resolved, else the base.
	Release configv1.Release `json:"release"`
	Force   bool             `json:"force,omitempty"`
	// Preflight is the release that a request of mode Preflight asks to check; zero if
	// absent, or if Why reports that it is not found. Force then is about the checks.
	Preflight configv1.Release `json:"preflight,omitzero"`
	// Why explains an outcome other than Resolved and UnderWay to an administrator; empty
	// if there is nothing to explain.
	Why string `json:"why,omitempty"`
	// Withdrawn describes what becomes of the cluster if the request is withdrawn
	// now; empty if absent.
	Withdrawn string `json:"withdrawn,omitempty"`
}

// Resolve answers the request of a ClusterVersion whose faults have been cleared
// (see [Clear]). base is what the cluster reconciles without a request: an update
// that has been started, else the release it runs. faulty reports that the request
// was dropped for its faults. o says where else versions are looked for.
//
// A started update is never turned around by a request that disappears, gets a
// fault, or whose version is not offered any more: only by one for another release.
func Resolve(cv *configv1.ClusterVersion, base configv1.Release, faulty bool, o ResolveOptions) Resolution {
	r := resolve(cv, base, faulty, o)
	if r.Row == RowCurrent && started(cv, base) {
		r.Outcome = UnderWay
	}
	if u := cv.Spec.DesiredUpdate; u != nil || faulty {
		r.Withdrawn = withdrawn(cv, base, r)
	}
	return r
}

// started reports whether base is the release of an update that was started and is not
// complete.
func started(cv *configv1.ClusterVersion, base configv1.Release) bool {
	h := cv.Status.History
	return len(h) > 0 && h[0].State == configv1.PartialUpdate && h[0].Image == base.Image
}

// withdrawn describes what becomes of the cluster without the request.
func withdrawn(cv *configv1.ClusterVersion, base configv1.Release, r Resolution) string {
	name := cmp.Or(base.Version, base.Image)
	switch {
	case started(cv, base):
		return fmt.Sprintf("the update to %s, which was started, goes on", name)
	case r.Outcome == Resolved:
		return fmt.Sprintf("the cluster stays at %s: nothing of %s has been applied", name, cmp.Or(r.Release.Version, r.Release.Image))
	}
	return fmt.Sprintf("the cluster stays at %s, as it does now", name)
}

func resolve(cv *configv1.ClusterVersion, base configv1.Release, faulty bool, o ResolveOptions) Resolution {
	stay := Resolution{Outcome: OwnRelease, Row: RowNone, Release: base}
	u := cv.Spec.DesiredUpdate
	switch {
	case u == nil && faulty:
		stay.Outcome, stay.Row, stay.Why = Invalid, RowInvalid, "the request is invalid"
		return stay
	case u == nil:
		return stay
	case u.Mode == configv1.UpdateModePreflight:
		return preflight(cv, base, o)
	case u.Image != "":
		return resolved(cv, base, u.Version, u.Image, u.Force, RowImage)
	}

	version, row := u.Version, RowAvailable
	multi := u.Architecture == configv1.ClusterVersionArchitectureMulti && base.Architecture != configv1.ClusterVersionArchitectureMulti
	if multi {
		version, row = cv.Status.Desired.Version, RowMultiArch
	} else if version == base.Version {
		if version != "" {
			stay.Row = RowCurrent
		}
		return stay // satisfied, or being worked on: bound to its image
	}
	for _, r := range cv.Status.AvailableUpdates {
		if r.Version == version && r.Image != "" {
			return resolved(cv, base, version, r.Image, u.Force, row)
		}
	}
	if version == "" { // only risks are accepted
		return stay
	}
	at, past := conditional(cv, version), historyImage(cv, version)
	switch {
	case multi:
	case at != nil && at.Release.Image != "" && (o.Conditional || o.Accepted && accepts(u, at)):
		return resolved(cv, base, version, at.Release.Image, u.Force, RowAtRisk)
	case o.History && past != "" && (at == nil || isRecommended(at)):
		return resolved(cv, base, version, past, u.Force, RowHistory)
	}
	stay.Outcome, stay.Row = NotFound, RowNotFound
	switch {
	case multi:
		stay.Why = fmt.Sprintf("no multi-architecture release of %s is available", version)
	case at != nil:
		stay.Why = notRecommended(at)
	case past != "":
		const why = "version %s is known from the history, but is not an available update: request it with its image %s"
		stay.Why = fmt.Sprintf(why, version, past)
	default:
		stay.Why = fmt.Sprintf("version %s is not an available update", version)
	}
	return stay
}

// preflight answers a request to check a release: the cluster stays at its release. The
// release is found as an update's is, recommended or not.
func preflight(cv *configv1.ClusterVersion, base configv1.Release, o ResolveOptions) Resolution {
	asks, u := *cv, *cv.Spec.DesiredUpdate
	u.Mode = ""
	SetDesired(&asks, u)
	o.Conditional, o.History = true, true
	found := resolve(&asks, base, false, o)
	r := Resolution{Outcome: OwnRelease, Row: RowPreflight, Release: base, Force: found.Force}
	switch found.Outcome {
	case Resolved:
		r.Preflight = found.Release
	case NotFound:
		r.Why = found.Why
	default:
		r.Why = "the cluster is at the release that is to be checked"
	}
	return r
}

// resolved completes a release with what the available updates say about its image.
func resolved(cv *configv1.ClusterVersion, base configv1.Release, version, image string, force bool, row Row) Resolution {
	r := configv1.Release{Version: version, Image: image}
	if image == base.Image && (version == "" || version == base.Version) {
		return Resolution{Outcome: OwnRelease, Row: RowCurrent, Release: base, Force: force}
	}
	for _, known := range cv.Status.AvailableUpdates {
		if known.Image == image && (version == "" || known.Version == version) {
			r = *known.DeepCopy()
			break
		}
	}
	return Resolution{Outcome: Resolved, Row: row, Release: r, Force: force}
}

// isRecommended reports whether no risk of a conditional update applies to the cluster.
func isRecommended(c *configv1.ConditionalUpdate) bool {
	return meta.IsStatusConditionTrue(c.Conditions, recommended)
}

// accepts reports whether a request accepts every risk of a conditional update, which
// may be recommended by now.
func accepts(u *configv1.Update, c *configv1.ConditionalUpdate) bool {
	if isRecommended(c) {
		return true
	}
	for _, risk := range c.Risks {
		if !slices.ContainsFunc(u.AcceptRisks, func(a configv1.AcceptRisk) bool { return a.Name == risk.Name }) {
			return false
		}
	}
	return len(c.Risks) > 0
}

// conditional returns the update to a version that has risks; nil if absent.
func conditional(cv *configv1.ClusterVersion, version string) *configv1.ConditionalUpdate {
	for i := range cv.Status.ConditionalUpdates {
		if c := &cv.Status.ConditionalUpdates[i]; c.Release.Version == version {
			return c
		}
	}
	return nil
}

func notRecommended(c *configv1.ConditionalUpdate) string {
	const why = "version %s is not recommended for this cluster because of the risks %s: " +
		"to accept them, request it with its image %s"
	return fmt.Sprintf(why, c.Release.Version, strings.Join(riskNames(c.Risks), ", "), c.Release.Image)
}
