package clusterapi_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// limitVersions changes the definition of ClusterVersion: versions in the history match pattern.
func limitVersions(t *testing.T, c *memory.Cluster, pattern string) {
	t.Helper()
	gvk := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	u := checktest.Get(c.Get(t.Context(), gvk, clusterapi.Key("", "clusterversions.config.openshift.io")))(t)
	versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
	checktest.OK(t,
		unstructured.SetNestedField(versions[0].(map[string]any), pattern, "schema", "openAPIV3Schema", "properties",
			"status", "properties", "history", "items", "properties", "version", "pattern"))
	checktest.OK(t, unstructured.SetNestedSlice(u.Object, versions, "spec", "versions"))
	checktest.OK(t, checktest.Err(c.Update(t.Context(), u, clusterapi.UpdateOptions{})))
}

// TestModifyFits: a definition is read once, and again when it is forgotten or the server
// refuses what fitted it.
func TestModifyFits(t *testing.T) {
	reads, refused := 0, 0
	var fault error
	c := memory.NewOpenShift(memory.Options{Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
		if call.Verb == "Get" && call.GVK.Kind == "CustomResourceDefinition" && ctx.Value(ours{}) != nil {
			reads++
			if fault != nil {
				return fault
			}
		}
		err := do(ctx)
		if apierrors.IsInvalid(err) {
			refused++
		}
		return err
	}})
	load := &configv1.ClusterVersion{}
	load.Name, load.Spec.ClusterID = "version", "8d4c5c1a-8e0e-4bd9-9d5d-8d2a4c9f7f01"
	u := checktest.Get(clusterapi.ToUnstructured(load))(t)
	checktest.OK(t, c.Load(u))
	var d clusterapi.Definitions
	ctx := context.WithValue(t.Context(), ours{}, true)
	var last error
	write := func(o clusterapi.ModifyOptions, versions ...string) []string {
		t.Helper()
		o.Status = true
		cv, err := clusterapi.Modify(ctx, c, clusterapi.Key("", "version"), o, func(cv *configv1.ClusterVersion) error {
			cv.Status.History = nil
			for _, v := range versions {
				cv.Status.History = append(cv.Status.History, configv1.UpdateHistory{Version: v, Image: v, State: "Completed", StartedTime: load.CreationTimestamp})
			}
			for i := range cv.Status.History {
				cv.Status.History[i].StartedTime.Time = cv.CreationTimestamp.Add(1)
			}
			return nil
		})
		if last = err; err != nil {
			return nil
		}
		out := []string{}
		for _, h := range cv.Status.History {
			out = append(out, h.Version)
		}
		return out
	}
	fits := clusterapi.ModifyOptions{Definitions: &d}
	check := func(what string, got []string, wantReads, wantRefused int, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" || reads != wantReads || refused != wantRefused {
			t.Errorf("%s: %d reads, %d refused, error %v (-want +got):\n%s", what, reads, refused, last, diff)
		}
	}
	check("at first", write(fits, "4.1.0", "4.2.0"), 1, 0, "4.1.0", "4.2.0")
	check("again", write(fits, "4.1.0"), 1, 0, "4.1.0")
	limitVersions(t, c, `^4\.1\.`)
	check("narrower", write(fits, "4.1.0", "4.2.0"), 2, 1, "4.1.0", "")
	limitVersions(t, c, `^4\.`)
	check("wider", write(fits, "4.1.1", "4.2.0"), 2, 1, "4.1.1", "")
	d.Forget()
	check("forgotten", write(fits, "4.1.0", "4.2.0"), 3, 1, "4.1.0", "4.2.0")
	d.Forget()
	fault = errors.New("connection refused")
	check("out of reach: as it was", write(fits, "4.1.0", "other"), 4, 1, "4.1.0", "")
	if write(clusterapi.ModifyOptions{}, "4.1.0", "other"); !apierrors.IsInvalid(last) {
		t.Errorf("without definitions: %v", last)
	}
}

type ours struct{}
