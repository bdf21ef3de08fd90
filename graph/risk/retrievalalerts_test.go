package risk_test

import (
	"slices"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"
	"github.com/clusterupdate/clusterupdate/graph/risk"
)

func TestRetrievalAlerts(t *testing.T) {
	r := known("T", "U", "F")
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
