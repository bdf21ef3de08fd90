package nodeaction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// Options are the options of a [Run].
type Options struct {
	// ID names the run, and its records in the cluster; required. Another Run of
	// the same ID goes on where this one stopped, and leaves alone the nodes that
	// are finished. Lower-case letters, digits and hyphens, at most 42.
	ID string
	// API is the cluster, for [Run.Run]; with [Run.Process] it is the driver's.
	API clusterapi.ClusterAPI
	// Action is done to each node; required.
	Action Action
	// Nodes are the nodes, by name, in the order in which they are acted on; but
	// the control plane comes first. Where it is nil, Selector selects them, in
	// the order of their names; one of the two is required.
	Nodes    []string
	Selector labels.Selector
	// Parallel is how many compute nodes are acted on at a time; 0 means 1. Nodes
	// of the control plane always go one by one, before the others.
	Parallel int
	// DuringUpdates acts on nodes while a machine-config daemon is updating them
	// too. The zero value waits until they are done.
	DuringUpdates bool
	// Hooks run around the action, in the order that [rollout.Hooks] gives, also
	// where the node is neither cordoned nor drained.
	Hooks rollout.Hooks
	// Drain is the cadence of drains; a zero field means its default.
	Drain rollout.Delays
	// Retry is how long to wait after an error of the action before it is tried
	// again, and RetryLimit how long it may go on failing before the run halts.
	// Zero means 30 seconds, and 30 minutes.
	Retry, RetryLimit time.Duration
	// StallLimit is how long the action may wait without progress before the run
	// halts, unless a person is waited for. Zero means an hour.
	StallLimit time.Duration
	// StepLimit and HookLimit bound one step of the action, and a hook. Zero means
	// 10 minutes, and an hour.
	StepLimit, HookLimit time.Duration
	// Namespace is that of the ConfigMap clusterupdate-node-actions; empty means
	// openshift-config.
	Namespace string
	// Clock times Run; nil means the real one.
	Clock clock.WithTicker
	// Observe is told what happens, one event at a time; nil: nobody is. A panic in
	// it is logged.
	Observe func(clusterapi.Event)
	// Logger gets failures that are tried again; nil: no log.
	Logger *slog.Logger
}

// The defaults of the fields of Options.
const (
	retry      = 30 * time.Second
	retryLimit = 30 * time.Minute
	stallLimit = time.Hour
	stepLimit  = 10 * time.Minute
)

// Run does an [Action] to nodes, one after the other. It keeps all that it needs
// in the cluster: stopped at any point, another Run of its ID goes on. It is safe
// for concurrent use; of two that work on the same nodes the later one wins, and
// the other stops with [ErrTakenOver].
type Run struct{ o Options }

// ErrTakenOver says that another Run of the same ID works on the nodes.
var ErrTakenOver = errors.New("another run of the same ID has taken over")

// FailedError says what halted a run: a hook (Err is a [*rollout.HookError]), or
// the action. The node stays as it is, cordoned if it was to be.
type FailedError struct {
	Node  string
	Phase string
	Err   error
}

func (e *FailedError) Error() string {
	if _, isHook := e.Err.(*rollout.HookError); isHook {
		return e.Err.Error() // which names the node
	}
	return fmt.Sprintf("node %s failed in phase %s: %v", e.Node, e.Phase, e.Err)
}

func (e *FailedError) Unwrap() error { return e.Err }

// New returns a run that has not begun, and an error for options that cannot
// work.
func New(o Options) (*Run, error) {
	switch {
	case !validID.MatchString(o.ID):
		return nil, fmt.Errorf("nodeaction.Options: ID is not a name of lower-case letters, digits and hyphens of at most 42: %q", o.ID)
	case o.Action == nil:
		return nil, errors.New("nodeaction.Options: Action is required")
	case o.Nodes == nil && o.Selector == nil:
		return nil, errors.New("nodeaction.Options: Nodes or Selector is required")
	}
	if sorted := slices.Sorted(slices.Values(o.Nodes)); len(slices.Compact(slices.Clone(sorted))) < len(sorted) || slices.Contains(sorted, "") {
		return nil, errors.New("nodeaction.Options: Nodes has an empty name, or one twice")
	}
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Parallel == 0 {
		o.Parallel = 1
	}
	if o.Namespace == "" {
		o.Namespace = defaultNamespace
	}
	for _, d := range []struct {
		v    *time.Duration
		zero time.Duration
	}{
		{&o.Retry, retry}, {&o.RetryLimit, retryLimit}, {&o.StallLimit, stallLimit},
		{&o.StepLimit, stepLimit}, {&o.HookLimit, time.Hour},
	} {
		if *d.v == 0 {
			*d.v = d.zero
		}
	}
	o.Nodes = slices.Clone(o.Nodes)
	return &Run{o}, nil
}

// Process is the run for a driver of package reconcile. A process that is made
// anew goes on after a failure that halted the one before.
func (r *Run) Process() reconcile.Process { return r.process(nil) }

func (r *Run) process(ended func(error)) reconcile.Process {
	return reconcile.Process{Name: "node action " + r.o.ID, New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
		return []reconcile.Reconciler{&reconciler{Options: r.o, api: api, ended: ended, nodes: map[string]*node{}, missing: map[string]bool{}}}
	}}
}

// Run acts on the nodes until all are finished, and then returns nil. It
// returns a [*FailedError] when something failed and the nodes under way are
// finished, [ErrTakenOver], and the context's error when that ends. Failures of
// the API are tried again.
func (r *Run) Run(ctx context.Context) error {
	if r.o.API == nil {
		return errors.New("nodeaction.Options: API is required")
	}
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	end := errors.New("the run has ended")
	var result error
	err := reconcile.Run(running, reconcile.Options{API: r.o.API, Clock: r.o.Clock, Logger: r.o.Logger}, r.process(func(err error) {
		if running.Err() == nil {
			result = err
			cancel(end)
		}
	}))
	if err != nil {
		return err
	}
	if context.Cause(running) == end {
		return result
	}
	return ctx.Err()
}

// emit tells the observer of an event. An empty subject is the run.
func (r *reconciler) emit(t clusterapi.EventType, subject string, d EventData, message string, err error) {
	d.Run = r.ID
	e := clusterapi.Event{Time: r.now, Type: t, Subject: cmp.Or(subject, "run/"+r.ID), Message: bounded.Text(message, maxMessage), Err: err, Data: &d}
	if d.Warning {
		r.Logger.Warn("node action: "+e.Message, "run", r.ID, "subject", e.Subject)
	}
	if r.Observe == nil {
		return
	}
	if err := panics.Isolate(func() error { r.Observe(e); return nil }); err != nil {
		r.Logger.Error("node action: the observer failed", "error", err)
	}
}

// maxMessage is the most bytes that the text of an event has.
const maxMessage = 32 << 10

// nodeNames are the nodes of the run that there are, the control plane first.
func (o *Options) nodeNames(all map[string]*corev1.Node) []string {
	names := slices.Clone(o.Nodes)
	if o.Nodes == nil {
		for name, n := range all {
			if o.Selector.Matches(labels.Set(n.Labels)) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
	}
	var control, compute []string
	for _, name := range names {
		switch n := all[name]; {
		case n == nil:
		case IsControlPlane(n):
			control = append(control, name)
		default:
			compute = append(compute, name)
		}
	}
	return append(control, compute...)
}
