package clusterversion_test

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
)

// A request for a version leaves nothing of the one before, which was forced.
func ExampleRequest() {
	ctx := context.Background()
	cluster := memory.NewOpenShift(memory.Options{})
	cv := &configv1.ClusterVersion{}
	cv.Name = "version"
	cv.Spec.DesiredUpdate = &configv1.Update{Version: "4.20.3", Force: true}
	if _, err := clusterapi.Create(ctx, cluster, cv, clusterapi.CreateOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	stored, err := clusterversion.Modify(ctx, cluster, clusterapi.ModifyOptions{}, func(cv *configv1.ClusterVersion) (bool, error) {
		clusterversion.SetDesired(cv, configv1.Update{Version: "4.20.4"})
		return true, nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(stored.Spec.DesiredUpdate.Version, stored.Spec.DesiredUpdate.Force)
	// Output: 4.20.4 false
}
