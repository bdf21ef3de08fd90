package memory_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// What these tests expect is what a kube-apiserver 1.36 answered to the same
// requests.

func at(u *unstructured.Unstructured, path ...string) any {
	v, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	return v
}

func TestRefusedWrites(t *testing.T) {
	update := func(change func(*unstructured.Unstructured)) func(context.Context, *memory.Cluster, *unstructured.Unstructured) error {
		return func(ctx context.Context, c *memory.Cluster, u *unstructured.Unstructured) error {
			change(u)
			u.Object["data"] = map[string]any{"a": "changed"}
			_, err := c.Update(ctx, u, clusterapi.UpdateOptions{})
			return err
		}
	}
	apply := func(metadata string) func(context.Context, *memory.Cluster, *unstructured.Unstructured) error {
		return func(ctx context.Context, c *memory.Cluster, _ *unstructured.Unstructured) error {
			_, err := c.Apply(ctx, object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: example, `+metadata+`}, data: {a: changed}}`), manager)
			return err
		}
	}
	create := func(metadata string) func(context.Context, *memory.Cluster, *unstructured.Unstructured) error {
		return func(ctx context.Context, c *memory.Cluster, _ *unstructured.Unstructured) error {
			_, err := c.Create(ctx, object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: example, `+metadata+`}}`), clusterapi.CreateOptions{})
			return err
		}
	}
	for _, tc := range []struct {
		name  string
		write func(context.Context, *memory.Cluster, *unstructured.Unstructured) error
		want  func(error) bool
	}{
		{"Create without a name", create(""), apierrors.IsInvalid},
		{"Create with a resourceVersion", create(`name: new, resourceVersion: "1"`), apierrors.IsBadRequest},
		{"Apply of an old resourceVersion", apply(`name: config, resourceVersion: "0"`), apierrors.IsConflict},
		{"Apply of another UID", apply(`name: config, uid: other`), apierrors.IsConflict},
		{"Apply of a UID that is not there", apply(`name: new, uid: other`), apierrors.IsConflict},
		{"Apply of managedFields", apply(`name: config, managedFields: []`), apierrors.IsBadRequest},
		{"Apply without a name", apply(""), apierrors.IsInvalid},
		{"Update of another UID", update(func(u *unstructured.Unstructured) { u.SetUID("other") }), apierrors.IsConflict},
		{"Update of an old resourceVersion", update(func(u *unstructured.Unstructured) { u.SetResourceVersion("0") }), apierrors.IsConflict},
		{"Update of a missing object", update(func(u *unstructured.Unstructured) { u.SetName("new") }), apierrors.IsNotFound},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := memory.New(memory.Options{})
			mustApply(t, c, benchDeployment)
			u := mustApply(t, c, benchConfigMap)
			checktest.ErrorBy(t, tc.want, tc.write(t.Context(), c, u.DeepCopy()))
			list := checktest.Must(c.List(t.Context(), cms, clusterapi.ListOptions{}))
			checktest.SameIn(t, "stored (-before +after)", []unstructured.Unstructured{*u}, list.Items)
		})
	}
	c := memory.New(memory.Options{})
	checktest.Good(t, apply(`name: new, resourceVersion: "1"`)(t.Context(), c, nil))
}

func TestMetadataOfTheServer(t *testing.T) {
	c := memory.New(memory.Options{})
	u := mustApply(t, c, benchDeployment)
	in := u.DeepCopy()
	in.SetGeneration(9)
	in.SetCreationTimestamp(metav1.NewTime(time.Unix(0, 0)))
	in.SetSelfLink("/x")
	now := metav1.Now()
	in.SetDeletionTimestamp(&now)
	got, err := c.Update(t.Context(), in, clusterapi.UpdateOptions{})
	checktest.OK(t, err)
	checktest.SameIn(t, "an update changed what only the server changes (-before +after)", u.Object, got.Object)
	in = got.DeepCopy()
	unstructured.RemoveNestedField(in.Object, "metadata", "managedFields")
	if got, err = c.Update(t.Context(), in, clusterapi.UpdateOptions{}); err != nil || len(got.GetManagedFields()) != 1 {
		t.Errorf("an update without managedFields: %v of %v, want those that were stored", err, owners(got))
	}
	in = got.DeepCopy()
	in.SetManagedFields([]metav1.ManagedFieldsEntry{{}})
	if got, err = c.Update(t.Context(), in, clusterapi.UpdateOptions{}); err != nil || len(got.GetManagedFields()) != 0 {
		t.Errorf("an update with an empty entry in managedFields: %v, %v are left, want none", err, owners(got))
	}
}

func TestInitialStatus(t *testing.T) {
	c := memory.New(memory.Options{})
	for _, tc := range []struct {
		text string
		path []string
		want any
	}{
		{`{apiVersion: v1, kind: Namespace, metadata: {name: x}, status: {phase: Terminating}}`, []string{"status", "phase"}, "Active"},
		{`{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: ns}, spec: {containers: [{name: c, image: i}]}, status: {phase: Running}}`, []string{"status", "phase"}, "Pending"},
		{`{apiVersion: v1, kind: Node, metadata: {name: x}, status: {nodeInfo: {kubeletVersion: v1}}}`, []string{"status", "nodeInfo", "kubeletVersion"}, "v1"},
		{`{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, namespace: ns}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}, status: {replicas: 1}}`, []string{"status", "replicas"}, nil},
	} {
		u := checktest.Must(c.Create(t.Context(), object(t, tc.text), clusterapi.CreateOptions{}))
		checktest.Equal(t, tc.want, at(u, tc.path...), "%s: %v", u.GetKind(), tc.path)
	}
}

func TestApplyOfNulls(t *testing.T) {
	c := memory.New(memory.Options{})
	const text = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, namespace: ns, labels: null, annotations: {a: b}}, spec: {replicas: null, paused: true, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`
	u := mustApply(t, c, text)
	spec, _ := at(u, "spec").(map[string]any)
	checktest.FailIf(t, spec["paused"] != true || len(spec) != 3, "spec: %v, want no replicas", spec)
	u.Object["status"] = map[string]any{"replicas": int64(1)}
	u = checktest.Must(c.UpdateStatus(t.Context(), u, clusterapi.UpdateOptions{}))
	again := mustApply(t, c, text)
	checktest.FailIf(t, again.GetResourceVersion() != u.GetResourceVersion(), "the same Apply again is a change")
}

// Of a custom resource only the nulls stay that its definition allows.
func TestNullsOfCustomResources(t *testing.T) {
	c := memory.New(memory.Options{})
	mustApply(t, c, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: &fields
              plain: {type: string}
              nullable: {type: string, nullable: true}
              map: {type: object, additionalProperties: {type: string}}
              nullableMap: {type: object, additionalProperties: {type: string, nullable: true}}
              list: {type: array, items: {type: object, properties: {plain: {type: string}, nullable: {type: string, nullable: true}}}}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status: {type: object, properties: *fields}
`)
	const before = `{plain: null, nullable: null, map: {a: null}, nullableMap: {a: null}, list: [{plain: null, nullable: null}, {plain: x}], free: {a: null}}`
	want := object(t, `{kind: x, f: {nullable: null, map: {}, nullableMap: {a: null}, list: [{nullable: null}, {plain: x}], free: {a: null}}}`).Object["f"]
	u := object(t, `{apiVersion: example.com/v1, kind: Widget, metadata: {name: w, namespace: ns}, spec: `+before+`}`)
	created := checktest.Must(c.Create(t.Context(), u, clusterapi.CreateOptions{}))
	checktest.SameIn(t, "Create: spec", want, created.Object["spec"])
	u.SetResourceVersion(created.GetResourceVersion())
	if updated, err := c.Update(t.Context(), u, clusterapi.UpdateOptions{}); err != nil || updated.GetResourceVersion() != created.GetResourceVersion() {
		t.Errorf("Update with the same nulls: %v, moved the resourceVersion to %s", err, updated.GetResourceVersion())
	}
	u.Object["status"] = u.Object["spec"]
	updated := checktest.Must(c.UpdateStatus(t.Context(), u, clusterapi.UpdateOptions{}))
	checktest.SameIn(t, "UpdateStatus: status", want, updated.Object["status"])
	u = object(t, `{apiVersion: example.com/v1, kind: Widget, metadata: {name: applied, namespace: ns}, spec: `+before+`}`)
	applied := checktest.Must(c.Apply(t.Context(), u, manager))
	checktest.SameIn(t, "Apply: spec", want, applied.Object["spec"])
}

// An Apply that is equal to the last one is judged again when the schema has
// changed.
func TestEqualApplyUnderAnotherSchema(t *testing.T) {
	c := memory.New(memory.Options{})
	mustApply(t, c, benchDefinition)
	mustApply(t, c, benchWidget)
	mustApply(t, c, strings.Replace(benchDefinition, "mode: {type: string}", "fashion: {type: string}", 1))
	checktest.ErrorHas(t, ".spec.mode", checktest.Err(c.Apply(t.Context(), object(t, benchWidget), manager)))
}

func TestServedVersions(t *testing.T) {
	c := memory.New(memory.Options{})
	mustApply(t, c, benchDefinition)
	mustApply(t, c, benchWidget)
	mustApply(t, c, strings.Replace(benchDefinition, "served: true", "served: false", 1))
	checktest.Fails(t, checktest.Err(
		c.List(t.Context(), widgets, clusterapi.ListOptions{})), "a version that is not served any more was listed")
}

func TestMarkedForDeletion(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	c := memory.New(memory.Options{Clock: clock, GracefulPods: true})
	d := object(t, benchDeployment)
	d.SetFinalizers([]string{"a/b"})
	checktest.Must(c.Apply(t.Context(), d, manager))
	mustLoad(t, c, `{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: example}, spec: {nodeName: a, terminationGracePeriodSeconds: 60}}`)
	for _, tc := range []struct {
		gvk        schema.GroupVersionKind
		name       string
		generation int64
		at         string
		grace      int64
	}{
		{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "operator", 2, "2030-01-01T00:00:00Z", 0},
		{podGVK, "p", 2, "2030-01-01T00:01:00Z", 60},
	} {
		checktest.OK(t, c.Delete(t.Context(), tc.gvk, clusterapi.Key("example", tc.name), clusterapi.DeleteOptions{}))
		u := mustGet(t, c, tc.gvk, "example", tc.name)
		want := []any{tc.generation, tc.at, tc.grace}
		got := []any{u.GetGeneration(), at(u, "metadata", "deletionTimestamp"), at(u, "metadata", "deletionGracePeriodSeconds")}
		checktest.SameIn(t, fmt.Sprintf("%s: generation, deletionTimestamp, grace", tc.name), want, got)
	}
}

// A namespace with a finalizer of its own goes when both that and its contents
// are gone, in either order.
func TestHeldNamespace(t *testing.T) {
	namespaces := schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	for _, contentFirst := range []bool{false, true} {
		c := memory.New(memory.Options{})
		mustApply(t, c, `{apiVersion: v1, kind: Namespace, metadata: {name: ns, finalizers: [a/b]}}`)
		mustApply(t, c, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns, finalizers: [a/b]}}`)
		checktest.OK(t, c.Delete(t.Context(), namespaces, clusterapi.Key("", "ns"), clusterapi.DeleteOptions{}))
		release := func(gvk schema.GroupVersionKind, ns, name string) {
			u := mustGet(t, c, gvk, ns, name)
			u.SetFinalizers(nil)
			checktest.Must(c.Update(t.Context(), u, clusterapi.UpdateOptions{}))
		}
		steps := []func(){func() { release(namespaces, "", "ns") }, func() { release(cms, "ns", "c") }}
		if contentFirst {
			steps[0], steps[1] = steps[1], steps[0]
		}
		steps[0]()
		mustGet(t, c, namespaces, "", "ns")
		steps[1]()
		if _, err := c.Get(t.Context(), namespaces, clusterapi.Key("", "ns")); !apierrors.IsNotFound(err) {
			t.Errorf("content first: %t: the namespace is still there: %v", contentFirst, err)
		}
	}
}

func TestDeletedEventIsNewer(t *testing.T) {
	c := memory.New(memory.Options{})
	u := mustApply(t, c, benchConfigMap)
	for e, err := range c.Watch(t.Context(), cms, clusterapi.ListOptions{}) {
		checktest.OK(t, err)
		switch e.Type {
		case clusterapi.Synced:
			checktest.OK(t, c.Delete(t.Context(), cms, clusterapi.KeyOf(u), clusterapi.DeleteOptions{}))
			continue
		case clusterapi.Added:
			continue
		}
		want := u.DeepCopy()
		want.SetResourceVersion("2")
		diff := cmp.Diff(want.Object, e.Object.Object)
		checktest.FailIf(t, diff != "" || e.Type != clusterapi.Deleted, "%s (-want +got):\n%s", e.Type, diff)
		break
	}
}

// No verb reaches the interceptor, or through it the store, once its context
// has ended.
func TestEndedContext(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var ctx context.Context
	calls := 0
	c := memory.New(memory.Options{Intercept: func(_ context.Context, _ memory.Call, do func(context.Context) error) error {
		calls++
		return do(ctx)
	}})
	verbs := func(ctx context.Context) []error {
		u := object(t, benchConfigMap)
		_, get := c.Get(ctx, cms, clusterapi.KeyOf(u))
		_, list := c.List(ctx, cms, clusterapi.ListOptions{})
		_, create := c.Create(ctx, u, clusterapi.CreateOptions{})
		_, apply := c.Apply(ctx, u, manager)
		_, update := c.Update(ctx, u, clusterapi.UpdateOptions{})
		_, status := c.UpdateStatus(ctx, u, clusterapi.UpdateOptions{})
		return []error{get, list, create, apply, update, status,
			c.Delete(ctx, cms, clusterapi.KeyOf(u), clusterapi.DeleteOptions{}), c.Evict(ctx, clusterapi.KeyOf(u), clusterapi.EvictOptions{})}
	}
	for _, err := range verbs(ended) {
		checktest.FailIf(t, err != context.Canceled, "got %v, want the context's error", err)
	}
	checktest.FailIf(t, calls != 0, "the interceptor was called %d times", calls)
	ctx = ended // it ends while the interceptor has the call
	for _, err := range verbs(t.Context()) {
		checktest.FailIf(t, err != context.Canceled, "got %v, want the context's error", err)
	}
	for e, err := range c.Watch(ended, cms, clusterapi.ListOptions{}) {
		t.Errorf("got %v, %v from a watch whose context had ended", e, err)
	}
}

// A watch yields nothing more once its context has ended, whatever waits.
func TestWatchEndsAtOnce(t *testing.T) {
	for _, tc := range []struct {
		name string
		at   int // the event at which the context ends
	}{
		{"with the first that existed", 1},
		{"with the last that existed", 2},
		{"at Synced", 3},
		{"with the first change", 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := memory.New(memory.Options{})
			apply := func(names ...string) {
				for _, name := range names {
					mustApply(t, c, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ns, name: `+name+`}}`)
				}
			}
			apply("a", "b")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			events := 0
			for e, err := range c.Watch(ctx, cms, clusterapi.ListOptions{}) {
				checktest.OK(t, err)
				if events++; events == tc.at {
					cancel()
				}
				if e.Type == clusterapi.Synced {
					apply("c", "d")
				}
			}
			checktest.Equal(t, tc.at, events, "events")
		})
	}
	t.Run("in the interceptor", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := memory.New(memory.Options{Intercept: func(context.Context, memory.Call, func(context.Context) error) error {
			cancel()
			return context.Canceled
		}})
		for e, err := range c.Watch(ctx, cms, clusterapi.ListOptions{}) {
			t.Errorf("got %v, %v, want nothing", e, err)
		}
	})
}
