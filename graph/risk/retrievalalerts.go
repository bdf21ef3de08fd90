package risk

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/clusterupdate/clusterupdate/graph"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Alerts names the alerts that a retrieval gives rise to: CannotRetrieveUpdates
// when the last change is an hour ago or more and there is a channel,
// CannotEvaluateConditionalUpdates when a Recommended condition has been
// Unknown for an hour.
func (r *Retrieval) Alerts(now time.Time) []string {
	const hour = time.Hour
	var alerts []string
	if !r.Attempted.IsZero() && now.Sub(r.Changed) >= hour && r.Condition.Reason != string(graph.ErrNoChannel) {
		alerts = append(alerts, "CannotRetrieveUpdates")
	}
	if r.Evaluation != nil && slices.ContainsFunc(r.Evaluation.Conditional, func(c configv1.ConditionalUpdate) bool {
		recommended := meta.FindStatusCondition(c.Conditions, graph.ConditionRecommended)
		return recommended != nil && recommended.Status == metav1.ConditionUnknown && now.Sub(recommended.LastTransitionTime.Time) >= hour
	}) {
		alerts = append(alerts, "CannotEvaluateConditionalUpdates")
	}
	return alerts
}
