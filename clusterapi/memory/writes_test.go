package memory_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// owners lists managedFields as "manager operation subresource time".
func owners(u *unstructured.Unstructured) []string {
	var out []string
	for _, m := range u.GetManagedFields() {
		out = append(out, m.Manager+" "+string(m.Operation)+" "+m.Subresource+" "+m.Time.UTC().Format(time.TimeOnly))
	}
	return out
}

func TestTimesComeFromTheClock(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2030, 1, 1, 10, 0, 0, 500, time.UTC))
	c := memory.New(memory.Options{Clock: clock})
	u := mustApply(t, c, benchDeployment)
	got := u.GetCreationTimestamp().UTC()
	checktest.FailIf(t, !got.Equal(time.Date(2030, 1, 1, 10, 0, 0, 0, time.UTC)), "creationTimestamp %s", got)
	clock.SetTime(clock.Now().Add(time.Hour))
	checktest.OK(t, unstructured.SetNestedField(u.Object, int64(1), "status", "replicas"))
	u, err := c.UpdateStatus(t.Context(), u, clusterapi.UpdateOptions{FieldManager: "controller"})
	checktest.OK(t, err)
	clock.SetTime(clock.Now().Add(time.Hour))
	u.SetLabels(map[string]string{"x": "y"})
	if u, err = c.Update(t.Context(), u, clusterapi.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	want := []string{"test Apply  10:00:00", "controller Update status 11:00:00", "clusterupdate Update  12:00:00"}
	checktest.SameIn(t, "managedFields", want, owners(u))
	clock.SetTime(clock.Now().Add(time.Hour))
	again := mustApply(t, c, benchDeployment) // takes the labels over
	checktest.Equal(t, "test Apply  13:00:00", owners(again)[0], "after an Apply that changed something: %v",
		owners(again))
}

func TestNoChangeMovesNothing(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	c := memory.New(memory.Options{Clock: clock})
	u := mustApply(t, c, benchDeployment)
	other := `{apiVersion: apps/v1, kind: Deployment, metadata: {name: operator, namespace: example, annotations: {mine: x}}}`
	apply := func(manager, text string) string {
		u := checktest.Get(c.Apply(t.Context(), object(t, text), clusterapi.ApplyOptions{FieldManager: manager}))(t)
		return u.GetResourceVersion()
	}
	revision := apply("other", other)
	checktest.FatalIf(t, revision == u.GetResourceVersion(), "a change did not move the resourceVersion")
	for range 2 {
		clock.SetTime(clock.Now().Add(time.Minute))
		for manager, text := range map[string]string{"other": other, "test": benchDeployment} {
			if got := apply(manager, text); got != revision {
				t.Errorf("an Apply by %s moved the resourceVersion from %s to %s", manager, revision, got)
			}
		}
	}
	u = mustGet(t, c, u.GroupVersionKind(), "example", "operator")
	for verb, write := range map[string]func(context.Context, *unstructured.Unstructured, clusterapi.UpdateOptions) (*unstructured.Unstructured, error){
		"Update": c.Update, "UpdateStatus": c.UpdateStatus,
	} {
		got := checktest.Must(write(t.Context(), u, clusterapi.UpdateOptions{FieldManager: "third"}))
		checktest.SameIn(t, fmt.Sprintf("%s without a change (-before +after)", verb), u.Object, got.Object)
	}
	// A status write between two equal applies does not make the second one a
	// change, and does not hide a real one.
	checktest.OK(t, unstructured.SetNestedField(u.Object, int64(1), "status", "replicas"))
	u, err := c.UpdateStatus(t.Context(), u, clusterapi.UpdateOptions{})
	checktest.OK(t, err)
	if got := apply("test", benchDeployment); got != u.GetResourceVersion() {
		t.Errorf("an Apply after a status write moved the resourceVersion from %s to %s", u.GetResourceVersion(), got)
	}
	checktest.OK(t, unstructured.SetNestedField(u.Object, int64(7), "spec", "replicas"))
	if _, err = c.Update(t.Context(), u, clusterapi.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	n, _, _ := unstructured.NestedInt64(mustApply(t, c, benchDeployment).Object, "spec", "replicas")
	checktest.FailIf(t, n != 1, "an Apply after another writer left replicas at %d", n)
}

func TestDeterministic(t *testing.T) {
	run := func() []any {
		c := memory.New(memory.Options{Clock: clocktesting.NewFakePassiveClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))})
		var out []any
		for _, text := range []string{benchDefinition, benchWidget, benchDeployment, benchConfigMap} {
			out = append(out, mustApply(t, c, text).Object)
		}
		generated := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"generateName": "p-", "namespace": "ns"},
			"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}}}}
		for range 2 {
			u := checktest.Must(c.Create(t.Context(), generated, clusterapi.CreateOptions{}))
			out = append(out, u.Object)
		}
		return out
	}
	first := run()
	checktest.SameIn(t, "two equal runs differ", first, run())
	seen := map[string]bool{}
	for _, o := range first {
		m := o.(map[string]any)["metadata"].(map[string]any)
		for _, id := range []string{m["uid"].(string), m["resourceVersion"].(string), m["name"].(string) + "/name"} {
			checktest.FailIf(t, seen[id], "%s occurs twice", id)
			seen[id] = true
		}
	}
}

func TestIntercept(t *testing.T) {
	boom := errors.New("boom")
	var calls []string
	mode := ""
	c := memory.New(memory.Options{Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
		calls = append(calls, call.Verb+" "+call.GVK.Kind+" "+call.Key.String())
		switch mode {
		case "before":
			return boom
		case "after":
			return errors.Join(do(ctx), boom)
		case "swallow":
			return nil
		}
		return do(ctx)
	}})
	ctx := t.Context()
	gvk := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	key := clusterapi.Key("example", "config")
	mode = "before"
	if _, err := c.Apply(ctx, object(t, benchConfigMap), manager); err != boom {
		t.Errorf("got %v, want the interceptor's error", err)
	}
	mode = ""
	checktest.Fails(t, checktest.Err(c.Get(ctx, gvk, key)), "the failed Apply took effect")
	mode = "after"
	checktest.ErrorIs(t, boom, checktest.Err(c.Apply(ctx, object(t, benchConfigMap), manager)))
	mode = ""
	u := checktest.Get(c.Get(ctx, gvk, key))(t)
	mode = "swallow"
	if u, err := c.Get(ctx, gvk, key); u != nil || err == nil {
		t.Errorf("got %v, %v from an interceptor that does nothing", u, err)
	}
	mode, calls = "", nil
	_, _ = c.Create(ctx, u, clusterapi.CreateOptions{})
	_, _ = c.Update(ctx, u, clusterapi.UpdateOptions{})
	_, _ = c.UpdateStatus(ctx, u, clusterapi.UpdateOptions{})
	_, _ = c.List(ctx, gvk, clusterapi.ListOptions{Namespace: "example"})
	_ = c.Evict(ctx, key, clusterapi.EvictOptions{})
	_ = c.Delete(ctx, gvk, key, clusterapi.DeleteOptions{})
	for range c.Watch(ctx, gvk, clusterapi.ListOptions{}) {
		break
	}
	want := []string{"Create ConfigMap example/config", "Update ConfigMap example/config", "UpdateStatus ConfigMap example/config",
		"List ConfigMap example/", "Evict Pod example/config", "Delete ConfigMap example/config", "Watch ConfigMap /"}
	checktest.SameIn(t, "calls", want, calls)
}

func TestValidateHook(t *testing.T) {
	boom := errors.New("boom")
	var refuse bool
	var old, new *unstructured.Unstructured
	c := memory.New(memory.Options{Validate: func(o, n *unstructured.Unstructured) error {
		old, new = o, n
		if refuse {
			return boom
		}
		return nil
	}})
	mustApply(t, c, benchConfigMap)
	checktest.FailIf(t, old != nil || new.GetName() != "config", "for a new object: %v, %v", old, new)
	refuse = true
	u := object(t, benchConfigMap)
	u.Object["data"] = map[string]any{"changed": "x"}
	_, err := c.Apply(t.Context(), u, manager)
	checktest.FailIf(t, err != boom, "got %v, want the hook's error", err)
	checktest.FailIf(t, old == nil, "for a changed object old is nil")
	got := mustGet(t, c, u.GroupVersionKind(), "example", "config")
	checktest.SameIn(t, "the refused write was stored", object(t, benchConfigMap).Object["data"], got.Object["data"])
}

func TestLoad(t *testing.T) {
	c := memory.New(memory.Options{})
	err := c.Load(object(t, `
apiVersion: v1
kind: List
items:
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns, uid: given, generation: 7, resourceVersion: "99999", creationTimestamp: "2020-01-01T00:00:00Z"}, spec: {replicas: 1, unknown: x}, status: {replicas: 1}}
- {apiVersion: apps/v1, kind: Deployment, metadata: {namespace: ns}}
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: e, namespace: ns, uid: given}}
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}}
`))
	checktest.FatalIf(t, err == nil, "three items that cannot be stored were no error")
	gvk := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	u := mustGet(t, c, gvk, "ns", "d")
	want := object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns, uid: given, generation: 7, resourceVersion: "1", creationTimestamp: "2020-01-01T00:00:00Z"}, spec: {replicas: 1, unknown: x}, status: {replicas: 1}}`)
	checktest.SameIn(t, "stored", want.Object, u.Object)
	list, err := c.List(t.Context(), gvk, clusterapi.ListOptions{})
	checktest.FailIf(t, err != nil || len(list.Items) != 1,
		"%d objects are stored (%v), want 1", len(list.Items), err)
	for _, write := range []func() (*unstructured.Unstructured, error){
		func() (*unstructured.Unstructured, error) {
			return c.UpdateStatus(t.Context(), u, clusterapi.UpdateOptions{})
		},
		func() (*unstructured.Unstructured, error) {
			return c.Apply(t.Context(), object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}, spec: {replicas: 3}}`), manager)
		},
	} {
		if u, err = write(); err != nil {
			t.Fatal(err)
		}
	}
	_, ok, _ := unstructured.NestedString(u.Object, "spec", "unknown")
	checktest.FailIf(t, ok, "a field that the schema lacks survives a write")
	checktest.Equal(t, 8, u.GetGeneration(), "generation")
}

// UIDs stay unique when the loaded objects are those of another cluster in
// memory, whose counter began alike.
func TestLoadedUIDsAreNotGivenAgain(t *testing.T) {
	first := mustApply(t, memory.New(memory.Options{}), benchConfigMap)
	c := memory.New(memory.Options{})
	checktest.OK(t, c.Load(first))
	if second := mustApply(t, c, benchDeployment); second.GetUID() == first.GetUID() {
		t.Errorf("a new object has UID %s, that of one which was loaded", second.GetUID())
	}
}

func TestFinalizersOfAnObjectThatGoes(t *testing.T) {
	c := memory.New(memory.Options{})
	u := mustApply(t, c, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns, finalizers: [a/b]}}`)
	key := clusterapi.KeyOf(u)
	checktest.OK(t, c.Delete(t.Context(), u.GroupVersionKind(), key, clusterapi.DeleteOptions{}))
	u = mustGet(t, c, u.GroupVersionKind(), "ns", "c")
	u.SetFinalizers([]string{"a/b", "c/d"})
	checktest.Fails(t, checktest.Err(
		c.Update(t.Context(), u, clusterapi.UpdateOptions{})),
		"a finalizer was added to an object that is being deleted")
	checktest.Fails(t,
		c.Delete(t.Context(), u.GroupVersionKind(), key,
			clusterapi.DeleteOptions{Propagation: metav1.DeletionPropagation("Sideways")}), "an unknown propagation policy was taken")
	checktest.OK(t, c.Remove(u.GroupVersionKind(), key))
	checktest.Fails(t, c.Remove(u.GroupVersionKind(), key), "it is still there")
}
