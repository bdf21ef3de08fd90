package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/internal/testserver"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/apiserver"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/objects"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
	"github.com/clusterupdate/clusterupdate/runlevel/preview"
)

// TestPreviewIsTrue: on a real API server, what an update leaves is what its
// preview has said, object by object: those that are refused, too.
func TestPreviewIsTrue(t *testing.T) {
	t.Parallel()
	t.Run("sample", func(t *testing.T) {
		t.Parallel()
		previewIsTrue(t, runlevel.ApplyServerSide, sample.From(), sample.To(), nil)
	})
	t.Run("sample, merged", func(t *testing.T) {
		t.Parallel()
		previewIsTrue(t, runlevel.ApplyMerge, sample.From(), sample.To(), nil)
	})
	for name, mode := range map[string]runlevel.Mode{"4.17.30 to 4.18.15": runlevel.ApplyServerSide, "4.17.30 to 4.18.15, merged": runlevel.ApplyMerge} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := testdata.Dir(t)
			refused := map[string]bool{}
			for name := range unappliable {
				refused[name] = true
			}
			previewIsTrue(t, mode, os.DirFS(filepath.Join(data, "payload-4.17.30")), os.DirFS(filepath.Join(data, "payload-4.18.15")), refused)
		})
	}
}

func previewIsTrue(t *testing.T, mode runlevel.Mode, from, to fs.FS, refused map[string]bool) {
	load := func(fsys fs.FS) *manifest.Payload {
		p := checktest.Get(manifest.Load(t.Context(), fsys,
			manifest.LoadOptions{Image: "example.com/release@sha256:abc", Filter: manifest.DefaultFilter()}))(t)
		return p
	}
	running, target := load(from), load(to)
	s := testserver.Start(t)
	api := newAPI(t, s, kubernetes.Options{})
	define(t, api, append(lacking(running.Manifests), lacking(target.Manifests)...))
	for _, m := range running.Manifests {
		switch ns := m.Identity().Namespace; {
		case m.GVK().Kind == "CustomResourceDefinition":
			checktest.OK(t, checktest.Err(
				api.Apply(t.Context(), m.Object(), clusterapi.ApplyOptions{FieldManager: clusterapi.ManagerPayload})))
		case ns != "":
			_, err := api.Create(t.Context(), object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", ns), clusterapi.CreateOptions{})
			checktest.FatalIf(t, err != nil && !apierrors.IsAlreadyExists(err), "%v", err)
		}
	}
	time.Sleep(5 * time.Second) // until the definitions are served
	for _, kind := range []string{"Proxy", "Infrastructure"} {
		_, err := api.Create(t.Context(), object(t, "{apiVersion: config.openshift.io/v1, kind: %s, metadata: {name: cluster}, spec: {}}", kind), clusterapi.CreateOptions{})
		checktest.FatalIf(t, err != nil && !apierrors.IsAlreadyExists(err) && !meta.IsNoMatchError(err), "%v", err)
	}
	owner := &metav1.OwnerReference{Name: "version", UID: "uid"}
	// Every task is carried out: what is refused stops none.
	carryOut := func(p *manifest.Payload) map[string]bool {
		t.Helper()
		var mu sync.Mutex
		out := map[string]bool{}
		_, err := runlevel.Run(t.Context(), p.Tasks(), runlevel.Options{API: api, Mode: mode, Owner: owner, SkipChecks: true, Wrap: func(a runlevel.Applier) runlevel.Applier {
			return func(ctx context.Context, task *manifest.Task, state runlevel.State) error {
				var err error
				for range 10 { // a definition is not served at once
					if err = a(ctx, task, state); !meta.IsNoMatchError(err) || refused[nameOf(task.Manifest)] {
						break
					}
					time.Sleep(time.Second)
				}
				if err != nil {
					mu.Lock()
					defer mu.Unlock()
					out[nameOf(task.Manifest)] = true
					checktest.FailIf(t, !refused[nameOf(task.Manifest)], "%s: %v", task, err)
				}
				return nil
			}
		}})
		checktest.OK(t, err)
		return out
	}
	carryOut(running)
	meddle(t, api, running)

	start := time.Now()
	p := checktest.Get(preview.Run(t.Context(), target.Tasks(), preview.Options{
		Reader: api, Mode: mode, Payload: target, Running: running, Owner: owner, Server: newAPI(t, s, kubernetes.Options{DryRun: true}).(preview.Server),
	}))(t)
	t.Logf("preview of %d tasks, each asked of the server too: %s", len(target.Manifests), time.Since(start))
	t.Logf("%v", p.Summary())
	if moved, err := p.Check(t.Context(), api); err != nil || len(moved) > 0 {
		t.Errorf("the preview has changed something: %v, %v", moved, err)
	}
	failed := carryOut(target)

	for i := range p.Changes {
		c := &p.Changes[i]
		if c.Object.Kind == "SecurityContextConstraints" {
			continue // OpenShift's own admission fills in what the definition requires
		}
		checktest.Equal(t,
			failed[fmt.Sprintf("%s %s %s/%s", c.Tasks[0].File, c.Object.Kind, c.Object.Namespace,
				c.Object.Name)], (c.Action == preview.Fail), "%s: %s (%s), and in reality refused is %t", c.Object, c.Action, c.Reason, c.Action != preview.Fail)
		if a := c.Server; a != nil && !a.NeedsOther {
			t.Errorf("%s: the server says otherwise: %+v", c.Object, *a)
		}
		if c.Action == "Excluded" {
			continue
		}
		live, err := api.Get(t.Context(), c.Object.GroupVersionKind, c.Object.NamespacedName)
		checktest.FatalIf(t, err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err), "%v", err)
		if err != nil {
			live = nil
		}
		if want := c.After(); (want == nil) != (live == nil) {
			t.Errorf("%s (%s): predicted %t, and exists %t", c.Object, c.Action, want != nil, live != nil)
		} else if want != nil {
			for _, f := range unlike(want, live) {
				t.Errorf("%s (%s): %s: predicted %v, and is %v", c.Object, c.Action, f.Path, f.Old, f.New)
			}
		}
	}

	// Over what it has left, an update changes nothing.
	again := checktest.Get(preview.Run(t.Context(), target.Tasks(),
		preview.Options{Reader: api, Mode: mode, Payload: target, Running: target, Owner: owner}))(t)
	var odd []string
	for _, c := range again.Changes {
		switch c.Action {
		case "Keep", "Skip", "Absent", "Excluded", "Unmanaged", preview.Fail:
		default:
			if c.Object.Kind == "SecurityContextConstraints" {
				continue
			}
			odd = append(odd, fmt.Sprint(c.Action, " ", c.Object, " ", c.Fields, c.Schemas))
		}
	}
	checktest.SameIn(t, "over itself", []string(nil), odd)
}

// meddle changes what others might: it scales a Deployment, and deletes a
// ConfigMap.
func meddle(t *testing.T, api clusterapi.ClusterAPI, p *manifest.Payload) {
	t.Helper()
	done := map[string]bool{}
	for _, m := range p.Manifests {
		kind := m.GVK().Kind
		if done[kind] || len(m.Annotations()) > 0 && m.Annotations()["release.openshift.io/create-only"] != "" {
			continue
		}
		switch kind {
		case "Deployment":
			live := checktest.Get(api.Get(t.Context(), m.GVK(), clusterapi.KeyOf(m.Object())))(t)
			checktest.OK(t, unstructured.SetNestedField(live.Object, int64(7), "spec", "replicas"))
			checktest.OK(t, checktest.Err(
				api.Update(t.Context(), live, clusterapi.UpdateOptions{FieldManager: "somebody"})))
			done[kind] = true
		case "ConfigMap":
			err := api.Delete(t.Context(), m.GVK(), clusterapi.KeyOf(m.Object()), clusterapi.DeleteOptions{})
			if done[kind] = err == nil; err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
		}
	}
	if !done["Deployment"] || !done["ConfigMap"] {
		t.Fatal(errors.New("nothing to meddle with"))
	}
}

// unlike compares a prediction with what is there, but for what a server
// allocates.
func unlike(want, live *unstructured.Unstructured) []clusterapi.FieldChange {
	fill := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		return apiserver.Fill(objects.WithoutServerFields(u))
	}
	return slices.DeleteFunc(clusterapi.Compare(fill(want), fill(live), nil), func(f clusterapi.FieldChange) bool {
		return apiserver.Allocated(live.GroupVersionKind().GroupKind(), f.Path)
	})
}
