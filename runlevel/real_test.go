package runlevel

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// loadReal loads a real payload, once for all tests.
func loadReal(tb testing.TB, name string) *manifest.Payload {
	tb.Helper()
	dir := filepath.Join(testdata.Dir(tb), name)
	load, _ := realPayloads.LoadOrStore(dir, sync.OnceValues(func() (*manifest.Payload, error) {
		return manifest.Load(context.Background(), os.DirFS(dir), manifest.LoadOptions{
			Image: "example.com/release@sha256:abc", Filter: manifest.DefaultFilter(),
		})
	}))
	p := checktest.Get(load.(func() (*manifest.Payload, error))())(tb)
	return p
}

var realPayloads sync.Map

// operatorsAt makes the ClusterOperators that a payload waits for, good and at
// its versions.
func operatorsAt(t testing.TB, p *manifest.Payload) []*unstructured.Unstructured {
	var objs []*unstructured.Unstructured
	for _, op := range p.Operators() {
		versions := make([]any, 0, len(op.Versions))
		for _, v := range op.Versions {
			versions = append(versions, map[string]any{"name": v.Name, "version": v.Version})
		}
		co := object(t, "{apiVersion: config.openshift.io/v1, kind: ClusterOperator, metadata: {name: x}, status: {conditions: [{type: Available, status: 'True'}, {type: Degraded, status: 'False'}]}}")
		co.SetName(op.Name)
		checktest.OK(t, unstructured.SetNestedSlice(co.Object, versions, "status", "versions"))
		objs = append(objs, co)
	}
	return objs
}

func establish(_ string, stored *unstructured.Unstructured) {
	if stored.GetKind() == "CustomResourceDefinition" {
		_ = unstructured.SetNestedSlice(stored.Object, []any{map[string]any{"type": "Established", "status": "True"}}, "status", "conditions")
	}
}

// In Updating no task of a component starts before the levels below it are
// done; an operator that is behind stops what comes later and nothing else.
func TestRealPayloadStuckOperator(t *testing.T) {
	p := loadReal(t, "payload-4.18.15")
	api := newFake(operatorsAt(t, p)...)
	api.after = establish
	stuck := api.get("ClusterOperator", "kube-apiserver")
	_ = unstructured.SetNestedSlice(stuck.Object, nil, "status", "versions")

	var mu sync.Mutex
	finished := make(map[*manifest.Task]bool)
	started := make(map[*manifest.Task]bool)
	g := graphFor(Updating, p.Tasks(), 0)
	var wait *Wait
	tasks := p.Tasks()
	res, err := Run(t.Context(), tasks, Options{API: api, Observe: func(e clusterapi.Event) {
		mu.Lock()
		defer mu.Unlock()
		switch e.Type {
		case EventTaskStarted:
			started[progressOf(e).Task] = true
		case EventTaskDone:
			finished[progressOf(e).Task] = true
		case EventWaiting:
			wait = progressOf(e).Wait
		}
	}})
	te, ok := errors.AsType[*TaskError](err)
	if !ok || te.Effect != EffectNone || te.Name != "kube-apiserver" {
		t.Fatalf("error %v", err)
	}
	if wait == nil || wait.Operator != "kube-apiserver" || len(wait.Undone) == 0 || wait.Available != configv1.ConditionTrue {
		t.Fatalf("waits on %+v", wait)
	}
	if res.Done == 0 || res.Done >= res.Total {
		t.Fatalf("%+v", res)
	}
	level := func(t *manifest.Task) string {
		l, _, _ := manifest.ParseName(t.Manifest.Filename)
		return l
	}
	for _, task := range tasks {
		if started[task] && task.Index > te.Task.Index && level(task) != level(te.Task) {
			t.Errorf("%s started behind the stuck operator", task)
		}
		if task.Index < te.Task.Index && level(task) != level(te.Task) && !finished[task] {
			t.Errorf("%s was not done", task)
		}
	}
	checktest.OK(t, g.Validate())
}
