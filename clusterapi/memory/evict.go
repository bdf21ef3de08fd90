package memory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

var (
	podKind    = corev1.SchemeGroupVersion.WithKind("Pod")
	budgetKind = policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget")
)

// evictionManager owns what an eviction writes into a budget's status.
const evictionManager = "kube-apiserver"

// Evict implements [clusterapi.Evictor] by the rules of the policy/v1 eviction
// subresource. Of budgets it reads the status only: somebody must keep that.
func (c *Cluster) Evict(ctx context.Context, pod types.NamespacedName, opts clusterapi.EvictOptions) error {
	return c.call(ctx, Call{Verb: "Evict", GVK: podKind, Key: pod}, func(ctx context.Context) error {
		k, err := c.kind(podKind)
		if err != nil {
			return err
		}
		for {
			e, err := c.stored(k, pod)
			if err != nil {
				return err
			}
			again, err := c.spend(ctx, e)
			if err != nil {
				return err
			}
			if again {
				continue
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			now := c.find(k.ref(pod))
			if now == nil || now.obj.GetUID() != e.obj.GetUID() {
				return apierrors.NewNotFound(k.resource(), pod.Name)
			}
			// The budget has been asked first, as on an API server.
			if err := preconditions(k, now, opts.UID, ""); err != nil {
				return err
			}
			e = c.markEvicted(k.ref(pod), now)
			c.delete(k.ref(pod), metav1.DeletePropagationBackground, c.grace(e, opts.GracePeriodSeconds))
			return nil
		}
	})
}

// markEvicted stores a pod with the condition that says why it goes. The lock
// is held.
func (c *Cluster) markEvicted(r ref, e *entry) *entry {
	status, _ := e.obj.Object["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	at := slices.IndexFunc(conditions, func(v any) bool {
		m, ok := v.(map[string]any)
		return ok && m["type"] == string(corev1.DisruptionTarget)
	})
	want := map[string]any{
		"type": string(corev1.DisruptionTarget), "status": string(corev1.ConditionTrue),
		"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
	}
	since := c.clock.Now().UTC().Format(time.RFC3339)
	conditions = slices.Clone(conditions)
	if at < 0 {
		conditions = append(conditions, nil)
		at = len(conditions) - 1
	} else if old, _ := conditions[at].(map[string]any); old["status"] == want["status"] {
		if old["reason"] == want["reason"] && old["message"] == want["message"] {
			return e
		}
		since, _ = old["lastTransitionTime"].(string)
	}
	want["lastTransitionTime"] = since
	conditions[at] = want
	obj := withMetadata(e.obj, func(m map[string]any) { m["resourceVersion"] = c.nextRevision() })
	if status = maps.Clone(status); status == nil {
		status = make(map[string]any)
	}
	status["conditions"] = conditions
	obj.Object["status"] = status
	next := &entry{obj: obj, managed: e.managed, kind: e.kind}
	c.put(r, e, next)
	return next
}

// spend takes one disruption from the budget of a pod, if it needs one. again
// means that the budget changed meanwhile.
func (c *Cluster) spend(ctx context.Context, pod *entry) (again bool, err error) {
	p, err := clusterapi.FromUnstructured[corev1.Pod](pod.obj)
	if err != nil {
		return false, err
	}
	switch {
	case p.Status.Phase == corev1.PodSucceeded, p.Status.Phase == corev1.PodFailed,
		p.Status.Phase == corev1.PodPending, p.DeletionTimestamp != nil:
		return false, nil
	}
	e, budget, err := c.budgetOf(p)
	if err != nil || budget == nil {
		return false, err
	}
	s := &budget.Status
	if !ready(p) {
		policy := budget.Spec.UnhealthyPodEvictionPolicy
		if policy != nil && *policy == policyv1.AlwaysAllow {
			return false, nil
		}
		if s.CurrentHealthy >= s.DesiredHealthy && s.DesiredHealthy > 0 {
			return false, nil
		}
	}
	if err := refusal(budget); err != nil {
		return false, err
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	s.DisruptionsAllowed--
	if s.DisruptedPods == nil {
		s.DisruptedPods = make(map[string]metav1.Time)
	}
	s.DisruptedPods[p.Name] = metav1.NewTime(c.clock.Now().UTC().Truncate(time.Second))
	err = c.storeBudget(e, budget)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return true, nil
	}
	return false, err
}

// maxDisrupted is how many evictions may be unconfirmed at once.
const maxDisrupted = 2000

// refusal says why a budget allows no disruption now.
func refusal(b *policyv1.PodDisruptionBudget) error {
	s := &b.Status
	resource := schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}
	switch {
	case s.ObservedGeneration < b.Generation:
		return notNow(10, fmt.Sprintf("The disruption budget %s is still being processed by the server.", b.Name))
	case s.DisruptionsAllowed < 0:
		return apierrors.NewForbidden(resource, b.Name, errors.New("pdb disruptions allowed is negative"))
	case len(s.DisruptedPods) > maxDisrupted:
		return apierrors.NewForbidden(resource, b.Name, errors.New("DisruptedPods map too big - too many evictions not confirmed by PDB controller"))
	case s.DisruptionsAllowed == 0:
		return notNow(0, fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", b.Name, s.DesiredHealthy, s.CurrentHealthy))
	}
	return nil
}

func notNow(retryAfter int, cause string) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", retryAfter)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: cause})
	return err
}

func ready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// budgetOf finds the budget that selects a pod, nil for none. More than one is
// an error.
func (c *Cluster) budgetOf(p *corev1.Pod) (*entry, *policyv1.PodDisruptionBudget, error) {
	k, err := c.kind(budgetKind)
	if err != nil {
		return nil, nil, err
	}
	all, _, err := c.list(k, clusterapi.ListOptions{Namespace: p.Namespace})
	if err != nil {
		return nil, nil, err
	}
	var found *entry
	var budget *policyv1.PodDisruptionBudget
	for _, e := range all {
		b, err := clusterapi.FromUnstructured[policyv1.PodDisruptionBudget](e.obj)
		if err != nil {
			return nil, nil, err
		}
		// An absent selector becomes one that selects nothing, {} all pods.
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil || !selector.Matches(labels.Set(p.Labels)) {
			continue
		}
		if found != nil {
			return nil, nil, &apierrors.StatusError{ErrStatus: metav1.Status{
				Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError,
				Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
			}}
		}
		found, budget = e, b
	}
	return found, budget, nil
}

// storeBudget writes the status of a budget if it is still as it was read.
func (c *Cluster) storeBudget(e *entry, b *policyv1.PodDisruptionBudget) error {
	k, err := c.kind(budgetKind)
	if err != nil {
		return err
	}
	_, err = c.write(k, e.obj, func(live *entry) (*record, error) {
		if live == nil || live != e {
			return nil, conflict(k, b.Name, errModified)
		}
		before, err := clusterapi.FromUnstructured[policyv1.PodDisruptionBudget](live.obj)
		if err != nil {
			return nil, err
		}
		next := k.record(live).Unstructured.DeepCopy()
		if _, err := clusterapi.Overlay(next, before, b, true); err != nil {
			return nil, err
		}
		return c.replace(k, "status", live, next, evictionManager)
	})
	return err
}
