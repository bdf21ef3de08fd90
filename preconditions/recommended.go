package preconditions

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// recommendedUpdate warns where the update service does not recommend the
// target. Versions are compared as text; images are not compared.
func recommendedUpdate(cv *configv1.ClusterVersion, target string) *Finding {
	for _, release := range cv.Status.AvailableUpdates {
		if release.Version == target {
			return nil
		}
	}
	from := fmt.Sprintf("from %s to %s", cv.Status.Desired.Version, target)
	warn := func(reason, format string, args ...any) *Finding {
		return &Finding{Severity: Warning, Reason: reason, Message: fmt.Sprintf(format, args...), Remedy: recommendedRemedy(cv, target)}
	}
	for _, update := range cv.Status.ConditionalUpdates {
		if update.Release.Version == target {
			return judgeConditional(update, from, warn)
		}
	}
	if cv.Spec.Channel == "" {
		return warn("NoChannel", "Configured channel is unset, so the recommended status of updating %s is unknown.", from)
	}
	retrieved := condition(cv.Status.Conditions, configv1.RetrievedUpdates)
	switch {
	case retrieved == nil:
		return warn("UnknownUpdate", "No RetrievedUpdates, so the recommended status of updating %s is unknown.", from)
	case retrieved.Status == configv1.ConditionTrue:
		return warn("UnknownUpdate", "RetrievedUpdates=%s (%s), so the update %s is probably neither recommended nor supported.", retrieved.Status, retrieved.Reason, from)
	default:
		return warn("UnknownUpdate", "RetrievedUpdates=%s (%s), so the recommended status of updating %s is unknown.", retrieved.Status, retrieved.Reason, from)
	}
}

func judgeConditional(update configv1.ConditionalUpdate, from string, warn func(string, string, ...any) *Finding) *Finding {
	c := meta.FindStatusCondition(update.Conditions, "Recommended")
	switch {
	case c == nil:
		return warn("UnknownConditionType", "Update %s has a status.conditionalUpdates entry, but no Recommended condition.", from)
	case c.Status == metav1.ConditionTrue:
		return nil
	case c.Status == metav1.ConditionFalse:
		f := warn(c.Reason, "Update %s is not recommended:\n\n%s", from, c.Message)
		for _, risk := range update.Risks {
			if risk.Name == c.Reason {
				f.Risk = risk.Name
			}
		}
		return f
	default:
		return warn(c.Reason, "Update %s is Recommended=%s: %s: %s", from, c.Status, c.Reason, c.Message)
	}
}

// recommendedRemedy names what is offered on the way to the target, and the offer that
// comes nearest to it.
func recommendedRemedy(cv *configv1.ClusterVersion, target string) string {
	current, wanted := versionOrNil(cv.Status.Desired.Version), versionOrNil(target)
	offers := offersOf(cv)
	remedy := "Prefer a recommended update; there is none now"
	if nearest := offers.nearest(current, wanted); nearest != nil {
		remedy = fmt.Sprintf("Prefer %s, the nearest recommended update", nearest.version.Original())
	}
	var way []string
	for _, o := range offers {
		if current != nil && wanted != nil && o.version.GreaterThan(current) && o.version.LessThan(wanted) {
			way = append(way, o.version.Original()+" ("+o.text()+")")
		}
	}
	if len(way) > 0 {
		remedy += ". On the way: " + strings.Join(way, ", ")
	}
	return remedy
}

// offer is an update that the update service knows.
type offer struct {
	version *semver.Version
	status  metav1.ConditionStatus // of the condition Recommended; empty: there is none
	reason  string
}

func (o offer) text() string {
	switch o.status {
	case metav1.ConditionTrue:
		return "recommended"
	case metav1.ConditionFalse:
		return "not recommended: " + o.reason
	default:
		return "not known to be recommended: " + cmp.Or(o.reason, "no condition says so")
	}
}

// offers are sorted by version.
type offers []offer

// offersOf returns what both lists have: of one version the first, recommended
// ones first.
func offersOf(cv *configv1.ClusterVersion) offers {
	var all offers
	seen := map[string]bool{}
	add := func(version string, status metav1.ConditionStatus, reason string) {
		if v := versionOrNil(version); v != nil && !seen[version] {
			seen[version] = true
			all = append(all, offer{v, status, reason})
		}
	}
	for _, r := range cv.Status.AvailableUpdates {
		add(r.Version, metav1.ConditionTrue, "")
	}
	for _, u := range cv.Status.ConditionalUpdates {
		c := meta.FindStatusCondition(u.Conditions, "Recommended")
		if c == nil {
			c = &metav1.Condition{}
		}
		add(u.Release.Version, c.Status, c.Reason)
	}
	slices.SortStableFunc(all, func(a, b offer) int { return a.version.Compare(b.version) })
	return all
}

// nearest returns the recommended update that is closest to the target: the
// next one below in its minor version, else the next one above in it, else the
// greatest below it, else the least. Nil: there is none.
func (all offers) nearest(current, target *semver.Version) *offer {
	var best *offer
	var rank int
	for i := range all {
		o := &all[i]
		if o.status != metav1.ConditionTrue || current != nil && !o.version.GreaterThan(current) {
			continue
		}
		r := 1
		if target != nil {
			same := sameMinor(o.version, target)
			below := !o.version.GreaterThan(target)
			switch {
			case same && below:
				r = 4
			case same:
				r = 3
			case below:
				r = 2
			}
		}
		// Ascending: the later is nearer below the target, the first above it.
		if best == nil || r > rank || r == rank && r%2 == 0 {
			best, rank = o, r
		}
	}
	return best
}
