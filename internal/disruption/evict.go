package disruption

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Selector returns what a budget selects in its namespace: nothing where its
// selector is absent or invalid, every pod if it is empty.
func Selector(b *policyv1.PodDisruptionBudget) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}

// Free reports whether a pod may be evicted whatever budgets say: it has ended, has
// not started, or is on its way already.
func Free(p *corev1.Pod) bool {
	switch p.Status.Phase {
	case corev1.PodSucceeded, corev1.PodFailed, corev1.PodPending:
		return true
	}
	return p.DeletionTimestamp != nil
}

// Decide describes what an API server does when it is asked to evict a pod. budgets
// are those of the pod's namespace. With an error it refuses: one that
// apierrors.IsTooManyRequests recognises means "not now"; [Refusal] reads it. Else
// the pod goes, and takes one disruption from the budget that is returned: see
// [Spend]. nil means that it takes none.
func Decide(p *corev1.Pod, budgets []*policyv1.PodDisruptionBudget) (*policyv1.PodDisruptionBudget, error) {
	if Free(p) {
		return nil, nil
	}
	var found []*policyv1.PodDisruptionBudget
	for _, b := range budgets {
		if Selector(b).Matches(labels.Set(p.Labels)) {
			found = append(found, b)
		}
	}
	return Answer(p, found)
}

// Answer is [Decide] where the budgets that select the pod have been found.
func Answer(p *corev1.Pod, found []*policyv1.PodDisruptionBudget) (*policyv1.PodDisruptionBudget, error) {
	if Free(p) || len(found) == 0 {
		return nil, nil
	}
	if len(found) > 1 {
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError,
			Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
		}}
	}
	b := found[0]
	if !Ready(p) {
		policy := b.Spec.UnhealthyPodEvictionPolicy
		if policy != nil && *policy == policyv1.AlwaysAllow {
			return nil, nil
		}
		if s := &b.Status; s.CurrentHealthy >= s.DesiredHealthy && s.DesiredHealthy > 0 {
			return nil, nil
		}
	}
	if err := refuse(b); err != nil {
		return nil, err
	}
	return b, nil
}

// Stale reports whether a budget refuses since its status is not kept as it should
// be: it lags behind, is impossible, or has too many evictions that nobody confirms.
func Stale(b *policyv1.PodDisruptionBudget) bool {
	s := &b.Status
	return s.ObservedGeneration < b.Generation || s.DisruptionsAllowed < 0 || len(s.DisruptedPods) > maxDisrupted
}

// AtOnce returns how many evictions a budget grants before its status is written
// again: as many as it allows, and can note.
func AtOnce(b *policyv1.PodDisruptionBudget) int {
	if Stale(b) {
		return 0
	}
	return min(int(b.Status.DisruptionsAllowed), maxDisrupted+1-len(b.Status.DisruptedPods))
}

// maxDisrupted is how many evictions may be unconfirmed at once.
const maxDisrupted = 2000

// refuse explains why a budget allows no disruption now.
func refuse(b *policyv1.PodDisruptionBudget) error {
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

// Refusal reads an eviction's error: the name of the budget that refuses it, empty
// if it does not say, and what the server says about it.
func Refusal(err error) (budget, text string) {
	cause, ok := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause)
	if !ok || cause.Message == "" {
		return "", err.Error()
	}
	if rest, ok := strings.CutPrefix(cause.Message, "The disruption budget "); ok {
		budget, _, _ = strings.Cut(rest, " ")
	}
	return strings.Trim(budget, `"`), cause.Message
}

// Spend returns a budget's status after a pod was granted its eviction.
func Spend(b *policyv1.PodDisruptionBudget, pod string, now time.Time) policyv1.PodDisruptionBudgetStatus {
	s := *b.Status.DeepCopy()
	s.DisruptionsAllowed--
	if s.DisruptedPods == nil {
		s.DisruptedPods = make(map[string]metav1.Time)
	}
	s.DisruptedPods[pod] = metav1.NewTime(now.UTC().Truncate(time.Second))
	return s
}

// Ready reports whether a pod is ready, as its condition says.
func Ready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
