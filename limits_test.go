package clusterupdate_test

import (
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
)

func TestLimits(t *testing.T) {
	long := strings.Repeat("x", 32<<10+1)
	cut := func(t *testing.T, text string) {
		t.Helper()
		if len(text) > 32<<10 || !strings.HasSuffix(text, " more bytes)") {
			t.Errorf("%d bytes: %q", len(text), text[max(0, len(text)-40):])
		}
	}
	limittest.Walk(t, []limittest.Case{
		{Limit: "message of a condition", Default: 32 << 10, Bytes: 512 << 20, Run: func(t *testing.T) int64 {
			withSample(t, nil, func(s *sampleTest) {
				operators, err := clusterapi.List[configv1.ClusterOperator](s.Context(), s.Cluster, clusterapi.ListOptions{})
				if err != nil || len(operators) == 0 {
					s.Fatal(err)
				}
				checktest.Get(clusterapi.Modify(s.Context(), s.Cluster, clusterapi.Key("", operators[0].Name), clusterapi.ModifyOptions{Status: true}, func(co *configv1.ClusterOperator) error {
					co.Status.Conditions = append(co.Status.Conditions, configv1.ClusterOperatorStatusCondition{
						Type: configv1.OperatorUpgradeable, Status: configv1.ConditionFalse, Reason: "Held", Message: long, LastTransitionTime: metav1.Now()})
					return nil
				}))(s)
				s.sync()
				_, text, _ := strings.Cut(condition(s.version(s), configv1.OperatorUpgradeable), ": ")
				cut(s.T, text)
			})
			return 0
		}},
	})
}
