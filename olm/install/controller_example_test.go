package install_test

import (
	"context"
	"fmt"
	"log"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
	"github.com/clusterupdate/clusterupdate/olm/install"
)

// tracing is a namespace that has version 1 and limits OpenShift.
func tracing() (*olmapi.Subscription, *olmapi.ClusterServiceVersion, *olmapi.OperatorGroup) {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "observe", Name: name} }
	csv := &olmapi.ClusterServiceVersion{ObjectMeta: meta("tracing.v1")}
	csv.Annotations = map[string]string{olmapi.AnnotationProperties: `{"properties":[{"type":"olm.maxOpenShiftVersion","value":"4.17"}]}`}
	return &olmapi.Subscription{
		ObjectMeta: meta("tracing"),
		Spec:       olmapi.SubscriptionSpec{Source: "community", SourceNamespace: "openshift-marketplace", Package: "tracing", Channel: "stable"},
		Status:     olmapi.SubscriptionStatus{InstalledCSV: "tracing.v1", CurrentCSV: "tracing.v1"},
	}, csv, &olmapi.OperatorGroup{ObjectMeta: meta("group")}
}

// A pass of the controller makes the InstallPlan for the update.
func ExampleController() {
	ctx := context.Background()
	contents, err := catalog.Open(ctx, "../testdata/tracing.yaml", catalog.Options{})
	if err != nil {
		log.Fatal(err)
	}
	cluster := memory.NewOpenShift(memory.Options{})
	sub, csv, group := tracing()
	for _, object := range []any{sub, csv, group} {
		u, err := clusterapi.ToUnstructured(object)
		if err != nil {
			log.Fatal(err)
		}
		if err := cluster.Load(u); err != nil {
			log.Fatal(err)
		}
	}
	controller, err := install.New(install.Options{
		API: cluster,
		SnapshotOptions: install.SnapshotOptions{Catalogs: map[types.NamespacedName]olm.Catalog{
			clusterapi.Key("openshift-marketplace", "community"): contents.Contents,
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	result, err := controller.Sync(ctx, "observe")
	if err != nil {
		log.Fatal(err)
	}
	plan, err := clusterapi.Get[olmapi.InstallPlan](ctx, cluster, clusterapi.Key("observe", result.Plan))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(plan.Spec.ClusterServiceVersionNames, plan.Status.Phase)
	// Output:
	// [tracing.v2] Installing
}
