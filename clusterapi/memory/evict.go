package memory

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/disruption"
	"github.com/clusterupdate/clusterupdate/internal/objects"
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
		k, err := c.touch(ctx, podKind)
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

// markEvicted stores a pod with the condition that explains why it goes. The lock
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
	status = maps.Clone(status)
	if status == nil {
		status = make(map[string]any)
	}
	status["conditions"] = conditions
	obj.Object["status"] = status
	next := e.with(obj)
	c.put(r, e, next)
	return next
}

// spend takes one disruption from the budget of a pod, if it needs one. again means
// that the budget changed in the meantime.
func (c *Cluster) spend(ctx context.Context, pod *entry) (again bool, err error) {
	p, err := clusterapi.As[corev1.Pod](pod.shared)
	if err != nil || disruption.Free(p) {
		return false, err
	}
	k, err := c.touch(ctx, budgetKind)
	if err != nil {
		return false, err
	}
	all, _, partial := c.list(k, clusterapi.ListOptions{Namespace: p.Namespace})
	budgets := make([]*policyv1.PodDisruptionBudget, len(all))
	for i, e := range all {
		budgets[i], err = clusterapi.As[policyv1.PodDisruptionBudget](e.shared)
		if err != nil {
			return false, err
		}
	}
	budget, err := disruption.Decide(p, budgets)
	if err == nil {
		err = partial // a budget that is not known may refuse
	}
	if err != nil || budget == nil {
		return false, err
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	after := *budget
	after.Status = disruption.Spend(budget, p.Name, c.clock.Now())
	err = c.storeBudget(k, all[slices.Index(budgets, budget)], budget, &after)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return true, nil
	}
	return false, err
}

// storeBudget writes the status of a budget if it is still as it was read.
func (c *Cluster) storeBudget(k *kind, e *entry, before, after *policyv1.PodDisruptionBudget) error {
	_, err := c.write(k, e.obj, func(live *entry) (*record, error) {
		if live == nil || live != e {
			return nil, conflict(k, before.Name, errModified)
		}
		next := &unstructured.Unstructured{Object: k.record(live).Object}
		if _, err := objects.Overlay(next, before, after, true); err != nil {
			return nil, err
		}
		return c.replace(k, "status", live, withMetadata(next, func(map[string]any) {}), evictionManager)
	})
	return err
}
