package memory_test

import (
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

var podGVK = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}

var cms = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

// state lists the ConfigMaps, with marks of deletion and finalizers.
func state(t *testing.T, c *memory.Cluster) []string {
	t.Helper()
	list := checktest.Must(c.List(t.Context(), cms, clusterapi.ListOptions{}))
	out := []string{}
	for i := range list.Items {
		u := &list.Items[i]
		text := u.GetName()
		if u.GetDeletionTimestamp() != nil {
			text += " deleting"
		}
		for _, f := range u.GetFinalizers() {
			text += " " + f
		}
		if n := len(u.GetOwnerReferences()); n > 0 {
			text += fmt.Sprintf(" owners:%d", n)
		}
		out = append(out, text)
	}
	return out
}

// family makes a (owner of b and c), b (owner of d), x (owner of c too); hold
// names those with a finalizer. Dependents block the deletion of their owner.
func family(t *testing.T, c *memory.Cluster, hold ...string) {
	t.Helper()
	uids := map[string]*unstructured.Unstructured{}
	for _, m := range []struct {
		name   string
		owners []string
	}{{"a", nil}, {"x", nil}, {"b", []string{"a"}}, {"c", []string{"a", "x"}}, {"d", []string{"b"}}} {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		u.SetName(m.name)
		u.SetNamespace("ns")
		yes := true
		var refs []metav1.OwnerReference
		for _, o := range m.owners {
			refs = append(refs, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: o, UID: uids[o].GetUID(), BlockOwnerDeletion: &yes})
		}
		u.SetOwnerReferences(refs)
		for _, h := range hold {
			if h == m.name {
				u.SetFinalizers([]string{"hold"})
			}
		}
		created := checktest.Must(c.Create(t.Context(), u, clusterapi.CreateOptions{}))
		uids[m.name] = created
	}
}

func TestPropagation(t *testing.T) {
	const foreground = metav1.FinalizerDeleteDependents
	for _, tc := range []struct {
		name        string
		propagation metav1.DeletionPropagation
		hold        []string
		want        []string
		released    []string // after the finalizers of those held are gone
	}{
		{"default", "", nil, []string{"c owners:1", "x"}, []string{"c owners:1", "x"}},
		{"background", metav1.DeletePropagationBackground, []string{"b"},
			[]string{"b deleting hold owners:1", "c owners:1", "d owners:1", "x"}, []string{"c owners:1", "x"}},
		{"foreground", metav1.DeletePropagationForeground, nil, []string{"c owners:1", "x"}, []string{"c owners:1", "x"}},
		{"foreground held", metav1.DeletePropagationForeground, []string{"d"},
			[]string{"a deleting " + foreground, "b deleting " + foreground + " owners:1", "c owners:1", "d deleting hold owners:1", "x"},
			[]string{"c owners:1", "x"}},
		{"orphan", metav1.DeletePropagationOrphan, nil, []string{"b", "c owners:1", "d owners:1", "x"}, []string{"b", "c owners:1", "d owners:1", "x"}},
		{"owner held", metav1.DeletePropagationBackground, []string{"a"},
			[]string{"a deleting hold", "b owners:1", "c owners:2", "d owners:1", "x"}, []string{"c owners:1", "x"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := memory.New(memory.Options{})
			family(t, c, tc.hold...)
			checktest.OK(t, c.Delete(t.Context(), cms, clusterapi.Key("ns", "a"), clusterapi.DeleteOptions{Propagation: tc.propagation}))
			checktest.SameIn(t, "after the deletion", tc.want, state(t, c))
			for _, name := range tc.hold {
				u := mustGet(t, c, cms, "ns", name)
				var rest []string
				for _, f := range u.GetFinalizers() {
					if f != "hold" {
						rest = append(rest, f)
					}
				}
				u.SetFinalizers(rest)
				checktest.Must(c.Update(t.Context(), u, clusterapi.UpdateOptions{}))
			}
			checktest.SameIn(t, "after the release", tc.released, state(t, c))
		})
	}
}

// Owners in a circle, which a cluster takes, do not wait for one another.
func TestOwnersInACircle(t *testing.T) {
	const owner = `ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: %[2]s, uid: %[2]s, blockOwnerDeletion: true}]`
	const text = `{apiVersion: v1, kind: ConfigMap, metadata: {name: %[1]s, namespace: ns, uid: %[1]s, ` + owner + `}}`
	for _, propagation := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		for _, circle := range [][]string{{"a"}, {"a", "b"}, {"a", "b", "c"}} {
			t.Run(fmt.Sprint(propagation, len(circle)), func(t *testing.T) {
				c := memory.New(memory.Options{})
				for i, name := range circle {
					mustLoad(t, c, fmt.Sprintf(text, name, circle[(i+1)%len(circle)]))
				}
				checktest.OK(t, c.Delete(t.Context(), cms, clusterapi.Key("ns", "a"), clusterapi.DeleteOptions{Propagation: propagation}))
				checktest.SameIn(t, "left", []string{}, state(t, c))
			})
		}
	}
}

// A definition that defines its own kind does not make the search endless.
func TestDefinitionOfDefinitions(t *testing.T) {
	c := memory.New(memory.Options{Lenient: true})
	crd := mustApply(t, c, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: x}, spec: {group: apiextensions.k8s.io,
		names: {kind: CustomResourceDefinition}, scope: Cluster, versions: [{name: v1, served: true, storage: true}]}}`)
	checktest.OK(t, c.Delete(t.Context(), crd.GroupVersionKind(), clusterapi.KeyOf(crd), clusterapi.DeleteOptions{}))
	_, err := c.Get(t.Context(), crd.GroupVersionKind(), clusterapi.KeyOf(crd))
	checktest.FailIf(t, !apierrors.IsNotFound(err), "got %v, want NotFound", err)
}

func TestNamespaceTakesItsContents(t *testing.T) {
	c := memory.New(memory.Options{CheckNamespaces: true})
	mustApply(t, c, `{apiVersion: v1, kind: Namespace, metadata: {name: ns}}`)
	mustApply(t, c, `{apiVersion: v1, kind: Namespace, metadata: {name: other}}`)
	mustApply(t, c, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}}`)
	mustApply(t, c, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: other}}`)
	mustApply(t, c, `{apiVersion: v1, kind: Secret, metadata: {name: held, namespace: ns, finalizers: [a/b]}}`)
	namespaces := schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	checktest.OK(t, c.Delete(t.Context(), namespaces, clusterapi.Key("", "ns"), clusterapi.DeleteOptions{}))
	ns := mustGet(t, c, namespaces, "", "ns")
	phase, _, _ := unstructured.NestedString(ns.Object, "status", "phase")
	checktest.FailIf(t, phase != "Terminating", "phase %q", phase)
	checktest.SameIn(t, "ConfigMaps", []string{"c"}, state(t, c))
	if _, err := c.Apply(t.Context(), object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: late, namespace: ns}}`), manager); !apierrors.IsForbidden(err) {
		t.Errorf("creating in a namespace that goes: got %v, want Forbidden", err)
	}
	secret := mustGet(t, c, schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, "ns", "held")
	secret.SetFinalizers(nil)
	checktest.Must(c.Update(t.Context(), secret, clusterapi.UpdateOptions{}))
	if _, err := c.Get(t.Context(), namespaces, clusterapi.Key("", "ns")); !apierrors.IsNotFound(err) {
		t.Errorf("the empty namespace is still there: %v", err)
	}
}

func TestDefinitionTakesItsObjects(t *testing.T) {
	c := memory.New(memory.Options{})
	crd := mustApply(t, c, benchDefinition)
	mustApply(t, c, benchWidget)
	checktest.OK(t, c.Delete(t.Context(), crd.GroupVersionKind(), clusterapi.KeyOf(crd), clusterapi.DeleteOptions{}))
	mustApply(t, c, benchDefinition)
	list := checktest.Get(c.List(t.Context(), widgets, clusterapi.ListOptions{}))(t)
	checktest.Equal(t, 0, len(list.Items), "len(list.Items)")
}

func TestGracefulPods(t *testing.T) {
	gvk := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	c := memory.New(memory.Options{GracefulPods: true})
	mustLoad(t, c,
		`{apiVersion: v1, kind: Pod, metadata: {name: placed, namespace: ns}, spec: {nodeName: a}}`,
		`{apiVersion: v1, kind: Pod, metadata: {name: evicted, namespace: ns}, spec: {nodeName: a, terminationGracePeriodSeconds: 600}}`,
		`{apiVersion: v1, kind: Pod, metadata: {name: waiting, namespace: ns}, spec: {}}`)
	zero := int64(5)
	for name, end := range map[string]func(context.Context) error{
		"placed": func(ctx context.Context) error {
			return c.Delete(ctx, gvk, clusterapi.Key("ns", "placed"), clusterapi.DeleteOptions{})
		},
		"waiting": func(ctx context.Context) error {
			return c.Delete(ctx, gvk, clusterapi.Key("ns", "waiting"), clusterapi.DeleteOptions{})
		},
		"evicted": func(ctx context.Context) error {
			return c.Evict(ctx, clusterapi.Key("ns", "evicted"), clusterapi.EvictOptions{GracePeriodSeconds: &zero})
		},
	} {
		if err := end(t.Context()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for name, want := range map[string]int64{"placed": 30, "evicted": 5} {
		u := mustGet(t, c, gvk, "ns", name)
		if got := u.GetDeletionGracePeriodSeconds(); u.GetDeletionTimestamp() == nil || got == nil || *got != want {
			t.Errorf("%s: deletionTimestamp %v, grace %v, want %d", name, u.GetDeletionTimestamp(), got, want)
		}
		u.SetLabels(map[string]string{"a": "b"})
		checktest.Must(c.Update(t.Context(), u, clusterapi.UpdateOptions{}))
		if err := c.Remove(gvk, clusterapi.Key("ns", name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.Get(t.Context(), gvk, clusterapi.Key("ns", "waiting")); !apierrors.IsNotFound(err) {
		t.Errorf("a pod on no node: got %v, want NotFound", err)
	}
}
