package clusterupdate_test

import (
	"fmt"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
)

func TestLimits(t *testing.T) {
	var history []configv1.UpdateHistory
	for i := range clusterupdate.MaxHistory {
		history = append(history, configv1.UpdateHistory{State: configv1.CompletedUpdate, Version: fmt.Sprintf("4.20.%d", 100-i), Image: fmt.Sprint("image-", i)})
	}
	long := strings.Repeat("x", 32<<10+1)
	cut := func(t *testing.T, text string) {
		t.Helper()
		if len(text) > 32<<10 || !strings.HasSuffix(text, " more bytes)") {
			t.Errorf("%d bytes: %q", len(text), text[max(0, len(text)-40):])
		}
	}
	limittest.Walk(t, []limittest.Case{
		{Limit: "entries of the history", Default: clusterupdate.MaxHistory, Bytes: 1 << 20, Run: func(t *testing.T) int64 {
			got := clusterupdate.MergeHistory(history, clusterupdate.HistoryChange{Release: configv1.Release{Version: "4.21.0", Image: "new"}})
			if len(got) != clusterupdate.MaxHistory || got[0].Version != "4.21.0" {
				t.Errorf("%d entries, the newest is %s", len(got), got[0].Version)
			}
			return 0
		}},
		{Limit: "message of a condition", Default: 32 << 10, Bytes: 512 << 20, Run: func(t *testing.T) int64 {
			withSample(t, nil, func(s *sampleTest) {
				operators, err := clusterapi.List[configv1.ClusterOperator](s.Context(), s.Cluster, clusterapi.ListOptions{})
				if err != nil || len(operators) == 0 {
					s.Fatal(err)
				}
				if _, err := clusterapi.Modify(s.Context(), s.Cluster, clusterapi.Key("", operators[0].Name), clusterapi.ModifyOptions{Status: true}, func(co *configv1.ClusterOperator) error {
					co.Status.Conditions = append(co.Status.Conditions, configv1.ClusterOperatorStatusCondition{
						Type: configv1.OperatorUpgradeable, Status: configv1.ConditionFalse, Reason: "Held", Message: long, LastTransitionTime: metav1.Now()})
					return nil
				}); err != nil {
					s.Fatal(err)
				}
				s.sync()
				_, text, _ := strings.Cut(condition(s.version(s), configv1.OperatorUpgradeable), ": ")
				cut(s.T, text)
			})
			return 0
		}},
		{Limit: "accepted risks in the history", Default: 32 << 10, Bytes: 512 << 10, Run: func(t *testing.T) int64 {
			got := clusterupdate.MergeHistory(nil, clusterupdate.HistoryChange{Release: configv1.Release{Version: sample.ToVersion, Image: sample.ToImage}, AcceptedRisks: long})
			cut(t, got[0].AcceptedRisks)
			return 0
		}},
	})
}
