package rules_test

import (
	"context"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/rules"
)

// A cluster whose channel has no releases of the minor version that is asked for, and
// whose administrator wants a backup of the last hour.
func Example() {
	cv := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	cv.Spec.Channel = "stable-4.18"
	cv.Status.Desired = configv1.Release{Version: "4.18.5"}
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

	checks := rules.Default(rules.Options{BackupAge: time.Hour})
	in := &preconditions.Input{
		Reader:     cluster,
		Transition: preconditions.NewTransition(cv, configv1.Release{Version: "4.19.1"}, false, preconditions.Full),
	}
	report, err := preconditions.Run(context.Background(), checks, in, preconditions.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, _ := report.Result("Channel")
	fmt.Println(result.State, result.Findings[0].Message)
	// Output:
	// Failed Channel stable-4.18 has no releases of 4.19. Choose a channel of 4.19
}
