package risk_test

import (
	"slices"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"
	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestSamples(t *testing.T) {
	var none risk.Retrieval
	if s := none.Samples("version"); s != nil {
		t.Error(s)
	}
	r := known("T", "U", "F")
	want := []clusterapi.Sample{
		{Name: risk.MetricAvailableUpdates, Labels: map[string]string{"upstream": "<default>", "channel": "stable-4.2"}, Value: 2},
		{Name: risk.MetricRetrievalTime, Labels: map[string]string{"name": "version"}, Value: float64(graphtest.Start.Unix())},
	}
	for _, c := range r.Evaluation.Conditional {
		want = append(want, clusterapi.Sample{Name: risk.MetricConditionalCondition, Labels: map[string]string{
			"version": c.Release.Version, "condition": "Recommended", "status": string(c.Conditions[0].Status), "reason": c.Conditions[0].Reason,
		}, Value: float64(graphtest.Start.Unix())})
	}
	for _, v := range []struct {
		name, reason string
		value        float64
	}{{"F", "NotMatch", 0}, {"T", "Match", 1}, {"U", "EvaluationFailed", -1}} {
		want = append(want, clusterapi.Sample{Name: risk.MetricRiskCondition, Labels: map[string]string{"condition": "Applies", "risk": v.name, "reason": v.reason}, Value: v.value})
	}
	checktest.Same(t, want, r.Samples("version"))
	hour := graphtest.Start.Add(time.Hour)
	if got := r.Alerts(hour); !slices.Equal(got, []string{"CannotRetrieveUpdates", "CannotEvaluateConditionalUpdates"}) {
		t.Error(got)
	}
	if got := r.Alerts(hour.Add(-time.Second)); got != nil {
		t.Error(got)
	}
	r.Condition = graph.RetrievedUpdates(&graph.Error{Reason: "NoChannel"})
	r.Evaluation = &risk.Evaluation{Conditional: []configv1.ConditionalUpdate{}}
	if got := r.Alerts(hour); got != nil {
		t.Error(got)
	}
}
