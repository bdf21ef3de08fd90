package simulation_test

import (
	"context"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
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

	clock := reconcile.NewClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	cluster, err := simulation.New(simulation.Options{Clock: clock, Release: release("4.20.3")})
	if err != nil {
		fmt.Println(err)
		return
	}
	cluster.Expect(release("4.21.1"))
	run := reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: cluster, Clock: clock}, cluster.Process())

	ctx := context.Background()
	_, err = cluster.Apply(ctx, dns("4.21.1"), clusterapi.ApplyOptions{FieldManager: clusterapi.ManagerPayload})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, minutes := range []time.Duration{1, 2} {
		if err := run.RunUntil(clock.Now().Add(minutes * time.Minute)); err != nil {
			fmt.Println(err)
			return
		}
		co, err := clusterapi.Get[configv1.ClusterOperator](ctx, cluster, clusterapi.Key("", "dns"))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(clock.Now().Format("15:04"), co.Name, "is at", co.Status.Versions[0].Version)
	}
	// Output:
	// 12:01 dns is at 4.20.3
	// 12:03 dns is at 4.21.1
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
