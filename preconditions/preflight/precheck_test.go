package preflight_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/preflight"
)

func TestPrecheck(t *testing.T) {
	report := &preconditions.Report{Results: []preconditions.Result{
		{Check: "Good", State: preconditions.Passed, Findings: []preconditions.Finding{{Severity: preconditions.Info, Reason: "I", Message: "i"}}},
		{Check: "Bad", State: preconditions.Failed, Findings: []preconditions.Finding{
			{Severity: preconditions.Blocking, Reason: "B", Message: "b"}, {Severity: preconditions.Warning, Reason: "W", Message: "w"}, {Severity: preconditions.Info, Reason: "I", Message: "i"},
		}},
		{Check: "Dark", State: preconditions.Unknown, Err: errors.New("no answer")},
		{Check: "Other", State: preconditions.NotApplicable},
	}}
	condition := func(check, status, reason, message string) view.PrecheckCondition {
		return view.PrecheckCondition{AcceptanceName: check, Condition: view.Condition{Type: "preconditions/" + check, Status: status, Reason: reason, Message: message}}
	}
	want := []view.PrecheckCondition{
		condition("Good", "True", "AsExpected", ""), condition("Bad", "False", "B", "b"), condition("Bad", "False", "W", "w"), condition("Dark", "Unknown", "Unknown", "no answer"),
	}
	checktest.Same(t, want, preflight.Precheck(report).Conditions)
	if got := preflight.Precheck(nil); len(got.Conditions) != 0 || got.Err != nil {
		t.Errorf("of nothing: %+v", got)
	}
}

// Preconditions are among the causes for concern of oc adm upgrade recommend.
func ExamplePrecheck() {
	report := &preconditions.Report{Results: []preconditions.Result{{Check: "EtcdBackup", State: preconditions.Failed, Findings: []preconditions.Finding{
		{Severity: preconditions.Warning, Reason: "NoBackup", Message: "the newest backup is 9 days old"},
	}}}}
	cv := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	cv.Spec.Channel = "stable-4.20"
	cv.Status.Desired.Version = "4.20.3"
	cv.Status.AvailableUpdates = []configv1.Release{{Version: "4.20.4", Image: "registry.example/release@sha256:4"}}
	cv.Status.Conditions = []configv1.ClusterOperatorStatusCondition{{Type: "Failing", Status: "False"}, {Type: "Progressing", Status: "False"}}
	r, err := view.AssessRecommend(view.RecommendInput{ClusterVersion: cv, Prechecks: []view.Precheck{preflight.Precheck(report)}})
	if err != nil {
		log.Fatal(err)
	}
	if err := r.WriteText(os.Stdout, os.Stderr, view.RecommendText{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// The following conditions found cause for concern in updating this cluster to later releases: preconditions/EtcdBackup
	//
	// preconditions/EtcdBackup=False:
	//
	//   Reason: NoBackup
	//   Message: the newest backup is 9 days old
	//
	// Upstream update service is unset, so the cluster will use an appropriate default.
	// Channel: stable-4.20
	//
	// Updates to 4.20:
	//   VERSION     ISSUES
	//   4.20.4      no known issues relevant to this cluster
}
