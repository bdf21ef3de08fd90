package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// drainResult is what one attempt tells the loop.
type drainResult struct {
	node string
	// began is set when the attempt started the clock anew.
	began time.Time
	// over says that the request is fulfilled or withdrawn.
	over bool
	// retry is when to try again after a drain that did not succeed; 0: not.
	retry time.Duration
	// err is a failure of something else, which is tried again soon.
	err error
}

// startDrains starts attempts as far as there are workers.
func (x *run) startDrains(ctx context.Context) {
	for {
		node, ok := x.drains.start(x.o.DrainWorkers)
		if !ok {
			return
		}
		_, assign, _ := x.state.Node(node)
		d := drainer{
			Rollout: x.Rollout, node: node, pool: assign.Primary,
			placeErr: assign.Err, began: x.drains.began[node],
		}
		x.group.Go(func() {
			r := drainResult{node: node}
			if err := panics.Isolate(func() error {
				r = d.attempt(ctx)
				return nil
			}); err != nil {
				r.err = &DrainError{Node: node, Kind: DrainPods, Err: fmt.Errorf("draining node %s: %w", node, err)}
			}
			select {
			case x.drained <- r:
			case <-ctx.Done():
			}
		})
	}
}

// drainOver takes in the end of an attempt.
func (x *run) drainOver(r drainResult) {
	now := x.o.Clock.Now()
	q := &x.drains
	if !r.began.IsZero() {
		q.began[r.node] = r.began
	}
	if r.over {
		delete(q.began, r.node)
	}
	switch {
	case r.err != nil:
		q.failures[r.node]++
		x.fail("", r.node, r.err)
		q.add(r.node, now.Add(x.o.Options.Delays.backoff(q.failures[r.node])))
	case r.retry > 0:
		delete(q.failures, r.node)
		q.add(r.node, now.Add(r.retry))
	default:
		delete(q.failures, r.node)
	}
	q.over(r.node)
}

// drainer makes one attempt to fulfil the request of one node.
type drainer struct {
	*Rollout
	node, pool string
	placeErr   error     // why the node is in no pool
	began      time.Time // zero: this is the first attempt
}

func (d *drainer) attempt(ctx context.Context) drainResult {
	out := drainResult{node: d.node}
	node, err := clusterapi.Get[corev1.Node](ctx, d.o.API, clusterapi.Key("", d.node))
	if apierrors.IsNotFound(err) {
		out.over = true
		return out
	}
	if err != nil {
		out.err = err
		return out
	}
	asked := node.Annotations[AnnotationDesiredDrain]
	if asked == node.Annotations[AnnotationLastAppliedDrain] {
		out.over = true
		return out
	}
	if d.placeErr != nil {
		out.err = d.placeErr
		return out
	}
	switch verb, _, _ := strings.Cut(asked, "-"); verb {
	case DrainVerbUncordon:
		out.over = true // whatever drain went before
		if out.err = d.cordon(ctx, false); out.err == nil {
			out.err = d.fulfilled(ctx, asked, func(*corev1.Node) bool { return true })
		}
	case DrainVerbDrain:
		d.drain(ctx, node, asked, &out)
	default:
		out.err = fmt.Errorf("node %s: non-recognized drain verb detected %s", d.node, verb)
	}
	return out
}

// drain cordons the node if need be and makes one attempt to empty it. It
// never gives up and never forces.
func (d *drainer) drain(ctx context.Context, node *corev1.Node, asked string, out *drainResult) {
	delays := d.o.Options.Delays
	var failing time.Duration // as the clock showed when the attempt began
	if !d.began.IsZero() {
		failing = d.o.Clock.Since(d.began)
	}
	if d.began.IsZero() || !node.Spec.Unschedulable {
		if out.err = d.cordon(ctx, true); out.err != nil {
			return
		}
		out.began = d.o.Clock.Now()
	}
	if failing > delays.DrainFailed {
		d.warn(ReasonDrainFailed, fmt.Sprintf("node %s: drain exceeded timeout: %v. Will continue to retry.", d.node, delays.DrainFailed), nil)
	}
	err := d.empty(ctx)
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		out.over = true
		// If somebody uncordoned the node, pods may have come back; that change
		// queues the node again.
		drained := false
		out.err = d.fulfilled(ctx, asked, func(n *corev1.Node) bool {
			drained = n.Spec.Unschedulable
			return drained
		})
		if out.err == nil && drained {
			d.emit(Event{Type: EventDrained, Pool: d.pool, Node: d.node, Text: fmt.Sprintf("node %s is drained", d.node)})
		}
		return
	}
	out.retry = delays.DrainRetry
	if failing >= delays.DrainSlowAfter {
		out.retry = delays.DrainSlowRetry
		d.warn(ReasonDrainThresholdExceeded, fmt.Sprintf(
			"Drain failed. Drain has been failing for more than %v minutes. Waiting %v minutes then retrying. Error message from drain: %v",
			delays.DrainSlowAfter.Minutes(), delays.DrainSlowRetry.Minutes(), err), err)
		return
	}
	d.emit(Event{Type: EventDrainRetry, Pool: d.pool, Node: d.node, Phase: PhaseDraining, Err: err,
		Text: fmt.Sprintf("node %s: drain failed, trying again: %v", d.node, err)})
}

func (d *drainer) warn(reason, text string, err error) {
	d.emit(Event{Type: EventDrainRetry, Pool: d.pool, Node: d.node, Phase: PhaseDraining, Reason: reason, Warning: true, Text: text, Err: err})
}

// cordon makes the node unschedulable, or schedulable again.
func (d *drainer) cordon(ctx context.Context, on bool) error {
	const tries = 5
	wait := d.o.Options.Delays.CordonRetry
	for try := 1; ; try++ {
		_, err := clusterapi.Modify(ctx, d.o.API, clusterapi.Key("", d.node), modifyNode, func(n *corev1.Node) error {
			n.Spec.Unschedulable = on
			return nil
		})
		if err == nil || ctx.Err() != nil {
			return err
		}
		if try == tries {
			verb := "uncordon"
			if on {
				verb = "cordon"
			}
			return &DrainError{Node: d.node, Kind: DrainCordon, Err: fmt.Errorf("node %s: failed to %s (%d tries): %w", d.node, verb, try, err)}
		}
		if err := sleep(ctx, d.o.Clock, wait); err != nil {
			return err
		}
		wait *= 2
	}
}

// fulfilled tells the daemon that its request is, if the node is still as it
// must be for that.
func (d *drainer) fulfilled(ctx context.Context, asked string, still func(*corev1.Node) bool) error {
	_, err := clusterapi.Modify(ctx, d.o.API, clusterapi.Key("", d.node), modifyNode, func(n *corev1.Node) error {
		if still(n) {
			setAnnotation(n, AnnotationLastAppliedDrain, asked)
		}
		return nil
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// empty makes one attempt, with a limit, to get the node's pods to leave.
func (d *drainer) empty(ctx context.Context) error {
	limit := d.o.Options.Delays.DrainAttempt
	ctx, cancel := withLimit(ctx, d.o, limit)
	defer cancel(nil)
	pods, err := d.podsToEvict(ctx)
	if err != nil {
		return &DrainError{Node: d.node, Kind: DrainPods, Err: err}
	}
	errs := make([]error, len(pods))
	var group sync.WaitGroup
	for i := range pods {
		group.Go(func() {
			errs[i] = panics.Isolate(func() error { return d.evict(ctx, &pods[i]) })
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// errLimit ends an attempt.
var errLimit = errors.New("global timeout reached")

// withLimit is context.WithTimeoutCause on the rollout's clock.
func withLimit(ctx context.Context, o RolloutOptions, limit time.Duration) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := o.Clock.NewTimer(limit)
	go func() {
		defer timer.Stop()
		select {
		case <-timer.C():
			cancel(fmt.Errorf("%w: %v", errLimit, limit))
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
