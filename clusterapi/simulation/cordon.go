package simulation

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Update is [memory.Cluster.Update]. A node that it cordons gets the taint
// node.kubernetes.io/unschedulable with the time, and one that it uncordons loses
// it: Kubernetes' node life-cycle controller does that soon after the write. Errors
// are those of memory.Cluster.
func (c *Cluster) Update(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	if obj != nil && obj.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("Node") {
		obj = withCordonTaint(obj, c.clock.Now())
	}
	return c.Cluster.Update(ctx, obj, o)
}

// withCordonTaint returns a node whose taints agree with spec.unschedulable: node
// itself if they do.
func withCordonTaint(node *unstructured.Unstructured, now time.Time) *unstructured.Unstructured {
	cordoned, _, _ := unstructured.NestedBool(node.Object, "spec", "unschedulable")
	taints, _, err := unstructured.NestedSlice(node.Object, "spec", "taints")
	if err != nil {
		return node // which the API refuses
	}
	isCordon := func(taint any) bool {
		t, _ := taint.(map[string]any)
		return t["key"] == corev1.TaintNodeUnschedulable
	}
	if slices.ContainsFunc(taints, isCordon) == cordoned {
		return node
	}
	if cordoned {
		taints = append(taints, map[string]any{
			"key": corev1.TaintNodeUnschedulable, "effect": string(corev1.TaintEffectNoSchedule), "timeAdded": now.UTC().Format(time.RFC3339),
		})
	} else {
		taints = slices.DeleteFunc(taints, isCordon)
	}
	node = node.DeepCopy()
	if len(taints) == 0 {
		unstructured.RemoveNestedField(node.Object, "spec", "taints")
		return node
	}
	_ = unstructured.SetNestedSlice(node.Object, taints, "spec", "taints") // spec is a map: it was read
	return node
}
