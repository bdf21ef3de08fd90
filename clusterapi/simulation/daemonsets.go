package simulation

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// daemonSetReaction plays the daemon set controller.
func (c *Cluster) daemonSetReaction() reaction {
	return reaction{
		name:  loopDaemonSets,
		kinds: only(kindDaemonSet, kindPod, kindNode),
		keys: func(u *unstructured.Unstructured) []string {
			switch u.GetKind() {
			case kindPod.Kind:
				return ownerPath(u, kindDaemonSet.Kind)
			case kindNode.Kind:
				return []string{everyDaemonSet}
			}
			return pathOf(u)
		},
		react: func(ctx context.Context, key string) (time.Duration, error) {
			if key == everyDaemonSet {
				return 0, c.reactNodesChanged(ctx)
			}
			ds, err := clusterapi.Get[appsv1.DaemonSet](ctx, c, keyOfPath(key))
			if err != nil || ds.DeletionTimestamp != nil {
				return 0, ignoreNotFound(err)
			}
			nodes, err := clusterapi.List[corev1.Node](ctx, c, clusterapi.ListOptions{})
			if err != nil {
				return 0, err
			}
			if ds.Annotations[AnnotationPods] == "true" {
				return 0, c.reactDaemonSetWithPods(ctx, ds, nodes)
			}
			return c.rollOutDaemonSet(ctx, ds, nodes)
		},
	}
}

// everyDaemonSet is no valid name of an object.
const everyDaemonSet = "*"

// reactNodesChanged looks at the daemon sets that have pods: nodes come, go
// and change their labels.
func (c *Cluster) reactNodesChanged(ctx context.Context) error {
	list, err := c.List(ctx, kindDaemonSet, clusterapi.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		if list.Items[i].GetAnnotations()[AnnotationPods] == "true" {
			wake(ctx, path(&list.Items[i]))
		}
	}
	return nil
}

// rollOutDaemonSet plays a rollout without pods.
func (c *Cluster) rollOutDaemonSet(ctx context.Context, ds *appsv1.DaemonSet, nodes []corev1.Node) (time.Duration, error) {
	count := int32(0)
	for i := range nodes {
		if runsOn(&ds.Spec.Template.Spec, &nodes[i]) {
			count++
		}
	}
	if s := &ds.Status; s.ObservedGeneration == ds.Generation && s.UpdatedNumberScheduled == s.DesiredNumberScheduled {
		return 0, nil
	}
	left := c.seen.remaining(fmt.Sprintf("daemonset %s %d", ds.UID, ds.Generation), c.timing.Workload, c.clock.Now())
	_, err := clusterapi.Modify(ctx, c, clusterapi.Key(ds.Namespace, ds.Name), modifyStatus, func(stored *appsv1.DaemonSet) error {
		s := &stored.Status
		s.ObservedGeneration = ds.Generation
		s.DesiredNumberScheduled, s.CurrentNumberScheduled = count, count
		s.UpdatedNumberScheduled = 0
		if left <= 0 {
			s.UpdatedNumberScheduled, s.NumberReady, s.NumberAvailable = count, count, count
		}
		s.NumberUnavailable = max(count-s.NumberAvailable, 0)
		return nil
	})
	return left, ignoreNotFound(err)
}

// reactDaemonSetWithPods keeps a pod on every node that matches. Pods of an
// older template are replaced one at a time.
func (c *Cluster) reactDaemonSetWithPods(ctx context.Context, ds *appsv1.DaemonSet, nodes []corev1.Node) error {
	owned, err := c.podsOf(ctx, ds.Namespace, ds.UID)
	if err != nil {
		return err
	}
	byNode := make(map[string]*corev1.Pod)
	for i := range owned {
		byNode[owned[i].Spec.NodeName] = &owned[i]
	}
	hash := templateHash(&ds.Spec.Template)
	var desired, ready, updated int32
	var outdated *corev1.Pod
	for i := range nodes {
		n := &nodes[i]
		p := byNode[n.Name]
		if !runsOn(&ds.Spec.Template.Spec, n) {
			if p != nil && p.DeletionTimestamp == nil {
				err := c.Delete(ctx, kindPod, clusterapi.Key(p.Namespace, p.Name), clusterapi.DeleteOptions{UID: p.UID})
				if ignoreNotFound(err) != nil {
					return err
				}
			}
			continue
		}
		desired++
		if p == nil {
			if p, err = c.createDaemonPod(ctx, ds, n.Name, hash); err != nil {
				return err
			}
		}
		if p.Labels[appsv1.ControllerRevisionHashLabelKey] == hash {
			updated++
		} else if outdated == nil && p.DeletionTimestamp == nil {
			outdated = p
		}
		if isActive(p) && isReady(p) {
			ready++
		}
	}
	if outdated != nil && (ready == desired || !isReady(outdated)) {
		err := c.Delete(ctx, kindPod, clusterapi.Key(outdated.Namespace, outdated.Name), clusterapi.DeleteOptions{UID: outdated.UID})
		if ignoreNotFound(err) != nil {
			return err
		}
	}
	_, err = clusterapi.Modify(ctx, c, clusterapi.Key(ds.Namespace, ds.Name), modifyStatus, func(stored *appsv1.DaemonSet) error {
		s := &stored.Status
		s.ObservedGeneration = ds.Generation
		s.DesiredNumberScheduled, s.CurrentNumberScheduled, s.UpdatedNumberScheduled = desired, desired, updated
		s.NumberReady, s.NumberAvailable, s.NumberUnavailable = ready, ready, desired-ready
		return nil
	})
	return ignoreNotFound(err)
}

func (c *Cluster) createDaemonPod(ctx context.Context, ds *appsv1.DaemonSet, node, hash string) (*corev1.Pod, error) {
	p := podFor(ds.Namespace, ds.Name+"-"+node, &ds.Spec.Template, metav1.NewControllerRef(ds, kindDaemonSet))
	p.Labels = withLabel(p.Labels, appsv1.ControllerRevisionHashLabelKey, hash)
	p.Spec.NodeName = node
	created, err := clusterapi.Create(ctx, c, p, create)
	if ignoreExists(err) != nil {
		return nil, err
	}
	if err != nil { // of that name, but not placed there
		return p, nil
	}
	return created, nil
}

// runsOn says whether a daemon set has a pod on a node. Cordons and taints of
// the node's state do not keep it away.
func runsOn(spec *corev1.PodSpec, n *corev1.Node) bool {
	return labels.SelectorFromSet(spec.NodeSelector).Matches(labels.Set(n.Labels)) && toleratesRole(spec, n)
}

// toleratesRole says whether a pod tolerates the taints that say what a node
// is for, as opposed to those that say how it is.
func toleratesRole(spec *corev1.PodSpec, n *corev1.Node) bool {
	for i := range n.Spec.Taints {
		t := &n.Spec.Taints[i]
		switch t.Key {
		case corev1.TaintNodeUnschedulable, corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable:
			continue
		}
		if t.Effect != corev1.TaintEffectPreferNoSchedule && !tolerates(spec, t) {
			return false
		}
	}
	return true
}
