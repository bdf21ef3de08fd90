package preview_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/internal/objects"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
	"github.com/clusterupdate/clusterupdate/runlevel/preview"
)

// What a preview tells equals what then happens: each object afterwards, and that
// nothing else is written.
func TestMergeTrue(t *testing.T) {
	t.Parallel()
	data := testdata.Dir(t)
	for _, tt := range []struct {
		name     string
		from, to fs.FS
	}{
		{"sample", sample.From(), sample.To()},
		{"4.17.30 to 4.18.15", os.DirFS(filepath.Join(data, "payload-4.17.30")), os.DirFS(filepath.Join(data, "payload-4.18.15"))},
	} {
		if israce.Enabled && tt.name != "sample" {
			continue // it takes long
		}
		t.Run(tt.name, func(t *testing.T) {
			load := func(f fs.FS) *manifest.Payload {
				p := checktest.Get(manifest.Load(t.Context(), f, manifest.LoadOptions{Image: "example.com/release@sha256:abc", Filter: manifest.DefaultFilter()}))(t)
				return p
			}
			running, target := load(tt.from), load(tt.to)
			written := map[string]bool{}
			c := memory.New(memory.Options{Lenient: true, Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
				if call.Verb != "Get" && call.Verb != "List" && call.Verb != "Delete" {
					written[call.GVK.Kind+" "+call.Key.String()] = true
				}
				return do(ctx)
			}})
			update := func(p *manifest.Payload) {
				t.Helper()
				res, err := runlevel.Run(t.Context(), p.Tasks(), runlevel.Options{API: c, Mode: runlevel.ApplyMerge, SkipChecks: true, Workers: 1, Backoff: &runlevel.Backoff{Steps: 1}, Owner: owner})
				if err != nil {
					t.Fatal(res, err)
				}
			}
			update(running)
			meddled := meddle(t, c, running)
			p := checktest.Get(preview.Run(t.Context(), target.Tasks(), preview.Options{Reader: c, Mode: runlevel.ApplyMerge, Payload: target, Running: running, Owner: owner}))(t)
			clear(written)
			update(target)
			drifted := 0
			for i := range p.Changes {
				change := &p.Changes[i]
				drifted += min(len(change.Drift), 1)
				live, err := c.Get(t.Context(), change.Object.GroupVersionKind, change.Object.NamespacedName)
				if err != nil && !apierrors.IsNotFound(err) {
					t.Fatal(err)
				}
				if change.Action == "Excluded" {
					continue
				}
				if diff := cmp.Diff(contentOf(live), contentOf(change.After())); diff != "" {
					t.Errorf("%s %s: -is +told %s", change.Object, change.Action, diff)
				}
				writes := written[change.Object.Kind+" "+change.Object.NamespacedName.String()]
				if want := change.Action == preview.Create || change.Action == preview.Update; writes != want && !(change.Object.Kind == "ClusterOperator" && want) {
					t.Errorf("%s %s: written %t", change.Object, change.Action, writes)
				}
			}
			if meddled == 0 || drifted < meddled/2 {
				t.Errorf("%d objects meddled with, and %d told", meddled, drifted)
			}
			t.Log(counts(p), meddled, "meddled with,", drifted, "drifted")
		})
	}
}

// meddle changes objects as administrators and controllers do: containers are added to
// Deployments, data to ConfigMaps, labels to everything.
func meddle(t *testing.T, c *memory.Cluster, p *manifest.Payload) (n int) {
	t.Helper()
	for i, m := range p.Manifests {
		u, err := c.Get(t.Context(), m.GVK(), clusterapi.KeyOf(m.Object()))
		if err != nil || i%3 > 0 {
			continue
		}
		labels := u.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels["theirs"] = "x"
		u.SetLabels(labels)
		switch u.GetKind() {
		case "Deployment":
			list, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
			_ = unstructured.SetNestedSlice(u.Object, append(list, map[string]any{"name": "sidecar", "image": "theirs"}), "spec", "template", "spec", "containers")
			n++
		case "ConfigMap":
			_ = unstructured.SetNestedField(u.Object, "theirs", "data", "theirs")
		case "ClusterRole":
			rules, _, _ := unstructured.NestedSlice(u.Object, "rules")
			_ = unstructured.SetNestedSlice(u.Object, append(rules, map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get"}}), "rules")
			n++
		}
		checktest.Get(c.Update(t.Context(), u, clusterapi.UpdateOptions{FieldManager: "someone"}))(t)
	}
	return n
}

// contentOf is an object without what a server sets anew at each write.
func contentOf(u *unstructured.Unstructured) map[string]any {
	if u == nil {
		return nil
	}
	return objects.WithoutServerFields(u).Object
}
