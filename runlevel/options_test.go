package runlevel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// With SkipChecks all is written, and nothing looked at or awaited afterwards.
func TestSkipChecks(t *testing.T) {
	for _, tt := range []struct{ name, text, status, write string }{
		{"deployment", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}, spec: {}}", `{conditions: [{type: ReplicaFailure, status: "True"}]}`, "Apply Deployment ns/d"},
		{"job", "{apiVersion: batch/v1, kind: Job, metadata: {name: d, namespace: ns}, spec: {}}", "{failed: 1}", "Apply Job ns/d"},
		{"definition", "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: d}, spec: {}}", "{}", "Apply CustomResourceDefinition d"},
		{"operator that is behind", coManifest, "", ""},
		{"operator without versions", strings.Replace(coManifest, "versions: [{name: operator, version: \"2\"}]", "versions: []", 1), "", ""},
	} {
		run := func(skip bool) ([]string, error) {
			api := newFake(coObject(t, "1", "True"))
			api.after = func(_ string, stored *unstructured.Unstructured) {
				stored.Object["status"] = object(t, "{apiVersion: v1, kind: X, status: "+tt.status+"}").Object["status"]
			}
			err := once(t, api, Options{SkipChecks: skip, AwaitJobs: true}, tt.text)
			return api.writes(), err
		}
		if _, err := run(false); err == nil {
			t.Errorf("%s: good with checks", tt.name)
		}
		writes, err := run(true)
		var want []string
		if tt.write != "" {
			want = []string{tt.write}
		}
		if diff := cmp.Diff(want, writes); diff != "" || err != nil {
			t.Errorf("%s: %v %s", tt.name, err, diff)
		}
	}
}

// Wrap sees each manifest on its way to the cluster, with its state and error, and
// decides what the pass gets to hear.
func TestWrap(t *testing.T) {
	var seen []string
	refused := errors.New("refused")
	api := newFake()
	api.before = func(_ context.Context, verb, kind, _ string) error {
		if verb == "Apply" && kind == "Namespace" {
			return refused
		}
		return nil
	}
	wrap := func(inner Applier) Applier {
		return ApplierFunc(func(ctx context.Context, task *manifest.Task, state State) error {
			err := inner.Apply(ctx, task, state)
			seen = append(seen, fmt.Sprintf("%s %s %v", task.Manifest.Identity().Name, state, err))
			if errors.Is(err, refused) {
				return nil // kept
			}
			return err
		})
	}
	texts := []string{
		"{apiVersion: v1, kind: Namespace, metadata: {name: first}}", "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: first}}",
		coManifest,
	}
	checktest.OK(t, once(t, api, Options{Wrap: wrap, SkipChecks: true, Workers: 1}, texts...))
	checktest.Same(t, []string{"co Precreating <nil>", "first Updating refused", "c Updating <nil>", "co Updating <nil>"}, seen)
	if api.get("ConfigMap", "first/c") == nil {
		t.Error("what comes after was not applied")
	}

	// It also gets an Applier that takes the place of the cluster's.
	called := 0
	o := Options{Applier: ApplierFunc(func(context.Context, *manifest.Task, State) error { called++; return nil }), Wrap: wrap}
	if _, err := Run(t.Context(), tasksOf(t, texts[1]), o); err != nil || called != 1 {
		t.Errorf("%d calls, %v", called, err)
	}
	o.Wrap = func(Applier) Applier { return nil }
	if _, err := Run(t.Context(), tasksOf(t, texts[1]), o); err == nil {
		t.Error("no Applier")
	}
}
