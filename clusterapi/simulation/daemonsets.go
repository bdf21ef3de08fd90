package simulation

import (
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/placement"
)

// daemonSets plays the daemon set controller.
func (p *process) daemonSets() *behaviour {
	seen := make(since)
	return &behaviour{
		name: "daemon sets",
		watches: []reconcile.Watch{
			p.watch(kindDaemonSet, wakeChanged(0)),
			p.watch(kindPod, unless(alike(sameForControllers), itsController(kindDaemonSet.Kind))),
			p.watch(kindNode, unless(alike(sameForDaemonSets), func(_, _ *clusterapi.Object) []reconcile.Wake {
				return []reconcile.Wake{{Key: everyDaemonSet}}
			})),
		},
		look: func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			if r.Key == everyDaemonSet {
				return p.withPods(ctx)
			}
			o, ds, err := read[appsv1.DaemonSet](ctx, p, kindDaemonSet, named(r.Key))
			switch {
			case o == nil || err != nil:
				return reconcile.Result{}, err
			case ds.Annotations[annotationPods] == "true":
				return reconcile.Result{}, p.daemonPods(ctx, o, ds)
			}
			return p.rollOutDaemonSet(ctx, o, ds, r, seen)
		},
	}
}

// everyDaemonSet is the key of the daemon sets that have pods.
var everyDaemonSet = reconcile.Key{Kind: "every daemon set"}

// sameForDaemonSets reports whether a node is as good a place as before.
func sameForDaemonSets(a, b *corev1.Node) bool {
	return maps.Equal(a.Labels, b.Labels) && slices.Equal(a.Spec.Taints, b.Spec.Taints)
}

// withPods looks at the daemon sets that have pods: nodes come, go and change
// their labels and taints.
func (p *process) withPods(ctx context.Context) (res reconcile.Result, err error) {
	all, err := clusterapi.ListShared(ctx, p.api, kindDaemonSet, clusterapi.ListOptions{})
	for _, o := range all {
		if o.Unstructured().GetAnnotations()[annotationPods] == "true" {
			res.Wake = append(res.Wake, reconcile.Wake{Key: keyOf(o)})
		}
	}
	return res, err
}

// rollOutDaemonSet plays a rollout without pods.
func (p *process) rollOutDaemonSet(ctx context.Context, o *clusterapi.Object, ds *appsv1.DaemonSet, r reconcile.Request, seen since) (reconcile.Result, error) {
	if s := &ds.Status; s.ObservedGeneration == ds.Generation && s.UpdatedNumberScheduled == s.DesiredNumberScheduled {
		return reconcile.Result{}, nil
	}
	count := int32(0)
	for _, o := range p.allNodes.At("") {
		if n, err := clusterapi.As[corev1.Node](o); err == nil && runsOn(&ds.Spec.Template.Spec, n) {
			count++
		}
	}
	left := seen.remaining(fmt.Sprintf("%s %d", ds.UID, ds.Generation), rolloutTime, r.Now)
	_, err := change(ctx, p, o, true, func(ds *appsv1.DaemonSet) {
		s := &ds.Status
		s.ObservedGeneration = ds.Generation
		s.DesiredNumberScheduled, s.CurrentNumberScheduled = count, count
		s.UpdatedNumberScheduled = 0
		if left <= 0 {
			s.UpdatedNumberScheduled, s.NumberReady, s.NumberAvailable = count, count, count
		}
		s.NumberUnavailable = max(count-s.NumberAvailable, 0)
	})
	return later(r, left), err
}

// daemonPods keeps a pod on every node that matches. Pods of an older template
// are replaced one at a time.
func (p *process) daemonPods(ctx context.Context, o *clusterapi.Object, ds *appsv1.DaemonSet) error {
	type member struct {
		stored *clusterapi.Object
		pod    *corev1.Pod
	}
	on := make(map[string]member)
	for _, o := range p.podsOf.At(string(ds.UID)) {
		pod, err := clusterapi.As[corev1.Pod](o)
		if err != nil {
			return err
		}
		on[pod.Spec.NodeName] = member{o, pod}
	}
	hash := templateHash(&ds.Spec.Template)
	var desired, ready, updated int32
	var outdated member
	for _, o := range p.allNodes.At("") {
		n, err := clusterapi.As[corev1.Node](o)
		if err != nil {
			return err
		}
		m := on[n.Name]
		if !runsOn(&ds.Spec.Template.Spec, n) {
			if m.pod != nil && m.pod.DeletionTimestamp == nil {
				if err := p.remove(ctx, m.stored); err != nil {
					return err
				}
			}
			continue
		}
		desired++
		if m.pod == nil {
			if err := createTyped(ctx, p, daemonPod(ds, n.Name, hash)); err != nil {
				return err
			}
			updated++
			continue
		}
		if m.pod.Labels[appsv1.ControllerRevisionHashLabelKey] == hash {
			updated++
		} else if outdated.pod == nil && m.pod.DeletionTimestamp == nil {
			outdated = m
		}
		if isActive(m.pod) && isReady(m.pod) {
			ready++
		}
	}
	if outdated.pod != nil && (ready == desired || !isReady(outdated.pod)) {
		if err := p.remove(ctx, outdated.stored); err != nil {
			return err
		}
	}
	_, err := change(ctx, p, o, true, func(ds *appsv1.DaemonSet) {
		s := &ds.Status
		s.ObservedGeneration = ds.Generation
		s.DesiredNumberScheduled, s.CurrentNumberScheduled, s.UpdatedNumberScheduled = desired, desired, updated
		s.NumberReady, s.NumberAvailable, s.NumberUnavailable = ready, ready, desired-ready
	})
	return err
}

func daemonPod(ds *appsv1.DaemonSet, node, hash string) *corev1.Pod {
	p := podFor(ds.Namespace, ds.Name+"-"+node, &ds.Spec.Template, metav1.NewControllerRef(ds, kindDaemonSet))
	p.Labels = withLabel(p.Labels, appsv1.ControllerRevisionHashLabelKey, hash)
	p.Spec.NodeName = node
	return p
}

// runsOn reports whether a daemon set has a pod on a node. Cordons and taints of
// the node's state do not keep it away.
func runsOn(spec *corev1.PodSpec, n *corev1.Node) bool {
	return placement.Selects(spec, n) && toleratesRole(spec, n)
}

// toleratesRole reports whether a pod tolerates the taints that say what a node is
// for, as opposed to those that say how it is.
func toleratesRole(spec *corev1.PodSpec, n *corev1.Node) bool {
	for i := range n.Spec.Taints {
		t := &n.Spec.Taints[i]
		switch t.Key {
		case corev1.TaintNodeUnschedulable, corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable:
			continue
		}
		if t.Effect != corev1.TaintEffectPreferNoSchedule && !placement.Tolerates(spec, t) {
			return false
		}
	}
	return true
}
