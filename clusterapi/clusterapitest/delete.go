package clusterapitest

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest/internal/probe"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func testDelete(t *testing.T, s *suite) {
	remove := func(t *testing.T, u *unstructured.Unstructured, opts clusterapi.DeleteOptions) {
		t.Helper()
		s.must(t, deletion(u, opts))
	}
	t.Run("Gone", func(t *testing.T) {
		u := s.create(t, s.configMap(t, "delete"))
		remove(t, u, clusterapi.DeleteOptions{})
		checktest.FailIf(t, !s.gone(t, u), "the object is still there")
	})
	t.Run("NotFound", func(t *testing.T) {
		s.refused(t, "NotFound", probe.Of("Delete", s.configMap(t, "delete-nothing")))
	})
	t.Run("Preconditions", func(t *testing.T) {
		u := s.create(t, s.configMap(t, "delete-if"))
		for _, opts := range []clusterapi.DeleteOptions{
			{UID: probe.OtherUID}, {ResourceVersion: s.stale(t)},
			{UID: probe.OtherUID, ResourceVersion: u.GetResourceVersion()}, {UID: u.GetUID(), ResourceVersion: s.stale(t)},
		} {
			s.refused(t, "Conflict", deletion(u, opts))
			checktest.FatalIf(t, s.gone(t, u), "%+v: the object is gone", opts)
		}
		remove(t, u, clusterapi.DeleteOptions{UID: u.GetUID(), ResourceVersion: u.GetResourceVersion()})
		checktest.FailIf(t, !s.gone(t, u), "the object is still there")
	})
	t.Run("Finalizers", func(t *testing.T) {
		in := s.configMap(t, "delete-held")
		in.SetFinalizers([]string{"clusterupdate.github.io/conformance"})
		u := s.create(t, in)
		remove(t, u, clusterapi.DeleteOptions{})
		marked := s.get(t, u)
		checktest.FailIf(t, marked.GetDeletionTimestamp() == nil, "it has no deletionTimestamp")
		remove(t, u, clusterapi.DeleteOptions{}) // once more is not an error
		if again := s.get(t, u); !again.GetDeletionTimestamp().Equal(marked.GetDeletionTimestamp()) {
			t.Error("the deletionTimestamp moved")
		}
		marked = s.get(t, u)
		marked.SetDeletionTimestamp(nil)
		kept := s.update(t, marked)
		checktest.FailIf(t, kept.GetDeletionTimestamp() == nil, "an update took the deletionTimestamp away")
		added := s.get(t, u)
		added.SetFinalizers(append(added.GetFinalizers(), "clusterupdate.github.io/late"))
		_, err := s.api.Update(s.ctx, added, clusterapi.UpdateOptions{})
		checktest.FailIf(t, err == nil, "an object that is being deleted got a new finalizer")
		s.release(t, u)
		checktest.FailIf(t, !s.gone(t, u), "the object is still there without finalizers")
	})
	t.Run("Foreground", func(t *testing.T) {
		for _, in := range []*unstructured.Unstructured{s.configMap(t, ""), s.deployment(t, ""), s.widget(t, "")} {
			owner, dependent := s.owned(t, "foreground", in)
			defer s.release(t, owner)
			defer s.release(t, dependent)
			remove(t, owner, clusterapi.DeleteOptions{Propagation: metav1.DeletePropagationForeground})
			got := s.get(t, owner)
			if got.GetDeletionTimestamp() == nil || !slices.Contains(got.GetFinalizers(), metav1.FinalizerDeleteDependents) {
				t.Errorf("%s: deletionTimestamp %v and finalizers %v; want it to wait for its dependent by %s",
					owner.GetKind(), got.GetDeletionTimestamp(), got.GetFinalizers(), metav1.FinalizerDeleteDependents)
			}
		}
	})
	t.Run("Default", func(t *testing.T) {
		// A Job's dependents are orphans by default, unless the backend reports
		// what it wants.
		for _, in := range []*unstructured.Unstructured{s.configMap(t, ""), s.deployment(t, ""), s.widget(t, ""), s.job(t, "")} {
			owner, dependent := s.owned(t, "default", in)
			defer s.release(t, dependent)
			remove(t, owner, clusterapi.DeleteOptions{})
			if !s.gone(t, owner) {
				t.Errorf("%s: the owner waits for something", owner.GetKind())
				s.release(t, owner)
			}
			got := s.get(t, dependent)
			checktest.FailIf(t, got.GetDeletionTimestamp() == nil && len(got.GetOwnerReferences()) == 0,
				"%s: the dependent is an orphan", owner.GetKind())
		}
	})
	t.Run("Background", func(t *testing.T) {
		owner, dependent := s.owned(t, "background", s.configMap(t, ""))
		defer s.release(t, dependent)
		remove(t, owner, clusterapi.DeleteOptions{Propagation: metav1.DeletePropagationBackground})
		checktest.FailIf(t, !s.gone(t, owner), "the owner waits for its dependent")
	})
	t.Run("Orphan", func(t *testing.T) {
		owner, dependent := s.owned(t, "orphan", s.configMap(t, ""))
		defer s.release(t, dependent)
		remove(t, owner, clusterapi.DeleteOptions{Propagation: metav1.DeletePropagationOrphan})
		if !s.gone(t, owner) { // nobody is there who does the work
			got := s.get(t, owner)
			if got.GetDeletionTimestamp() == nil || !slices.Contains(got.GetFinalizers(), metav1.FinalizerOrphanDependents) {
				t.Errorf("deletionTimestamp %v and finalizers %v; want it to wait by %s",
					got.GetDeletionTimestamp(), got.GetFinalizers(), metav1.FinalizerOrphanDependents)
			}
			s.release(t, owner)
		}
		checktest.FailIf(t, s.get(t, dependent).GetDeletionTimestamp() != nil, "the dependent is being deleted, too")
	})
}

func deletion(u *unstructured.Unstructured, opts clusterapi.DeleteOptions) probe.Call {
	c := probe.Of("Delete", u)
	c.UID, c.ResourceVersion, c.Propagation = opts.UID, opts.ResourceVersion, opts.Propagation
	return c
}

// owned makes an owner, and a dependent that a finalizer holds.
func (s *suite) owned(t *testing.T, name string, in *unstructured.Unstructured) (owner, dependent *unstructured.Unstructured) {
	t.Helper()
	name = "delete-" + name + "-" + strings.ToLower(in.GetKind())
	in.SetName(name)
	owner = s.create(t, in)
	dependent = s.configMap(t, name+"-dependent")
	dependent.SetFinalizers([]string{"clusterupdate.github.io/conformance"})
	yes := true
	dependent.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(), BlockOwnerDeletion: &yes,
	}})
	return owner, s.create(t, dependent)
}

// job makes a Job that never starts.
func (s *suite) job(t *testing.T, name string) *unstructured.Unstructured {
	return object(t, `
apiVersion: batch/v1
kind: Job
metadata: {name: "%s", namespace: %s}
spec:
  suspend: true
  template:
    spec:
      restartPolicy: Never
      containers: [{name: one, image: registry.example/one}]
`, name, s.ns)
}

// release takes all finalizers from an object, if it is there.
func (s *suite) release(t *testing.T, u *unstructured.Unstructured) {
	t.Helper()
	err := probe.Release(s.ctx, s.api, u.GroupVersionKind(), clusterapi.KeyOf(u), func(string) bool { return true })
	checktest.Good(t, err)
}
