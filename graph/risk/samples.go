package risk

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The metrics of the cluster-version operator about updates.
const (
	MetricAvailableUpdates     = "cluster_version_available_updates"
	MetricRetrievalTime        = "cluster_version_operator_update_retrieval_timestamp_seconds"
	MetricConditionalCondition = "cluster_version_conditional_update_condition_seconds"
	MetricRiskCondition        = "cluster_version_risk_conditions"
)

// Samples returns the metrics about a retrieval, in the order of their names
// above: the number of available updates; the time of the last change, under
// the name of the ClusterVersion; the transition times of the conditional
// updates' conditions; the verdicts on risks as 1, 0 and -1 for True, False and
// Unknown. Before the first fetch there are no samples.
func (r *Retrieval) Samples(name string) []clusterapi.Sample {
	if r.Attempted.IsZero() {
		return nil
	}
	upstream := r.Asked.Upstream
	if effectiveUpstream(upstream) == graph.DefaultUpstream {
		upstream = "<default>"
	}
	e := r.Evaluation
	if e == nil {
		e = &Evaluation{}
	}
	samples := []clusterapi.Sample{
		{Name: MetricAvailableUpdates, Labels: map[string]string{"upstream": upstream, "channel": r.Asked.Channel}, Value: float64(len(e.Available))},
		{Name: MetricRetrievalTime, Labels: map[string]string{"name": name}, Value: seconds(r.Changed)},
	}
	for _, c := range e.Conditional {
		for _, condition := range c.Conditions {
			samples = append(samples, clusterapi.Sample{Name: MetricConditionalCondition, Labels: map[string]string{
				"version": c.Release.Version, "condition": condition.Type, "status": string(condition.Status), "reason": condition.Reason,
			}, Value: seconds(condition.LastTransitionTime.Time)})
		}
	}
	verdicts := slices.Clone(e.Verdicts)
	slices.SortStableFunc(verdicts, func(a, b Verdict) int { return cmp.Compare(a.Risk.Name, b.Risk.Name) })
	for i, v := range verdicts {
		if i > 0 && v.Risk.Name == verdicts[i-1].Risk.Name {
			continue // one per name, the first as in status
		}
		value := map[metav1.ConditionStatus]float64{metav1.ConditionTrue: 1, metav1.ConditionFalse: 0}
		n, ok := value[v.Applies.Status]
		if !ok {
			n = -1
		}
		samples = append(samples, clusterapi.Sample{Name: MetricRiskCondition, Labels: map[string]string{"condition": graph.ConditionApplies, "risk": v.Risk.Name, "reason": v.Applies.Reason}, Value: n})
	}
	return samples
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

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
