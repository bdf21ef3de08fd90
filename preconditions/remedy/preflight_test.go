package remedy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/remedy"
)

const image = "quay.io/ocp/release@sha256:2222222222222222222222222222222222222222222222222222222222222222"

var preflightKind = schema.GroupVersionKind{Group: "kmm.sigs.x-k8s.io", Version: "v1beta2", Kind: "PreflightValidationOCP"}

func module(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kmm.sigs.x-k8s.io/v1beta1", "kind": "Module", "metadata": map[string]any{"namespace": "kmm", "name": name}}}
}

// preflightCRD is the definition of one generation of KMM.
func preflightCRD(field string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "preflightvalidationsocp.kmm.sigs.x-k8s.io"},
		"spec": map[string]any{
			"group": "kmm.sigs.x-k8s.io", "scope": "Cluster", "names": map[string]any{"kind": "PreflightValidationOCP", "plural": "preflightvalidationsocp"},
			"versions": []any{map[string]any{"name": "v1beta2", "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}}, "schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "properties": map[string]any{
					"spec":   map[string]any{"type": "object", "properties": map[string]any{field: map[string]any{"type": "string"}, "dtkImage": map[string]any{"type": "string"}, "pushBuiltImage": map[string]any{"type": "boolean"}}},
					"status": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
				},
			}}}},
		},
	}}
}

// report plays KMM: it reports a status for every module.
func report(t *testing.T, api *memory.Cluster, status string, modules ...string) {
	t.Helper()
	list := checktest.Get(api.List(t.Context(), preflightKind, clusterapi.ListOptions{}))(t)
	for i := range list.Items {
		var results []any
		for _, m := range modules {
			results = append(results, map[string]any{"namespace": "kmm", "name": m, "verificationStage": "Image", "verificationStatus": status})
		}
		u := list.Items[i].DeepCopy()
		u.Object["status"] = map[string]any{"modules": results}
		checktest.OK(t, checktest.Err(api.UpdateStatus(t.Context(), u, clusterapi.UpdateOptions{})))
	}
}

// The finding goes when KMM has verified all modules, whatever fails on the way.
func TestPreflight(t *testing.T) {
	for _, generation := range []struct {
		name      string
		preflight remedy.Preflight
		field     string
		status    string
	}{
		{"by image", remedy.Preflight{Image: image, PushBuiltImage: true}, "releaseImage", "true"},
		{"by kernel", remedy.Preflight{Image: image, Kernel: "5.14.0-570", DTKImage: "d"}, "kernelVersion", "Success"},
	} {
		t.Run(generation.name, func(t *testing.T) {
			p := generation.preflight
			judged := func(api clusterapi.Reader) preconditions.Result {
				return check(t, api, "KernelModules", configv1.Release{Version: "4.19.1", Image: image}, func(in *preconditions.Input) { in.TargetKernel = p.Kernel })
			}
			eachFault(t, func(t *testing.T, f *faults) {
				api := forkOf(t, f, clusterVersion("4.18.5"), module("a"), module("b"), preflightCRD(generation.field))
				if got := judged(api); got.State != preconditions.Failed || got.Findings[0].Reason != "PreflightNotRun" {
					t.Errorf("at first %+v", got)
				}
				var progress *remedy.PreflightProgress
				again(t, func() (err error) { progress, err = p.Start(t.Context(), api); return err })
				if progress.Done() || len(progress.Failed) > 0 || !progress.Created || len(progress.Pending) != 2 {
					t.Errorf("started: %+v", progress)
				}
				if got := judged(api); got.State != preconditions.Unknown {
					t.Errorf("while it goes on %+v", got)
				}
				f.at = 0
				report(t, api, generation.status, "a")
				if progress, err := p.Look(t.Context(), api); err != nil || progress.Done() {
					t.Errorf("one of two: %+v, %v", progress, err)
				}
				report(t, api, generation.status, "a", "b")
				if progress, err := p.Start(t.Context(), api); err != nil || !progress.Done() || len(progress.Failed) > 0 {
					t.Errorf("both: %+v, %v", progress, err)
				}
				if got := judged(api); got.State != preconditions.Passed {
					t.Errorf("in the end %+v", got)
				}
				again(t, func() error { return p.Finish(t.Context(), api) })
				checktest.ErrorIs(t, remedy.ErrNoPreflight, checktest.Err(p.Look(t.Context(), api)))
			})
		})
	}
}

func TestPreflightFailed(t *testing.T) {
	p := remedy.Preflight{Image: image}
	api := forkOf(t, nil, clusterVersion("4.18.5"), module("a"), preflightCRD("releaseImage"))
	checktest.OK(t, checktest.Err(p.Start(t.Context(), api)))
	report(t, api, "error", "a")
	if progress, err := p.Look(t.Context(), api); err != nil || !progress.Done() || len(progress.Failed) != 1 {
		t.Errorf("%+v, %v", progress, err)
	}
	// It is what blocks the update: deleting it would hide that.
	judged := func() preconditions.Result {
		return check(t, api, "KernelModules", configv1.Release{Version: "4.19.1", Image: image}, func(*preconditions.Input) {})
	}
	blocked := new(remedy.BlockedError)
	if err := p.Finish(t.Context(), api); !errors.As(err, &blocked) || !strings.HasSuffix(err.Error(), ": modules have failed: kmm/a") {
		t.Errorf("%v", err)
	}
	if got := judged(); len(got.Findings) != 1 || got.Findings[0].Reason != "ModuleNotVerified" {
		t.Errorf("%+v", got)
	}
	// Once the module is gone it has nothing to say.
	checktest.OK(t,
		api.Delete(t.Context(), module("a").GroupVersionKind(), clusterapi.Key("kmm", "a"), clusterapi.DeleteOptions{}))
	checktest.Good(t, p.Finish(t.Context(), api))
}

// One that others created is used, and left alone.
func TestPreflightOfOthers(t *testing.T) {
	theirs := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kmm.sigs.x-k8s.io/v1beta2", "kind": "PreflightValidationOCP", "metadata": map[string]any{"name": "theirs"}, "spec": map[string]any{"releaseImage": image}}}
	api := forkOf(t, nil, clusterVersion("4.18.5"), module("a"), preflightCRD("releaseImage"), theirs)
	p := remedy.Preflight{Image: image}
	progress, err := p.Start(t.Context(), api)
	checktest.FailIf(t, err != nil || progress.Name != "theirs" || progress.Created, "%+v, %v", progress, err)
	checktest.Good(t, p.Finish(t.Context(), api))
	checktest.Good(t, checktest.Err(api.Get(t.Context(), preflightKind, clusterapi.Key("", "theirs"))))
}

// The mark of a preflight has a format: Finish knows it, and refuses a later one.
func TestPreflightMark(t *testing.T) {
	for _, tt := range []struct {
		mark, err string
		gone      bool
	}{
		{`{"version":1,"for":"` + image + `"}`, "", true},
		{`{"version":1,"for":"another"}`, "", false},
		{`{"version":2,"for":"` + image + `"}`, "PreflightValidationOCP ours: annotation clusterupdate.github.io/preflight-for is of format 2, and 1 is the last that is known", false},
		{image, "PreflightValidationOCP ours: annotation clusterupdate.github.io/preflight-for: ", false},
	} {
		ours := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kmm.sigs.x-k8s.io/v1beta2", "kind": "PreflightValidationOCP",
			"metadata": map[string]any{"name": "ours", "annotations": map[string]any{"clusterupdate.github.io/preflight-for": tt.mark}}, "spec": map[string]any{"releaseImage": image}}}
		api := forkOf(t, nil, clusterVersion("4.18.5"), preflightCRD("releaseImage"), ours)
		err := remedy.Preflight{Image: image}.Finish(t.Context(), api)
		if (err == nil) != (tt.err == "") || err != nil && !strings.HasPrefix(err.Error(), tt.err) {
			t.Errorf("%s: error %v, want %q", tt.mark, err, tt.err)
		}
		_, err = api.Get(t.Context(), preflightKind, clusterapi.Key("", "ours"))
		if gone := apierrors.IsNotFound(err); gone != tt.gone {
			t.Errorf("%s: the object is gone: %t, want %t", tt.mark, gone, tt.gone)
		}
	}
}

func TestPreflightErrors(t *testing.T) {
	byKernel := forkOf(t, nil, module("a"), preflightCRD("kernelVersion"))
	if _, err := (remedy.Preflight{Image: image}).Start(t.Context(), byKernel); err == nil || err.Error() != "preflight validation: the kernel version of the release is needed here" {
		t.Errorf("%v", err)
	}
	byImage := forkOf(t, nil, module("a"), preflightCRD("releaseImage"))
	if _, err := (remedy.Preflight{Kernel: "k"}).Start(t.Context(), byImage); err == nil || err.Error() != "preflight validation: the image of the release is needed here" {
		t.Errorf("%v", err)
	}
	bare := memory.New(memory.Options{})
	if _, err := (remedy.Preflight{Image: image}).Start(t.Context(), bare); !meta.IsNoMatchError(err) {
		t.Errorf("no KMM: %v", err)
	}
}
