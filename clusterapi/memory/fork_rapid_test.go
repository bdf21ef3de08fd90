package memory_test

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// A fork and a cluster into which the same objects were loaded answer alike,
// whichever verbs come in whichever order, and reads that fail at first change
// nothing.
func TestForkProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		kinds := []schema.GroupVersionKind{cms, {Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "ServiceAccount"}, namespaceGVK}
		draw := func() *unstructured.Unstructured {
			u := &unstructured.Unstructured{Object: map[string]any{}}
			u.SetGroupVersionKind(rapid.SampledFrom(kinds).Draw(rt, "kind"))
			u.SetName(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "name"))
			if u.GetKind() != "Namespace" {
				u.SetNamespace(rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "namespace"))
			}
			return u
		}
		base, plain := memory.New(memory.Options{}), memory.New(memory.Options{})
		uid := func(u *unstructured.Unstructured) string {
			return u.GetKind() + "-" + u.GetNamespace() + "-" + u.GetName()
		}
		for range rapid.IntRange(0, 12).Draw(rt, "objects") {
			u := draw()
			u.Object["metadata"].(map[string]any)["uid"] = uid(u)
			if u.GetKind() == "Secret" && rapid.Bool().Draw(rt, "owned") { // by an object that is there
				owner := "b"
				o := &unstructured.Unstructured{Object: map[string]any{}}
				o.SetGroupVersionKind(cms)
				o.SetNamespace(u.GetNamespace())
				o.SetName(owner)
				o.SetUID("")
				o.Object["metadata"].(map[string]any)["uid"] = uid(o)
				_, _ = base.Load(o), plain.Load(o)
				u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner, UID: o.GetUID()}})
			}
			if one, two := base.Load(u), plain.Load(u); (one == nil) != (two == nil) {
				rt.Fatal(one, two)
			}
		}
		tries := rapid.IntRange(0, 2).Draw(rt, "failures")
		down := errors.New("down")
		fork := memory.New(memory.Options{Base: &origin{Reader: base, fail: func(_ schema.GroupVersionKind, nth int) error {
			if nth <= tries {
				return down
			}
			return nil
		}}})
		// again repeats a verb until the base answers.
		again := func(verb func(c *memory.Cluster) error) error {
			for {
				if err := verb(fork); !errors.Is(err, down) {
					return err
				}
			}
		}
		for range rapid.IntRange(1, 15).Draw(rt, "verbs") {
			u := draw()
			key := clusterapi.KeyOf(u)
			how := rapid.SampledFrom([]metav1.DeletionPropagation{"", metav1.DeletePropagationOrphan, metav1.DeletePropagationForeground}).Draw(rt, "propagation")
			verb := rapid.SampledFrom([]func(c *memory.Cluster) error{
				func(c *memory.Cluster) error { _, err := c.Get(t.Context(), u.GroupVersionKind(), key); return err },
				func(c *memory.Cluster) error { _, err := c.Apply(t.Context(), u, manager); return err },
				func(c *memory.Cluster) error {
					_, err := c.Create(t.Context(), u, clusterapi.CreateOptions{})
					return err
				},
				func(c *memory.Cluster) error {
					return c.Delete(t.Context(), u.GroupVersionKind(), key, clusterapi.DeleteOptions{Propagation: how})
				},
			}).Draw(rt, "verb")
			want, got := verb(plain), again(verb)
			checktest.FatalIf(rt, apierrors.ReasonForError(want) != apierrors.ReasonForError(got),
				"%s %s: %v, of a fork %v", u.GetKind(), key, want, got)
		}
		for _, k := range kinds {
			state := func(c *memory.Cluster) (out string, err error) {
				list, err := c.List(t.Context(), k, clusterapi.ListOptions{})
				if err != nil {
					return "", err
				}
				for _, u := range list.Items {
					out += fmt.Sprintln(u.GetNamespace(), u.GetName(), len(u.GetOwnerReferences()), u.GetDeletionTimestamp() != nil)
				}
				return out, nil
			}
			want := checktest.Must(state(plain))
			var got string
			if err := again(func(c *memory.Cluster) (err error) { got, err = state(c); return err }); err != nil || got != want {
				rt.Fatalf("%s: got\n%swant\n%s%v", k.Kind, got, want, err)
			}
		}
	})
}
