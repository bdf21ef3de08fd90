package risk

import (
	"time"

	"github.com/clusterupdate/clusterupdate/graph/internal/schema"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
