package clusterapitest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

func testGet(t *testing.T, s *suite) {
	t.Run("Existing", func(t *testing.T) {
		in := s.configMap(t, "get")
		created := s.create(t, in)
		got := s.get(t, in)
		wantAt(t, got, map[string]any{"a": "1"}, "data")
		if got.GetUID() == "" || got.GetUID() != created.GetUID() {
			t.Errorf("UID %q, want that which Create returned, %q", got.GetUID(), created.GetUID())
		}
		if got.GetResourceVersion() == "" || got.GetResourceVersion() != created.GetResourceVersion() {
			t.Errorf("resourceVersion %q, want that which Create returned, %q", got.GetResourceVersion(), created.GetResourceVersion())
		}
		if got.GroupVersionKind() != configMaps {
			t.Errorf("kind %s, want %s", got.GroupVersionKind(), configMaps)
		}
	})
	t.Run("NotFound", func(t *testing.T) {
		_, err := s.api.Get(s.ctx, configMaps, clusterapi.Key(s.ns, "get-nothing"))
		if !apierrors.IsNotFound(err) {
			t.Errorf("got %v, want an error that IsNotFound recognises", err)
		}
	})
	t.Run("NoMatch", func(t *testing.T) {
		gvk := schema.GroupVersionKind{Group: "nobody-" + s.id + ".clusterupdate.github.io", Version: "v1", Kind: "Nothing"}
		if _, err := s.api.Get(s.ctx, gvk, clusterapi.Key(s.ns, "x")); !meta.IsNoMatchError(err) {
			t.Errorf("Get: got %v, want an error that meta.IsNoMatchError recognises", err)
		}
		if _, err := s.api.List(s.ctx, gvk, clusterapi.ListOptions{}); !meta.IsNoMatchError(err) {
			t.Errorf("List: got %v, want an error that meta.IsNoMatchError recognises", err)
		}
	})
}

func testList(t *testing.T, s *suite) {
	label := labels.SelectorFromSet(labels.Set{"list": s.id})
	for _, o := range []struct{ ns, name, color string }{
		{s.other, "list-a", "red"}, {s.ns, "list-c", "blue"}, {s.ns, "list-a", "red"}, {s.ns, "list-b", "red"},
	} {
		s.create(t, object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s, labels: {list: "%s", color: %s}}}`, o.name, o.ns, s.id, o.color))
	}
	list := func(t *testing.T, opts clusterapi.ListOptions) []string {
		t.Helper()
		l, err := s.api.List(s.ctx, configMaps, opts)
		if err != nil {
			t.Fatal(err)
		}
		names := []string{}
		for i := range l.Items {
			names = append(names, fmt.Sprint(clusterapi.KeyOf(&l.Items[i])))
			if got := l.Items[i].GroupVersionKind(); got != configMaps {
				t.Errorf("item %d is a %s, want %s", i, got, configMaps)
			}
		}
		return names
	}
	for _, tc := range []struct {
		name string
		opts clusterapi.ListOptions
		want []string
	}{
		{"SortedByNamespaceThenName", clusterapi.ListOptions{Labels: label},
			[]string{s.ns + "/list-a", s.ns + "/list-b", s.ns + "/list-c", s.other + "/list-a"}},
		{"Namespace", clusterapi.ListOptions{Namespace: s.other, Labels: label}, []string{s.other + "/list-a"}},
		{"Labels", clusterapi.ListOptions{Labels: labels.SelectorFromSet(labels.Set{"list": s.id, "color": "blue"})}, []string{s.ns + "/list-c"}},
		{"Nothing", clusterapi.ListOptions{Labels: labels.SelectorFromSet(labels.Set{"list": s.id, "color": "green"})}, []string{}},
		{"LimitNotExceeded", clusterapi.ListOptions{Labels: label, Limit: 4},
			[]string{s.ns + "/list-a", s.ns + "/list-b", s.ns + "/list-c", s.other + "/list-a"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := list(t, tc.opts); !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
	t.Run("LimitExceeded", func(t *testing.T) {
		_, err := s.api.List(s.ctx, configMaps, clusterapi.ListOptions{Labels: label, Limit: 3})
		var limit *clusterapi.LimitError
		if !errors.As(err, &limit) {
			t.Fatalf("got %v, want a *clusterapi.LimitError", err)
		}
		if limit.Limit != 3 || limit.GVK != configMaps {
			t.Errorf("got %+v, want limit 3 of %s", limit, configMaps)
		}
	})
	t.Run("Complete", func(t *testing.T) {
		// More than the usual page of a client.
		const n = 600
		for i := range n {
			s.create(t, object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: page-%03d, namespace: %s, labels: {page: "%s"}}}`, i, s.ns, s.id))
		}
		if got := list(t, clusterapi.ListOptions{Labels: labels.SelectorFromSet(labels.Set{"page": s.id})}); len(got) != n || !slices.IsSorted(got) {
			t.Errorf("got %d objects (sorted: %t), want %d in order", len(got), slices.IsSorted(got), n)
		}
	})
	t.Run("NodeName", func(t *testing.T) {
		node := "node-" + s.id
		for name, on := range map[string]string{"on-node": node, "elsewhere": "another-" + s.id} {
			s.create(t, object(t, `
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: %s}
spec:
  nodeName: %s
  terminationGracePeriodSeconds: 0
  containers: [{name: one, image: registry.example/one}]
`, name, s.ns, on))
		}
		l, err := s.api.List(s.ctx, pods, clusterapi.ListOptions{NodeName: node})
		if err != nil {
			t.Fatal(err)
		}
		if len(l.Items) != 1 || l.Items[0].GetName() != "on-node" {
			t.Errorf("got %d pods, want the one on the node", len(l.Items))
		}
	})
}
