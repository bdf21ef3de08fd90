package graph

import (
	"slices"

	configv1 "github.com/openshift/api/config/v1"
)

// AutoPolicy restricts automatic updates. The zero value allows each.
type AutoPolicy struct {
	// SameMajor keeps to the major version, SameMinor to the minor version.
	SameMajor, SameMinor bool
	// Eligible excludes releases, e.g. those that are too young; nil excludes
	// none. Time windows belong to the caller, who asks or does not.
	Eligible func(configv1.Release) bool
	// WhileProgressing allows to choose while an update is in progress.
	WhileProgressing bool
}

// AutoState is what an automatic update is chosen from.
type AutoState struct {
	// Current is the version that the cluster reconciles.
	Current string
	// Available are the recommended updates, in any order.
	Available []configv1.Release
	// Desired is spec.desiredUpdate, nil if unset.
	Desired *configv1.Update
	// Progressing reports that an update is in progress.
	Progressing bool
}

// NextUpdate chooses the newest recommended update that is greater than the current
// version. It returns nil and why when there is nothing to do. Accepted risks stay
// in the request, force is never set, and the architecture is the image's, since a
// request cannot name both.
func NextUpdate(s AutoState, p AutoPolicy) (next *configv1.Update, why string) {
	if s.Progressing && !p.WhileProgressing {
		return nil, "an update is in progress"
	}
	current, err := ParseVersion(s.Current)
	if err != nil {
		return nil, "the current version is not known"
	}
	var best *configv1.Release
	for i := range s.Available {
		r := &s.Available[i]
		v, err := ParseVersion(r.Version)
		if err != nil || r.Image == "" || !v.GreaterThan(current) {
			continue
		}
		sameMajor := v.Major() == current.Major()
		if p.SameMajor && !sameMajor || p.SameMinor && !(sameMajor && v.Minor() == current.Minor()) {
			continue
		}
		if p.Eligible != nil && !p.Eligible(*r) {
			continue
		}
		if best == nil || compareReleases(*r, *best) < 0 {
			best = r
		}
	}
	if best == nil {
		return nil, "no recommended update is allowed and newer than " + s.Current
	}
	next = &configv1.Update{Version: best.Version, Image: best.Image}
	if s.Desired != nil {
		next.AcceptRisks = slices.Clone(s.Desired.AcceptRisks)
	}
	return next, ""
}
