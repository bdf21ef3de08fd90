package clusterapitest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest/internal/probe"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func testGet(t *testing.T, s *suite) {
	t.Run("Existing", func(t *testing.T) {
		in := s.configMap(t, "get")
		created := s.make(t, in)
		got := s.get(t, in)
		wantAt(t, got, map[string]any{"a": "1"}, "data")
		checktest.FailIf(t, got.GetUID() == "" || got.GetUID() != created.GetUID(),
			"UID %q, want that which Create returned, %q", got.GetUID(), created.GetUID())
		if got.GetResourceVersion() == "" || got.GetResourceVersion() != created.GetResourceVersion() {
			t.Errorf("resourceVersion %q, want that which Create returned, %q", got.GetResourceVersion(), created.GetResourceVersion())
		}
		checktest.FailIf(t, got.GroupVersionKind() != configMaps,
			"kind %s, want %s", got.GroupVersionKind(), configMaps)
	})
	t.Run("ItAndNoOther", func(t *testing.T) {
		for _, name := range []string{"get-it", "get-it-too"} {
			for _, ns := range []string{s.ns, s.other} {
				u := s.configMap(t, name)
				u.SetNamespace(ns)
				s.make(t, u)
			}
		}
		for _, name := range []string{"get-it", "get-it-too"} {
			for _, ns := range []string{s.ns, s.other} {
				u := s.configMap(t, name)
				u.SetNamespace(ns)
				if got := clusterapi.KeyOf(s.get(t, u)); got != clusterapi.KeyOf(u) {
					t.Errorf("Get of %s answered %s", clusterapi.KeyOf(u), got)
				}
			}
		}
		secret := object(t, `{apiVersion: v1, kind: Secret, metadata: {name: get-it, namespace: %s}}`, s.ns)
		checktest.FailIf(t, !s.recorded && !s.gone(t, secret), "there is a Secret of the ConfigMap's name")
		s.make(t, secret)
		if got := s.get(t, secret).GroupVersionKind(); got != secret.GroupVersionKind() {
			t.Errorf("Get of a Secret answered a %s", got)
		}
	})
	t.Run("Integers", func(t *testing.T) {
		for _, tc := range []struct {
			u    *unstructured.Unstructured
			path []string
		}{
			{s.make(t, s.deployment(t, "get-integers")), []string{"spec", "replicas"}},
			{s.make(t, s.widget(t, "get-integers")), []string{"spec", "size"}},
		} {
			for verb, u := range map[string]*unstructured.Unstructured{"Create": tc.u, "Get": s.get(t, tc.u)} {
				if v, ok := probe.At(u, tc.path...).(int64); !ok || v != 1 {
					t.Errorf("%s of a %s: %v is a %T, want an int64", verb, u.GetKind(), tc.path, probe.At(u, tc.path...))
				}
			}
		}
	})
	t.Run("NotFound", func(t *testing.T) {
		if !s.recorded {
			s.create(t, s.configMap(t, "get-something"))
		}
		got, err := s.api.Get(s.ctx, configMaps, clusterapi.Key(s.ns, "get-nothing"))
		checktest.FailIf(t, !apierrors.IsNotFound(err) || got != nil,
			"got %v, %v, want no object and an error that IsNotFound recognises", got, err)
	})
	t.Run("NoMatch", func(t *testing.T) { testNoMatch(t, s) })
}

// nothing is a kind that nobody defined.
func (s *suite) nothing() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "nobody-" + s.id + ".clusterupdate.github.io", Version: "v1", Kind: "Nothing"}
}

// testNoMatch asks every verb for a kind that is not served: neither one of a
// group that nobody has, nor one of a group that is there.
func testNoMatch(t *testing.T, s *suite) {
	for _, gvk := range []schema.GroupVersionKind{s.nothing(), {Version: "v1", Kind: "Nothing"}, {Group: "apps", Version: "v7", Kind: "Deployment"}} {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetGroupVersionKind(gvk)
		u.SetNamespace(s.ns)
		u.SetName("x")
		stored := u.DeepCopy()
		stored.SetResourceVersion("1")
		stored.Object["status"] = map[string]any{}
		for verb, err := range s.all(u, stored) {
			if s.recorded && errors.Is(err, clusterapi.ErrNotCollected) {
				continue
			}
			checktest.FailIf(t, !meta.IsNoMatchError(err),
				"%s of %s: got %v, want an error that meta.IsNoMatchError recognises", verb, gvk, err)
			checktest.FailIf(t, apierrors.IsNotFound(err), "%s of %s: IsNotFound recognises %v", verb, gvk, err)
		}
	}
}

// all calls every verb but Evict, which has no kind, on an object. stored is
// the object for updates. Of a backend that only reads, only these verbs.
func (s *suite) all(u, stored *unstructured.Unstructured) map[string]error {
	calls := []probe.Call{probe.Of("Get", u), probe.Of("List", u)}
	if !s.recorded {
		calls = append(calls, probe.Of("Create", u), probe.By("first", "Apply", u),
			probe.Of("Update", stored), probe.Of("UpdateStatus", stored), probe.Of("Delete", u))
	}
	out := map[string]error{}
	for _, c := range calls {
		_, out[c.Verb] = c.Do(s.ctx, s.api)
	}
	return out
}

// placed is an object that lists select.
type placed struct{ ns, name, color, node string }

func listed(s *suite) []placed {
	return []placed{
		{ns: s.other, name: "list-a", color: "red"}, {ns: s.ns, name: "list-c", color: "blue"},
		{ns: s.ns, name: "list-a", color: "red"}, {ns: s.ns, name: "list-b", color: "red"},
	}
}

func podsOnNodes(s *suite) []placed {
	node := "node-" + s.id
	return []placed{
		{s.ns, "on-node", "red", node}, {s.ns, "elsewhere", "red", "another-" + s.id},
		{s.ns, "on-node-too", "blue", node}, {s.other, "on-node", "red", node}, {s.other, "elsewhere", "red", "another-" + s.id},
	}
}

func testList(t *testing.T, s *suite) {
	label := labels.SelectorFromSet(labels.Set{"list": s.id})
	for _, o := range listed(s) {
		s.make(t, object(t, listedText, o.name, o.ns, s.id, o.color))
	}
	all := []string{s.ns + "/list-a", s.ns + "/list-b", s.ns + "/list-c", s.other + "/list-a"}
	for _, tc := range []struct {
		name string
		opts clusterapi.ListOptions
		want []string
	}{
		{"SortedByNamespaceThenName", clusterapi.ListOptions{Labels: label}, all},
		{"Namespace", clusterapi.ListOptions{Namespace: s.other, Labels: label}, all[3:]},
		{"Labels", clusterapi.ListOptions{Labels: labels.SelectorFromSet(labels.Set{"list": s.id, "color": "blue"})}, all[2:3]},
		{"LabelsAndNamespace", clusterapi.ListOptions{Namespace: s.ns, Labels: labels.SelectorFromSet(labels.Set{"list": s.id, "color": "red"})}, all[:2]},
		{"LabelsOfSets", clusterapi.ListOptions{Labels: selector(t, "list=%s,color notin (red)", s.id)}, all[2:3]},
		{"Nothing", clusterapi.ListOptions{Labels: labels.SelectorFromSet(labels.Set{"list": s.id, "color": "green"})}, []string{}},
		{"LimitNotExceeded", clusterapi.ListOptions{Labels: label, Limit: 4}, all},
		{"LimitOfWhatIsSelected", clusterapi.ListOptions{Namespace: s.ns, Labels: label, Limit: 3}, all[:3]},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := names(s.list(t, configMaps, tc.opts)); !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
	for name, n := range map[string]int{"LimitExceeded": 3, "LimitFarExceeded": 1} {
		t.Run(name, func(t *testing.T) {
			l, err := s.api.List(s.ctx, configMaps, clusterapi.ListOptions{Labels: label, Limit: n})
			var limit *clusterapi.LimitError
			checktest.FatalIf(t, !errors.As(err, &limit) || l != nil,
				"got %v, %v, want no list and a *clusterapi.LimitError", l, err)
			if want := (clusterapi.ListOptions{Limit: n}).Exceeded(configMaps); *limit != *want {
				t.Errorf("got %+v, want %+v", limit, want)
			}
		})
	}
	t.Run("Unfiltered", func(t *testing.T) { testUnfiltered(t, s, all) })
	t.Run("ItemsAreWhatGetReturns", func(t *testing.T) { testItems(t, s, label) })
	t.Run("NodeName", func(t *testing.T) { testNodeName(t, s) })
	if s.recorded {
		return
	}
	t.Run("Complete", func(t *testing.T) {
		// More than the usual page of a client.
		const n = 600
		for i := range n {
			s.create(t, object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: page-%03d, namespace: %s, labels: {page: "%s"}}}`, i, s.ns, s.id))
		}
		if got := names(s.list(t, configMaps, clusterapi.ListOptions{Labels: labels.SelectorFromSet(labels.Set{"page": s.id})})); len(got) != n || !slices.IsSorted(got) {
			t.Errorf("got %d objects (sorted: %t), want %d in order", len(got), slices.IsSorted(got), n)
		}
	})
}

// testUnfiltered lists without any selection, where others may have objects
// too.
func testUnfiltered(t *testing.T, s *suite, all []string) {
	for name, want := range map[string][]string{"": all, s.ns: all[:3], s.other: all[3:]} {
		var got []string
		items := s.list(t, configMaps, clusterapi.ListOptions{Namespace: name}).Items
		for i := range items {
			if key := clusterapi.KeyOf(&items[i]).String(); slices.Contains(all, key) {
				got = append(got, key)
			}
			checktest.FailIf(t, name != "" && items[i].GetNamespace() != name,
				"namespace %q has an object of %s", name, items[i].GetNamespace())
		}
		checktest.FailIf(t, !slices.Equal(got, want),
			"namespace %q: got %v of what is there, want %v", name, got, want)
	}
	found := slices.ContainsFunc(s.list(t, probe.Namespaces, clusterapi.ListOptions{}).Items, func(u unstructured.Unstructured) bool { return u.GetName() == s.ns })
	checktest.FailIf(t, !found, "a list of all namespaces lacks %s", s.ns)
}

// testItems compares the items of lists with what Get returns.
func testItems(t *testing.T, s *suite, label labels.Selector) {
	if !s.recorded {
		for _, u := range []*unstructured.Unstructured{s.deployment(t, "list-items"), s.widget(t, "list-items")} {
			u.SetLabels(map[string]string{"list": s.id})
			s.create(t, u)
		}
	}
	for _, gvk := range []schema.GroupVersionKind{configMaps, deployments, s.widgets} {
		items := s.list(t, gvk, clusterapi.ListOptions{Labels: label}).Items
		checktest.FailIf(t, len(items) == 0, "no %s in the list", gvk.Kind)
		for i := range items {
			want := s.get(t, &items[i])
			if got := &items[i]; text(got.Object) != text(want.Object) {
				t.Errorf("%s in the list is\n%s\nGet returns\n%s", clusterapi.KeyOf(got), text(got.Object), text(want.Object))
			}
		}
	}
}

func testNodeName(t *testing.T, s *suite) {
	node := "node-" + s.id
	for _, p := range podsOnNodes(s) {
		s.make(t, object(t, podText, p.name, p.ns, p.color, p.node))
	}
	for _, tc := range []struct {
		name string
		opts clusterapi.ListOptions
		want []string
	}{
		{"alone", clusterapi.ListOptions{NodeName: node}, []string{s.ns + "/on-node", s.ns + "/on-node-too", s.other + "/on-node"}},
		{"with a namespace", clusterapi.ListOptions{NodeName: node, Namespace: s.ns}, []string{s.ns + "/on-node", s.ns + "/on-node-too"}},
		{"with labels", clusterapi.ListOptions{NodeName: node, Labels: selector(t, "color=blue")}, []string{s.ns + "/on-node-too"}},
		{"with a limit", clusterapi.ListOptions{NodeName: node, Limit: 3}, []string{s.ns + "/on-node", s.ns + "/on-node-too", s.other + "/on-node"}},
		{"of a node without pods", clusterapi.ListOptions{NodeName: "empty-" + s.id}, []string{}},
	} {
		got := names(s.list(t, pods, tc.opts))
		checktest.FailIf(t, !slices.Equal(got, tc.want), "%s: got %v, want %v", tc.name, got, tc.want)
	}
}

// list must succeed, with items of the kind.
func (s *suite) list(t *testing.T, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) *unstructured.UnstructuredList {
	t.Helper()
	l, err := s.api.List(s.ctx, gvk, opts)
	checktest.FatalIf(t, err != nil, "List of %s: %v", gvk.Kind, err)
	checktest.FatalIf(t, l == nil, "List of %s returned no list, and no error", gvk.Kind)
	for i := range l.Items {
		u := &l.Items[i]
		if u.GroupVersionKind() != gvk || u.GetResourceVersion() == "" || u.GetUID() == "" || u.GetName() == "" {
			t.Fatalf("item %d of a list of %s has kind %s, name %q, UID %q, resourceVersion %q: none may be missing",
				i, gvk, u.GroupVersionKind(), u.GetName(), u.GetUID(), u.GetResourceVersion())
		}
	}
	return l
}

// names are the keys of the items, in their order.
func names(l *unstructured.UnstructuredList) []string {
	out := []string{}
	for i := range l.Items {
		out = append(out, clusterapi.KeyOf(&l.Items[i]).String())
	}
	return out
}

func selector(t *testing.T, format string, args ...any) labels.Selector {
	t.Helper()
	out := checktest.Get(labels.Parse(fmt.Sprintf(format, args...)))(t)
	return out
}
