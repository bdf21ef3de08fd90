package simulation

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/placement"
)

// waiting is the one key of the scheduler: all pods that wait for a node.
var waiting = reconcile.Key{Kind: "waiting pods"}

// scheduler places pods that have no node.
func (p *process) scheduler() *behaviour {
	return &behaviour{name: "scheduler", look: p.placeAll, watches: []reconcile.Watch{
		p.watch(kindPod, func(_, new *clusterapi.Object) []reconcile.Wake {
			left := new == nil && p.podsOn.Count("") > 0 // it may have kept another pod away
			if !left && (new == nil || nodeOf(new) != "") {
				return nil
			}
			return []reconcile.Wake{{Key: waiting}}
		}),
		p.watch(kindNode, unless(alike(sameForScheduler), func(_, new *clusterapi.Object) []reconcile.Wake {
			if new == nil || p.podsOn.Count("") == 0 {
				return nil
			}
			return []reconcile.Wake{{Key: waiting}}
		})),
	}}
}

func sameForScheduler(a, b *corev1.Node) bool {
	return a.Spec.Unschedulable == b.Spec.Unschedulable && isUp(a) == isUp(b) && sameForDaemonSets(a, b)
}

// placing is one look of the scheduler.
type placing struct {
	p     *process
	ctx   context.Context
	nodes []*corev1.Node
	// fits are the nodes for the pods of a controller, which are all alike.
	fits map[types.UID][]fit
}

// fit is a node that will do for a pod.
type fit struct {
	name  string
	avoid int // taints that ask to be avoided
	same  int // pods of the same controller
}

func (p *process) placeAll(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	x := &placing{p: p, ctx: ctx, fits: make(map[types.UID][]fit)}
	for _, o := range p.podsOn.At("") {
		pod, err := clusterapi.As[corev1.Pod](o)
		if err != nil {
			return reconcile.Result{}, err
		}
		if pod.DeletionTimestamp != nil {
			continue
		}
		if err := x.place(ctx, o, pod, metav1.NewTime(r.Now)); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{}, nil
}

// place binds a pod to the node that suits it best, or notes that there is
// none. The choice counts for the pods after it.
func (x *placing) place(ctx context.Context, o *clusterapi.Object, pod *corev1.Pod, now metav1.Time) error {
	node, err := x.choose(pod)
	if err != nil {
		return err
	}
	status, reason := corev1.ConditionTrue, ""
	if node != "" {
		o, err = change(ctx, x.p, o, false, func(p *corev1.Pod) { p.Spec.NodeName = node })
		if err != nil {
			return err
		}
	} else {
		status, reason = corev1.ConditionFalse, corev1.PodReasonUnschedulable
	}
	_, err = change(ctx, x.p, o, true, func(p *corev1.Pod) {
		setPodCondition(&p.Status, corev1.PodScheduled, status, reason, now)
	})
	return err
}

// choose returns the node for a pod, "" if none will do. A node must be Ready
// and schedulable, be one that the pod's nodeSelector, its required node affinity
// and its volumes allow, have no taint that the pod does not tolerate, and no pod
// near it that the pod's required anti-affinity keeps apart. Of several, those without a
// taint that asks to be avoided come first, then those with the fewest pods of
// the same controller, then with the fewest pods (those that run on every node
// do not count), then by name.
func (x *placing) choose(pod *corev1.Pod) (string, error) {
	owner := metav1.GetControllerOfNoCopy(pod)
	var fits []fit
	shared := owner != nil && len(awayFrom(pod)) == 0 // what one gets does not matter to the next
	if shared {
		fits = x.fits[owner.UID]
	}
	if fits == nil {
		var err error
		fits, err = x.fitting(pod, owner)
		if err != nil || len(fits) == 0 {
			return "", err
		}
		if shared {
			x.fits[owner.UID] = fits
		}
	}
	best, load := -1, 0
	for i := range fits {
		f := &fits[i]
		if best >= 0 && cmp.Or(cmp.Compare(fits[best].avoid, f.avoid), cmp.Compare(fits[best].same, f.same)) < 0 {
			continue
		}
		n := x.p.load.Count(f.name)
		if best < 0 || cmp.Or(cmp.Compare(f.avoid, fits[best].avoid), cmp.Compare(f.same, fits[best].same), cmp.Compare(n, load)) < 0 {
			best, load = i, n
		}
	}
	fits[best].same++
	return fits[best].name, nil
}

// fitting returns the nodes that will do for a pod, by name.
func (x *placing) fitting(pod *corev1.Pod, owner *metav1.OwnerReference) ([]fit, error) {
	if x.nodes == nil {
		for _, o := range x.p.allNodes.At("") {
			n, err := clusterapi.As[corev1.Node](o)
			if err != nil {
				return nil, err
			}
			x.nodes = append(x.nodes, n)
		}
	}
	same := make(map[string]int)
	if owner != nil {
		for _, o := range x.p.podsOf.At(string(owner.UID)) {
			p, err := clusterapi.As[corev1.Pod](o)
			if err != nil {
				return nil, err
			}
			if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
				same[p.Spec.NodeName]++
			}
		}
	}
	volumes, err := x.volumes(pod)
	if err != nil {
		return nil, err
	}
	var fits []fit
	for _, n := range x.nodes {
		if n.Spec.Unschedulable || n.DeletionTimestamp != nil || nodeCondition(&n.Status, corev1.NodeReady) == nil || !isUp(n) ||
			!runsOn(&pod.Spec, n) {
			continue
		}
		if !reach(n, volumes) {
			continue
		}
		apart, err := x.apart(pod, n)
		if err != nil {
			return nil, err
		}
		if !apart {
			continue
		}
		f := fit{name: n.Name, same: same[n.Name]}
		for i := range n.Spec.Taints {
			if t := &n.Spec.Taints[i]; t.Effect == corev1.TaintEffectPreferNoSchedule && !placement.Tolerates(&pod.Spec, t) {
				f.avoid++
			}
		}
		fits = append(fits, f)
	}
	return fits, nil
}

// awayFrom are the terms of a pod's required anti-affinity.
func awayFrom(pod *corev1.Pod) []corev1.PodAffinityTerm {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	return pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// apart reports whether a pod's required anti-affinity allows a node. Pods of other namespaces than its
// own do not matter, unless the term names these.
func (x *placing) apart(pod *corev1.Pod, n *corev1.Node) (bool, error) {
	for _, term := range awayFrom(pod) {
		selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
		domain, in := n.Labels[term.TopologyKey]
		if err != nil || !in {
			continue
		}
		namespaces := term.Namespaces
		if len(namespaces) == 0 {
			namespaces = []string{pod.Namespace}
		}
		for _, near := range x.nodes {
			if value, in := near.Labels[term.TopologyKey]; !in || value != domain {
				continue
			}
			for _, o := range x.p.podsOn.At(near.Name) {
				p, err := clusterapi.As[corev1.Pod](o)
				if err != nil {
					return false, err
				}
				ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
				if !ended && slices.Contains(namespaces, p.Namespace) && selector.Matches(labels.Set(p.Labels)) {
					return false, nil
				}
			}
		}
	}
	return true, nil
}

// volumes are the nodes that the persistent volumes of a pod can be reached from: terms for each
// volume. A claim that does not exist, or has no volume, allows all.
func (x *placing) volumes(pod *corev1.Pod) (out [][]corev1.NodeSelectorTerm, err error) {
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		key := clusterapi.Key(pod.Namespace, v.PersistentVolumeClaim.ClaimName)
		claim, err := clusterapi.Read[corev1.PersistentVolumeClaim](x.ctx, x.p.api, key)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if claim.Spec.VolumeName == "" {
			continue
		}
		volume, err := clusterapi.Read[corev1.PersistentVolume](x.ctx, x.p.api, clusterapi.Key("", claim.Spec.VolumeName))
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if a := volume.Spec.NodeAffinity; a != nil && a.Required != nil {
			out = append(out, a.Required.NodeSelectorTerms)
		}
	}
	return out, nil
}

// reach reports whether a node reaches all volumes.
func reach(n *corev1.Node, volumes [][]corev1.NodeSelectorTerm) bool {
	for _, terms := range volumes {
		if !placement.Meets(n, terms) {
			return false
		}
	}
	return true
}
