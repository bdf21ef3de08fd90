package clusterapitest

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

func testCreate(t *testing.T, s *suite) {
	t.Run("AlreadyExists", func(t *testing.T) {
		in := s.configMap(t, "create")
		s.create(t, in)
		_, err := s.api.Create(s.ctx, in, clusterapi.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			t.Errorf("got %v, want an error that IsAlreadyExists recognises", err)
		}
	})
	t.Run("WithoutStatus", func(t *testing.T) {
		in := s.deployment(t, "create-status")
		set(t, in, int64(7), "status", "replicas")
		if got := at(s.create(t, in), "status", "replicas"); got == int64(7) {
			t.Error("Create stored the status of a kind with a status subresource")
		}
	})
	t.Run("Stored", func(t *testing.T) {
		stored := s.create(t, s.configMap(t, "create-stored"))
		if stored.GetUID() == "" || stored.GetResourceVersion() == "" || at(stored, "metadata", "creationTimestamp") == nil {
			t.Errorf("Create returned an object without uid, resourceVersion or creationTimestamp: %v", stored.Object["metadata"])
		}
	})
}

func testUpdate(t *testing.T, s *suite) {
	t.Run("Replaces", func(t *testing.T) {
		u := s.create(t, s.configMap(t, "update"))
		u.Object["data"] = map[string]any{"b": "2"}
		stored := s.update(t, u)
		wantAt(t, stored, map[string]any{"b": "2"}, "data")
		if stored.GetResourceVersion() == u.GetResourceVersion() {
			t.Error("the resourceVersion did not move")
		}
		wantAt(t, s.get(t, u), map[string]any{"b": "2"}, "data")
	})
	t.Run("WithoutResourceVersion", func(t *testing.T) {
		u := s.create(t, s.configMap(t, "update-blind"))
		u.SetResourceVersion("")
		u.Object["data"] = map[string]any{"b": "2"}
		if _, err := s.api.Update(s.ctx, u, clusterapi.UpdateOptions{}); err == nil {
			t.Error("an update without a resourceVersion went through")
		}
		wantAt(t, s.get(t, u), map[string]any{"a": "1"}, "data")
	})
	t.Run("Stale", func(t *testing.T) {
		old := s.create(t, s.configMap(t, "update-stale"))
		u := old.DeepCopy()
		u.Object["data"] = map[string]any{"b": "2"}
		s.update(t, u)
		old.Object["data"] = map[string]any{"c": "3"}
		if _, err := s.api.Update(s.ctx, old, clusterapi.UpdateOptions{}); !apierrors.IsConflict(err) {
			t.Errorf("got %v, want an error that IsConflict recognises", err)
		}
		wantAt(t, s.get(t, u), map[string]any{"b": "2"}, "data")
	})
	t.Run("NotFound", func(t *testing.T) {
		u := s.configMap(t, "update-nothing")
		u.SetResourceVersion("1")
		if _, err := s.api.Update(s.ctx, u, clusterapi.UpdateOptions{}); err == nil {
			t.Error("an update of an object that does not exist went through")
		}
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
		if at(stored, "status", "replicas") == int64(7) {
			t.Error("Update wrote the status of a kind with a status subresource")
		}
	})
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
	t.Run("WithoutResourceVersion", func(t *testing.T) {
		u := s.create(t, s.deployment(t, "status-blind"))
		u.SetResourceVersion("")
		set(t, u, int64(1), "status", "replicas")
		if _, err := s.api.UpdateStatus(s.ctx, u, clusterapi.UpdateOptions{}); err == nil {
			t.Error("a status update without a resourceVersion went through")
		}
	})
	t.Run("Stale", func(t *testing.T) {
		old := s.create(t, s.deployment(t, "status-stale"))
		u := old.DeepCopy()
		set(t, u, int64(1), "status", "replicas")
		s.updateStatus(t, u)
		set(t, old, int64(2), "status", "replicas")
		if _, err := s.api.UpdateStatus(s.ctx, old, clusterapi.UpdateOptions{}); !apierrors.IsConflict(err) {
			t.Errorf("got %v, want an error that IsConflict recognises", err)
		}
	})
}

func testGeneration(t *testing.T, s *suite) {
	for _, tc := range []struct {
		kind   string
		create func() (gen func() int64, spec, metadata, status func())
	}{
		{"Deployment", func() (func() int64, func(), func(), func()) {
			u := s.create(t, s.deployment(t, "generation"))
			return func() int64 { return s.get(t, u).GetGeneration() },
				func() { u = s.get(t, u); set(t, u, int64(2), "spec", "replicas"); s.update(t, u) },
				func() { u = s.get(t, u); set(t, u, "x", "metadata", "labels", "x"); s.update(t, u) },
				func() { u = s.get(t, u); set(t, u, int64(1), "status", "replicas"); s.updateStatus(t, u) }
		}},
		{"Custom", func() (func() int64, func(), func(), func()) {
			u := s.create(t, s.widget(t, "generation"))
			return func() int64 { return s.get(t, u).GetGeneration() },
				func() { u = s.get(t, u); set(t, u, int64(2), "spec", "size"); s.update(t, u) },
				func() { u = s.get(t, u); set(t, u, "x", "metadata", "labels", "x"); s.update(t, u) },
				func() { u = s.get(t, u); set(t, u, "Ready", "status", "phase"); s.updateStatus(t, u) }
		}},
	} {
		t.Run(tc.kind, func(t *testing.T) {
			generation, spec, metadata, status := tc.create()
			want := func(when string, n int64) {
				t.Helper()
				if got := generation(); got != n {
					t.Errorf("%s the generation is %d, want %d", when, got, n)
				}
			}
			want("at first", 1)
			spec()
			want("after a change of spec", 2)
			metadata()
			want("after a change of metadata", 2)
			status()
			want("after a change of status", 2)
		})
	}
}
