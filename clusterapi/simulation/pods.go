package simulation

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// podReaction plays the kubelets' part in a pod's life: it becomes Ready some
// time after it was placed, is not Ready while its node is not, and ends some
// time after it was told to. A pod whose node is gone goes too.
func (c *Cluster) podReaction() reaction {
	return reaction{
		name:  loopPods,
		kinds: only(kindPod, kindNode),
		keys: func(u *unstructured.Unstructured) []string {
			if u.GetKind() == kindNode.Kind {
				return []string{onNode + u.GetName()}
			}
			return pathOf(u)
		},
		react: func(ctx context.Context, key string) (time.Duration, error) {
			if node, ok := cutNode(key); ok {
				list, err := c.List(ctx, kindPod, clusterapi.ListOptions{NodeName: node})
				if err != nil {
					return 0, err
				}
				for i := range list.Items {
					wake(ctx, path(&list.Items[i]))
				}
				return 0, nil
			}
			p, err := clusterapi.Get[corev1.Pod](ctx, c, keyOfPath(key))
			if err != nil {
				return 0, ignoreNotFound(err)
			}
			return c.reactPod(ctx, p)
		},
	}
}

// onNode before a node's name is the key for all pods of a node.
const onNode = "*"

func cutNode(key string) (string, bool) {
	if len(key) > 0 && key[:1] == onNode {
		return key[1:], true
	}
	return "", false
}

func (c *Cluster) reactPod(ctx context.Context, p *corev1.Pod) (time.Duration, error) {
	now := c.clock.Now()
	ending := p.DeletionTimestamp != nil
	if p.Spec.NodeName == "" {
		if ending {
			return 0, c.endPod(ctx, p)
		}
		return 0, nil // the scheduler's turn
	}
	node, err := clusterapi.Get[corev1.Node](ctx, c, clusterapi.Key("", p.Spec.NodeName))
	if apierrors.IsNotFound(err) {
		if !ending {
			err := c.Delete(ctx, kindPod, clusterapi.Key(p.Namespace, p.Name), clusterapi.DeleteOptions{UID: p.UID})
			return 0, ignoreNotFound(err)
		}
		return c.endPodLater(ctx, p, now)
	}
	if err != nil {
		return 0, err
	}
	up := nodeCondition(&node.Status, corev1.NodeReady)
	starting := "start " + string(p.UID)
	if up != nil && up.Status != corev1.ConditionTrue {
		c.seen.forget(starting)
		return 0, c.setPodReady(ctx, p, false, "NodeNotReady", now)
	}
	fault := c.podFault(p, now)
	if ending {
		if fault.is(FaultPodStays) {
			return c.faults.shows(fault, now), nil
		}
		c.seen.forget(starting)
		return c.endPodLater(ctx, p, now)
	}
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return 0, nil
	}
	if fault.is(FaultPodUnready) {
		left := c.faults.shows(fault, now)
		return left, c.setPodReady(ctx, p, false, "ContainersNotReady", now)
	}
	if isReady(p) {
		return 0, nil
	}
	if left := c.seen.remaining(starting, c.timing.PodStart, now); left > 0 {
		return left, nil
	}
	return 0, c.setPodReady(ctx, p, true, "", now)
}

// endPodLater lets a pod go once the time that it takes to end is over.
func (c *Cluster) endPodLater(ctx context.Context, p *corev1.Pod, now time.Time) (time.Duration, error) {
	stopping := "stop " + string(p.UID)
	if left := c.seen.start(stopping, now).Add(c.stopTime(p)).Sub(now); left > 0 {
		return left, nil
	}
	c.seen.forget(stopping)
	return 0, c.endPod(ctx, p)
}

// stopTime is how long a pod takes to end.
func (c *Cluster) stopTime(p *corev1.Pod) time.Duration {
	d := c.timing.PodStop
	if g := p.Spec.TerminationGracePeriodSeconds; g != nil {
		d = min(d, time.Duration(*g)*time.Second)
	}
	if g := p.DeletionGracePeriodSeconds; g != nil && *g > 0 {
		d = min(d, time.Duration(*g)*time.Second)
	}
	return d
}

// endPod is the kubelet's last word about a pod that was deleted. A finalizer
// keeps the object all the same.
func (c *Cluster) endPod(ctx context.Context, p *corev1.Pod) error {
	if err := ctx.Err(); err != nil || len(p.Finalizers) > 0 {
		return err
	}
	return ignoreNotFound(c.Remove(kindPod, clusterapi.Key(p.Namespace, p.Name)))
}

// setPodReady writes the pod's status where it differs.
func (c *Cluster) setPodReady(ctx context.Context, p *corev1.Pod, ready bool, reason string, at time.Time) error {
	now := metav1.NewTime(at)
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	_, err := clusterapi.Modify(ctx, c, clusterapi.Key(p.Namespace, p.Name), modifyStatus, func(stored *corev1.Pod) error {
		if stored.UID != p.UID {
			return nil
		}
		s := &stored.Status
		if s.Phase == corev1.PodSucceeded || s.Phase == corev1.PodFailed {
			return nil
		}
		if !ready && s.Phase == corev1.PodPending && reason == "NodeNotReady" {
			return nil // has not started there yet
		}
		s.Phase = corev1.PodRunning
		if s.StartTime == nil {
			s.StartTime = &now
		}
		if s.PodIP == "" {
			s.PodIP = podIP(p)
			s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
		}
		for _, t := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
			want, why := status, reason
			if t == corev1.PodInitialized {
				want, why = corev1.ConditionTrue, ""
			}
			setPodCondition(s, t, want, why, now)
		}
		return nil
	})
	return ignoreNotFound(err)
}

func setPodCondition(s *corev1.PodStatus, t corev1.PodConditionType, status corev1.ConditionStatus, reason string, now metav1.Time) {
	for i := range s.Conditions {
		c := &s.Conditions[i]
		if c.Type != t {
			continue
		}
		if c.Status != status {
			c.Status, c.LastTransitionTime = status, now
		}
		c.Reason = reason
		return
	}
	s.Conditions = append(s.Conditions, corev1.PodCondition{Type: t, Status: status, Reason: reason, LastTransitionTime: now})
}

// podIP makes up an address; different pods may share one.
func podIP(p *corev1.Pod) string {
	h := digest(p.Namespace + "/" + p.Name)
	return fmt.Sprintf("10.128.%d.%d", h[0]%250, 2+(int(h[1])*int(h[2]))%250)
}

// podFault is the pod's own fault, else its workload's.
func (c *Cluster) podFault(p *corev1.Pod, now time.Time) *Fault {
	if f := c.faults.of("pod/"+p.Namespace+"/"+p.Name, nil, now); f != nil {
		return f
	}
	return c.faults.of(workloadPart(p.Namespace, p.Labels[labelApp]), nil, now)
}

func workloadPart(namespace, name string) string { return "workload/" + namespace + "/" + name }

// labelApp is the label of pods that names their workload.
const labelApp = "app"
