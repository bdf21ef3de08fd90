package clusterapitest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest/internal/probe"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func testApply(t *testing.T, s *suite) {
	t.Run("Creates", func(t *testing.T) {
		got := s.apply(t, "first", s.configMap(t, "apply-create"))
		wantAt(t, got, map[string]any{"a": "1"}, "data")
		checktest.FailIf(t, got.GetUID() == "", "the created object has no UID")
		wantSame(t, "what Apply returned", got, s.get(t, got))
	})
	t.Run("WithoutFieldManager", func(t *testing.T) {
		u := s.configMap(t, "apply-nobody")
		if _, err := s.api.Apply(s.ctx, u, clusterapi.ApplyOptions{}); !apierrors.IsBadRequest(err) && !apierrors.IsInvalid(err) {
			t.Errorf("got %v, want an error that IsBadRequest or IsInvalid recognises", err)
		}
		checktest.FailIf(t, !s.gone(t, u), "it created the object, too")
	})
	t.Run("LeavesOtherFields", func(t *testing.T) {
		u := s.create(t, s.configMap(t, "apply-others"))
		got := s.apply(t, "first", object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: apply-others, namespace: %s}, data: {b: "2"}}`, s.ns))
		wantAt(t, got, map[string]any{"a": "1", "b": "2"}, "data")
		checktest.FailIf(t, got.GetUID() != u.GetUID(), "it is another object now")
	})
	t.Run("GivesUp", func(t *testing.T) {
		cm := func(data string) *unstructured.Unstructured {
			return object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: apply-up, namespace: %s}, data: %s}`, s.ns, data)
		}
		s.apply(t, "first", cm(`{a: "1", shared: "1", mine: "1"}`))
		s.apply(t, "second", cm(`{shared: "1"}`))
		got := s.apply(t, "first", cm(`{a: "1"}`))
		wantAt(t, got, map[string]any{"a": "1", "shared": "1"}, "data")
	})
	t.Run("Metadata", func(t *testing.T) { testApplyMetadata(t, s) })
	t.Run("Conditions", func(t *testing.T) {
		u := s.create(t, s.configMap(t, "apply-if"))
		for what, change := range map[string]func(*unstructured.Unstructured){
			"UID": func(u *unstructured.Unstructured) { u.SetUID(probe.OtherUID) },
			"resourceVersion": func(u *unstructured.Unstructured) {
				u.SetResourceVersion(s.stale(t))
			},
		} {
			in := s.configMap(t, "apply-if")
			set(t, in, "2", "data", "a")
			change(in)
			_, err := s.api.Apply(s.ctx, in, clusterapi.ApplyOptions{FieldManager: "first"})
			if !apierrors.IsConflict(err) && (what != "UID" || !apierrors.IsInvalid(err)) { // which is what servers say of a UID
				t.Errorf("of another %s: got %v, want an error that IsConflict recognises", what, err)
			}
		}
		wantSame(t, "after applies that failed", u, s.get(t, u))
	})
	t.Run("NoChangeOfTwoManagers", func(t *testing.T) {
		// Each manager's entry in managedFields has a time in seconds, so that
		// the order of the entries may turn.
		cm := func(data string) *unstructured.Unstructured {
			return object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: apply-two, namespace: %s}, data: %s}`, s.ns, data)
		}
		s.apply(t, "first", cm(`{a: "1"}`))
		before := s.apply(t, "second", cm(`{b: "2"}`)).GetResourceVersion()
		for range 2 {
			time.Sleep(1100 * time.Millisecond)
			for manager, data := range map[string]string{"first": `{a: "1"}`, "second": `{b: "2"}`} {
				if again := s.apply(t, manager, cm(data)).GetResourceVersion(); again != before {
					t.Errorf("%s: the resourceVersion moved from %s to %s without a change", manager, before, again)
					before = again
				}
			}
		}
	})
	t.Run("NoChangeASecondLater", func(t *testing.T) {
		objects := []*unstructured.Unstructured{s.deployment(t, "apply-same"), s.widget(t, "apply-same"), s.configMap(t, "apply-same")}
		var revisions []string
		for _, u := range objects {
			revisions = append(revisions, s.apply(t, "first", u).GetResourceVersion())
		}
		time.Sleep(1100 * time.Millisecond) // times in managedFields have seconds
		for i, u := range objects {
			if again := s.apply(t, "first", u).GetResourceVersion(); again != revisions[i] {
				t.Errorf("%s: the resourceVersion moved from %s to %s without a change", u.GetKind(), revisions[i], again)
			}
		}
	})
	t.Run("TakesOverByForce", func(t *testing.T) {
		replicas := func(n int) *unstructured.Unstructured {
			return object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: apply-force, namespace: %s}, spec: {replicas: %d}}`, s.ns, n)
		}
		full := s.deployment(t, "apply-force")
		s.apply(t, "first", full)
		wantAt(t, s.apply(t, "second", replicas(4)), int64(4), "spec", "replicas")
		wantAt(t, s.apply(t, "first", full), int64(1), "spec", "replicas")
		none := replicas(0)
		delete(none.Object, "spec")
		wantAt(t, s.apply(t, "second", none), int64(1), "spec", "replicas")
	})
	t.Run("KeyedList", func(t *testing.T) { testKeyedList(t, s) })
	t.Run("AtomicList", func(t *testing.T) {
		u := s.deployment(t, "apply-atomic")
		tolerate := func(key string) {
			set(t, u, []any{map[string]any{"key": key, "operator": "Exists"}}, "spec", "template", "spec", "tolerations")
		}
		tolerate("one")
		s.apply(t, "first", u)
		tolerate("two")
		got := s.apply(t, "second", u)
		wantAt(t, got, []any{map[string]any{"key": "two", "operator": "Exists"}}, "spec", "template", "spec", "tolerations")
	})
	t.Run("UnknownField", func(t *testing.T) {
		deep := s.deployment(t, "apply-unknown")
		containers, _, _ := unstructured.NestedSlice(deep.Object, "spec", "template", "spec", "containers")
		containers[0].(map[string]any)["bogusField"] = "x"
		set(t, deep, containers, "spec", "template", "spec", "containers")
		custom := s.widget(t, "apply-unknown")
		set(t, custom, "x", "spec", "bogusField")
		for _, u := range []*unstructured.Unstructured{deep, custom} {
			_, err := s.api.Apply(s.ctx, u, clusterapi.ApplyOptions{FieldManager: "first"})
			if err == nil {
				t.Errorf("%s: a field that the schema lacks went through", u.GetKind())
			} else if !strings.Contains(err.Error(), "bogusField") {
				t.Errorf("%s: the error does not name the field: %v", u.GetKind(), err)
			}
			checktest.FailIf(t, !s.gone(t, u), "%s: the object was created", u.GetKind())
		}
	})
	t.Run("TakesNoStatus", func(t *testing.T) {
		for _, in := range []*unstructured.Unstructured{s.deployment(t, "apply-no-status"), s.widget(t, "apply-no-status")} {
			path, value := []string{"status", "replicas"}, any(int64(7))
			if in.GetKind() == "Widget" {
				path, value = []string{"status", "phase"}, "Early"
			}
			set(t, in, value, path...)
			if got := s.apply(t, "first", in); probe.At(got, path...) == value || probe.At(s.get(t, got), path...) == value {
				t.Errorf("Apply stored the status of a %s", in.GetKind())
			}
		}
	})
	t.Run("LeavesStatus", func(t *testing.T) {
		u := s.create(t, s.deployment(t, "apply-status"))
		set(t, u, int64(1), "status", "replicas")
		s.updateStatus(t, u)
		in := s.deployment(t, "apply-status")
		set(t, in, int64(3), "spec", "replicas")
		got := s.apply(t, "first", in)
		wantAt(t, got, int64(1), "status", "replicas")
		wantAt(t, got, int64(3), "spec", "replicas")
	})
}

// stale returns a resourceVersion that was an object's, and is not any longer.
func (s *suite) stale(t *testing.T) string {
	t.Helper()
	s.names++
	u := s.create(t, s.configMap(t, fmt.Sprintf("stale-%d", s.names)))
	defer s.discard(t, configMaps, s.ns, u.GetName())
	return u.GetResourceVersion()
}

// testApplyMetadata has two managers with labels, annotations and finalizers.
func testApplyMetadata(t *testing.T, s *suite) {
	cm := func(metadata string) *unstructured.Unstructured {
		return object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: apply-metadata, namespace: %s%s}}`, s.ns, metadata)
	}
	got := s.apply(t, "first", cm(`, labels: {a: "1", shared: "1"}, annotations: {a: "1"}, finalizers: [clusterupdate.github.io/one]`))
	defer s.release(t, got)
	wantAt(t, got, map[string]any{"a": "1", "shared": "1"}, "metadata", "labels")
	wantAt(t, got, map[string]any{"a": "1"}, "metadata", "annotations")
	wantAt(t, got, []any{"clusterupdate.github.io/one"}, "metadata", "finalizers")
	got = s.apply(t, "second", cm(`, labels: {b: "2", shared: "2"}, annotations: {b: "2"}, finalizers: [clusterupdate.github.io/two]`))
	wantAt(t, got, map[string]any{"a": "1", "b": "2", "shared": "2"}, "metadata", "labels")
	wantAt(t, got, map[string]any{"a": "1", "b": "2"}, "metadata", "annotations")
	f := got.GetFinalizers()
	checktest.FailIf(t, len(f) != 2, "finalizers %v, want those of both managers", f)
	got = s.apply(t, "first", cm(``))
	wantAt(t, got, map[string]any{"b": "2", "shared": "2"}, "metadata", "labels")
	wantAt(t, got, map[string]any{"b": "2"}, "metadata", "annotations")
	wantAt(t, got, []any{"clusterupdate.github.io/two"}, "metadata", "finalizers")
	wantSame(t, "what Apply returned", got, s.get(t, got))
}

// testFieldManager: each verb writes in the name that it was given.
func testFieldManager(t *testing.T, s *suite) {
	owner := func(t *testing.T, u *unstructured.Unstructured, manager, operation, subresource, field string) {
		t.Helper()
		for _, e := range u.GetManagedFields() {
			if e.Manager == manager && string(e.Operation) == operation && e.Subresource == subresource &&
				e.FieldsV1 != nil && strings.Contains(e.FieldsV1.GetRawString(), `"f:`+field+`"`) {
				return
			}
		}
		t.Errorf("%s: managedFields do not say that %s owns %s by %s: %s", u.GetKind(), manager, field, operation, text(probe.At(u, "metadata", "managedFields")))
	}
	for _, tc := range []struct{ name, given, want string }{{"Named", "somebody", "somebody"}, {"Default", "", clusterapi.ManagerDefault}} {
		t.Run(tc.name, func(t *testing.T) {
			for _, in := range []*unstructured.Unstructured{s.deployment(t, "manager-"+strings.ToLower(tc.name)), s.widget(t, "manager-"+strings.ToLower(tc.name))} {
				field, status := "replicas", map[string]any{"replicas": int64(1)}
				if in.GetKind() == "Widget" {
					field, status = "size", map[string]any{"phase": "Ready"}
				}
				u := s.must(t, probe.By(tc.given, "Create", in))
				owner(t, u, tc.want, "Update", "", field)
				owner(t, s.get(t, u), tc.want, "Update", "", field)
				given := tc.given
				if given != "" {
					given += "-else"
				}
				set(t, u, "x", "metadata", "annotations", "changed")
				u = s.must(t, probe.By(given, "Update", u))
				owner(t, u, strings.Replace(tc.want, tc.given, given, 1), "Update", "", "changed")
				u.Object["status"] = status
				u = s.must(t, probe.By(tc.given, "UpdateStatus", u))
				for name := range status {
					owner(t, u, tc.want, "Update", "status", name)
				}
			}
		})
	}
	t.Run("Apply", func(t *testing.T) {
		u := s.apply(t, "somebody", s.configMap(t, "manager-apply"))
		owner(t, u, "somebody", "Apply", "", "a")
		owner(t, s.get(t, u), "somebody", "Apply", "", "a")
	})
	t.Run("Moved", func(t *testing.T) {
		testMoved(t, s, s.deployment(t, "manager-moved"), map[string]any{"replicas": int64(1)})
		testMoved(t, s, s.widget(t, "manager-moved"), map[string]any{"phase": "Ready"})
	})
}

// testMoved makes fields that one manager has written those of another's apply, by
// an update of managedFields: nothing else changes, and the update owns nothing.
func testMoved(t *testing.T, s *suite, in *unstructured.Unstructured, status map[string]any) {
	t.Helper()
	applied := in.DeepCopy()
	set(t, in, "x", "metadata", "annotations", "dropped")
	u := s.must(t, probe.By("before", "Create", in))
	u.Object["status"] = status
	u = s.must(t, probe.By("before", "UpdateStatus", u))

	entries := u.GetManagedFields()
	for i := range entries {
		if entries[i].Subresource == "" {
			entries[i].Manager, entries[i].Operation = "after", metav1.ManagedFieldsOperationApply
		}
	}
	moved := u.DeepCopy()
	moved.SetManagedFields(entries)
	got := s.update(t, moved)
	names := func(u *unstructured.Unstructured) string {
		var out []string
		for _, e := range u.GetManagedFields() {
			out = append(out, strings.TrimSpace(e.Manager+" "+string(e.Operation)+" "+e.Subresource))
		}
		slices.Sort(out)
		return strings.Join(out, ", ")
	}
	checktest.Equal(t, "after Apply, before Update status", names(got), "%s: managedFields are of", u.GetKind())
	if got.GetGeneration() != u.GetGeneration() || got.GetResourceVersion() == u.GetResourceVersion() {
		t.Errorf("%s: generation %d became %d, resourceVersion %s became %s", u.GetKind(), u.GetGeneration(), got.GetGeneration(), u.GetResourceVersion(), got.GetResourceVersion())
	}
	if _, err := s.api.Update(s.ctx, moved, clusterapi.UpdateOptions{FieldManager: "conformance"}); !apierrors.IsConflict(err) {
		t.Errorf("%s: once more, at the resourceVersion before: %v", u.GetKind(), err)
	}
	got = s.apply(t, "after", applied)
	wantAt(t, got, nil, "metadata", "annotations", "dropped")
	wantAt(t, got, status[slices.Sorted(maps.Keys(status))[0]], "status", slices.Sorted(maps.Keys(status))[0])

	again := got.DeepCopy()
	set(t, again, "x", "metadata", "annotations", "changed")
	if names := names(s.update(t, again)); names != "after Apply, before Update status, conformance Update" {
		t.Errorf("%s: managedFields are of %s", u.GetKind(), names)
	}
}

// testKeyedList has two managers with a container each.
func testKeyedList(t *testing.T, s *suite) {
	full := s.deployment(t, "apply-keyed")
	s.apply(t, "first", full)
	second := func(containers string) *unstructured.Unstructured {
		return object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: apply-keyed, namespace: %s}, spec: {template: {spec: {containers: %s}}}}`, s.ns, containers)
	}
	names := func(u *unstructured.Unstructured) string {
		list, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
		var out []string
		for _, c := range list {
			m, _ := c.(map[string]any)
			name, _ := m["name"].(string)
			image, _ := m["image"].(string)
			out = append(out, name+"="+image)
		}
		return strings.Join(out, " ")
	}
	const one, two = "one=registry.example/one", "two=registry.example/two"
	got := s.apply(t, "second", second(`[{name: two, image: registry.example/two}]`))
	if names(got) != one+" "+two {
		t.Fatalf("after the second manager added its container: %q", names(got))
	}
	got = s.apply(t, "first", full)
	if names(got) != one+" "+two {
		t.Errorf("after the first manager applied its own again: %q", names(got))
	}
	dropped := second(`[]`)
	delete(dropped.Object, "spec")
	got = s.apply(t, "second", dropped)
	if names(got) != one {
		t.Errorf("after the second manager gave its container up: %q", names(got))
	}
}

func testCustom(t *testing.T, s *suite) {
	t.Run("StatusIsSeparate", func(t *testing.T) {
		in := s.widget(t, "custom-status")
		set(t, in, "Early", "status", "phase")
		u := s.create(t, in)
		wantAt(t, u, nil, "status", "phase")
		set(t, u, "Ready", "status", "phase")
		set(t, u, int64(9), "spec", "size")
		u = s.updateStatus(t, u)
		wantAt(t, u, "Ready", "status", "phase")
		wantAt(t, u, int64(1), "spec", "size")
		set(t, u, "Wrong", "status", "phase")
		set(t, u, int64(2), "spec", "size")
		u = s.update(t, u)
		wantAt(t, u, "Ready", "status", "phase")
		wantAt(t, u, int64(2), "spec", "size")
	})
	t.Run("Pruned", func(t *testing.T) {
		in := s.widget(t, "custom-pruned")
		set(t, in, "x", "spec", "bogusField")
		set(t, in, "x", "spec", "free", "anything")
		u := s.create(t, in)
		wantAt(t, u, nil, "spec", "bogusField")
		wantAt(t, u, "x", "spec", "free", "anything")
	})
	t.Run("Nulls", func(t *testing.T) {
		u := s.create(t, s.widget(t, "custom-nulls"))
		u.Object["status"] = map[string]any{"phase": nil, "updates": []any{"a"}}
		u = s.updateStatus(t, u)
		wantAt(t, u, map[string]any{"updates": []any{"a"}}, "status") // a null that the definition does not allow
		set(t, u, nil, "status", "updates")
		u = s.updateStatus(t, u)
		wantAt(t, u, map[string]any{"updates": nil}, "status")
	})
	t.Run("ListsOfTheDefinition", func(t *testing.T) {
		spec := func(text string) *unstructured.Unstructured {
			return object(t, `{apiVersion: %s, kind: Widget, metadata: {name: custom-lists, namespace: %s}, spec: %s}`, s.widgets.GroupVersion(), s.ns, text)
		}
		s.apply(t, "first", spec(`{parts: [{name: a, count: 1}], tags: [red], steps: [one]}`))
		got := s.apply(t, "second", spec(`{parts: [{name: b, count: 2}], tags: [blue], steps: [two]}`))
		wantAt(t, got, []any{map[string]any{"name": "a", "count": int64(1)}, map[string]any{"name": "b", "count": int64(2)}}, "spec", "parts")
		wantAt(t, got, []any{"red", "blue"}, "spec", "tags")
		wantAt(t, got, []any{"two"}, "spec", "steps")
		got = s.apply(t, "second", spec(`{}`))
		wantAt(t, got, []any{map[string]any{"name": "a", "count": int64(1)}}, "spec", "parts")
		wantAt(t, got, []any{"red"}, "spec", "tags")
	})
}
