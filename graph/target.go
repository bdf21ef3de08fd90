package graph

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TargetQuery names the update that an administrator wants: by image, by
// version, or the latest, of which the first that is set counts.
type TargetQuery struct {
	// Image is a pull spec. It names each release of the same digest, wherever
	// that is; a tag names nothing but itself.
	Image string
	// Version is the exact version.
	Version string
	// Latest asks for the highest version.
	Latest bool
	// AllowNotRecommended chooses among conditional updates that are not
	// recommended, too. A recommended one goes first, except for the latest.
	AllowNotRecommended bool
	// Desired is spec.desiredUpdate, nil if unset: the risks that it accepts
	// stay accepted.
	Desired *configv1.Update
}

// ErrNoTarget says that no update is the one that was asked for.
var ErrNoTarget = errors.New("no such update")

// NotRecommendedError says that an update is there, but not recommended.
type NotRecommendedError struct {
	Release configv1.Release
	// Recommended is the condition; Unknown where the update has none.
	Recommended metav1.Condition
}

// Error names the version, its verdict, the reason and the message.
func (e *NotRecommendedError) Error() string {
	return fmt.Sprintf("the update %s is not one of the recommended updates, but is available as a conditional update: Recommended=%s: %s: %s",
		e.Release.Version, e.Recommended.Status, e.Recommended.Reason, e.Recommended.Message)
}

// ChooseTarget finds an update in the lists of a ClusterVersion's status and
// makes the request for it, as oc adm upgrade does, with the image as it was
// asked for. What is chosen although it is not recommended comes with the
// condition that says so, else that is nil. Errors: a [*NotRecommendedError];
// one that is [ErrNoTarget] and names the targets that there are.
func ChooseTarget(available []configv1.Release, conditional []configv1.ConditionalUpdate, q TargetQuery) (*configv1.Update, *metav1.Condition, error) {
	candidates := make([]target, 0, len(available)+len(conditional))
	for _, r := range available {
		candidates = append(candidates, target{Release: r})
	}
	for _, c := range conditional {
		if issue := issueOf(c); issue != nil {
			candidates = append(candidates, target{c.Release, issue})
		}
	}
	if q.Latest && q.Image == "" && q.Version == "" {
		slices.SortStableFunc(candidates, func(a, b target) int { return compareReleases(a.Release, b.Release) })
	}
	for _, c := range candidates {
		switch {
		case !q.names(c.Release):
		case c.issue == nil || q.AllowNotRecommended:
			return q.request(c.Release), c.issue, nil
		case !q.Latest:
			return nil, nil, &NotRecommendedError{Release: c.Release, Recommended: *c.issue}
		}
	}
	return nil, nil, q.none(candidates)
}

// target is an update, and what speaks against it.
type target struct {
	configv1.Release
	issue *metav1.Condition
}

// issueOf returns what says that a conditional update is not recommended, nil
// if nothing does. An update without the condition has not been judged.
func issueOf(c configv1.ConditionalUpdate) *metav1.Condition {
	recommended := meta.FindStatusCondition(c.Conditions, ConditionRecommended)
	switch {
	case recommended == nil:
		return &metav1.Condition{
			Type: ConditionRecommended, Status: metav1.ConditionUnknown, Reason: "NoConditions",
			Message: fmt.Sprintf("The conditional update to %s has not been judged yet.", c.Release.Version),
		}
	case recommended.Status == metav1.ConditionTrue:
		return nil
	}
	return recommended.DeepCopy()
}

// names says whether a release is one that is asked for.
func (q TargetQuery) names(r configv1.Release) bool {
	switch {
	case q.Image != "":
		return SameDigest(q.Image, r.Image)
	case q.Version != "":
		return q.Version == r.Version && r.Image != ""
	}
	return q.Latest && r.Image != ""
}

func (q TargetQuery) request(r configv1.Release) *configv1.Update {
	u := &configv1.Update{Version: r.Version, Image: r.Image}
	if q.Image != "" {
		u.Image = q.Image
	}
	if q.Desired != nil {
		u.AcceptRisks = slices.Clone(q.Desired.AcceptRisks)
	}
	return u
}

// none says that nothing was chosen, and what could be.
func (q TargetQuery) none(candidates []target) error {
	slices.SortStableFunc(candidates, func(a, b target) int { return compareReleases(a.Release, b.Release) })
	var versions []string
	for _, c := range candidates {
		if c.issue == nil || q.AllowNotRecommended {
			versions = append(versions, c.Version)
		}
	}
	if len(versions) == 0 {
		return fmt.Errorf("%w: no update is recommended", ErrNoTarget)
	}
	wanted := q.Image
	if wanted == "" {
		wanted = q.Version
	}
	if wanted == "" {
		return fmt.Errorf("%w: neither an image, nor a version, nor the latest is asked for", ErrNoTarget)
	}
	return fmt.Errorf("%w: %s is not one of the possible targets: %s", ErrNoTarget, wanted, strings.Join(versions, ", "))
}
