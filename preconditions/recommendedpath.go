package preconditions

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func recommendedCheck() Check {
	return documented{Rule{
		Name: "Recommended", Severities: []Severity{Warning},
		Source: "Understanding update channels and releases, Conditional updates", Link: docsUnderstanding,
		Reads: []schema.GroupVersionKind{gvkOf[configv1.ClusterVersion]()},
	}, recommended}
}

// recommended judges like the operator's own check, and says besides what is
// offered on the way to the target and which offer comes nearest to it.
func recommended(ctx context.Context, in *Input) ([]Finding, error) {
	cv, err := theClusterVersion(ctx, in)
	if err != nil {
		return nil, err
	}
	f := recommendedUpdate(cv, in.targetVersion())
	if f == nil {
		return nil, nil
	}
	offers := offersOf(cv)
	f.Objects = clusterVersionObject("status.availableUpdates", cv.Status.Desired.Version)
	for _, o := range offers.onTheWay(in) {
		object := clusterVersionObject(o.field, o.release.Version)[0]
		object.Note = o.text()
		f.Objects = append(f.Objects, object)
		f.Message += fmt.Sprintf("\nOn the way: %s, %s.", o.release.Version, object.Note)
	}
	if nearest := offers.nearest(in); nearest != nil {
		f.Remedy = fmt.Sprintf("Prefer %s, the nearest recommended update", nearest.release.Version)
	} else {
		f.Remedy = "Prefer a recommended update; there is none now"
	}
	f.Message += "\n" + f.Remedy
	return []Finding{*f}, nil
}

// offer is an update that the update service knows.
type offer struct {
	release configv1.Release
	version *semver.Version
	field   string
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
		add(offer{release: r, field: "status.availableUpdates", status: metav1.ConditionTrue})
	}
	for _, u := range cv.Status.ConditionalUpdates {
		o := offer{release: u.Release, field: "status.conditionalUpdates"}
		if c := meta.FindStatusCondition(u.Conditions, "Recommended"); c != nil {
			o.status, o.reason = c.Status, c.Reason
		}
		add(o)
	}
	slices.SortStableFunc(all, func(a, b offer) int { return a.version.Compare(b.version) })
	return all
}

// onTheWay returns what lies between the current version and the target.
func (all offers) onTheWay(in *Input) offers {
	target := in.Target
	if target == nil {
		target = versionOrNil(in.targetVersion())
	}
	var way offers
	for _, o := range all {
		if in.Current != nil && target != nil && o.version.GreaterThan(in.Current) && o.version.LessThan(target) {
			way = append(way, o)
		}
	}
	return way
}

// nearest returns the recommended update that is closest to the target: the
// next one below in its minor version, else the next one above in it, else the
// greatest below it, else the least. Nil: there is none.
func (all offers) nearest(in *Input) *offer {
	target := in.Target
	if target == nil {
		target = versionOrNil(in.targetVersion())
	}
	var best *offer
	var rank int
	for i := range all {
		o := &all[i]
		if o.status != metav1.ConditionTrue || in.Current != nil && !o.version.GreaterThan(in.Current) {
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
