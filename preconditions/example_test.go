package preconditions_test

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/preconditions"
)

// A cluster with an open admin gate refuses the next minor version, unless
// somebody takes responsibility.
func Example() {
	cv := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	cv.Status.Desired = configv1.Release{Version: "4.18.5", Image: "example.com/release@sha256:1"}
	cv.Status.Conditions = []configv1.ClusterOperatorStatusCondition{{
		Type: configv1.OperatorUpgradeable, Status: configv1.ConditionFalse, Reason: "AdminAck", Message: "APIs are removed.",
	}}
	target := configv1.Release{Version: "4.19.1", Image: "example.com/release@sha256:2"}
	cv.Status.AvailableUpdates = []configv1.Release{target}
	object, err := clusterapi.ToUnstructured(cv)
	if err != nil {
		fmt.Println(err)
		return
	}

	cluster := memory.NewOpenShift(memory.Options{})
	if err := cluster.Load(object); err != nil {
		fmt.Println(err)
		return
	}

	in := &preconditions.Input{
		Reader:     cluster,
		Transition: preconditions.NewTransition(cv, target, false, preconditions.Full),
	}
	report, err := preconditions.Run(context.Background(), preconditions.Operator(), in, preconditions.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	decision := report.Decide(preconditions.Policy{})
	fmt.Println(decision.Blocked, decision.Summary)

	decision = report.Decide(preconditions.Policy{Bypasses: []preconditions.Bypass{{
		Check: "ClusterVersionUpgradeable", By: "ann", Why: "CHG42", Image: target.Image,
	}}})
	fmt.Println(decision.Blocked, decision.AcceptedRisks)
	// Output:
	// true Precondition "ClusterVersionUpgradeable" failed because of "AdminAck": APIs are removed.
	// false Bypassed precondition "ClusterVersionUpgradeable" (ann: CHG42): AdminAck: APIs are removed.
}

// Gates of a release tell what will have to be acknowledged on the way out of it.
func ExampleGates() {
	gates := preconditions.Gates(map[string]string{
		"ack-4.18-kube-1.32-api-removals-in-4.19": "Kubernetes 1.32 removes several APIs, see https://access.redhat.com/articles/7112216 for details.",
	})
	for _, g := range preconditions.OpenGates(gates, map[string]string{}, "4.18") {
		fmt.Println(g.From, g.URL)
		fmt.Println(g.Acknowledge())
	}
	// Output:
	// 4.18 https://access.redhat.com/articles/7112216
	// oc -n openshift-config patch cm admin-acks --patch '{"data":{"ack-4.18-kube-1.32-api-removals-in-4.19":"true"}}' --type=merge
}
