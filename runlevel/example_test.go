package runlevel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// exampleTasks makes a ConfigMap for each file name.
func exampleTasks(files ...string) []*manifest.Task {
	var ms []*manifest.Manifest
	for _, file := range files {
		m, err := manifest.New(file, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": strings.ReplaceAll(file[5:9], "_", "-"), "namespace": "demo", "annotations": map[string]any{}},
		}})
		if err != nil {
			panic(err)
		}
		ms = append(ms, m)
	}
	return manifest.NewTasks(ms)
}

// A pass over a cluster in memory, with its progress.
func ExampleRun() {
	tasks := exampleTasks("0000_10_a_1.yaml", "0000_10_b_1.yaml", "0000_20_c_1.yaml")
	res, err := runlevel.Run(context.Background(), tasks, runlevel.Options{
		API:     memory.NewOpenShift(memory.Options{}),
		Workers: 1,
		Observe: func(e clusterapi.Event) {
			if p, ok := e.Data.(*runlevel.Progress); ok && e.Type == runlevel.EventTaskDone {
				fmt.Printf("level %s: %d of %d, all: %d of %d\n", p.Level, p.LevelSettled, p.LevelTotal, p.Done, p.Total)
			}
		},
	})
	fmt.Println(res.Done, err)
	// Output:
	// level 10: 1 of 2, all: 1 of 3
	// level 10: 2 of 2, all: 2 of 3
	// level 20: 1 of 1, all: 3 of 3
	// 3 <nil>
}

// An error of one component stops what comes after it, and nothing else.
func ExampleRun_failure() {
	apply := func(_ context.Context, t *manifest.Task, _ runlevel.State) error {
		if t.Manifest.Identity().Name == "10-b" {
			return &runlevel.TaskError{Effect: runlevel.EffectFail, Reason: "Demo", Message: "b does not come up", Name: "b"}
		}
		fmt.Println("applied", t)
		return nil
	}
	tasks := exampleTasks("0000_10_a_1.yaml", "0000_10_b_1.yaml", "0000_10_c_1.yaml", "0000_20_d_1.yaml")
	res, err := runlevel.Run(context.Background(), tasks, runlevel.Options{
		Workers: 1, Wrap: func(runlevel.Applier) runlevel.Applier { return apply },
	})
	var te *runlevel.TaskError
	fmt.Println(errors.As(err, &te), te.Reason, te.Task)
	fmt.Println(res.Failure)
	// Output:
	// applied configmap "demo/10-a" (1 of 4)
	// applied configmap "demo/10-c" (3 of 4)
	// true Demo configmap "demo/10-b" (2 of 4)
	// b does not come up
}

// What a degraded operator means depends on how long it has been awaited.
func ExampleJudge() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	degraded := &runlevel.TaskError{Effect: runlevel.EffectFailAfterInterval, Reason: runlevel.ReasonOperatorDegraded,
		Message: "Cluster operator etcd is degraded", Name: "etcd"}
	for _, minutes := range []time.Duration{10, 50} {
		since := func(string) (time.Time, bool) { return now.Add(-minutes * time.Minute), true }
		j := runlevel.Judge(degraded, since, now)
		fmt.Println(j.Failure != nil, j.Progress)
	}
	// Output:
	// false waiting up to 40 minutes on etcd
	// true wait has exceeded 40 minutes for these operators: etcd
}

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
