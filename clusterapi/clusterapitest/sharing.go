package clusterapitest

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// testShared: what is shared is what Get and List return, and stays as it is.
func testShared(t *testing.T, s *suite) {
	shared := s.api.(clusterapi.Shared)
	get := func(t *testing.T, u *unstructured.Unstructured) *clusterapi.Object {
		t.Helper()
		o, err := shared.GetShared(s.ctx, u.GroupVersionKind(), clusterapi.KeyOf(u))
		checktest.FatalIf(t, err != nil || o.Unstructured() == nil,
			"GetShared of %s %s: %v", u.GetKind(), u.GetName(), err)
		return o
	}
	named := func(t *testing.T, name string) []*unstructured.Unstructured {
		return []*unstructured.Unstructured{s.configMap(t, name), s.deployment(t, name), s.widget(t, name)}
	}
	t.Run("Get", func(t *testing.T) {
		for _, u := range named(t, "shared-get") {
			s.make(t, u)
			wantSame(t, "what GetShared returns", s.get(t, u), get(t, u).Unstructured())
		}
	})
	t.Run("List", func(t *testing.T) {
		for _, name := range []string{"shared-list-b", "shared-list-a"} {
			for _, u := range named(t, name) {
				s.make(t, u)
			}
		}
		for _, u := range named(t, "") {
			opts := clusterapi.ListOptions{Namespace: s.ns}
			list, err := s.api.List(s.ctx, u.GroupVersionKind(), opts)
			checktest.OK(t, err)
			objects, err := shared.ListShared(s.ctx, u.GroupVersionKind(), opts)
			if err != nil || len(objects) != len(list.Items) || len(objects) < 2 {
				t.Fatalf("ListShared of %s returned %d objects and %v, List %d", u.GetKind(), len(objects), err, len(list.Items))
			}
			for i, o := range objects {
				wantSame(t, "what ListShared returns", &list.Items[i], o.Unstructured())
			}
		}
		if _, err := shared.ListShared(s.ctx, configMaps, clusterapi.ListOptions{Namespace: s.ns, Limit: 1}); err == nil {
			t.Error("ListShared exceeds its limit")
		}
	})
	t.Run("Errors", func(t *testing.T) {
		if _, err := shared.GetShared(s.ctx, configMaps, clusterapi.Key(s.ns, "shared-none")); !apierrors.IsNotFound(err) {
			t.Errorf("GetShared of what is not there: %v", err)
		}
		if _, err := shared.GetShared(s.ctx, s.nothing(), clusterapi.Key("", "none")); !meta.IsNoMatchError(err) {
			t.Errorf("GetShared of a kind that is not served: %v", err)
		}
		if _, err := shared.ListShared(s.ctx, s.nothing(), clusterapi.ListOptions{}); !meta.IsNoMatchError(err) {
			t.Errorf("ListShared of a kind that is not served: %v", err)
		}
	})
	if s.recorded {
		return
	}
	t.Run("CopiesAreApart", func(t *testing.T) {
		for _, u := range named(t, "shared-apart") {
			s.create(t, u)
			applied := s.apply(t, "other", u)
			was := get(t, u).Unstructured().DeepCopy()
			for _, own := range []*unstructured.Unstructured{s.get(t, u), applied} {
				own.SetLabels(map[string]string{"mine": "yes"})
				mutateTree(own.Object)
			}
			checktest.Good(t, get(t, u).Unchanged(was))
		}
	})
	t.Run("Stays", func(t *testing.T) {
		for _, u := range named(t, "shared-stays") {
			s.create(t, u)
			o := get(t, u)
			was := o.Unstructured().DeepCopy()
			next := s.get(t, u)
			next.SetLabels(map[string]string{"a": "b"})
			next = s.update(t, next)
			checktest.FailIf(t, get(t, u).ResourceVersion() != next.GetResourceVersion(),
				"%s: GetShared does not show the last update", u.GetKind())
			u.SetAnnotations(map[string]string{"c": "d"})
			s.apply(t, "other", u)
			if u.GetKind() != "ConfigMap" {
				next = s.get(t, u)
				set(t, next, map[string]any{}, "status")
				s.updateStatus(t, next)
			}
			checktest.OK(t, s.api.Delete(s.ctx, u.GroupVersionKind(), clusterapi.KeyOf(u), clusterapi.DeleteOptions{}))
			if err := o.Unchanged(was); err != nil {
				t.Errorf("after writes: %v", err)
			}
		}
	})
}

// mutateTree changes every map of a tree.
func mutateTree(m map[string]any) {
	for _, v := range m {
		switch v := v.(type) {
		case map[string]any:
			mutateTree(v)
		case []any:
			for _, e := range v {
				if e, ok := e.(map[string]any); ok {
					mutateTree(e)
				}
			}
		}
	}
	m["scribbled"] = "yes"
}

// testFollower: a cursor reports every change once, in order, as soon as the verb
// has returned.
func testFollower(t *testing.T, s *suite) {
	follower := s.api.(clusterapi.Follower)
	// told takes all changes of an object from a cursor.
	told := func(cursor clusterapi.Cursor, of *unstructured.Unstructured) []clusterapi.Change {
		var out []clusterapi.Change
		for change, ok := cursor.Next(); ok; change, ok = cursor.Next() {
			if o := change.Object(); o.Kind().GroupKind() == of.GroupVersionKind().GroupKind() && o.Key() == clusterapi.KeyOf(of) {
				out = append(out, change)
			}
		}
		return out
	}
	t.Run("Order", func(t *testing.T) {
		for _, u := range []*unstructured.Unstructured{s.configMap(t, "follow-order"), s.deployment(t, "follow-order"), s.widget(t, "follow-order")} {
			t.Run(u.GetKind(), func(t *testing.T) { testFollowOrder(t, s, follower, told, u) })
		}
	})
	t.Run("BeginsNow", func(t *testing.T) {
		u := s.create(t, s.configMap(t, "follow-before"))
		cursor := follower.Follow()
		defer cursor.Close()
		if n := len(told(cursor, u)); n > 0 {
			t.Errorf("%d changes of before are told", n)
		}
	})
	t.Run("Apart", func(t *testing.T) {
		first := follower.Follow()
		defer first.Close()
		u := s.create(t, s.configMap(t, "follow-apart"))
		second := follower.Follow()
		defer second.Close()
		set(t, u, "2", "data", "a")
		u = s.update(t, u)
		if one, two := len(told(first, u)), len(told(second, u)); one != 2 || two != 1 {
			t.Errorf("cursors from before and after the creation tell %d and %d changes, want 2 and 1", one, two)
		}
		second.Close()
		set(t, u, "3", "data", "a")
		u = s.update(t, u)
		if one, two := len(told(first, u)), len(told(second, u)); one != 1 || two != 0 {
			t.Errorf("a cursor tells %d changes, and one that is closed %d; want 1 and 0", one, two)
		}
	})
	t.Run("NothingChanged", func(t *testing.T) {
		u := s.create(t, s.configMap(t, "follow-nothing"))
		cursor := follower.Follow()
		defer cursor.Close()
		s.update(t, u)
		u.SetResourceVersion("1")
		_, _ = s.api.Update(s.ctx, u, clusterapi.UpdateOptions{}) // a conflict
		if n := len(told(cursor, u)); n > 0 {
			t.Errorf("%d changes are told where nothing changed", n)
		}
	})
}

// testFollowOrder has one object go through all that may happen to it.
func testFollowOrder(t *testing.T, s *suite, follower clusterapi.Follower, told func(clusterapi.Cursor, *unstructured.Unstructured) []clusterapi.Change, u *unstructured.Unstructured) {
	cursor := follower.Follow()
	defer cursor.Close()
	states := []*unstructured.Unstructured{s.create(t, u)}
	for i := range 3 {
		next := states[len(states)-1].DeepCopy()
		next.SetLabels(map[string]string{"step": fmt.Sprint(i)})
		states = append(states, s.update(t, next))
	}
	u.SetAnnotations(map[string]string{"a": "b"})
	states = append(states, s.apply(t, "other", u))
	checktest.OK(t, s.api.Delete(s.ctx, u.GroupVersionKind(), clusterapi.KeyOf(u), clusterapi.DeleteOptions{}))
	changes := told(cursor, u)
	checktest.FatalIf(t, len(changes) != len(states)+1, "%d changes are told, want %d", len(changes), len(states)+1)
	for i, change := range changes[:len(states)] {
		checktest.FatalIf(t, change.New == nil || (change.Old == nil) != (i == 0),
			"change %d has Old %t and New %t", i, change.Old != nil, change.New != nil)
		wantSame(t, fmt.Sprintf("New of change %d", i), states[i], change.New.Unstructured())
		if i > 0 {
			wantSame(t, fmt.Sprintf("Old of change %d", i), states[i-1], change.Old.Unstructured())
		}
	}
	last := changes[len(states)]
	checktest.FatalIf(t, last.New != nil || last.Old == nil,
		"the deletion has Old %t and New %t", last.Old != nil, last.New != nil)
	final := last.Old.Unstructured().DeepCopy()
	before := states[len(states)-1]
	checktest.FailIf(t, final.GetResourceVersion() == before.GetResourceVersion(),
		"what is told of the deletion has the resourceVersion of the state before")
	final.SetResourceVersion(before.GetResourceVersion())
	wantSame(t, "the last state", before, final)
	checktest.FailIf(t, last.Object().Key() != (types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}),
		"the deletion is of %s", last.Object().Key())
}
