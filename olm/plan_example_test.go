package olm_test

import (
	"context"
	"fmt"
	"log"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
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

// What is in the way of an update of the cluster to OpenShift 4.19, and what
// clears it?
func ExamplePlan() {
	contents, err := catalog.Open(context.Background(), "testdata/tracing.yaml", catalog.Options{})
	if err != nil {
		log.Fatal(err)
	}
	sub, csv, group := tracing()
	snapshot := &olm.Snapshot{
		Namespace: "observe", GlobalNamespace: "openshift-marketplace",
		Subscriptions: []olmapi.Subscription{*sub}, Installed: []olmapi.ClusterServiceVersion{*csv}, OperatorGroups: []olmapi.OperatorGroup{*group},
		Catalogs: []olm.SnapshotCatalog{{Key: clusterapi.Key("openshift-marketplace", "community"), Contents: contents.Contents}},
	}
	plan, err := olm.Plan(context.Background(), []*olm.Snapshot{snapshot}, olm.PlanOptions{Target: "4.19"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(plan)
	// Output:
	// Namespace observe:
	//   1: updated tracing.v1 to tracing.v2 (channel stable, catalog openshift-marketplace/community) for subscription tracing
	//   2: updated tracing.v2 to tracing.v3 (channel stable, catalog openshift-marketplace/community) for subscription tracing
	// Update of the cluster to OpenShift 4.19:
	//   maximum supported OCP version for observe/tracing.v1 is 4.17: goes on to tracing.v3 after 2 generations
	//   on the way: maximum supported OCP version for observe/tracing.v2 is 4.18
	//   possible after generation 2
}

func ExampleContents_Path() {
	contents, err := catalog.Open(context.Background(), "testdata/tracing.yaml", catalog.Options{})
	if err != nil {
		log.Fatal(err)
	}
	steps, err := contents.Path("tracing", "stable", olm.Origin{Name: "tracing.v1"})
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range steps {
		fmt.Println(s.From, "->", s.To, "by", s.Edge)
	}
	// Output:
	// tracing.v1 -> tracing.v2 by replaces
	// tracing.v2 -> tracing.v3 by replaces
}

func ExampleCheckNext() {
	_, csv, _ := tracing()
	compatibility := olm.CheckNext(olm.OpenShiftVersion{Major: 4, Minor: 17}, []olmapi.ClusterServiceVersion{*csv})
	condition := install.UpgradeableCondition(compatibility, nil, false)
	fmt.Println(condition.Status, condition.Reason)
	fmt.Println(condition.Message)
	// Output:
	// False IncompatibleOperatorsInstalled
	// ClusterServiceVersions blocking minor version upgrades to 4.18:
	// - maximum supported OCP version for observe/tracing.v1 is 4.17
}
