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
)

// Drain is one attempt to empty a node that is cordoned: for a [Rollout], and for the
// steps of a plan. It evicts the pods that the machine-config controller evicts, within
// what budgets allow, and never forces. It lists the pods again before it is complete,
// since some may have been bound to the node after the first list. Its zero value but
// for Node is ready to use, for one caller at a time.
type Drain struct {
	Node string
	// Delays has the limit of the attempt and its waits.
	Delays Delays
	// Blocked gets the first refusal of each pod by a budget; nil disables it.
	Blocked func(pod types.NamespacedName, text string, err *DrainError)

	end        time.Time
	listed     bool
	known      map[types.UID]bool // pods that a list has shown
	pods       []*leavingPod
	daemonSets map[types.NamespacedName]bool // whether each exists
	check      time.Time                     // when to look for pods that left before they were watched
}

// leavingPod is a pod that is to leave.
type leavingPod struct {
	key      types.NamespacedName
	uid      types.UID
	ending   bool      // it was being deleted when it was listed
	evicted  bool      // the server has accepted its eviction
	next     time.Time // when to ask again, while it has not
	refusal  error     // of a budget, to be reported
	budget   string    // that refused last
	reported bool      // that one did
	left     bool
	err      error
}

// errLimit ends an attempt.
var errLimit = errors.New("global timeout reached")

var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

const (
	textEvicting = "error when evicting pods/%q -n %q: %w"
	textAwaiting = "error when waiting for pod %q in namespace %q to terminate: %w"
)

// PodsOf is the watch of a node's pods, which wakes a key when one of them is gone.
func PodsOf(node string, key reconcile.Key) reconcile.Watch {
	return reconcile.Watch{GVK: podKind, Options: clusterapi.ListOptions{NodeName: node},
		Changed: func(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake {
			if new != nil && (old == nil || old.UID() == new.UID()) {
				return nil
			}
			return []reconcile.Wake{{Key: key}}
		}}
}

// Advance evicts the pods that are due, and returns when to call it again, or that no
// pod is left. It does not wait. An error ends the attempt: it joins a [*DrainError] for
// each pod that could not be evicted in time. If ctx ends, the error is ctx's, and the
// attempt continues with the next call.
func (d *Drain) Advance(ctx context.Context, api clusterapi.ClusterAPI, now time.Time) (at time.Time, done bool, err error) {
	d.begin(now)
	if !d.listed {
		err = d.list(ctx, api, now)
		if err != nil {
			return at, false, err
		}
	}
	if err := d.evictDue(ctx, api, now); err != nil {
		return at, false, err
	}
	if d.awaits() || !d.left() {
		err = d.list(ctx, api, now)
		if err != nil {
			return at, false, err
		}
	}
	over := !now.Before(d.end)
	if !over && d.left() {
		return d.nextLook(now), false, nil
	}
	var errs []error
	for _, p := range d.pods {
		switch {
		case p.err != nil:
			errs = append(errs, p.err)
		case !p.left:
			errs = append(errs, d.timedOut(p))
		}
	}
	err = errors.Join(errs...)
	return at, err == nil, err
}

// begin starts the attempt's clock. If the time was set back since, it moves the times
// of the attempt that are further off than its limit.
func (d *Drain) begin(now time.Time) {
	if d.end.IsZero() {
		d.Delays = d.Delays.withDefaults()
		d.end = now.Add(d.Delays.DrainAttempt)
		d.known = map[types.UID]bool{}
		d.daemonSets = map[types.NamespacedName]bool{}
	}
	back := d.end.Sub(now) - d.Delays.DrainAttempt
	if back <= 0 {
		return
	}
	d.end = d.end.Add(-back)
	d.check = d.check.Add(-back)
	for _, p := range d.pods {
		p.next = p.next.Add(-back)
	}
}

// waits reports whether a pod is still to leave.
func (p *leavingPod) waits() bool { return !p.left && p.err == nil }

// left reports whether any pod is still to leave.
func (d *Drain) left() bool { return d.Left() > 0 }

// Left is how many pods are still to leave, as far as they are known.
func (d *Drain) Left() (n int) {
	for _, p := range d.pods {
		if p.waits() {
			n++
		}
	}
	return n
}

// awaits reports whether a pod that was evicted is still to leave.
func (d *Drain) awaits() bool {
	for _, p := range d.pods {
		if p.waits() && p.evicted {
			return true
		}
	}
	return false
}

// nextLook is when something is due while pods are left.
func (d *Drain) nextLook(now time.Time) time.Time {
	at := d.end
	for _, p := range d.pods {
		next := p.next
		if p.evicted {
			next = d.check
		}
		if p.waits() && now.Before(next) && next.Before(at) {
			at = next
		}
	}
	return at
}

// list lists the node's pods: those that are not known yet and do not stay are to leave,
// those that it does not show any more are gone.
func (d *Drain) list(ctx context.Context, api clusterapi.Reader, now time.Time) error {
	objects, err := clusterapi.ListShared(ctx, api, podKind, clusterapi.ListOptions{NodeName: d.Node})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return d.notListed(err)
	}
	there := make(map[types.UID]bool, len(objects))
	var leave []*leavingPod
	var errs []error
	for _, o := range objects {
		there[o.UID()] = true
		if d.known[o.UID()] {
			continue
		}
		p, err := clusterapi.As[corev1.Pod](o)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if p.Spec.NodeName != d.Node {
			continue // a backend that cannot select by node
		}
		stays, err := d.stays(ctx, api, p)
		if err != nil {
			errs = append(errs, fmt.Errorf("pod %s/%s: %w", p.Namespace, p.Name, err))
			continue
		}
		if !stays {
			leave = append(leave, newLeavingPod(p))
		}
	}
	// One pod that cannot be judged stops the drain before the first eviction.
	if err := errors.Join(errs...); err != nil {
		return d.fault(ctx, err)
	}
	for _, p := range d.pods {
		if p.evicted && !there[p.uid] {
			p.left = true
		}
	}
	if d.listed {
		for _, p := range leave {
			p.next = now.Add(d.Delays.PodPoll)
		}
	}
	d.pods = append(d.pods, leave...)
	for uid := range there {
		d.known[uid] = true
	}
	d.listed = true
	return nil
}

func newLeavingPod(p *corev1.Pod) *leavingPod {
	return &leavingPod{key: clusterapi.Key(p.Namespace, p.Name), uid: p.UID, ending: p.DeletionTimestamp != nil}
}

// stays reports whether a drain leaves a pod alone.
func (d *Drain) stays(ctx context.Context, api clusterapi.Reader, p *corev1.Pod) (bool, error) {
	return disruption.Stays(p, func(key types.NamespacedName) (bool, error) {
		if exists, known := d.daemonSets[key]; known {
			return exists, nil
		}
		_, err := clusterapi.Read[appsv1.DaemonSet](ctx, api, key)
		if err != nil && !apierrors.IsNotFound(err) {
			return false, err
		}
		d.daemonSets[key] = err == nil
		return err == nil, nil
	})
}

// notListed is what an error of a list means: pods that are awaited fail with it, and
// without any the attempt ends.
func (d *Drain) notListed(err error) error {
	if !d.awaits() {
		return &DrainError{Node: d.Node, Kind: drainPods, Err: err}
	}
	for _, p := range d.pods {
		if p.waits() && p.evicted {
			p.err = d.podError(p, drainEviction, textAwaiting, err)
		}
	}
	return nil
}

// fault is an error that concerns all pods, unless the context has ended.
func (d *Drain) fault(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &DrainError{Node: d.Node, Kind: drainPods, Err: err}
}

// evictDue asks pods to leave whose time has come, side by side.
func (d *Drain) evictDue(ctx context.Context, api clusterapi.ClusterAPI, now time.Time) error {
	var due []*leavingPod
	for _, p := range d.pods {
		if p.waits() && !p.evicted && !now.Before(p.next) && now.Before(d.end) {
			due = append(due, p)
		}
	}
	if len(due) > 0 {
		d.check = now.Add(d.Delays.PodPoll)
	}
	const atOnce = 16
	err := reconcile.Each(ctx, atOnce, len(due), func(ctx context.Context, i int) error {
		p := due[i]
		p.next = now.Add(d.Delays.EvictionRetry)
		err := panics.Isolate(func() error {
			d.evict(ctx, api, p)
			return nil
		})
		if err != nil {
			p.err = err
		}
		return ctx.Err()
	})
	for _, p := range due {
		d.report(p)
	}
	return err
}

// evict asks one pod to leave.
func (d *Drain) evict(ctx context.Context, api clusterapi.ClusterAPI, p *leavingPod) {
	err := api.Evict(ctx, p.key, clusterapi.EvictOptions{UID: p.uid})
	switch {
	case err == nil:
		p.evicted = true
	case ctx.Err() != nil:
	case apierrors.IsNotFound(err):
		p.left = true
	case apierrors.IsConflict(err):
		// Another pod has the name now, or the pod has just changed.
		now, err := clusterapi.Read[corev1.Pod](ctx, api, p.key)
		switch {
		case apierrors.IsNotFound(err):
			p.left = true
		case err != nil:
			p.err = err
		default:
			p.left = now.UID != p.uid
		}
	case apierrors.IsTooManyRequests(err):
		p.refusal = err
	case apierrors.IsForbidden(err) && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		p.evicted = p.ending
	default:
		p.err = d.podError(p, drainEviction, textEvicting, err)
	}
}

// report reports the first time that a budget refuses a pod's eviction.
func (d *Drain) report(p *leavingPod) {
	if p.refusal == nil {
		return
	}
	err := p.refusal
	budget, text := disruption.Refusal(err)
	p.refusal = nil
	p.budget = budget
	if p.reported || d.Blocked == nil {
		return
	}
	p.reported = true
	d.Blocked(p.key, text, &DrainError{Node: d.Node, Pod: p.key.String(), Budget: budget, Kind: drainBudget, Err: err})
}

// timedOut is the error of a pod that did not leave within the attempt.
func (d *Drain) timedOut(p *leavingPod) error {
	kind, format := drainTimeout, textEvicting
	if p.evicted {
		format = textAwaiting
	} else if p.budget != "" {
		kind = drainBudget
	}
	return d.podError(p, kind, format, fmt.Errorf("%w: %v", errLimit, d.Delays.DrainAttempt))
}

func (d *Drain) podError(p *leavingPod, kind, format string, err error) error {
	return &DrainError{Node: d.Node, Pod: p.key.String(), Budget: p.budget, Kind: kind,
		Err: fmt.Errorf(format, p.key.Name, p.key.Namespace, err)}
}
