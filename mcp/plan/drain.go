package plan

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/disruption"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// drainProgress is how far a drain has come.
type drainProgress struct {
	left    int          // pods that have to leave
	blocked []blockedPod // those that may not leave now, by namespace and name
}

// blockedPod is a pod that may not be evicted now.
type blockedPod struct {
	pod  string // namespace/name
	text string
}

const evictionRetry = 5 * time.Second // the next drain follows after it

// drain asks the pods of a cordoned node to leave, all at once, and does not wait. It
// judges pods as the machine-config controller does, and never forces. An error of
// the API is tried again. It keeps nothing between two calls.
func drain(ctx context.Context, api clusterapi.ClusterAPI, node string) (p drainProgress, err error) {
	n, err := clusterapi.Read[corev1.Node](ctx, api, clusterapi.Key("", node))
	if apierrors.IsNotFound(err) {
		return p, nil // its pods go with it
	}
	if err != nil {
		return p, err
	}
	if mcp.NodeStateOf(n).Topology == mcp.TopologySingleReplica {
		return p, nil // there is nowhere to go
	}
	leave, err := leaving(ctx, api, node)
	if err != nil {
		return p, err
	}
	p.left = len(leave)
	answers := make([]error, len(leave))
	const atOnce = 16
	err = reconcile.Each(ctx, atOnce, len(leave), func(ctx context.Context, i int) error {
		if leave[i].DeletionTimestamp == nil {
			answers[i] = api.Evict(ctx, clusterapi.Key(leave[i].Namespace, leave[i].Name), clusterapi.EvictOptions{UID: leave[i].UID})
		}
		return ctx.Err()
	})
	errs := []error{err}
	for i, answer := range answers {
		pod := leave[i].Namespace + "/" + leave[i].Name
		switch {
		case answer == nil, apierrors.IsNotFound(answer), apierrors.IsConflict(answer):
		case apierrors.IsTooManyRequests(answer):
			_, text := disruption.Refusal(answer)
			p.blocked = append(p.blocked, blockedPod{pod, text})
		case apierrors.IsForbidden(answer) && apierrors.HasStatusCause(answer, corev1.NamespaceTerminatingCause):
		case apierrors.IsInternalError(answer): // two budgets
			p.blocked = append(p.blocked, blockedPod{pod, answer.Error()})
		default:
			errs = append(errs, fmt.Errorf("error when evicting pods/%q -n %q: %w", leave[i].Name, leave[i].Namespace, answer))
		}
	}
	return p, errors.Join(errs...)
}

// leaving are the pods of a node that a drain does not leave alone. One that
// cannot be judged stops the drain before the first eviction.
func leaving(ctx context.Context, api clusterapi.Reader, node string) ([]*corev1.Pod, error) {
	pods, err := clusterapi.ReadAll[corev1.Pod](ctx, api, clusterapi.ListOptions{NodeName: node})
	if err != nil {
		return nil, err
	}
	var out []*corev1.Pod
	var errs []error
	for _, p := range pods {
		if p.Spec.NodeName != node {
			continue // a backend that cannot select by node
		}
		stays, err := disruption.Stays(p, func(key types.NamespacedName) (bool, error) {
			_, err := clusterapi.Read[appsv1.DaemonSet](ctx, api, key)
			if apierrors.IsNotFound(err) {
				return false, nil
			}
			return err == nil, err
		})
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("pod %s/%s: %w", p.Namespace, p.Name, err))
		case !stays:
			out = append(out, p)
		}
	}
	return out, errors.Join(errs...)
}

// podsOf is the watch of a node's pods: one that is gone wakes the drain.
func podsOf(key reconcile.Key, node string) reconcile.Watch {
	return reconcile.Watch{GVK: podKind, Options: clusterapi.ListOptions{NodeName: node},
		Changed: func(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake {
			if new != nil && (old == nil || old.UID() == new.UID()) {
				return nil
			}
			return []reconcile.Wake{{Key: key}}
		}}
}
