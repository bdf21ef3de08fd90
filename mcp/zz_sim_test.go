package mcp_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/mcp"
)

func TestZZSim(t *testing.T) {
	mco := func(release string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"namespace": "openshift-machine-config-operator", "name": "machine-config-operator"},
			"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"k8s-app": "machine-config-operator"}}, "spec": map[string]any{"containers": []any{map[string]any{
				"name": "mco", "image": "registry.example/mco:" + release,
			}}}}},
		}}
	}
	release := func(v string) simulation.Release {
		return simulation.Release{Version: v, Operators: []simulation.Operator{{Name: "machine-config", Workloads: []*unstructured.Unstructured{mco(v)}}}}
	}
	clk := simulation.ScaledClock(1200)
	one := intstr.FromInt32(1)
	c, err := simulation.New(simulation.Options{Clock: clk, Release: release("4.20.3"),
		Pools:     []simulation.Pool{{Name: "worker", Nodes: 4}, {Name: "infra", Nodes: 2}},
		Workloads: []simulation.Workload{{Name: "web", Replicas: 6, MaxUnavailable: &one}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	go c.Run(ctx)
	start := clk.Now()
	done := map[string]bool{}
	fin := make(chan bool)
	r := mcp.NewRollout(mcp.RolloutOptions{API: c, Mode: mcp.Drive, Clock: clk, Observe: func(e mcp.Event) {
		if e.Type != mcp.EventNodePhase {
			t.Logf("%8s %-12s %s/%s %s %s", clk.Since(start).Round(time.Second), e.Type, e.Pool, e.Node, e.Reason, e.Text)
		}
		if e.Type == mcp.EventPoolDone {
			done[e.Pool] = true
			if len(done) == 3 {
				close(fin)
			}
		}
	}})
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	c.Expect(release("4.21.1"))
	if _, err := c.Apply(ctx, mco("4.21.1"), clusterapi.ApplyOptions{FieldManager: clusterapi.ManagerPayload}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-fin:
	case <-ctx.Done():
		t.Error("not done", describeNodes(t.Context(), t, c))
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
