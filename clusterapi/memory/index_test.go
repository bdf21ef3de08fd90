package memory_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func pod(namespace, name, node string, owner types.UID) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": name, "namespace": namespace},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}},
	}}
	if node != "" {
		u.Object["spec"].(map[string]any)["nodeName"] = node
	}
	if owner != "" {
		u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: string(owner), UID: owner}})
	}
	return u
}

// Lists that an index answers are as those that look at every object.
func TestIndexes(t *testing.T) {
	ctx := t.Context()
	c := memory.New(memory.Options{Lenient: true})
	var owners []types.UID
	for i := range 3 {
		owners = append(owners, put(t, c, settings(fmt.Sprint("owner", i), nil)).GetUID())
	}
	owners = append(owners, "")
	nodes := []string{"n1", "n2", "n3", ""}
	kind := pod("", "", "", "").GroupVersionKind()
	draw := rand.New(rand.NewPCG(1, 2))
	for step := range 400 {
		namespace, name := fmt.Sprint("ns", draw.IntN(3)), fmt.Sprint("p", draw.IntN(12))
		if draw.IntN(4) == 0 {
			_ = c.Delete(ctx, kind, clusterapi.Key(namespace, name), clusterapi.DeleteOptions{})
		} else {
			put(t, c, pod(namespace, name, nodes[draw.IntN(4)], owners[draw.IntN(4)]))
		}
		if step%10 != 0 {
			continue
		}
		all := checktest.Must(clusterapi.ReadAll[corev1.Pod](ctx, c, clusterapi.ListOptions{}))
		names := func(pods []*corev1.Pod, keep func(*corev1.Pod) bool) []string {
			out := []string{}
			for _, p := range pods {
				if keep(p) {
					out = append(out, p.Namespace+"/"+p.Name)
				}
			}
			return out
		}
		any := func(*corev1.Pod) bool { return true }
		if !slices.IsSortedFunc(all, func(a, b *corev1.Pod) int {
			return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
		}) {
			t.Fatal("a list is not in order")
		}
		for _, node := range nodes[:3] {
			for _, namespace := range []string{"", "ns1"} {
				found := checktest.Get(clusterapi.ReadAll[corev1.Pod](ctx, c,
					clusterapi.ListOptions{NodeName: node, Namespace: namespace}))(t)
				want := names(all, func(p *corev1.Pod) bool {
					return p.Spec.NodeName == node && (namespace == "" || p.Namespace == namespace)
				})
				if diff := gocmp.Diff(want, names(found, any)); diff != "" {
					t.Fatalf("node %s, namespace %q: %s", node, namespace, diff)
				}
			}
		}
		for _, owner := range owners[:3] {
			found := checktest.Must(c.Dependents(kind, owner))
			got := []string{}
			for _, o := range found {
				got = append(got, o.Key().String())
			}
			want := names(all, func(p *corev1.Pod) bool { return len(p.OwnerReferences) > 0 && p.OwnerReferences[0].UID == owner })
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Fatalf("owner %s: %s", owner, diff)
			}
		}
	}
}
