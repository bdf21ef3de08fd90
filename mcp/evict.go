package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// podsToEvict lists the node's pods and leaves out those that stay.
func (d *drainer) podsToEvict(ctx context.Context) ([]corev1.Pod, error) {
	pods, err := clusterapi.List[corev1.Pod](ctx, d.o.API, clusterapi.ListOptions{NodeName: d.node})
	if err != nil {
		return nil, err
	}
	daemonSets := map[types.NamespacedName]bool{} // whether each exists
	var leave []corev1.Pod
	var errs []error
	for i := range pods {
		p := &pods[i]
		if p.Spec.NodeName != d.node {
			continue // a backend that cannot select by node
		}
		stays, err := podStays(p, func(key types.NamespacedName) (bool, error) {
			if exists, known := daemonSets[key]; known {
				return exists, nil
			}
			_, err := clusterapi.Get[appsv1.DaemonSet](ctx, d.o.API, key)
			if err != nil && !apierrors.IsNotFound(err) {
				return false, err
			}
			daemonSets[key] = err == nil
			return err == nil, nil
		})
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("pod %s/%s: %w", p.Namespace, p.Name, err))
		case !stays:
			leave = append(leave, *p)
		}
	}
	// One pod that cannot be judged stops the drain before the first eviction.
	return leave, errors.Join(errs...)
}

// podStays says that a drain leaves a pod alone: those of an existing
// DaemonSet, which would come back, and mirrors of static pods. All others go,
// also those whose local data is lost and those that nobody makes anew.
func podStays(p *corev1.Pod, daemonSetExists func(types.NamespacedName) (bool, error)) (bool, error) {
	finished := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	c := metav1.GetControllerOf(p)
	if !finished && c != nil && c.Kind == "DaemonSet" && c.APIVersion == appsv1.SchemeGroupVersion.String() {
		exists, err := daemonSetExists(types.NamespacedName{Namespace: p.Namespace, Name: c.Name})
		if err != nil || exists {
			return exists, err
		}
	}
	_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror, nil
}

// evict asks one pod to leave until it is gone or ctx ends.
func (d *drainer) evict(ctx context.Context, p *corev1.Pod) error {
	key := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	budget, told := "", false
	for {
		err := d.o.API.Evict(ctx, key, clusterapi.EvictOptions{UID: p.UID})
		switch {
		case err == nil:
			return d.awaitGone(ctx, p)
		case ctx.Err() != nil:
			return d.timedOut(ctx, p, budget, "error when evicting pods/%q -n %q: %w")
		case apierrors.IsNotFound(err):
			return nil
		case apierrors.IsConflict(err):
			// Another pod has the name by now, or the pod has just changed.
			if gone, err := d.gone(ctx, p); gone || err != nil {
				return err
			}
		case apierrors.IsTooManyRequests(err):
			budget = budgetNamed(err)
			if !told {
				told = true
				blocked := &DrainError{Node: d.node, Pod: key.String(), Budget: budget, Kind: DrainBudget, Err: err}
				d.emit(Event{Type: EventDrainBlocked, Pool: d.pool, Node: d.node, Phase: PhaseDraining, Err: blocked,
					Text: fmt.Sprintf("node %s: pod %s may not be evicted now: %s", d.node, key, budgetText(err))})
			}
		case apierrors.IsForbidden(err) && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			if p.DeletionTimestamp != nil {
				return d.awaitGone(ctx, p)
			}
		default:
			return &DrainError{Node: d.node, Pod: key.String(), Kind: DrainEviction,
				Err: fmt.Errorf("error when evicting pods/%q -n %q: %w", p.Name, p.Namespace, err)}
		}
		if sleep(ctx, d.o.Clock, d.o.Options.Delays.EvictionRetry) != nil {
			return d.timedOut(ctx, p, budget, "error when evicting pods/%q -n %q: %w")
		}
	}
}

// awaitGone looks every second whether the pod is there.
func (d *drainer) awaitGone(ctx context.Context, p *corev1.Pod) error {
	const format = "error when waiting for pod %q in namespace %q to terminate: %w"
	for {
		gone, err := d.gone(ctx, p)
		switch {
		case ctx.Err() != nil:
			return d.timedOut(ctx, p, "", format)
		case err != nil:
			return &DrainError{Node: d.node, Pod: p.Namespace + "/" + p.Name, Kind: DrainEviction, Err: fmt.Errorf(format, p.Name, p.Namespace, err)}
		case gone:
			return nil
		}
		if sleep(ctx, d.o.Clock, d.o.Options.Delays.PodPoll) != nil {
			return d.timedOut(ctx, p, "", format)
		}
	}
}

func (d *drainer) gone(ctx context.Context, p *corev1.Pod) (bool, error) {
	now, err := clusterapi.Get[corev1.Pod](ctx, d.o.API, types.NamespacedName{Namespace: p.Namespace, Name: p.Name})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return err == nil && now.UID != p.UID, err
}

func (d *drainer) timedOut(ctx context.Context, p *corev1.Pod, budget, format string) error {
	kind := DrainTimeout
	if budget != "" {
		kind = DrainBudget
	}
	return &DrainError{Node: d.node, Pod: p.Namespace + "/" + p.Name, Budget: budget, Kind: kind,
		Err: fmt.Errorf(format, p.Name, p.Namespace, context.Cause(ctx))}
}

// budgetText is what the API says about the budget that refuses an eviction.
func budgetText(err error) string {
	if cause, ok := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause); ok && cause.Message != "" {
		return cause.Message
	}
	return err.Error()
}

// budgetNamed is the name of that budget, or "".
func budgetNamed(err error) string {
	cause, ok := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause)
	if !ok {
		return ""
	}
	rest, ok := strings.CutPrefix(cause.Message, "The disruption budget ")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, " ")
	return strings.Trim(name, `"`)
}
