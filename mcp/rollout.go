package mcp

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
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// Mode says what a [Rollout] may do.
type Mode int

const (
	// Observe never writes: the cluster's machine-config controller targets
	// the nodes, and events say what it does and what it waits for.
	Observe Mode = iota
	// Drive does the work of the machine-config controller. For clusters that
	// have none.
	Drive
)

// NodeUpdater brings a node to a target: it does what a machine-config daemon
// on the node would do, and reports the phases that it enters. It returns when
// the node is done, failed, or ctx has ended, and is called again for a node
// that is not done. The node's annotations stay the truth: it writes them. A
// panic in it is a failure like any other, a [clusterapi.PanicError].
type NodeUpdater interface {
	Update(ctx context.Context, node string, t Target, report func(Phase)) error
}

// RolloutOptions are the options of a [Rollout].
type RolloutOptions struct {
	// API is the cluster; required. Where it is a [clusterapi.Watcher] too,
	// events drive the rollout, else it lists at intervals.
	API  clusterapi.ClusterAPI
	Mode Mode
	// Clock times all delays; nil means the real one.
	Clock clock.WithTicker
	// Observe is told what happens, one event at a time; nil: nobody is. The
	// rollout waits for it to return. A panic in it is logged, and the rollout
	// goes on.
	Observe func(Event)
	// Logger gets failures that are tried again; nil: nobody does.
	Logger *slog.Logger
	// Options steer the decisions and their cadence.
	Options Options
	// NodeUpdater updates nodes in mode Drive; nil: daemons on the nodes do.
	NodeUpdater NodeUpdater
	// DrainWorkers is how many nodes are drained at a time; 0 means 5.
	DrainWorkers int
}

// Rollout follows the pools and nodes of a cluster and, in mode Drive, updates
// them: it targets nodes, fulfils their requests to be drained, and keeps
// taints and pool status up to date. It keeps nothing of its own: stopped at
// any point, another one goes on where it was. It is safe for concurrent use;
// Run fails while it is running.
type Rollout struct {
	o RolloutOptions

	running atomic.Bool

	mu    sync.RWMutex // guards state's content against View
	state *State

	observeMu sync.Mutex
}

// NewRollout returns a Rollout that is not yet running.
func NewRollout(o RolloutOptions) *Rollout {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.DrainWorkers <= 0 {
		o.DrainWorkers = 5
	}
	o.Options.Delays = o.Options.Delays.withDefaults()
	return &Rollout{o: o}
}

// View calls f with the state that the rollout decides on, and returns false
// if it is not running or has not seen all objects yet. f must not change the
// state, nor keep it.
func (r *Rollout) View(f func(*State)) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.state == nil {
		return false
	}
	f(r.state)
	return true
}

// Run follows the cluster until ctx ends, and then returns nil, all its
// goroutines gone. Failures of the API are tried again. Mode Drive returns
// [ErrControllerActive] at once if a machine-config controller runs.
func (r *Rollout) Run(ctx context.Context) error {
	if r.o.API == nil {
		return errors.New("mcp: RolloutOptions.API is required")
	}
	if !r.running.CompareAndSwap(false, true) {
		return errors.New("mcp: the Rollout is already running")
	}
	defer r.running.Store(false)
	if r.o.Mode == Drive {
		if err := r.awaitNoController(ctx); err != nil {
			return err
		}
	}
	x := newRun(r)
	defer func() {
		r.mu.Lock()
		r.state = nil
		r.mu.Unlock()
	}()
	return x.loop(ctx)
}

func (r *Rollout) emit(e Event) {
	if r.o.Observe == nil {
		return
	}
	e.Time = r.o.Clock.Now()
	e.Text = bounded.Text(e.Text, maxMessage)
	r.observeMu.Lock()
	defer r.observeMu.Unlock()
	err := panics.Catch(func() error {
		r.o.Observe(e)
		return nil
	})
	if err != nil {
		r.logPanic("rollout: the observer failed", err)
	}
}

// logPanic logs an error with the stack of the panic that it came from, if it
// came from one.
func (r *Rollout) logPanic(text string, err error) {
	if p, ok := errors.AsType[*clusterapi.PanicError](err); ok {
		r.o.Logger.Error(text, "error", err, "stack", string(p.Stack))
	}
}

// fail reports something that is tried again.
func (r *Rollout) fail(pool, node string, err error) {
	r.o.Logger.Warn("rollout: tried again", "pool", pool, "node", node, "error", err)
	r.logPanic("rollout: a panic", err)
	r.emit(Event{Type: EventError, Pool: pool, Node: node, Warning: true, Text: err.Error(), Err: err})
}

// awaitNoController looks for a machine-config controller until the API
// answers.
func (r *Rollout) awaitNoController(ctx context.Context) error {
	for tries := 1; ; tries++ {
		err := r.checkNoController(ctx)
		if err == nil || errors.Is(err, ErrControllerActive) {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		r.fail("", "", fmt.Errorf("looking for a machine-config controller: %w", err))
		if sleep(ctx, r.o.Clock, r.o.Options.Delays.backoff(tries)) != nil {
			return nil
		}
	}
}

func (r *Rollout) checkNoController(ctx context.Context) error {
	pods, err := clusterapi.List[corev1.Pod](ctx, r.o.API, clusterapi.ListOptions{
		Namespace: OperatorNamespace, Labels: labels.SelectorFromSet(labels.Set{LabelApp: AppController}),
	})
	if err != nil && !unknownKind(err) {
		return err
	}
	for i := range pods {
		if pods[i].Status.Phase == corev1.PodRunning {
			return fmt.Errorf("%w: pod %s/%s is running", ErrControllerActive, pods[i].Namespace, pods[i].Name)
		}
	}
	lease, err := clusterapi.Get[coordinationv1.Lease](ctx, r.o.API, clusterapi.Key(OperatorNamespace, AppController))
	switch {
	case apierrors.IsNotFound(err), unknownKind(err):
		return nil
	case err != nil:
		return err
	}
	if holder := leaseHolder(&lease.Spec, r.o.Clock.Now()); holder != "" {
		return fmt.Errorf("%w: %s holds its lease", ErrControllerActive, holder)
	}
	return nil
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

// unknownKind says that a cluster or recording does not have a kind at all.
func unknownKind(err error) bool {
	return meta.IsNoMatchError(err) || errors.Is(err, clusterapi.ErrNotCollected)
}

// backoff is the delay after so many errors in a row.
func (d Delays) backoff(errors int) time.Duration {
	const tries = 15
	if errors > tries {
		return d.RetryMax
	}
	return d.RetryMin << (errors - 1)
}

// sleep waits on the clock, or until ctx ends and then returns its error.
func sleep(ctx context.Context, c clock.Clock, d time.Duration) error {
	t := c.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
