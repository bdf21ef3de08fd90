package simulation

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// schedulerReaction places pods that have no node.
func (c *Cluster) schedulerReaction() reaction {
	return reaction{
		name:  loopScheduler,
		kinds: only(kindPod, kindNode),
		keys: func(u *unstructured.Unstructured) []string {
			if u.GetKind() == kindPod.Kind {
				if node, _, _ := unstructured.NestedString(u.Object, "spec", "nodeName"); node != "" {
					return nil
				}
			}
			return []string{everyPod}
		},
		react: func(ctx context.Context, _ string) (time.Duration, error) {
			pods, err := clusterapi.List[corev1.Pod](ctx, c, clusterapi.ListOptions{})
			if err != nil {
				return 0, err
			}
			var nodes []corev1.Node
			for i := range pods {
				p := &pods[i]
				if p.Spec.NodeName != "" || p.DeletionTimestamp != nil {
					continue
				}
				if nodes == nil {
					if nodes, err = clusterapi.List[corev1.Node](ctx, c, clusterapi.ListOptions{}); err != nil {
						return 0, err
					}
				}
				if err := c.place(ctx, p, nodes, pods); err != nil {
					return 0, err
				}
			}
			return 0, nil
		},
	}
}

// everyPod is the one key of the scheduler: it looks at all pods that wait.
const everyPod = "*"

// place binds a pod to the node that suits it best, or notes that there is
// none. The choice counts in pods for the ones after it.
func (c *Cluster) place(ctx context.Context, p *corev1.Pod, nodes []corev1.Node, pods []corev1.Pod) error {
	node := choose(p, nodes, pods)
	now := metav1.NewTime(c.clock.Now())
	key := clusterapi.Key(p.Namespace, p.Name)
	if node != "" {
		_, err := clusterapi.Modify(ctx, c, key, modify, func(stored *corev1.Pod) error {
			if stored.UID == p.UID && stored.Spec.NodeName == "" {
				stored.Spec.NodeName = node
			}
			return nil
		})
		if err != nil {
			return ignoreNotFound(err)
		}
		p.Spec.NodeName = node
	}
	_, err := clusterapi.Modify(ctx, c, key, modifyStatus, func(stored *corev1.Pod) error {
		status, reason := corev1.ConditionTrue, ""
		if node == "" {
			status, reason = corev1.ConditionFalse, corev1.PodReasonUnschedulable
		}
		if stored.UID == p.UID {
			setPodCondition(&stored.Status, corev1.PodScheduled, status, reason, now)
		}
		return nil
	})
	return ignoreNotFound(err)
}

// choose returns the node for a pod, "" if none will do. A node must be Ready
// and schedulable, carry the labels that the pod's nodeSelector names, and
// have no taint that the pod does not tolerate. Of several, those without a
// taint that asks to be avoided come first, then those with the fewest pods of
// the same controller, then with the fewest pods (those that run on every node
// do not count), then by name.
func choose(p *corev1.Pod, nodes []corev1.Node, pods []corev1.Pod) string {
	type score struct {
		name                string
		avoid, same, others int
	}
	owner := metav1.GetControllerOfNoCopy(p)
	same, others := make(map[string]int), make(map[string]int)
	for i := range pods {
		q := &pods[i]
		if q.Spec.NodeName == "" || q.Status.Phase == corev1.PodSucceeded || q.Status.Phase == corev1.PodFailed {
			continue
		}
		o := metav1.GetControllerOfNoCopy(q)
		if o == nil || o.Kind != kindDaemonSet.Kind {
			others[q.Spec.NodeName]++ // one that is about to end takes room still
		}
		if owner != nil && o != nil && o.UID == owner.UID {
			same[q.Spec.NodeName]++
		}
	}
	selector := labels.SelectorFromSet(p.Spec.NodeSelector)
	var fit []score
	for i := range nodes {
		n := &nodes[i]
		ready := nodeCondition(&n.Status, corev1.NodeReady)
		if n.Spec.Unschedulable || n.DeletionTimestamp != nil || ready == nil || ready.Status != corev1.ConditionTrue ||
			!selector.Matches(labels.Set(n.Labels)) || !toleratesRole(&p.Spec, n) {
			continue
		}
		s := score{name: n.Name, same: same[n.Name], others: others[n.Name]}
		for j := range n.Spec.Taints {
			if t := &n.Spec.Taints[j]; t.Effect == corev1.TaintEffectPreferNoSchedule && !tolerates(&p.Spec, t) {
				s.avoid++
			}
		}
		fit = append(fit, s)
	}
	if len(fit) == 0 {
		return ""
	}
	best := slices.MinFunc(fit, func(a, b score) int {
		return cmp.Or(cmp.Compare(a.avoid, b.avoid), cmp.Compare(a.same, b.same),
			cmp.Compare(a.others, b.others), cmp.Compare(a.name, b.name))
	})
	return best.name
}

// tolerates says whether a pod tolerates a taint.
func tolerates(spec *corev1.PodSpec, t *corev1.Taint) bool {
	return slices.ContainsFunc(spec.Tolerations, func(tol corev1.Toleration) bool {
		if tol.Effect != "" && tol.Effect != t.Effect {
			return false
		}
		if tol.Operator == corev1.TolerationOpExists {
			return tol.Key == "" || tol.Key == t.Key
		}
		return tol.Key == t.Key && tol.Value == t.Value
	})
}
