package clusterupdate

import (
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
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
	Outcome Outcome
	// Release is what the cluster shall reconcile: the requested release when
	// Resolved, else the base.
	Release configv1.Release
	Force   bool
	// Why explains an outcome other than Resolved to an administrator; empty
	// where there is nothing to explain.
	Why string
}

// Resolve answers the request of a ClusterVersion whose faults have been
// cleared (see [Clear]). base is what the cluster reconciles without a
// request: an update that has been started, else the release it runs.
// faulty says that the request was dropped for its faults.
//
// A started update is never turned around by a request that disappears, gets a
// fault, or whose version leaves the lists: only by one for another release.
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

// resolved completes a release with what the lists know about its image.
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

func notRecommended(cv *configv1.ClusterVersion, version string) string {
	for _, c := range cv.Status.ConditionalUpdates {
		if c.Release.Version != version {
			continue
		}
		var names []string
		for _, risk := range c.Risks {
			names = append(names, risk.Name)
		}
		return fmt.Sprintf("version %s is not recommended for this cluster because of the risks %s: to accept them, request it with its image %s",
			version, strings.Join(names, ", "), c.Release.Image)
	}
	return fmt.Sprintf("version %s is not an available update", version)
}
