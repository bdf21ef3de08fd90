package memory

import (
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// Merged changes lead to the same state as all of them, and each fits what the
// consumer knows by then: it never hears of an object twice, or of the end of
// one that it does not know.
func TestMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c"}
		known := map[string]*unstructured.Unstructured{}
		for _, name := range names {
			if rapid.Bool().Draw(t, "known") {
				known[name] = named(name)
			}
		}
		stored := maps.Clone(known)
		var queue []change
		for range rapid.IntRange(0, 30).Draw(t, "changes") {
			name := rapid.SampledFrom(names).Draw(t, "name")
			ch := change{clusterapi.Added, named(name)}
			if stored[name] != nil {
				ch.kind = rapid.SampledFrom([]clusterapi.WatchEventType{clusterapi.Modified, clusterapi.Deleted}).Draw(t, "kind")
			}
			queue = append(queue, ch)
			stored[name] = ch.obj
			if ch.kind == clusterapi.Deleted {
				delete(stored, name)
			}
		}
		merged := merge(queue)
		checktest.FatalIf(t, len(merged) > 2*len(names), "%d changes of %d objects", len(merged), len(names))
		for _, ch := range merged {
			name := ch.obj.GetName()
			if (known[name] == nil) != (ch.kind == clusterapi.Added) {
				t.Fatalf("%s %s, known before: %t", ch.kind, name, known[name] != nil)
			}
			known[name] = ch.obj
			if ch.kind == clusterapi.Deleted {
				delete(known, name)
			}
		}
		checktest.FatalIf(t, !maps.Equal(known, stored), "leads to %v, want %v", known, stored)
	})
}

// A watch that has ended costs writers nothing any more.
func TestEndedWatchIsForgotten(t *testing.T) {
	c := New(Options{})
	gvk := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	for range c.Watch(t.Context(), gvk, clusterapi.ListOptions{}) {
		checktest.Equal(t, 1, len(c.table(gvk.GroupKind()).watchers), "watchers while one watches")
		break
	}
	checktest.Equal(t, 0, len(c.table(gvk.GroupKind()).watchers), "watchers are left")
}

func named(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetName(name)
	return u
}
