package clusterapitest

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest/internal/probe"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func testCreate(t *testing.T, s *suite) {
	t.Run("AlreadyExists", func(t *testing.T) {
		in := s.configMap(t, "create")
		s.create(t, in)
		s.refused(t, "AlreadyExists", probe.Of("Create", in))
	})
	t.Run("AlreadyExistsChangesNothing", func(t *testing.T) {
		u := s.create(t, s.configMap(t, "create-twice"))
		in := s.configMap(t, "create-twice")
		set(t, in, "2", "data", "a")
		s.refused(t, "AlreadyExists", probe.Of("Create", in))
		wantSame(t, "after a Create that failed", u, s.get(t, u))
	})
	t.Run("Refused", func(t *testing.T) {
		versioned := s.configMap(t, "create-refused")
		versioned.SetResourceVersion("1")
		typed := s.configMap(t, "create-refused")
		typed.Object["data"] = "text"
		custom := s.widget(t, "create-refused")
		set(t, custom, "large", "spec", "size")
		for _, tc := range []struct {
			what string
			u    *unstructured.Unstructured
			is   func(error) bool
		}{
			{"with a resourceVersion", versioned, isAny}, // servers give it no class
			{"with a value of a wrong type", typed, apierrors.IsBadRequest},
			{"of what the definition's schema does not allow", custom, apierrors.IsInvalid},
		} {
			checktest.ErrorBy(t, tc.is, checktest.Err(s.api.Create(s.ctx, tc.u, clusterapi.CreateOptions{})))
			checktest.FailIf(t, !s.gone(t, tc.u), "Create %s created it", tc.what)
		}
	})
	t.Run("WithoutStatus", func(t *testing.T) {
		in := s.deployment(t, "create-status")
		set(t, in, int64(7), "status", "replicas")
		got := probe.At(s.create(t, in), "status", "replicas")
		checktest.FailIf(t, got == int64(7), "Create stored the status of a kind with a status subresource")
	})
	t.Run("Stored", func(t *testing.T) {
		stored := s.create(t, s.configMap(t, "create-stored"))
		if stored.GetUID() == "" || stored.GetResourceVersion() == "" || probe.At(stored, "metadata", "creationTimestamp") == nil {
			t.Errorf("Create returned an object without uid, resourceVersion or creationTimestamp: %v", stored.Object["metadata"])
		}
		wantSame(t, "what Create returned", stored, s.get(t, stored))
	})
}

func testUpdate(t *testing.T, s *suite) {
	t.Run("Replaces", func(t *testing.T) {
		u := s.create(t, s.configMap(t, "update"))
		u.Object["data"] = map[string]any{"b": "2"}
		stored := s.update(t, u)
		wantAt(t, stored, map[string]any{"b": "2"}, "data")
		checktest.FailIf(t, stored.GetResourceVersion() == u.GetResourceVersion(), "the resourceVersion did not move")
		wantSame(t, "what Update returned", stored, s.get(t, u))
		stored.SetLabels(map[string]string{"new": "x"})
		stored = s.update(t, stored)
		stored.SetLabels(map[string]string{"newer": "x"})
		wantAt(t, s.update(t, stored), map[string]any{"newer": "x"}, "metadata", "labels")
		delete(stored.Object, "data")
		stored.SetResourceVersion(s.get(t, u).GetResourceVersion())
		wantAt(t, s.update(t, stored), nil, "data")
	})
	t.Run("WithoutResourceVersion", func(t *testing.T) {
		u := s.create(t, s.configMap(t, "update-blind"))
		u.SetResourceVersion("")
		u.Object["data"] = map[string]any{"b": "2"}
		s.refused(t, "Invalid", probe.Of("Update", u))
		wantAt(t, s.get(t, u), map[string]any{"a": "1"}, "data")
	})
	t.Run("Stale", func(t *testing.T) {
		old := s.create(t, s.configMap(t, "update-stale"))
		u := old.DeepCopy()
		u.Object["data"] = map[string]any{"b": "2"}
		s.update(t, u)
		old.Object["data"] = map[string]any{"c": "3"}
		s.refused(t, "Conflict", probe.Of("Update", old))
		wantAt(t, s.get(t, u), map[string]any{"b": "2"}, "data")
	})
	t.Run("NotFound", func(t *testing.T) {
		u := s.configMap(t, "update-nothing")
		u.SetResourceVersion("1")
		s.refused(t, "NotFound", probe.Of("Update", u))
		checktest.FailIf(t, !s.gone(t, u), "it created the object")
	})
	t.Run("OtherUID", func(t *testing.T) {
		u := s.create(t, s.configMap(t, "update-uid"))
		u.SetUID(probe.OtherUID)
		u.Object["data"] = map[string]any{"b": "2"}
		s.refused(t, "Conflict", probe.Of("Update", u))
		wantAt(t, s.get(t, u), map[string]any{"a": "1"}, "data")
	})
	t.Run("NoChange", func(t *testing.T) {
		u := s.create(t, s.configMap(t, "update-same"))
		if stored := s.update(t, u); stored.GetResourceVersion() != u.GetResourceVersion() {
			t.Errorf("the resourceVersion moved from %s to %s without a change", u.GetResourceVersion(), stored.GetResourceVersion())
		}
	})
	t.Run("LeavesStatus", func(t *testing.T) {
		u := s.create(t, s.deployment(t, "update-status"))
		set(t, u, int64(7), "status", "replicas")
		set(t, u, int64(3), "spec", "replicas")
		stored := s.update(t, u)
		wantAt(t, stored, int64(3), "spec", "replicas")
		checktest.FailIf(t, probe.At(stored, "status", "replicas") == int64(7),
			"Update wrote the status of a kind with a status subresource")
		checktest.FailIf(t, probe.At(s.get(t, u), "status", "replicas") == int64(7),
			"Update wrote the status of a kind with a status subresource, and did not say so")
	})
	t.Run("KeepsStatus", func(t *testing.T) {
		for _, u := range s.withStatus(t, "update-keeps-status") {
			want := u.Object["status"]
			delete(u.Object, "status")
			u.SetLabels(map[string]string{"new": "x"})
			wantAt(t, s.update(t, u), want, "status")
			wantAt(t, s.get(t, u), want, "status")
		}
	})
}

func isAny(err error) bool { return err != nil }

// withStatus makes a Deployment and a custom object that have a status.
func (s *suite) withStatus(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	d := s.create(t, s.deployment(t, name))
	set(t, d, int64(1), "status", "replicas")
	w := s.create(t, s.widget(t, name))
	set(t, w, "Ready", "status", "phase")
	return []*unstructured.Unstructured{s.updateStatus(t, d), s.updateStatus(t, w)}
}

func testUpdateStatus(t *testing.T, s *suite) {
	t.Run("WritesStatusOnly", func(t *testing.T) {
		u := s.create(t, s.deployment(t, "status"))
		set(t, u, int64(1), "status", "replicas")
		set(t, u, int64(5), "spec", "replicas")
		stored := s.updateStatus(t, u)
		wantAt(t, stored, int64(1), "status", "replicas")
		wantAt(t, stored, int64(1), "spec", "replicas")
		got := s.get(t, u)
		wantAt(t, got, int64(1), "status", "replicas")
		wantAt(t, got, int64(1), "spec", "replicas")
	})
	t.Run("LeavesAllElse", func(t *testing.T) { testStatusOnly(t, s) })
	t.Run("Replaces", func(t *testing.T) {
		for _, u := range s.withStatus(t, "status-replaces") {
			delete(u.Object, "status")
			stored := s.updateStatus(t, u)
			wantAt(t, stored, nil, "status", "replicas")
			wantAt(t, stored, nil, "status", "phase")
			wantSame(t, "what UpdateStatus returned", stored, s.get(t, u))
		}
	})
	t.Run("NoChange", func(t *testing.T) {
		for _, u := range s.withStatus(t, "status-same") {
			if stored := s.updateStatus(t, u); stored.GetResourceVersion() != u.GetResourceVersion() {
				t.Errorf("%s: the resourceVersion moved from %s to %s without a change", u.GetKind(), u.GetResourceVersion(), stored.GetResourceVersion())
			}
		}
	})
	t.Run("NotFound", func(t *testing.T) {
		for _, u := range []*unstructured.Unstructured{s.deployment(t, "status-nothing"), s.widget(t, "status-nothing")} {
			u.SetResourceVersion("1")
			u.Object["status"] = map[string]any{}
			if _, err := s.api.UpdateStatus(s.ctx, u, clusterapi.UpdateOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("%s: got %v, want an error that IsNotFound recognises", u.GetKind(), err)
			}
		}
	})
	t.Run("WithoutSubresource", func(t *testing.T) {
		u := s.create(t, s.configMap(t, "status-none"))
		u.Object["status"] = map[string]any{"a": "b"}
		if _, err := s.api.UpdateStatus(s.ctx, u, clusterapi.UpdateOptions{}); err == nil {
			t.Error("a kind without a status subresource got a status")
		}
		wantAt(t, s.get(t, u), nil, "status")
	})
	t.Run("WithoutResourceVersion", func(t *testing.T) {
		u := s.create(t, s.deployment(t, "status-blind"))
		u.SetResourceVersion("")
		set(t, u, int64(1), "status", "replicas")
		s.refused(t, "Invalid", probe.Of("UpdateStatus", u))
		checktest.FailIf(t, probe.At(s.get(t, u), "status", "replicas") == int64(1), "the status was written")
	})
	t.Run("Stale", func(t *testing.T) {
		old := s.create(t, s.deployment(t, "status-stale"))
		u := old.DeepCopy()
		set(t, u, int64(1), "status", "replicas")
		s.updateStatus(t, u)
		set(t, old, int64(2), "status", "replicas")
		s.refused(t, "Conflict", probe.Of("UpdateStatus", old))
	})
}

// testStatusOnly passes an object that differs in all that is not status, too.
func testStatusOnly(t *testing.T, s *suite) {
	for _, tc := range []struct {
		name   string
		change func(*unstructured.Unstructured)
	}{
		{"Labels", func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"new": "x"}) }},
		{"LabelsGone", func(u *unstructured.Unstructured) { u.SetLabels(nil) }},
		{"Annotations", func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{"new": "x"}) }},
		{"Finalizers", func(u *unstructured.Unstructured) {
			u.SetFinalizers([]string{"clusterupdate.github.io/conformance-new"})
		}},
		{"FinalizersGone", func(u *unstructured.Unstructured) { u.SetFinalizers(nil) }},
		{"OwnerReferences", func(u *unstructured.Unstructured) {
			u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: probe.OtherUID}})
		}},
		{"Spec", func(u *unstructured.Unstructured) {
			set(t, u, int64(9), "spec", "replicas")
			if u.GetKind() == "Widget" {
				delete(u.Object["spec"].(map[string]any), "replicas")
				set(t, u, int64(9), "spec", "size")
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			deployment, widget := s.deployment(t, "only-"+strings.ToLower(tc.name)), s.widget(t, "only-"+strings.ToLower(tc.name))
			for in, status := range map[*unstructured.Unstructured]map[string]any{
				deployment: {"replicas": int64(1)}, widget: {"phase": "Ready"},
			} {
				in.SetLabels(map[string]string{"old": "x"})
				in.SetAnnotations(map[string]string{"old": "x"})
				in.SetFinalizers([]string{"clusterupdate.github.io/conformance"})
				u := s.create(t, in)
				defer s.release(t, u)
				changed := u.DeepCopy()
				tc.change(changed)
				changed.Object["status"] = status
				stored := s.updateStatus(t, changed)
				for name, want := range status {
					wantAt(t, stored, want, "status", name)
				}
				wantSame(t, "what UpdateStatus returned", stored, s.get(t, u))
				checktest.FailIf(t, stored.GetResourceVersion() == u.GetResourceVersion(),
					"%s: the resourceVersion did not move", u.GetKind())
				for _, o := range []*unstructured.Unstructured{stored, u} {
					delete(o.Object, "status")
					o.SetManagedFields(nil)
					o.SetResourceVersion("")
				}
				wantSame(t, "all but the status", u, stored)
			}
		})
	}
}

func testGeneration(t *testing.T, s *suite) {
	for _, tc := range []struct {
		name         string
		in           *unstructured.Unstructured
		spec, status string // fields of these, with values
		value        any
		state        any
	}{
		{"Deployment", s.deployment(t, "generation"), "replicas", "replicas", int64(2), int64(1)},
		{"Custom", s.widget(t, "generation"), "size", "phase", int64(2), "Ready"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := s.create(t, tc.in)
			want := func(when string, n int64) {
				t.Helper()
				u = s.get(t, u)
				checktest.Equal(t, n, u.GetGeneration(), "generation %s", when)
			}
			want("at first", 1)
			set(t, u, tc.value, "spec", tc.spec)
			s.update(t, u)
			want("after a change of spec", 2)
			set(t, u, "x", "metadata", "labels", "x")
			s.update(t, u)
			want("after a change of metadata", 2)
			set(t, u, tc.state, "status", tc.status)
			s.updateStatus(t, u)
			want("after a change of status", 2)
		})
	}
}
