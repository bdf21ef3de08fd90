package risk_test

import (
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"
	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestRetrievalAlerts(t *testing.T) {
	r := known("T", "U", "F")
	hour := graphtest.Start.Add(time.Hour)
	checktest.Same(t, []string{"CannotRetrieveUpdates", "CannotEvaluateConditionalUpdates"}, r.Alerts(hour))
	if got := r.Alerts(hour.Add(-time.Second)); got != nil {
		t.Error(got)
	}
	r.Condition = graph.RetrievedUpdates(&graph.Error{Reason: "NoChannel"})
	r.Evaluation = &risk.Evaluation{Conditional: []configv1.ConditionalUpdate{}}
	if got := r.Alerts(hour); got != nil {
		t.Error(got)
	}
}
