package risk

import (
	"cmp"
	"context"
	"time"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/internal/schema"
)

// published are the conditions of updates as published before, by image.
type published map[string][]metav1.Condition

func publishedConditions(prev []configv1.ConditionalUpdate) published {
	p := make(published, len(prev))
	for i := range prev {
		if _, ok := p[prev[i].Release.Image]; !ok {
			p[prev[i].Release.Image] = prev[i].Conditions
		}
	}
	return p
}

// of returns the conditions that were published for the update's image, else its
// own, as far as the API accepts them.
func (p published) of(c *configv1.ConditionalUpdate, now time.Time) []metav1.Condition {
	conditions, ok := p[c.Release.Image]
	if !ok {
		conditions = c.Conditions
	}
	var kept []metav1.Condition
	for _, condition := range conditions {
		if condition, ok := schema.Accepted(condition, now); ok && meta.FindStatusCondition(kept, condition.Type) == nil {
			kept = append(kept, condition)
		}
	}
	return kept
}

// setCondition replaces a condition of the same type. The transition time moves
// only with the status.
func setCondition(conditions *[]metav1.Condition, c metav1.Condition, now time.Time) {
	c.LastTransitionTime = metav1.NewTime(now)
	if old := meta.FindStatusCondition(*conditions, c.Type); old != nil {
		if old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		*old = c
		return
	}
	*conditions = append(*conditions, c)
}

// RiskSource finds risks in the cluster itself, such as overrides or an alert
// that fires. Evaluation merges them with those of the graph. It must be as safe
// for concurrent use as its user needs it; [Aggregate] asks one source after the
// other.
type RiskSource interface {
	// Name identifies the source in errors.
	Name() string
	// Risks returns the risks that bear on updates to some of the versions. A
	// risk that it cannot judge is returned as one whose condition Applies is
	// Unknown; an error together with risks means that there may be more.
	Risks(ctx context.Context, versions []string) ([]configv1.ConditionalUpdateRisk, error)
}

// AlertSource returns the alerts that are active. It must be safe for concurrent
// use.
type AlertSource interface {
	// Firing returns the alerts that are pending or firing. The error explains why
	// they cannot be read.
	Firing(ctx context.Context) ([]clusterapi.Alert, error)
}

// versionOrder compares versions as [graph.CompareVersions] does and parses each
// once. Those that do not parse are nil.
type versionOrder map[string]*semver.Version

func (o versionOrder) compare(a, b string) int {
	if a == b {
		return 0
	}
	va, vb := o.parse(a), o.parse(b)
	if va == nil || vb == nil {
		return graph.CompareVersions(a, b)
	}
	return va.Compare(vb)
}

func (o versionOrder) parse(text string) *semver.Version {
	v, ok := o[text]
	if !ok {
		v, _ = graph.ParseVersion(text)
		o[text] = v
	}
	return v
}

// releases orders releases: the highest version first, then by image.
func (o versionOrder) releases(a, b configv1.Release) int {
	return cmp.Or(o.compare(b.Version, a.Version), cmp.Compare(a.Image, b.Image))
}
