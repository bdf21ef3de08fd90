package simulation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// replicaSetReaction plays the replica set controller: as many pods as wanted,
// not counting those that are about to end.
func (c *Cluster) replicaSetReaction() reaction {
	return reaction{
		name:  loopReplicaSets,
		kinds: only(kindReplicaSet, kindPod),
		keys: func(u *unstructured.Unstructured) []string {
			if u.GetKind() == kindPod.Kind {
				return ownerPath(u, kindReplicaSet.Kind)
			}
			return pathOf(u)
		},
		react: func(ctx context.Context, key string) (time.Duration, error) {
			rs, err := clusterapi.Get[appsv1.ReplicaSet](ctx, c, keyOfPath(key))
			if err != nil || rs.DeletionTimestamp != nil {
				return 0, ignoreNotFound(err)
			}
			return 0, c.reactReplicaSet(ctx, rs)
		},
	}
}

func (c *Cluster) reactReplicaSet(ctx context.Context, rs *appsv1.ReplicaSet) error {
	owned, err := c.podsOf(ctx, rs.Namespace, rs.UID)
	if err != nil {
		return err
	}
	var active []*corev1.Pod
	names := make(map[string]bool)
	for i := range owned {
		p := &owned[i]
		names[p.Name] = true
		if isActive(p) {
			active = append(active, p)
		}
	}
	want := int(replicasOf(rs.Spec.Replicas))
	for n := 0; len(active) < want; n++ {
		name := fmt.Sprintf("%s-%d", rs.Name, n)
		if names[name] {
			continue
		}
		p, err := clusterapi.Create(ctx, c, podFor(rs.Namespace, name, &rs.Spec.Template, metav1.NewControllerRef(rs, kindReplicaSet)), create)
		if err != nil {
			return err
		}
		active = append(active, p)
	}
	if len(active) > want {
		slices.SortStableFunc(active, func(a, b *corev1.Pod) int {
			switch ra, rb := isReady(a), isReady(b); {
			case ra && !rb:
				return -1
			case rb && !ra:
				return 1
			}
			return strings.Compare(a.Name, b.Name)
		})
		for _, p := range active[want:] {
			err := c.Delete(ctx, kindPod, clusterapi.Key(p.Namespace, p.Name), clusterapi.DeleteOptions{UID: p.UID})
			if ignoreNotFound(err) != nil {
				return err
			}
		}
		active = active[:want]
	}
	ready := int32(0)
	for _, p := range active {
		if isReady(p) {
			ready++
		}
	}
	_, err = clusterapi.Modify(ctx, c, clusterapi.Key(rs.Namespace, rs.Name), modifyStatus, func(stored *appsv1.ReplicaSet) error {
		s := &stored.Status
		s.ObservedGeneration = rs.Generation
		s.Replicas, s.FullyLabeledReplicas = int32(len(active)), int32(len(active))
		s.ReadyReplicas, s.AvailableReplicas = ready, ready
		return nil
	})
	return ignoreNotFound(err)
}

// podsOf returns the pods that a controller owns, by name.
func (c *Cluster) podsOf(ctx context.Context, namespace string, owner types.UID) ([]corev1.Pod, error) {
	all, err := clusterapi.List[corev1.Pod](ctx, c, clusterapi.ListOptions{Namespace: namespace})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(p corev1.Pod) bool {
		ref := metav1.GetControllerOfNoCopy(&p)
		return ref == nil || ref.UID != owner
	}), nil
}

// podFor is a pod of a controller's template.
func podFor(namespace, name string, t *corev1.PodTemplateSpec, owner *metav1.OwnerReference) *corev1.Pod {
	t = t.DeepCopy()
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: t.Labels, Annotations: t.Annotations,
			OwnerReferences: []metav1.OwnerReference{*owner},
		},
		Spec:   t.Spec,
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
}

// isActive says whether a controller counts a pod.
func isActive(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

func isReady(p *corev1.Pod) bool {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == corev1.PodReady {
			return p.Status.Conditions[i].Status == corev1.ConditionTrue
		}
	}
	return false
}
