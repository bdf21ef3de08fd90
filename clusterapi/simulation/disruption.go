package simulation

import (
	"context"
	"math"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// DisruptionTimeout is after how long an eviction that was granted, but after
// which the pod is still not ending, is forgotten.
const DisruptionTimeout = 2 * time.Minute

// budgetReaction plays the disruption controller.
func (c *Cluster) budgetReaction() reaction {
	return reaction{
		name:  loopBudgets,
		kinds: only(kindBudget, kindPod, kindDeployment, kindReplicaSet, kindStatefulSet),
		keys: func(u *unstructured.Unstructured) []string {
			if u.GetKind() == kindBudget.Kind {
				return pathOf(u)
			}
			return []string{u.GetNamespace() + "/"}
		},
		react: func(ctx context.Context, key string) (time.Duration, error) {
			if namespace, ok := strings.CutSuffix(key, "/"); ok {
				list, err := c.List(ctx, kindBudget, clusterapi.ListOptions{Namespace: namespace})
				if err != nil {
					return 0, err
				}
				for i := range list.Items {
					wake(ctx, path(&list.Items[i]))
				}
				return 0, nil
			}
			return c.reactBudget(ctx, keyOfPath(key))
		},
	}
}

func (c *Cluster) reactBudget(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	b, err := clusterapi.Get[policyv1.PodDisruptionBudget](ctx, c, key)
	if err != nil || b.DeletionTimestamp != nil {
		return 0, ignoreNotFound(err)
	}
	matched, err := c.matchedPods(ctx, b)
	if err != nil {
		return 0, err
	}
	scales := make(map[types.UID]int32)
	asked := make(map[types.UID]bool)
	for i := range matched {
		owner := metav1.GetControllerOf(&matched[i])
		if owner == nil || asked[owner.UID] {
			continue
		}
		asked[owner.UID] = true
		uid, scale, err := c.scaleOf(ctx, key.Namespace, owner)
		if err != nil {
			return 0, err
		}
		scales[uid] = scale
	}
	expected := int32(0)
	for _, n := range scales {
		expected += n
	}
	now := c.clock.Now()
	var again time.Duration
	_, err = clusterapi.Modify(ctx, c, key, modifyStatus, func(stored *policyv1.PodDisruptionBudget) error {
		stored.Status, again = BudgetStatus(stored, matched, expected, now)
		return nil
	})
	return again, ignoreNotFound(err)
}

// BudgetStatus computes what the disruption controller writes into a budget's
// status. matched are the pods that its selector selects, and scale is the sum
// of the scales of their controllers. again is after how long the next pending
// eviction expires, zero without any.
//
// Desired healthy pods are minAvailable (of a percentage that share of scale,
// rounded up), or scale less maxUnavailable (rounded up, too). For an integer
// minAvailable the expected pods are the matched ones, else scale. An invalid
// number allows no disruption. The conditions and counts of b itself matter
// only so far as its disruptedPods are pending and times are kept.
func BudgetStatus(b *policyv1.PodDisruptionBudget, matched []corev1.Pod, scale int32, now time.Time) (status policyv1.PodDisruptionBudgetStatus, again time.Duration) {
	status = *b.Status.DeepCopy()
	var pending map[string]metav1.Time
	for i := range matched {
		p := &matched[i]
		at, ok := b.Status.DisruptedPods[p.Name]
		if !ok || p.DeletionTimestamp != nil {
			continue
		}
		left := at.Add(DisruptionTimeout).Sub(now)
		if left <= 0 {
			continue
		}
		if pending == nil {
			pending = make(map[string]metav1.Time)
		}
		pending[p.Name] = at
		if again == 0 || left < again {
			again = left
		}
	}
	healthy := int32(0)
	for i := range matched {
		p := &matched[i]
		if _, disrupted := pending[p.Name]; !disrupted && p.DeletionTimestamp == nil && isReady(p) {
			healthy++
		}
	}
	expected, desired, err := budgetNumbers(b, int32(len(matched)), scale)
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

func budgetNumbers(b *policyv1.PodDisruptionBudget, matched, scale int32) (expected, desired int32, err error) {
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

// matchedPods returns the pods that a budget selects: none where its selector
// is absent or invalid, all of the namespace where it is empty.
func (c *Cluster) matchedPods(ctx context.Context, b *policyv1.PodDisruptionBudget) ([]corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		selector = labels.Nothing()
	}
	return clusterapi.List[corev1.Pod](ctx, c, clusterapi.ListOptions{Namespace: b.Namespace, Labels: selector})
}

// scaleOf returns the scale of a pod's controller, of the Deployment behind a
// ReplicaSet; zero for kinds that have no scale and for one that is gone.
func (c *Cluster) scaleOf(ctx context.Context, namespace string, owner *metav1.OwnerReference) (types.UID, int32, error) {
	key := clusterapi.Key(namespace, owner.Name)
	switch owner.Kind {
	case kindReplicaSet.Kind:
		rs, err := clusterapi.Get[appsv1.ReplicaSet](ctx, c, key)
		if apierrors.IsNotFound(err) {
			return owner.UID, 0, nil
		}
		if err != nil {
			return "", 0, err
		}
		above := metav1.GetControllerOf(rs)
		if above == nil || above.Kind != kindDeployment.Kind {
			return rs.UID, replicasOf(rs.Spec.Replicas), nil
		}
		return c.scaleOf(ctx, namespace, above)
	case kindDeployment.Kind:
		d, err := clusterapi.Get[appsv1.Deployment](ctx, c, key)
		if apierrors.IsNotFound(err) {
			return owner.UID, 0, nil
		}
		if err != nil {
			return "", 0, err
		}
		return d.UID, replicasOf(d.Spec.Replicas), nil
	case kindStatefulSet.Kind:
		s, err := clusterapi.Get[appsv1.StatefulSet](ctx, c, key)
		if apierrors.IsNotFound(err) {
			return owner.UID, 0, nil
		}
		if err != nil {
			return "", 0, err
		}
		return s.UID, replicasOf(s.Spec.Replicas), nil
	}
	return owner.UID, 0, nil
}
