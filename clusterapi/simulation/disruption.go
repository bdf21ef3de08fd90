package simulation

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/disruption"
)

// budgets plays the disruption controller.
func (p *process) budgets() *behaviour {
	return &behaviour{
		name: "disruption budgets",
		look: p.lookAtBudget,
		watches: []reconcile.Watch{
			p.watch(kindBudget, wakeChanged(0)),
			p.watch(kindPod, unless(alike(sameForControllers), p.budgetsOfPod)),
			p.watch(kindDeployment, unless(sameSpec, p.budgetsOfScale)),
			p.watch(kindReplicaSet, unless(sameSpec, p.budgetsOfScale)),
			p.watch(kindStatefulSet, unless(sameSpec, p.budgetsOfScale)),
		},
	}
}

// budgetsOfPod wakes for the budgets that select a pod, or did.
func (p *process) budgetsOfPod(old, new *clusterapi.Object) (wakes []reconcile.Wake) {
	for _, o := range p.budgetsIn.At(either(old, new).Key().Namespace) {
		b, err := clusterapi.As[policyv1.PodDisruptionBudget](o)
		if err != nil {
			continue
		}
		selector := disruption.Selector(b)
		for _, pod := range []*clusterapi.Object{old, new} {
			if pod != nil && selector.Matches(labels.Set(pod.Unstructured().GetLabels())) {
				wakes = append(wakes, reconcile.Wake{Key: keyOf(o)})
				break
			}
		}
	}
	return wakes
}

// budgetsOfScale wakes for the budgets of a namespace when the wanted number of
// somebody's pods changes.
func (p *process) budgetsOfScale(old, new *clusterapi.Object) (wakes []reconcile.Wake) {
	for _, o := range p.budgetsIn.At(either(old, new).Key().Namespace) {
		wakes = append(wakes, reconcile.Wake{Key: keyOf(o)})
	}
	return wakes
}

func (p *process) lookAtBudget(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	none := reconcile.Result{}
	stored := p.budgetsKnown.Get(named(r.Key))
	if stored == nil {
		return none, nil
	}
	b, err := clusterapi.As[policyv1.PodDisruptionBudget](stored)
	if err != nil || b.DeletionTimestamp != nil {
		return none, err
	}
	matched, err := p.selected(b)
	if err != nil {
		return none, err
	}
	scale, err := p.scaleOfPods(ctx, b.Namespace, matched)
	if err != nil {
		return none, err
	}
	status, again := disruption.Status(b, matched, scale, r.Now)
	_, err = change(ctx, p, stored, true, func(b *policyv1.PodDisruptionBudget) { b.Status = status })
	return later(r, again), err
}

// selected returns the pods that a budget selects, by name.
func (p *process) selected(b *policyv1.PodDisruptionBudget) (matched []*corev1.Pod, err error) {
	// Those that have one of the labels that are asked for are fewer.
	key := b.Namespace
	if b.Spec.Selector != nil {
		for k, v := range b.Spec.Selector.MatchLabels {
			if label := labelKey(b.Namespace, k, v); key == b.Namespace || p.podsIn.Count(label) < p.podsIn.Count(key) {
				key = label
			}
		}
	}
	selector := disruption.Selector(b)
	for _, o := range p.podsIn.At(key) {
		pod, err := clusterapi.As[corev1.Pod](o)
		if err != nil {
			return nil, err
		}
		if selector.Matches(labels.Set(pod.Labels)) {
			matched = append(matched, pod)
		}
	}
	return matched, nil
}

// placesOfPod are a pod's keys in the index of namespaces and labels.
func placesOfPod(o *clusterapi.Object) []string {
	namespace := o.Key().Namespace
	out := []string{namespace}
	for k, v := range o.Unstructured().GetLabels() {
		out = append(out, labelKey(namespace, k, v))
	}
	return out
}

func labelKey(namespace, key, value string) string { return namespace + " " + key + "=" + value }

// scaleOfPods returns the sum of the scales of the controllers of pods.
func (p *process) scaleOfPods(ctx context.Context, namespace string, pods []*corev1.Pod) (sum int32, err error) {
	var asked, counted []types.UID
	for _, pod := range pods {
		owner := metav1.GetControllerOfNoCopy(pod)
		if owner == nil || slices.Contains(asked, owner.UID) {
			continue
		}
		asked = append(asked, owner.UID)
		uid, scale, err := p.scaleOf(ctx, namespace, owner)
		if err != nil {
			return 0, err
		}
		if !slices.Contains(counted, uid) { // two ReplicaSets of one Deployment
			counted = append(counted, uid)
			sum += scale
		}
	}
	return sum, nil
}

// scaleOf returns the scale of a pod's controller, of the Deployment behind a
// ReplicaSet; zero for kinds that have no scale and for one that does not exist.
func (p *process) scaleOf(ctx context.Context, namespace string, owner *metav1.OwnerReference) (types.UID, int32, error) {
	key := clusterapi.Key(namespace, owner.Name)
	uid, scale := owner.UID, int32(0)
	var err error
	switch owner.Kind {
	case kindReplicaSet.Kind:
		var rs *appsv1.ReplicaSet
		rs, err = clusterapi.Read[appsv1.ReplicaSet](ctx, p.api, key)
		if err == nil {
			if above := metav1.GetControllerOfNoCopy(rs); above != nil && above.Kind == kindDeployment.Kind {
				return p.scaleOf(ctx, namespace, above)
			}
			uid, scale = rs.UID, replicasOf(rs.Spec.Replicas)
		}
	case kindDeployment.Kind:
		var d *appsv1.Deployment
		d, err = clusterapi.Read[appsv1.Deployment](ctx, p.api, key)
		if err == nil {
			uid, scale = d.UID, replicasOf(d.Spec.Replicas)
		}
	case kindStatefulSet.Kind:
		var s *appsv1.StatefulSet
		s, err = clusterapi.Read[appsv1.StatefulSet](ctx, p.api, key)
		if err == nil {
			uid, scale = s.UID, replicasOf(s.Spec.Replicas)
		}
	}
	if apierrors.IsNotFound(err) {
		err = nil
	}
	return uid, scale, err
}
