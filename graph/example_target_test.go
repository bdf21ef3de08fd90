package graph_test

import (
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/graph"
)

// Asking for an update that is there, but not recommended.
func ExampleChooseTarget() {
	available := []configv1.Release{{Version: "4.16.3", Image: "quay.io/r@sha256:3"}}
	conditional := []configv1.ConditionalUpdate{{
		Release:    configv1.Release{Version: "4.16.4", Image: "quay.io/r@sha256:4"},
		Conditions: []metav1.Condition{{Type: graph.ConditionRecommended, Status: "False", Reason: "SlowDisks", Message: "Disks get slow."}},
	}}
	request, _, err := graph.ChooseTarget(available, conditional, graph.TargetQuery{Latest: true})
	fmt.Println(request.Version, err)

	_, _, err = graph.ChooseTarget(available, conditional, graph.TargetQuery{Version: "4.16.4"})
	var refused *graph.NotRecommendedError
	fmt.Println(errors.As(err, &refused))
	fmt.Println(err)
	// Output:
	// 4.16.3 <nil>
	// true
	// the update 4.16.4 is not one of the recommended updates, but is available as a conditional update: Recommended=False: SlowDisks: Disks get slow.
}
