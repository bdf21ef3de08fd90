package plan

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// Options are the options of a [Runner].
type Options struct {
	// API is the cluster; required for Run. If it is a [clusterapi.Watcher] too,
	// events wake the runner early.
	API clusterapi.ClusterAPI
	// Plan is what to run; required. To continue with one that is in the cluster,
	// [Load] it; to stop one, a plan of its ID without steps will do.
	Plan Plan
	// Namespace is where the record is; empty means openshift-config.
	Namespace string
	// Actions maps the names of actions to them. New returns an error if the plan uses
	// a name that is neither here nor built in. One that has the name of a built-in action
	// replaces it.
	Actions map[string]Action
	// Update has the allowances of the requests that the built-in action UpdateCluster
	// makes. Its targets do not count: those are the step's.
	Update clusterversion.UpdateRequest
	// Holder names the runner in the record, and must differ from start to start;
	// empty means a random name.
	Holder string
	// Mode is what becomes of the plan; empty: it is run, unless it failed or was
	// stopped.
	Mode Mode
	// Claim is what follows if another runner has the plan; empty: Run returns
	// ErrPlanHeld.
	Claim Claim
	// Poll is how often a wait looks again; zero means 10 s.
	Poll time.Duration
	// Stall ends a wait for pools in which no phase of a node has changed for so
	// long; zero means 1 h.
	Stall time.Duration
	// Clock times all waits of Run; nil means the real one.
	Clock clock.WithTicker
	// Observe receives the events, one at a time; nil: no events. The runner waits
	// for it to return. A panic in it is logged.
	Observe func(clusterapi.Event)
	// Logger gets failures that are tried again; nil: no log.
	Logger *slog.Logger
}

// Claim is what a runner does if another has its plan. A runner that a driver of
// package reconcile has waits in any case, unless it takes over.
type Claim string

const (
	// Wait waits until that runner ends.
	Wait Claim = "Wait"
	// TakeOver takes the plan from that runner at once.
	TakeOver Claim = "TakeOver"
)

// Times of the record's holder.
const (
	renewEvery   = 30 * time.Second // and before each effect, unless it was within this
	callTimeout  = 60 * time.Second // of each call of the API
	takeOverTime = 2 * time.Minute  // unchanged for so long: its holder is gone
)

// Runner runs a plan: it brings the cluster from step to step, and keeps what it
// needs to continue in the cluster. It is safe for concurrent use; Run fails while
// it is running.
type Runner struct {
	o    Options
	text []byte // of the plan

	running atomic.Bool
	end     atomic.Pointer[func(error)] // ends Run

	mu   sync.Mutex
	last Progress
}

// New returns a Runner that is not yet running. It fails with all that is wrong: a
// plan that is not valid or too large, actions that are missing, a negative
// number.
func New(o Options) (*Runner, error) {
	var errs []error
	text, err := Encode(o.Plan)
	if err == nil {
		o.Plan, err = Decode(text) // a copy, as a runner that takes over reads it
	}
	errs = append(errs, err, options.NonNegative(o, "Plan"))
	if !o.Mode.stops() {
		for i := range o.Plan.Steps {
			s := &o.Plan.Steps[i]
			name := s.action()
			if name == "" || o.Actions[name] != nil {
				continue
			}
			if !isBuiltin(name) {
				err := fmt.Errorf("plan.Options: step %s names action %s, which Actions lacks", s.ID, bounded.Quote(name))
				errs = append(errs, err)
			} else if err := checkParameters(name, s.Args.Parameters); err != nil {
				errs = append(errs, fmt.Errorf("plan.Options: step %s: %w", s.ID, err))
			}
		}
	}
	if !slices.Contains([]Mode{"", Resume, Hold, Freeze, Restore, RestoreWithReboots}, o.Mode) {
		errs = append(errs, fmt.Errorf("plan.Options: Mode %s is not known", bounded.Quote(string(o.Mode))))
	}
	if !slices.Contains([]Claim{"", Wait, TakeOver}, o.Claim) {
		errs = append(errs, fmt.Errorf("plan.Options: Claim %s is not known", bounded.Quote(string(o.Claim))))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	o.Namespace = namespaceOr(o.Namespace)
	if o.Poll == 0 {
		o.Poll = 10 * time.Second
	}
	if o.Stall == 0 {
		o.Stall = time.Hour
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Runner{o: o, text: text}, nil
}

// Process is the runner for a driver of package reconcile: what Run drives live.
// It uses the driver's API instead of the options'. Where another runner has the
// plan it waits for its turn, and once the plan has ended it does nothing more.
func (r *Runner) Process() reconcile.Process {
	return reconcile.Process{Name: "plan " + r.o.Plan.ID, New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
		return []reconcile.Reconciler{newReconciler(r, api)}
	}}
}

// Progress is what the runner knew last of the plan's progress; its zero value is
// that it has not looked yet. It is shared: do not change its maps.
func (r *Runner) Progress() Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// Run runs the plan, or stops it, and returns when that has ended: nil when all
// steps are done or the stop is complete, a [*StepError] when a step failed, and
// [ErrPlanHeld], [ErrPlanChanged], [ErrPlanStopped] or an error of the record when
// it may not continue. When ctx ends, which stops it between two calls of the API,
// it gives the plan up to others and returns the cause. Other failures of the API
// are tried again.
func (r *Runner) Run(ctx context.Context) error {
	if r.o.API == nil {
		return errors.New("plan: Options.API is required")
	}
	if !r.running.CompareAndSwap(false, true) {
		return errors.New("plan: the Runner is already running")
	}
	defer r.running.Store(false)
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	end := func(err error) { cancel(ended{err}) }
	r.end.Store(&end)
	defer r.end.Store(nil)
	var rec *reconciler
	p := reconcile.Process{Name: "plan " + r.o.Plan.ID, New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
		rec = newReconciler(r, api)
		return []reconcile.Reconciler{rec}
	}}
	driver := reconcile.Options{API: r.o.API, Clock: r.o.Clock, Logger: r.o.Logger, Observe: r.driverEvent}
	if err := reconcile.Run(inner, driver, p); err != nil {
		return err
	}
	if e := (ended{}); errors.As(context.Cause(inner), &e) {
		return e.err
	}
	return errors.Join(context.Cause(ctx), rec.release(reconcile.WithClock(context.WithoutCancel(ctx), r.o.Clock)))
}

// ended is why Run returns by itself.
type ended struct{ err error }

func (e ended) Error() string { return "the plan has ended" }

// driverEvent reports what happened in the live driver.
func (r *Runner) driverEvent(e clusterapi.Event) {
	switch e.Type {
	case reconcile.EventFailed, reconcile.EventWatchFailed, reconcile.EventServerBusy:
		r.emit(e.Time, EventError, EventData{Warning: true}, e.Err.Error(), e.Err)
	}
}

// maxText is the most bytes that the text of an event and the error of a step
// have.
const maxText = 8 << 10

// emit passes an event to the observer. One that panics is logged.
func (r *Runner) emit(at time.Time, t clusterapi.EventType, d EventData, message string, err error) {
	if r.o.Observe == nil {
		return
	}
	message = bounded.Text(message, maxText)
	e := clusterapi.Event{Time: at, Type: t, Subject: "plan/" + r.o.Plan.ID, Message: message, Err: err, Data: &d}
	if err := panics.Isolate(func() error { r.o.Observe(e); return nil }); err != nil {
		r.o.Logger.Error("plan: the observer failed", "error", err)
	}
}

// release gives the plan up to others, when the driver has ended.
func (x *reconciler) release(ctx context.Context) error {
	if x == nil || x.holder == "" {
		return nil
	}
	ctx, cancel := reconcile.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for range 3 {
		rec, err := readRecord(ctx, x.run.o.API, x.run.o.Namespace, x.run.o.Plan.ID)
		if clusterapi.IsAbsent(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if rec.Progress.Holder != x.holder {
			return nil
		}
		rec.Progress.Holder = ""
		if err := rec.store(ctx, x.run.o.API, nil); !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil // the next one waits
}
