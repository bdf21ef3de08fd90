package simulation

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
)

// kubelets plays the kubelets' part in a pod's life: it becomes Ready some time
// after it was placed, is not Ready while its node is not, and ends some time after
// its deletion was requested. A pod whose node does not exist ends too.
func (p *process) kubelets() *behaviour {
	k := &kubelet{p: p, seen: make(since)}
	return &behaviour{name: partPods, look: k.look, watches: []reconcile.Watch{
		p.watch(kindPod, wakeChanged(0)),
		p.watch(kindNode, unless(alike(sameForKubelet), func(old, new *clusterapi.Object) (wakes []reconcile.Wake) {
			for _, o := range p.podsOn.At(either(old, new).Name()) {
				wakes = append(wakes, reconcile.Wake{Key: keyOf(o)})
			}
			return wakes
		})),
	}}
}

// sameForKubelet reports whether a node is up as it was before.
func sameForKubelet(a, b *corev1.Node) bool { return a.UID == b.UID && isUp(a) == isUp(b) }

// kubelet plays the kubelets of all nodes.
type kubelet struct {
	p    *process
	seen since // when pods began to start, and to end
}

func (k *kubelet) look(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	stored := k.p.pods.Get(named(r.Key))
	if stored == nil {
		return reconcile.Result{}, nil
	}
	p, err := clusterapi.As[corev1.Pod](stored)
	if err != nil {
		return reconcile.Result{}, err
	}
	again, err := k.step(ctx, stored, p, r.Now)
	return later(r, again), err
}

// step does what is due for a pod, and returns after how long to look again.
func (k *kubelet) step(ctx context.Context, stored *clusterapi.Object, p *corev1.Pod, now time.Time) (time.Duration, error) {
	starting, stopping := "start "+string(p.UID), "stop "+string(p.UID)
	ending := p.DeletionTimestamp != nil
	if p.Spec.NodeName == "" {
		if ending {
			return 0, k.end(ctx, p)
		}
		return 0, nil // the scheduler's turn
	}
	endLater := func() (time.Duration, error) {
		if left := k.seen.remaining(stopping, k.stopTime(p), now); left > 0 {
			return left, nil
		}
		return 0, k.end(ctx, p)
	}
	node := k.p.nodes.Get(clusterapi.Key("", p.Spec.NodeName))
	if node == nil {
		if !ending {
			return 0, k.p.remove(ctx, stored)
		}
		return endLater()
	}
	n, err := clusterapi.As[corev1.Node](node)
	if err != nil {
		return 0, err
	}
	if !isUp(n) {
		delete(k.seen, starting)
		return 0, k.setReady(ctx, stored, p, false, "NodeNotReady", now)
	}
	fault := k.fault(p, now)
	if ending {
		if fault.is(FaultPodStays) {
			return k.p.c.faults.shows(fault, now), nil
		}
		delete(k.seen, starting)
		return endLater()
	}
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return 0, nil
	}
	if fault.is(FaultPodUnready) {
		left := k.p.c.faults.shows(fault, now)
		return left, k.setReady(ctx, stored, p, false, "ContainersNotReady", now)
	}
	if isReady(p) {
		return 0, nil
	}
	if left := k.seen.remaining(starting, k.p.c.timing.PodStart, now); left > 0 {
		return left, nil
	}
	return 0, k.setReady(ctx, stored, p, true, "", now)
}

// stopTime is how long a pod takes to end.
func (k *kubelet) stopTime(p *corev1.Pod) time.Duration {
	d := k.p.c.takes(WorkPodStop, p.Namespace+"/"+p.Name, string(p.UID), k.p.c.timing.PodStop)
	if g := p.Spec.TerminationGracePeriodSeconds; g != nil {
		d = min(d, time.Duration(*g)*time.Second)
	}
	if g := p.DeletionGracePeriodSeconds; g != nil && *g > 0 {
		d = min(d, time.Duration(*g)*time.Second)
	}
	return d
}

// end is the kubelet's last word about a pod that was deleted. A finalizer keeps
// the object nevertheless.
func (k *kubelet) end(ctx context.Context, p *corev1.Pod) error {
	// No verb of the API does this, so that the driver does not see the call:
	// it sees this one.
	now, err := clusterapi.GetShared(ctx, k.p.api, kindPod, clusterapi.Key(p.Namespace, p.Name))
	if err != nil || now.UID() != p.UID || len(now.Unstructured().GetFinalizers()) > 0 {
		return ignoreNotFound(err)
	}
	return ignoreNotFound(k.p.c.Remove(kindPod, now.Key()))
}

// setReady writes the pod's status if it differs.
func (k *kubelet) setReady(ctx context.Context, stored *clusterapi.Object, p *corev1.Pod, ready bool, reason string, at time.Time) error {
	phase := p.Status.Phase
	if phase == corev1.PodSucceeded || phase == corev1.PodFailed || !ready && phase == corev1.PodPending && reason == "NodeNotReady" {
		return nil // has ended, or has not started there yet
	}
	now, status := metav1.NewTime(at), corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	_, err := change(ctx, k.p, stored, true, func(p *corev1.Pod) {
		s := &p.Status
		s.Phase = corev1.PodRunning
		if s.StartTime == nil {
			s.StartTime = &now
		}
		if s.PodIP == "" {
			s.PodIP = podIP(p)
			s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
		}
		setPodCondition(s, corev1.PodInitialized, corev1.ConditionTrue, "", now)
		setPodCondition(s, corev1.ContainersReady, status, reason, now)
		setPodCondition(s, corev1.PodReady, status, reason, now)
	})
	return err
}

func setPodCondition(s *corev1.PodStatus, t corev1.PodConditionType, status corev1.ConditionStatus, reason string, now metav1.Time) {
	c := find(s.Conditions, func(c *corev1.PodCondition) bool { return c.Type == t })
	if c == nil {
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: t})
		c = &s.Conditions[len(s.Conditions)-1]
	}
	if c.Status != status {
		c.Status, c.LastTransitionTime = status, now
	}
	c.Reason = reason
}

// podIP makes up an address; different pods may share one.
func podIP(p *corev1.Pod) string {
	h := digest(p.Namespace + "/" + p.Name)
	return fmt.Sprintf("10.128.%d.%d", h[0]%250, 2+(int(h[1])*int(h[2]))%250)
}

// fault is the pod's own fault, else its workload's.
func (k *kubelet) fault(p *corev1.Pod, now time.Time) *Fault {
	if f := k.p.c.faults.of("pod/"+p.Namespace+"/"+p.Name, nil, now); f != nil {
		return f
	}
	return k.p.c.faults.of(workloadPart(p.Namespace, p.Labels[labelApp]), nil, now)
}

func workloadPart(namespace, name string) string { return "workload/" + namespace + "/" + name }

// labelApp is the label of pods that names their workload.
const labelApp = "app"

// nodeOf is the node of a pod, empty before it is placed.
func nodeOf(o *clusterapi.Object) string {
	if p, err := clusterapi.As[corev1.Pod](o); err == nil {
		return p.Spec.NodeName
	}
	return ""
}

// takesRoom reports whether a pod counts when the next one is placed: until it is
// gone, unless it runs on every node or has finished.
func takesRoom(o *clusterapi.Object) bool {
	p, err := clusterapi.As[corev1.Pod](o)
	if err != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return false
	}
	owner := metav1.GetControllerOfNoCopy(p)
	return owner == nil || owner.Kind != kindDaemonSet.Kind
}
