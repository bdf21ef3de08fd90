package runlevel_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// What somebody has changed is told before it is put right.
func ExampleTracker_Watch() {
	ctx := context.Background()
	cluster := memory.NewOpenShift(memory.Options{})
	config := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "config", "namespace": "ns", "annotations": map[string]any{"a": "x"}},
		"data":     map[string]any{"mode": "safe"},
	}}
	m, err := manifest.New("0000_10_a_config.yaml", config)
	if err != nil {
		panic(err)
	}
	tasks := manifest.NewTasks([]*manifest.Manifest{m})

	tracker := runlevel.NewTracker(nil)
	kinds := tracker.Watch(tasks, manifest.Filter{})
	see := func() { // in place of a watch of each kind
		for _, k := range kinds {
			list, err := cluster.List(ctx, k.GVK, clusterapi.ListOptions{Namespace: k.Namespace})
			if err != nil {
				panic(err)
			}
			for i := range list.Items {
				tracker.Observe(nil, clusterapi.NewObject(k.Trim(&list.Items[i])))
			}
		}
	}
	pass := func() {
		see()
		_, err := runlevel.Run(ctx, tasks, runlevel.Options{API: cluster, State: runlevel.Reconciling, Tracker: tracker, Observe: func(e clusterapi.Event) {
			if e.Type == runlevel.EventDrifted {
				fmt.Println(e.Data.(*runlevel.Progress).Drift.Text())
			}
		}})
		if err != nil {
			panic(err)
		}
	}
	pass() // applies
	pass() // has nothing to do

	u, err := cluster.Get(ctx, config.GroupVersionKind(), clusterapi.KeyOf(config))
	if err != nil {
		panic(err)
	}
	u.Object["data"] = map[string]any{"mode": "fast"}
	if _, err := cluster.Update(ctx, u, clusterapi.UpdateOptions{FieldManager: "kubectl-edit"}); err != nil {
		panic(err)
	}
	pass()
	// Output: ConfigMap ns/config was changed: data.mode by kubectl-edit (Update)
}
