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

// recommendedRemedy names what is offered on the way to the target, and the offer that
// comes nearest to it.
func recommendedRemedy(cv *configv1.ClusterVersion, target string) string {
	current, wanted := versionOrNil(cv.Status.Desired.Version), versionOrNil(target)
	offers := offersOf(cv)
	remedy := "Prefer a recommended update; there is none now"
	if nearest := offers.nearest(current, wanted); nearest != nil {
		remedy = fmt.Sprintf("Prefer %s, the nearest recommended update", nearest.release.Version)
	}
	var way []string
	for _, o := range offers.onTheWay(current, wanted) {
		way = append(way, o.release.Version+" ("+o.text()+")")
	}
	if len(way) > 0 {
		remedy += ". On the way: " + strings.Join(way, ", ")
	}
	return remedy
}

// offer is an update that the update service knows.
type offer struct {
	release configv1.Release
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
	add := func(o offer) {
		o.version = versionOrNil(o.release.Version)
		if o.version != nil && !seen[o.release.Version] {
			seen[o.release.Version] = true
			all = append(all, o)
		}
	}
	for _, r := range cv.Status.AvailableUpdates {
		add(offer{release: r, status: metav1.ConditionTrue})
	}
	for _, u := range cv.Status.ConditionalUpdates {
		o := offer{release: u.Release}
		if c := meta.FindStatusCondition(u.Conditions, "Recommended"); c != nil {
			o.status, o.reason = c.Status, c.Reason
		}
		add(o)
	}
	slices.SortStableFunc(all, func(a, b offer) int { return a.version.Compare(b.version) })
	return all
}

// onTheWay returns what lies between the current version and the target.
func (all offers) onTheWay(current, target *semver.Version) offers {
	var way offers
	for _, o := range all {
		if current != nil && target != nil && o.version.GreaterThan(current) && o.version.LessThan(target) {
			way = append(way, o)
		}
	}
	return way
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
			same := o.version.Major() == target.Major() && o.version.Minor() == target.Minor()
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
