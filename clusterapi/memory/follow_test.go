package memory_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"weak"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// changes drains a cursor into lines, and checks that each Old is what New was.
func changes(t *testing.T, cursor clusterapi.Cursor) []string {
	t.Helper()
	var lines []string
	last := map[string]*clusterapi.Object{}
	for {
		change, ok := cursor.Next()
		if !ok {
			return lines
		}
		id := change.Object().Kind().Kind + " " + change.Object().Key().String()
		text := func(o *clusterapi.Object) string {
			if o == nil {
				return "-"
			}
			return o.ResourceVersion()
		}
		lines = append(lines, fmt.Sprintf("%s: %s to %s", id, text(change.Old), text(change.New)))
		if before := last[id]; before != nil && change.New != nil && change.Old != before {
			t.Errorf("%s: Old is another object than the New before it", id)
		}
		last[id] = change.New
	}
}

func TestFollow(t *testing.T) {
	ctx := t.Context()
	c := memory.New(memory.Options{CheckShared: true})
	put(t, c, settings("before", nil)) // nobody follows
	cursor := c.Follow()
	defer cursor.Close()
	if _, ok := cursor.Next(); ok {
		t.Error("a cursor begins with what was there before it")
	}
	put(t, c, settings("a", nil))
	put(t, c, settings("a", map[string]any{"x": "1"}))
	put(t, c, settings("a", map[string]any{"x": "1"})) // changes nothing
	owner := put(t, c, settings("owner", nil))
	owned := settings("owned", nil)
	owned.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.GetUID()}})
	put(t, c, owned)
	kind := owner.GroupVersionKind()
	for _, name := range []string{"a", "owner"} {
		checktest.OK(t, c.Delete(ctx, kind, clusterapi.Key("example", name), clusterapi.DeleteOptions{}))
	}
	got := changes(t, cursor)
	want := []string{
		"ConfigMap example/a: - to 2",
		"ConfigMap example/a: 2 to 3",
		"ConfigMap example/owner: - to 4",
		"ConfigMap example/owned: - to 5",
		"ConfigMap example/a: 6 to -",
		"ConfigMap example/owner: 7 to -",
		"ConfigMap example/owned: 8 to -",
	}
	checktest.Same(t, want, got)
	cursor.Close()
	put(t, c, settings("later", nil))
	if change, ok := cursor.Next(); ok {
		t.Errorf("a closed cursor tells of %s", change.Object().Key())
	}
	checktest.Good(t, c.CheckShared())
}

// Two cursors are apart, and each change is forgotten once both have told it.
func TestFollowFreesMemory(t *testing.T) {
	c := memory.New(memory.Options{})
	first, second := c.Follow(), c.Follow()
	defer first.Close()
	for i := range 3 {
		put(t, c, settings("a", map[string]any{"x": fmt.Sprint(i)}))
	}
	change, _ := first.Next()
	old := weak.Make(change.New)
	change = clusterapi.Change{}
	second.Close()
	checktest.Equal(t, 2, len(changes(t, first)), "changes are left")
	for range 10 {
		if runtime.GC(); old.Value() == nil {
			return
		}
	}
	t.Error("a change that was told is remembered")
}

func TestShared(t *testing.T) {
	ctx := t.Context()
	c := memory.New(memory.Options{CheckShared: true})
	put(t, c, settings("a", map[string]any{"x": "1"}))
	key := clusterapi.Key("example", "a")
	kind := settings("a", nil).GroupVersionKind()

	one := checktest.Must(c.GetShared(ctx, kind, key))
	list, err := c.ListShared(ctx, kind, clusterapi.ListOptions{})
	checktest.FatalIf(t, err != nil || len(list) != 1 || list[0] != one,
		"ListShared: %v, %v; want the object of GetShared", list, err)
	typed := checktest.Must(clusterapi.Read[corev1.ConfigMap](ctx, c, key))
	again, _ := clusterapi.As[corev1.ConfigMap](list[0])
	checktest.FailIf(t, again != typed, "a stored state is converted twice")
	own := checktest.Must(c.Get(ctx, kind, key))
	checktest.Same(t, own.Object, one.Unstructured().Object)
	copied, err := clusterapi.Get[corev1.ConfigMap](ctx, c, key)
	checktest.FailIf(t, err != nil || copied == typed || copied.ManagedFields != nil,
		"Get: %v, %v, managedFields %v; want an own object without them", copied == typed, err, copied.ManagedFields)
	copied.Data["x"] = "mine"
	put(t, c, settings("a", map[string]any{"x": "2"}))
	checktest.FailIf(t, typed.Data["x"] != "1" || one.Unstructured().Object["data"].(map[string]any)["x"] != "1",
		"a write changed a shared object")
	checktest.Good(t, c.CheckShared())
}

// CheckShared finds who changes what is shared, be it typed or not.
func TestCheckSharedFinds(t *testing.T) {
	kind := settings("a", nil).GroupVersionKind()
	key := clusterapi.Key("example", "a")
	tests := map[string]struct {
		options memory.Options
		guilty  func(t *testing.T, c *memory.Cluster)
		want    string
	}{
		"nobody": {memory.Options{CheckShared: true}, func(t *testing.T, c *memory.Cluster) {
			checktest.Must(clusterapi.Read[corev1.ConfigMap](t.Context(), c, key))
		}, ""},
		"a reader": {memory.Options{CheckShared: true}, func(t *testing.T, c *memory.Cluster) {
			o := checktest.Must(c.GetShared(t.Context(), kind, key))
			o.Unstructured().SetLabels(map[string]string{"a": "b"})
		}, "ConfigMap example/a is shared, and somebody changed metadata.labels"},
		"a reader who converts": {memory.Options{CheckShared: true}, func(t *testing.T, c *memory.Cluster) {
			o := checktest.Must(clusterapi.Read[corev1.ConfigMap](t.Context(), c, key))
			o.Data["x"] = "2"
		}, "ConfigMap example/a is shared as *v1.ConfigMap, and somebody changed data.x"},
		"nobody looks": {memory.Options{}, func(t *testing.T, c *memory.Cluster) {
			o := checktest.Must(clusterapi.Read[corev1.ConfigMap](t.Context(), c, key))
			o.Data["x"] = "2"
		}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := memory.New(tt.options)
			put(t, c, settings("a", map[string]any{"x": "1"}))
			tt.guilty(t, c)
			put(t, c, settings("a", map[string]any{"x": "3"})) // what was is remembered
			got := ""
			if err := c.CheckShared(); err != nil {
				got = err.Error()
			}
			checktest.FailIf(t, got != tt.want || got != "" && strings.Count(got, "\n") > 0,
				"got  %q\nwant %q", got, tt.want)
		})
	}
}

// Options.Intercept sees shared reads as what they are to a server.
func TestSharedIsIntercepted(t *testing.T) {
	var verbs []string
	c := memory.New(memory.Options{Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
		verbs = append(verbs, call.Verb)
		return do(ctx)
	}})
	kind := settings("a", nil).GroupVersionKind()
	_, _ = c.GetShared(t.Context(), kind, clusterapi.Key("example", "a"))
	_, _ = c.ListShared(t.Context(), kind, clusterapi.ListOptions{})
	checktest.Same(t, []string{"Get", "List"}, verbs)
}

func settings(name string, data map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "example"}}}
	if data != nil {
		u.Object["data"] = data
	}
	return u
}

func put(t *testing.T, c *memory.Cluster, obj *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	stored := checktest.Must(c.Apply(t.Context(), obj, clusterapi.ApplyOptions{FieldManager: "test"}))
	return stored
}
