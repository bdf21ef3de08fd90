package disruption

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Timeout is after how long an eviction that was granted, but after which the
// pod is still not ending, is forgotten.
const Timeout = 2 * time.Minute

// Status computes what the disruption controller writes into a budget's status.
// matched are the pods that its selector selects, and scale is the sum of the
// scales of their controllers. again is after how long the next pending
// eviction expires, zero without any.
//
// Desired healthy pods are minAvailable (of a percentage that share of scale,
// rounded up), or scale less maxUnavailable (rounded up, too). For an integer
// minAvailable the expected pods are the matched ones, else scale. An invalid
// number allows no disruption. The conditions and counts of b itself matter
// only so far as its disruptedPods are pending and times are kept.
func Status(b *policyv1.PodDisruptionBudget, matched []*corev1.Pod, scale int32, now time.Time) (status policyv1.PodDisruptionBudgetStatus, again time.Duration) {
	status = *b.Status.DeepCopy()
	var pending map[string]metav1.Time
	healthy := int32(0)
	for _, p := range matched {
		if p.DeletionTimestamp != nil {
			continue
		}
		if at, ok := b.Status.DisruptedPods[p.Name]; ok {
			if left := at.Add(Timeout).Sub(now); left > 0 {
				if pending == nil {
					pending = make(map[string]metav1.Time)
				}
				pending[p.Name] = at
				if again == 0 || left < again {
					again = left
				}
				continue
			}
		}
		if Ready(p) {
			healthy++
		}
	}
	expected, desired, err := numbers(b, int32(len(matched)), scale)
	allowed := max(healthy-desired, 0)
	if expected <= 0 || err != nil {
		allowed = 0
	}
	status.DisruptedPods = pending
	status.CurrentHealthy, status.DesiredHealthy, status.ExpectedPods = healthy, desired, expected
	status.DisruptionsAllowed, status.ObservedGeneration = allowed, b.Generation
	condition := metav1.Condition{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionTrue,
		Reason: policyv1.SufficientPodsReason, ObservedGeneration: b.Generation, LastTransitionTime: metav1.NewTime(now)}
	switch {
	case err != nil:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, policyv1.SyncFailedReason, err.Error()
	case allowed == 0:
		condition.Status, condition.Reason = metav1.ConditionFalse, policyv1.InsufficientPodsReason
	}
	meta.SetStatusCondition(&status.Conditions, condition) // moves the time with the status only
	return status, again
}

// numbers are the expected pods, and those that must be healthy.
func numbers(b *policyv1.PodDisruptionBudget, matched, scale int32) (expected, desired int32, err error) {
	switch {
	case b.Spec.MaxUnavailable != nil:
		n, err := intstr.GetScaledValueFromIntOrPercent(b.Spec.MaxUnavailable, int(scale), true)
		if err != nil {
			return scale, scale, err
		}
		return scale, max(clamp(int(scale)-n), 0), nil
	case b.Spec.MinAvailable != nil && b.Spec.MinAvailable.Type == intstr.Int:
		return matched, b.Spec.MinAvailable.IntVal, nil
	case b.Spec.MinAvailable != nil:
		n, err := intstr.GetScaledValueFromIntOrPercent(b.Spec.MinAvailable, int(scale), true)
		if err != nil {
			return scale, scale, err
		}
		return scale, clamp(n), nil
	}
	return 0, 0, nil
}

func clamp(n int) int32 { return int32(min(max(n, math.MinInt32), math.MaxInt32)) }
