package rollout

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
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// drainAttempt is one attempt, with a limit, to get a node's pods to leave.
type drainAttempt struct {
	asked   string
	failing time.Duration // how long the drain had been failing when it began
	end     time.Time
	listed  bool
	pods    []*leavingPod
	check   time.Time // when to look for pods that went before they were watched
}

// leavingPod is a pod that is to leave.
type leavingPod struct {
	key     types.NamespacedName
	uid     types.UID
	ending  bool      // it was being deleted when it was listed
	evicted bool      // it has been told to go
	next    time.Time // when to ask again, while it is not
	budget  string    // that refused last
	told    bool      // that one did
	gone    bool
	err     error
}

// setBack moves the times of an attempt that are further off than its limit: the
// clock was set back.
func (a *drainAttempt) setBack(now time.Time, limit time.Duration) {
	back := a.end.Sub(now) - limit
	if back <= 0 {
		return
	}
	a.end, a.check = a.end.Add(-back), a.check.Add(-back)
	for _, p := range a.pods {
		p.next = p.next.Add(-back)
	}
}

// errLimit ends an attempt.
var errLimit = errors.New("global timeout reached")

var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

const (
	textEvicting = "error when evicting pods/%q -n %q: %w"
	textAwaiting = "error when waiting for pod %q in namespace %q to terminate: %w"
)

// podsOf is the watch of a node's pods: one that is gone wakes the key of its drain.
func podsOf(node string, key reconcile.Key) reconcile.Watch {
	return reconcile.Watch{GVK: podKind, Options: clusterapi.ListOptions{NodeName: node},
		Changed: func(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake {
			if new != nil && (old == nil || old.UID() == new.UID()) {
				return nil
			}
			return []reconcile.Wake{{Key: key}}
		}}
}

// proceed goes on with the attempt, and ends it when no pod is left or its time
// is over. It returns when to look again.
func (x *drainer) proceed() (at time.Time, err error) {
	a := x.attempt
	if !a.listed {
		a.pods, err = x.podsToEvict()
		if err != nil {
			if x.ctx.Err() != nil {
				return time.Time{}, err
			}
			x.failed(&DrainError{Node: x.node, Kind: drainPods, Err: err})
			return time.Time{}, nil
		}
		a.listed = true
	}
	a.setBack(x.now, x.o.Delays.DrainAttempt)
	if err := x.evictDue(); err != nil {
		return time.Time{}, err
	}
	if err := x.look(); err != nil {
		return time.Time{}, err
	}
	over := !x.now.Before(a.end)
	at = a.end
	var errs []error
	for _, p := range a.pods {
		switch {
		case p.err != nil:
			errs = append(errs, p.err)
		case p.gone:
		case over:
			errs = append(errs, x.timedOut(p))
		case p.evicted:
			if x.now.Before(a.check) && a.check.Before(at) {
				at = a.check
			}
		case p.next.Before(at):
			at = p.next
		}
	}
	if !over && x.left() {
		return at, nil
	}
	if len(errs) > 0 {
		x.failed(errors.Join(errs...))
		return time.Time{}, nil
	}
	return time.Time{}, x.fulfilled()
}

// left reports whether a pod is still to leave.
func (x *drainer) left() bool {
	for _, p := range x.attempt.pods {
		if !p.gone && p.err == nil {
			return true
		}
	}
	return false
}

// podsToEvict lists the node's pods and leaves out those that stay.
func (x *drainer) podsToEvict() ([]*leavingPod, error) {
	pods, err := clusterapi.ReadAll[corev1.Pod](x.ctx, x.api, clusterapi.ListOptions{NodeName: x.node})
	if err != nil {
		return nil, err
	}
	daemonSets := map[types.NamespacedName]bool{} // whether each exists
	var leave []*leavingPod
	var errs []error
	for _, p := range pods {
		if p.Spec.NodeName != x.node {
			continue // a backend that cannot select by node
		}
		stays, err := disruption.Stays(p, func(key types.NamespacedName) (bool, error) {
			if exists, known := daemonSets[key]; known {
				return exists, nil
			}
			_, err := clusterapi.Read[appsv1.DaemonSet](x.ctx, x.api, key)
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
			leave = append(leave, &leavingPod{key: clusterapi.Key(p.Namespace, p.Name), uid: p.UID, ending: p.DeletionTimestamp != nil})
		}
	}
	// One pod that cannot be judged stops the drain before the first eviction.
	return leave, errors.Join(errs...)
}

// evictDue asks pods to leave whose time has come, side by side.
func (x *drainer) evictDue() error {
	var due []*leavingPod
	for _, p := range x.attempt.pods {
		if !p.evicted && !p.gone && p.err == nil && !x.now.Before(p.next) && x.now.Before(x.attempt.end) {
			due = append(due, p)
		}
	}
	if len(due) > 0 {
		x.attempt.check = x.now.Add(x.o.Delays.PodPoll)
	}
	const atOnce = 16
	return reconcile.Each(x.ctx, atOnce, len(due), func(ctx context.Context, i int) error {
		if err := panics.Isolate(func() error { x.evict(ctx, due[i]); return nil }); err != nil {
			due[i].err = err
		}
		return ctx.Err()
	})
}

// evict asks one pod to leave.
func (x *drainer) evict(ctx context.Context, p *leavingPod) {
	err := x.api.Evict(ctx, p.key, clusterapi.EvictOptions{UID: p.uid})
	p.next = x.now.Add(x.o.Delays.EvictionRetry)
	switch {
	case err == nil:
		p.evicted = true
	case ctx.Err() != nil:
	case apierrors.IsNotFound(err):
		p.gone = true
	case apierrors.IsConflict(err):
		// Another pod has the name by now, or the pod has just changed.
		now, err := clusterapi.Read[corev1.Pod](ctx, x.api, p.key)
		switch {
		case apierrors.IsNotFound(err):
			p.gone = true
		case err != nil:
			p.err = err
		default:
			p.gone = now.UID != p.uid
		}
	case apierrors.IsTooManyRequests(err):
		var text string
		p.budget, text = disruption.Refusal(err)
		if !p.told {
			p.told = true
			blocked := &DrainError{Node: x.node, Pod: p.key.String(), Budget: p.budget, Kind: drainBudget, Err: err}
			x.tellDrain(EventDrainBlocked, EventData{Phase: mcp.PhaseDraining},
				fmt.Sprintf("node %s: pod %s may not be evicted now: %s", x.node, p.key, text), blocked)
		}
	case apierrors.IsForbidden(err) && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		p.evicted = p.ending
	default:
		p.err = &DrainError{Node: x.node, Pod: p.key.String(), Kind: drainEviction, Err: fmt.Errorf(textEvicting, p.key.Name, p.key.Namespace, err)}
	}
}

// look finds out which of the evicted pods are gone.
func (x *drainer) look() error {
	a := x.attempt
	var awaited []*leavingPod
	for _, p := range a.pods {
		if p.evicted && !p.gone && p.err == nil {
			awaited = append(awaited, p)
		}
	}
	if len(awaited) == 0 {
		return nil
	}
	pods, err := clusterapi.ListShared(x.ctx, x.api, podKind, clusterapi.ListOptions{NodeName: x.node})
	if x.ctx.Err() != nil {
		return x.ctx.Err()
	}
	if err != nil {
		for _, p := range awaited {
			p.err = &DrainError{Node: x.node, Pod: p.key.String(), Kind: drainEviction, Err: fmt.Errorf(textAwaiting, p.key.Name, p.key.Namespace, err)}
		}
		return nil
	}
	there := make(map[types.UID]bool, len(pods))
	for _, o := range pods {
		there[o.UID()] = true
	}
	for _, p := range awaited {
		p.gone = !there[p.uid]
	}
	return nil
}

func (x *drainer) timedOut(p *leavingPod) error {
	kind, format := drainTimeout, textEvicting
	if p.evicted {
		format = textAwaiting
	} else if p.budget != "" {
		kind = drainBudget
	}
	return &DrainError{Node: x.node, Pod: p.key.String(), Budget: p.budget, Kind: kind,
		Err: fmt.Errorf(format, p.key.Name, p.key.Namespace, fmt.Errorf("%w: %v", errLimit, x.o.Delays.DrainAttempt))}
}
