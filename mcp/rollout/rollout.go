package rollout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// Mode describes what a [Rollout] may do.
type Mode int

const (
	// ReadOnly never writes: the cluster's machine-config controller targets
	// the nodes, and events say what it does and what it waits for.
	ReadOnly Mode = iota
	// Drive does the work of the machine-config controller. For clusters that
	// have none.
	Drive
)

// Options are the options of a [Rollout].
type Options struct {
	// API is the cluster; required. If it is a [clusterapi.Watcher] too, events
	// drive the rollout, else it lists at intervals.
	API  clusterapi.ClusterAPI
	Mode Mode
	// Clock times all delays; nil means the real one.
	Clock clock.WithTicker
	// Observe receives the events, one at a time; nil: no events. The rollout waits
	// for it to return. A panic in it is logged, and the rollout continues.
	Observe func(clusterapi.Event)
	// Logger gets failures that are tried again; nil: no log.
	Logger *slog.Logger
	// Options steer the decisions.
	Options mcp.Options
	// OrderByBudgets lets disruption budgets choose which nodes of a zone come
	// first, as [mcp.Order].Budgets says, in mode Drive only. Pods, budgets and
	// DaemonSets are listed whenever nodes can be targeted.
	OrderByBudgets bool
	// Delays are the cadence; the zero value is the machine-config
	// controller's.
	Delays Delays
	// NodeUpdater updates nodes in mode Drive; nil: daemons on the nodes do.
	NodeUpdater mcp.NodeUpdater
	// Hooks run around the update of each node, in mode Drive only. A node that
	// is updated without a drain has no PreCordon and no PreUpgrade. They may
	// take their time; what they wait for is bounded by the context alone.
	Hooks Hooks
	// DrainWorkers is how many drains are worked on at a time; 0 means 5. A
	// drain that waits, for a pod to end or a budget to allow an eviction, is
	// not worked on, so a blocked drain holds up only itself.
	DrainWorkers int
}

// Rollout follows the pools and nodes of a cluster and, in mode Drive, updates
// them: it targets nodes, fulfils their requests to be drained, and keeps taints
// and pool status up to date. It keeps nothing of its own: stopped at any point,
// another continues from there. It is safe for concurrent use; Run fails while it
// is running.
type Rollout struct {
	o Options

	running atomic.Bool
	stop    atomic.Pointer[func(error)] // ends Run

	mu      sync.Mutex
	current *run // whose State View shows
}

// New returns a Rollout that is not yet running, and an error for options that
// cannot work: in an unknown Mode, with Hooks or OrderByBudgets in mode ReadOnly,
// or with a negative number.
func New(o Options) (*Rollout, error) {
	if o.Mode != ReadOnly && o.Mode != Drive {
		return nil, fmt.Errorf("rollout.Options: Mode is unknown: %d", o.Mode)
	}
	if o.Mode == ReadOnly && o.Hooks.any() {
		return nil, errors.New("rollout.Options: Hooks need mode Drive: in ReadOnly, others update the nodes and do not wait for them")
	}
	if o.OrderByBudgets && (o.Mode == ReadOnly || o.Options.Order.Budgets != nil) {
		return nil, errors.New("rollout.Options: OrderByBudgets needs mode Drive, and Options.Order.Budgets to be nil")
	}
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.DrainWorkers == 0 {
		o.DrainWorkers = 5
	}
	o.Delays = o.Delays.withDefaults()
	return &Rollout{o: o}, nil
}

// View calls f with the state that the rollout decides on, and returns false
// if it is not running or has not seen all objects yet. f must not change the
// state, nor keep it.
func (r *Rollout) View(f func(*mcp.State)) bool {
	r.mu.Lock()
	x := r.current
	r.mu.Unlock()
	if x == nil {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.ready {
		return false
	}
	f(x.state)
	return true
}

func (r *Rollout) show(x *run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current = x
}

// Process is the rollout for a driver of package reconcile: what Run drives
// live. It uses the driver's API instead of the options', and while a
// machine-config controller is active, which the driver's Run would end for, it
// says so in events of type EventError and looks again.
func (r *Rollout) Process() reconcile.Process {
	return reconcile.Process{Name: "rollout", New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
		x := newRun(r, api)
		r.show(x)
		all := []reconcile.Reconciler{&poolsReconciler{x}}
		if r.o.Mode == Drive {
			all = append(all, &drainsReconciler{run: x, nodes: map[string]*nodeDrain{}})
			if r.o.NodeUpdater != nil {
				all = append(all, &updatesReconciler{run: x, nodes: map[string]*nodeUpdate{}})
			}
		}
		return all
	}}
}

// Run follows the cluster until ctx ends, and then returns nil, all its
// goroutines gone. Failures of the API are tried again. Mode Drive returns
// [ErrControllerActive] if a machine-config controller runs.
func (r *Rollout) Run(ctx context.Context) error {
	if r.o.API == nil {
		return errors.New("rollout: Options.API is required")
	}
	if !r.running.CompareAndSwap(false, true) {
		return errors.New("rollout: the Rollout is already running")
	}
	defer r.running.Store(false)
	defer r.show(nil)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := func(err error) { cancel(err) }
	r.stop.Store(&stop)
	defer r.stop.Store(nil)
	delays := r.o.Delays
	err := reconcile.Run(ctx, reconcile.Options{API: r.o.API, Clock: r.o.Clock, Logger: r.o.Logger, Poll: delays.Poll, Resync: delays.Resync,
		Observe: r.driverEvent}, r.Process())
	if cause := context.Cause(ctx); errors.Is(cause, ErrControllerActive) {
		return cause
	}
	return err
}

// fatal ends Run for an error that only a person can mend, and reports whether
// it did.
func (r *Rollout) fatal(err error) bool {
	stop := r.stop.Load()
	if stop == nil || !errors.Is(err, ErrControllerActive) {
		return false
	}
	(*stop)(err)
	return true
}

// driverEvent reports what happened in the live driver: watches and lists that
// fail.
func (r *Rollout) driverEvent(e clusterapi.Event) {
	switch e.Type {
	case reconcile.EventFailed, reconcile.EventWatchFailed, reconcile.EventServerBusy:
		failed := event(EventError, EventData{Warning: true}, "", e.Err)
		failed.Time = e.Time
		r.emit(failed)
	}
}

// maxMessage is the most bytes that the text of an event has.
const maxMessage = 32 << 10

// emit passes an event to the observer. One that panics, or ends its goroutine, is
// logged.
func (r *Rollout) emit(e clusterapi.Event) {
	if r.o.Observe == nil {
		return
	}
	e.Message = bounded.Text(e.Message, maxMessage)
	err := panics.Isolate(func() error {
		r.o.Observe(e)
		return nil
	})
	if err != nil {
		r.logPanic("rollout: the observer failed", err)
	}
}

// logPanic logs an error with the stack of the panic that caused it, if any.
func (r *Rollout) logPanic(text string, err error) {
	if p, ok := errors.AsType[*clusterapi.PanicError](err); ok {
		r.o.Logger.Error(text, "error", err, "stack", string(p.Stack))
	}
}

// checkNoController looks for a machine-config controller. Its error is
// [ErrControllerActive], or the API's, and then it is not known whether one runs.
func (r *Rollout) checkNoController(ctx context.Context, api clusterapi.Reader, now time.Time) error {
	pods, err := clusterapi.List[corev1.Pod](ctx, api, clusterapi.ListOptions{
		Namespace: mcp.OperatorNamespace, Labels: labels.SelectorFromSet(labels.Set{mcp.LabelApp: mcp.AppController}),
	})
	if err != nil && !unknownKind(err) {
		return lookupError(err)
	}
	for i := range pods {
		if pods[i].Status.Phase == corev1.PodRunning {
			return fmt.Errorf("%w: pod %s/%s is running", ErrControllerActive, pods[i].Namespace, pods[i].Name)
		}
	}
	lease, err := clusterapi.Get[coordinationv1.Lease](ctx, api, clusterapi.Key(mcp.OperatorNamespace, mcp.AppController))
	switch {
	case apierrors.IsNotFound(err), unknownKind(err):
		return nil
	case err != nil:
		return lookupError(err)
	}
	if holder := leaseHolder(&lease.Spec, now); holder != "" {
		return fmt.Errorf("%w: %s holds its lease", ErrControllerActive, holder)
	}
	return nil
}

func lookupError(err error) error {
	return fmt.Errorf("looking for a machine-config controller: %w", err)
}

// leaseHolder returns who holds a lease now, or "".
func leaseHolder(l *coordinationv1.LeaseSpec, now time.Time) string {
	if l.HolderIdentity == nil || l.RenewTime == nil || l.LeaseDurationSeconds == nil {
		return ""
	}
	if now.After(l.RenewTime.Add(time.Duration(*l.LeaseDurationSeconds) * time.Second)) {
		return ""
	}
	return *l.HolderIdentity
}

// unknownKind reports that a cluster or recording does not have a kind at all.
func unknownKind(err error) bool {
	return meta.IsNoMatchError(err) || errors.Is(err, clusterapi.ErrNotCollected)
}

// backoff is the delay after this many errors in a row.
func (d Delays) backoff(errors int) time.Duration {
	const tries = 15
	if errors > tries {
		return d.RetryMax
	}
	return d.RetryMin << (errors - 1)
}
