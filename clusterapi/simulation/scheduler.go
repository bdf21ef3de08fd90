package simulation

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
)

// waiting is the one key of the scheduler: all pods that wait for a node.
var waiting = reconcile.Key{Kind: "waiting pods"}

// scheduler places pods that have no node.
func (p *process) scheduler() *behaviour {
	return &behaviour{name: "scheduler", look: p.placeAll, watches: []reconcile.Watch{
		p.watch(kindPod, func(_, new *clusterapi.Object) []reconcile.Wake {
			if new == nil || nodeOf(new) != "" {
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

// placement is one look of the scheduler.
type placement struct {
	p     *process
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
	x := &placement{p: p, fits: make(map[types.UID][]fit)}
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
func (x *placement) place(ctx context.Context, o *clusterapi.Object, pod *corev1.Pod, now metav1.Time) error {
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
// and schedulable, carry the labels that the pod's nodeSelector names, and
// have no taint that the pod does not tolerate. Of several, those without a
// taint that asks to be avoided come first, then those with the fewest pods of
// the same controller, then with the fewest pods (those that run on every node
// do not count), then by name.
func (x *placement) choose(pod *corev1.Pod) (string, error) {
	owner := metav1.GetControllerOfNoCopy(pod)
	var fits []fit
	if owner != nil {
		fits = x.fits[owner.UID]
	}
	if fits == nil {
		var err error
		fits, err = x.fitting(pod, owner)
		if err != nil || len(fits) == 0 {
			return "", err
		}
		if owner != nil {
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
func (x *placement) fitting(pod *corev1.Pod, owner *metav1.OwnerReference) ([]fit, error) {
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
	selector := labels.SelectorFromSet(pod.Spec.NodeSelector)
	var fits []fit
	for _, n := range x.nodes {
		if n.Spec.Unschedulable || n.DeletionTimestamp != nil || nodeCondition(&n.Status, corev1.NodeReady) == nil || !isUp(n) ||
			!selector.Matches(labels.Set(n.Labels)) || !toleratesRole(&pod.Spec, n) {
			continue
		}
		f := fit{name: n.Name, same: same[n.Name]}
		for i := range n.Spec.Taints {
			if t := &n.Spec.Taints[i]; t.Effect == corev1.TaintEffectPreferNoSchedule && !tolerates(&pod.Spec, t) {
				f.avoid++
			}
		}
		fits = append(fits, f)
	}
	return fits, nil
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
