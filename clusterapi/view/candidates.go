package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// upgradeableRisk is the name of the risk that Upgradeable=False is.
const upgradeableRisk = "UpgradeableFalse"

// addReleases groups the updates of a cluster by minor version.
func (r *Recommend) addReleases(cv *configv1.ClusterVersion) {
	type versioned struct {
		release Release
		v       *semver.Version
	}
	var all []versioned
	add := func(release Release) {
		v, err := openshift.ParseVersion(release.Version)
		if err != nil {
			r.Invalid = append(r.Invalid, InvalidVersion{release.Version, release.Image, err.Error()})
			return
		}
		all = append(all, versioned{release, v})
	}
	conditional := make(map[string]bool, len(cv.Status.ConditionalUpdates)) // by image
	for i := range cv.Status.ConditionalUpdates {
		update := &cv.Status.ConditionalUpdates[i]
		conditional[update.Release.Image] = true
		add(conditionalOf(update))
	}
	for i := range cv.Status.AvailableUpdates {
		if update := &cv.Status.AvailableUpdates[i]; !conditional[update.Image] {
			add(releaseOf(update))
		}
	}
	slices.SortStableFunc(all, func(a, b versioned) int { return b.v.Compare(a.v) })

	guard := r.guard()
	for _, c := range all {
		last := len(r.Groups) - 1
		if last < 0 || r.Groups[last].Major != c.v.Major() || r.Groups[last].Minor != c.v.Minor() {
			r.Groups = append(r.Groups, ReleaseGroup{Major: c.v.Major(), Minor: c.v.Minor()})
			last++
		}
		if guard != nil && isLaterMinor(c.v, guard.current) {
			guard.addTo(&c.release)
		}
		r.Groups[last].Releases = append(r.Groups[last].Releases, Candidate{Release: c.release})
	}
}

// minorGuard is a cluster that must not update to a later minor version.
type minorGuard struct {
	upgradeable *Condition
	current     *semver.Version
}

// guard returns nil for a cluster that may update to later minor versions, and
// for one whose own version is not known.
func (r *Recommend) guard() *minorGuard {
	if !r.Upgradeable.is(statusFalse) {
		return nil
	}
	v, err := openshift.ParseVersion(r.Version)
	if err != nil {
		r.UpgradeableError = fmt.Sprintf("cannot parse SemVer version %q: %v", r.Version, err)
		return nil
	}
	return &minorGuard{r.Upgradeable, v}
}

func isLaterMinor(v, current *semver.Version) bool {
	return v.Major() > current.Major() || v.Major() == current.Major() && v.Minor() > current.Minor()
}

// addTo makes it a risk of a release, unless one says the same already.
func (g *minorGuard) addTo(r *Release) {
	message := g.upgradeable.Message
	if message != "" && slices.ContainsFunc(r.Risks, func(risk Risk) bool { return strings.Contains(risk.Message, message) }) {
		return
	}
	r.Risks = append(r.Risks, Risk{Name: upgradeableRisk, URL: g.docs(), Message: message})
	because := &Condition{Type: recommended, Status: statusFalse, Reason: g.upgradeable.Reason, Message: message, Since: g.upgradeable.Since}
	if old := r.Recommended; old.isNot(statusTrue) {
		because.Reason, because.Message = "MultipleReasons", message+"\n\n"+old.Message
	}
	r.Recommended = because
}

// docs is where to read what makes a cluster upgradeable.
func (g *minorGuard) docs() string {
	page := "preparing_for_updates/updating-cluster-prepare.html#cluster-upgradeable_updating-cluster-prepare"
	if g.current.Minor() <= 13 {
		page = "index.html#understanding_clusteroperator_conditiontypes_updating-clusters-overview"
	}
	return fmt.Sprintf("https://docs.openshift.com/container-platform/%d.%d/updating/%s", g.current.Major(), g.current.Minor(), page)
}

// issueOf returns why a release is not recommended, nil if it is. A release
// without risks is, whatever its condition says.
func issueOf(r *Release) *Condition {
	switch {
	case len(r.Risks) == 0 || r.Recommended.is(statusTrue):
		return nil
	case r.Recommended != nil:
		return r.Recommended
	}
	names := make([]string, len(r.Risks))
	for i, risk := range r.Risks {
		names[i] = risk.Name
	}
	slices.Sort(names)
	return &Condition{
		Type:    recommended,
		Status:  statusUnknown,
		Reason:  "NoConditions",
		Message: fmt.Sprintf("Conditional update to %s has risks (%s), but no conditions.", r.Version, strings.Join(names, ", ")),
	}
}
