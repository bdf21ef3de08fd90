package preview

import (
	"context"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Rolls are the pods that are replaced because a pod template changes. It is
// plain data.
type Rolls struct {
	// Pods are sorted by name.
	Pods []Pod `json:"pods,omitempty"`
	// Unknown explains why there may be more of them; empty if there are not.
	Unknown string `json:"unknown,omitempty"`
}

// Pod is a pod, in the namespace of its workload. It is plain data.
type Pod struct {
	Name string `json:"name"`
	// Node is where it runs; empty while it does not.
	Node string `json:"node,omitempty"`
}

// Nodes are those on which the pods run, sorted.
func (r *Rolls) Nodes() []string {
	var out []string
	for _, p := range r.Pods {
		if p.Node != "" {
			out = append(out, p.Node)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

var podKind = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}

// rolls finds the pods of a workload whose template changes.
func (r *run) rolls(ctx context.Context, c *Change) error {
	if !rollsOut(c) {
		return nil
	}
	c.Rolls = &Rolls{}
	selector, err := selectorOf(c.old)
	if err != nil {
		c.Rolls.Unknown = err.Error()
		return nil
	}
	o := clusterapi.ListOptions{Namespace: c.Object.Namespace, Labels: selector}
	pods, err := clusterapi.ReadAll[corev1.Pod](ctx, r.base, o)
	if errors.Is(err, clusterapi.ErrNotCollected) {
		c.Rolls.Unknown = err.Error()
	} else if err != nil && !clusterapi.IsMissing(err) {
		return errorf("pods of %s: %w", c.Object, err)
	}
	for _, p := range pods {
		if !belongs(p, c.Object) {
			continue
		}
		c.Rolls.Pods = append(c.Rolls.Pods, Pod{Name: p.Name, Node: p.Spec.NodeName})
	}
	slices.SortFunc(c.Rolls.Pods, func(a, b Pod) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// belongs reports whether a pod is one of a workload: its controller is the workload or,
// of a Deployment, a ReplicaSet named after it. A pod without a controller counts.
func belongs(p *corev1.Pod, workload Object) bool {
	controller := metav1.GetControllerOf(p)
	if controller == nil {
		return true
	}
	if workload.Kind == "Deployment" {
		hash, ok := strings.CutPrefix(controller.Name, workload.Name+"-")
		return ok && controller.Kind == "ReplicaSet" && !strings.Contains(hash, "-")
	}
	return controller.Kind == workload.Kind && controller.Name == workload.Name
}

// rollsOut reports that the pods of a workload are replaced.
func rollsOut(c *Change) bool {
	if c.Object.Group != "apps" {
		return false
	}
	switch c.Object.Kind {
	case "Deployment":
		if paused, _, _ := unstructured.NestedBool(c.new.Object, "spec", "paused"); paused {
			return false
		}
	case "DaemonSet", "StatefulSet":
		if kind, _, _ := unstructured.NestedString(c.new.Object, "spec", "updateStrategy", "type"); kind == "OnDelete" {
			return false
		}
	default:
		return false
	}
	return slices.ContainsFunc(c.Fields, func(f clusterapi.FieldChange) bool { return strings.HasPrefix(f.Path, "spec.template") })
}

// selectorOf is the selector of a workload.
func selectorOf(workload *unstructured.Unstructured) (labels.Selector, error) {
	content, _, err := unstructured.NestedMap(workload.Object, "spec", "selector")
	if err != nil {
		return nil, err
	}
	var s metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &s); err != nil {
		return nil, err
	}
	return metav1.LabelSelectorAsSelector(&s)
}
