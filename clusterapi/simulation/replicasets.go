package simulation

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/disruption"
)

// replicaSets plays the replica set controller: as many pods as wanted, not
// counting those that are about to end.
func (p *process) replicaSets() *behaviour {
	return &behaviour{
		name: "replica sets",
		watches: []reconcile.Watch{
			p.watch(kindReplicaSet, wakeChanged(0)),
			p.watch(kindPod, unless(alike(sameForControllers), itsController(kindReplicaSet.Kind))),
		},
		look: func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			o, rs, err := read[appsv1.ReplicaSet](ctx, p, kindReplicaSet, named(r.Key))
			if o == nil || err != nil {
				return reconcile.Result{}, err
			}
			return reconcile.Result{}, p.replicate(ctx, o, rs)
		},
	}
}

// sameForControllers reports whether nothing of a pod changed that controllers and
// budgets look at.
func sameForControllers(a, b *corev1.Pod) bool {
	return a.UID == b.UID && isActive(a) == isActive(b) && isReady(a) == isReady(b) &&
		a.DeletionTimestamp.Equal(b.DeletionTimestamp) && maps.Equal(a.Labels, b.Labels) && a.Spec.NodeName == b.Spec.NodeName &&
		reflect.DeepEqual(metav1.GetControllerOfNoCopy(a), metav1.GetControllerOfNoCopy(b))
}

func (p *process) replicate(ctx context.Context, o *clusterapi.Object, rs *appsv1.ReplicaSet) error {
	type member struct {
		stored *clusterapi.Object
		ready  bool
	}
	var active []member
	names := make(map[string]bool)
	for _, o := range p.podsOf.At(string(rs.UID)) {
		pod, err := clusterapi.As[corev1.Pod](o)
		if err != nil {
			return err
		}
		names[pod.Name] = true
		if isActive(pod) {
			active = append(active, member{o, isReady(pod)})
		}
	}
	want, made := int(replicasOf(rs.Spec.Replicas)), 0
	for n := 0; len(active)+made < want; n++ {
		name := fmt.Sprintf("%s-%d", rs.Name, n)
		if names[name] {
			continue
		}
		if err := createTyped(ctx, p, podFor(rs.Namespace, name, &rs.Spec.Template, metav1.NewControllerRef(rs, kindReplicaSet))); err != nil {
			return err
		}
		made++
	}
	if len(active) > want {
		slices.SortStableFunc(active, func(a, b member) int { // those that are not Ready go first
			if a.ready != b.ready {
				if a.ready {
					return -1
				}
				return 1
			}
			return cmp.Compare(a.stored.Name(), b.stored.Name())
		})
		for _, m := range active[want:] {
			if err := p.remove(ctx, m.stored); err != nil {
				return err
			}
		}
		active = active[:want]
	}
	ready, count := int32(0), int32(len(active)+made)
	for _, m := range active {
		if m.ready {
			ready++
		}
	}
	_, err := change(ctx, p, o, true, func(rs *appsv1.ReplicaSet) {
		s := &rs.Status
		s.ObservedGeneration = rs.Generation
		s.Replicas, s.FullyLabeledReplicas = count, count
		s.ReadyReplicas, s.AvailableReplicas = ready, ready
	})
	return err
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

// isActive reports whether a controller counts a pod.
func isActive(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

func isReady(p *corev1.Pod) bool { return disruption.Ready(p) }
