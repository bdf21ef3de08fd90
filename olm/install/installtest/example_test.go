package installtest_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/install/installtest"
)

// An operator goes through its phases without a driver and without time.
func ExampleOLM_Advance() {
	ctx := context.Background()
	cluster := memory.NewOpenShift(memory.Options{})
	csv := &olmapi.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "backup.v1"}}
	if _, err := clusterapi.Create(ctx, cluster, csv, clusterapi.CreateOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	for changed := true; changed; {
		var err error
		if changed, err = (installtest.OLM{}).Advance(ctx, cluster, "operators"); err != nil {
			fmt.Println(err)
			return
		}
	}
	csv, err := clusterapi.Get[olmapi.ClusterServiceVersion](ctx, cluster, clusterapi.Key("operators", "backup.v1"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(csv.Status.Phase)
	// Output: Succeeded
}
