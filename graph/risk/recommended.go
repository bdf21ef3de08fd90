package risk

import (
	"slices"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/internal/schema"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The reasons of the condition Recommended that are not a risk's name.
const (
	reasonNotExposed       = "NotExposedToRisks"
	reasonAllAccepted      = "AllExposedRisksAccepted"
	reasonEvaluationFailed = "EvaluationFailed"
	reasonExposed          = "ExposedToRisks"
	reasonMultiple         = "MultipleReasons"
)

// recommended folds the verdicts on an update's risks, in their order, into the
// condition Recommended. The order matters for the reason: an accepted risk
// before another leaves that one's name, after it leaves MultipleReasons.
func (e Evaluator) recommended(risks []configv1.ConditionalUpdateRisk, verdicts []*Verdict) metav1.Condition {
	if len(risks) == 0 && !e.trustsNoRisks() {
		return metav1.Condition{
			Type: graph.ConditionRecommended, Status: metav1.ConditionUnknown, Reason: reasonEvaluationFailed,
			Message: "The update service lists this update as conditional without naming a risk, so it is unknown whether it is recommended.",
		}
	}
	c := metav1.Condition{
		Type: graph.ConditionRecommended, Status: metav1.ConditionTrue, Reason: reasonNotExposed,
		Message: "The update is recommended, because none of the conditional update risks apply to this cluster.",
	}
	var parts []string
	for i, v := range verdicts {
		risk := &risks[i]
		switch {
		case v.Applies.Status == metav1.ConditionFalse:
		case v.Applies.Status != metav1.ConditionTrue:
			if c.Status == metav1.ConditionTrue {
				c.Status = metav1.ConditionUnknown
			}
			c.Reason = foldReason(c.Reason, reasonEvaluationFailed)
			parts = append(parts, v.Applies.Message)
		case slices.Contains(e.Accepted, risk.Name):
			c.Reason = foldReason(c.Reason, reasonAllAccepted)
			c.Message = "The update is recommended, because either risk does not apply to this cluster or it is accepted by cluster admins."
		default:
			c.Status = metav1.ConditionFalse
			reason := risk.Name
			if len(reason) > schema.MaxReason || !schema.ReasonPattern.MatchString(reason) {
				reason = reasonExposed
			}
			c.Reason = foldReason(c.Reason, reason)
			parts = append(parts, risk.Message+" "+risk.URL)
		}
	}
	if len(parts) > 0 {
		c.Message = schema.JoinMessages(parts, "\n\n")
	}
	return c
}

// foldReason adds a contribution to the reason so far.
func foldReason(soFar, contribution string) string {
	if contribution == reasonNotExposed || contribution == soFar {
		return soFar
	}
	switch soFar {
	case reasonNotExposed, reasonAllAccepted:
		return contribution
	case reasonEvaluationFailed:
		switch contribution {
		case reasonAllAccepted:
			return reasonEvaluationFailed
		case reasonExposed:
			return reasonExposed
		}
	case reasonExposed:
		switch contribution {
		case reasonAllAccepted, reasonEvaluationFailed:
			return reasonExposed
		}
	}
	return reasonMultiple
}
