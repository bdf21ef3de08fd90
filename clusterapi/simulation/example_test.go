package simulation_test

import (
	"context"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
)

// A cluster with one operator: storing the operator's Deployment in the form
// of the next release is what an update does, and the operator answers it.
func Example() {
	dns := func(release string) *unstructured.Unstructured {
		labels := map[string]any{"name": "dns-operator"}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"namespace": "openshift-dns-operator", "name": "dns-operator"},
			"spec": map[string]any{"selector": map[string]any{"matchLabels": labels}, "template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": []any{map[string]any{
				"name": "dns-operator", "image": "registry.example/dns-operator:" + release,
			}}}}},
		}}
	}
	release := func(version string) simulation.Release {
		return simulation.Release{Version: version, Operators: []simulation.Operator{
			{Name: "dns", Workloads: []*unstructured.Unstructured{dns(version)}},
		}}
	}

	clock := simulation.ScaledClock(3600) // an hour in a second
	cluster, err := simulation.New(simulation.Options{Clock: clock, Release: release("4.20.3")})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	go cluster.Run(ctx)

	cluster.Expect(release("4.21.1"))
	_, err = cluster.Apply(ctx, dns("4.21.1"), clusterapi.ApplyOptions{FieldManager: clusterapi.ManagerPayload})
	if err != nil {
		fmt.Println(err)
		return
	}
	for event, err := range cluster.Watch(ctx, configv1.GroupVersion.WithKind("ClusterOperator"), clusterapi.ListOptions{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if event.Object == nil {
			continue
		}
		co, err := clusterapi.FromUnstructured[configv1.ClusterOperator](event.Object)
		if err != nil {
			fmt.Println(err)
			return
		}
		if v := co.Status.Versions[0]; v.Version == "4.21.1" {
			fmt.Println(co.Name, "reports", v.Name, v.Version)
			return
		}
	}
	// Output: dns reports operator 4.21.1
}

// A node that does not come back from its reboot, for half an hour.
func ExampleCluster_SetNodeFault() {
	cluster, err := simulation.New(simulation.Options{Release: simulation.Release{Version: "4.20.3"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	cluster.SetNodeFault("worker-1", &simulation.Fault{Kind: simulation.FaultNodeStaysNotReady, For: 30 * time.Minute})
	// Output:
}
