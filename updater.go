package clusterupdate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// ErrBusy says that a Sync or Run of the same [Updater] is still at work.
var ErrBusy = errors.New("clusterupdate: the updater is busy")

// Updater keeps a cluster at the release that its ClusterVersion asks for, as
// the cluster-version operator does. All that must survive it is in the
// cluster: a new Updater continues where another one was stopped, at whatever
// point that was.
//
// An Updater may be shared between goroutines, but does one thing at a time.
// Of two Updaters on one cluster, the status is written by whichever read it
// last; the other one finds that out, and goes on from what it says. Running
// two at a time is still a waste.
type Updater struct {
	o Options

	busy   sync.Mutex
	syncer *reconcile.Syncer
	synced *decider // what syncer drives

	mu      sync.Mutex
	last    Decision
	entry   entry             // of the history, that passes are about
	tracker *runlevel.Tracker // nil: none has begun
}

// New returns an Updater. It reads nothing yet. Its error is that Options
// cannot work: API or Payloads is missing, a number is negative, a bypass names
// no image, a hook is nil or has the name of another one, or Tracker is not
// what [Updater.Tracker] of this or an earlier version returned.
func New(o Options) (*Updater, error) {
	switch {
	case o.API == nil:
		return nil, errors.New("clusterupdate: Options.API is required")
	case o.Payloads == nil:
		return nil, errors.New("clusterupdate: Options.Payloads is required")
	}
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	if err := o.ApplyMode.Validate(); err != nil {
		return nil, fmt.Errorf("clusterupdate: Options.ApplyMode: %w", err)
	}
	for _, b := range o.Bypasses {
		if b.Image == "" {
			return nil, fmt.Errorf("clusterupdate: the bypass of %s names no image: it would hold for every release", b.Check)
		}
	}
	if _, err := readTracked(o.Tracker); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for i, h := range o.Hooks {
		if h == nil {
			return nil, fmt.Errorf("clusterupdate: hook %d is nil", i+1)
		}
		if names[h.Name()] {
			return nil, fmt.Errorf("clusterupdate: two hooks are called %q", h.Name())
		}
		names[h.Name()] = true
	}
	return &Updater{o: o.withDefaults()}, nil
}

// Result is where a [Updater.Sync] left the cluster.
type Result struct {
	// ClusterVersion as it was last read or written.
	ClusterVersion *configv1.ClusterVersion
	// Resolution is the answer to its request.
	Resolution clusterversion.Resolution
	// Done says that every manifest of the wanted release has been applied
	// and nothing is left to do but to keep it so. A request for a version that
	// no list has is not done.
	Done bool
	// Failure is what failed, as of the last attempt: a [*LoadError] where the
	// release could not be accepted, else what the pass over its manifests
	// met. It is nil while the update only waits.
	Failure error
	// Awaits are what the update waits for, which is not a failure.
	Awaits []Cause
	// After is how long the caller should wait before it calls Sync again.
	After time.Duration
}

// Sync brings what it knows of the cluster up to date and does all that is due
// now: it refreshes the updates there are, answers the request, retrieves,
// verifies and checks a release that is new, applies its manifests, and writes
// the status. What must wait, for a ClusterOperator or the next attempt, comes
// back as After; the next Sync goes on there.
//
// Its error is one of reading or writing the ClusterVersion, or of ctx. What
// keeps the update from being done is in the Result instead.
func (u *Updater) Sync(ctx context.Context) (Result, error) {
	if !u.busy.TryLock() {
		return Result{}, ErrBusy
	}
	defer u.busy.Unlock()
	if u.syncer == nil {
		u.syncer = reconcile.NewSyncer(u.driver(), u.reconcilers(func(d *decider) { u.synced, d.applier.lists = d, true }))
	}
	u.syncer.Wake(processName, deciderName, decideKey)
	after, err := u.syncer.Sync(ctx)
	if u.synced == nil {
		return Result{After: after}, err
	}
	if ctx.Err() != nil {
		u.synced.flush(ctx)
		err = ctx.Err()
	}
	r := u.synced.result()
	r.After = after
	return r, err
}

// Run does as Sync does until ctx ends, and then returns nil: when something is
// due, and when what it waits for has changed if the cluster can be watched.
// Faults of the API are retried without end; only [ErrNoRelease], if Options.Own is
// not set, and [clusterversion.ErrHostedControlPlane] end it.
//
// A change of the ClusterVersion's spec interrupts the pass at hand.
func (u *Updater) Run(ctx context.Context) error {
	if !u.busy.TryLock() {
		return ErrBusy
	}
	defer u.busy.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var run *decider
	err := reconcile.Run(ctx, u.driver(), u.reconcilers(func(d *decider) { run, d.fatal = d, cancel }))
	if run != nil {
		run.flush(ctx)
	}
	if cause := context.Cause(ctx); errors.Is(cause, ErrNoRelease) || errors.Is(cause, clusterversion.ErrHostedControlPlane) {
		return cause
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// driver are the options of the live driver.
func (u *Updater) driver() reconcile.Options {
	return reconcile.Options{API: u.o.API, Clock: u.o.Clock, Logger: u.o.Logger}
}

// Process is the Updater as reconcilers for a driver of one's own: with others
// in one [reconcile.Run], or in virtual time. Options.Clock must then be the
// driver's.
func (u *Updater) Process() reconcile.Process { return u.reconcilers(func(*decider) {}) }

const processName = "updater"

func (u *Updater) reconcilers(made func(*decider)) reconcile.Process {
	return reconcile.Process{Name: processName, New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
		d := newDecider(u, api)
		made(d)
		return []reconcile.Reconciler{d, d.applier, &saver{loader: d.loader}}
	}}
}

// Explain returns what the Updater decided last: what it does now, what it
// waits for, and why. It may be called at any time.
func (u *Updater) Explain() Decision {
	u.mu.Lock()
	defer u.mu.Unlock()
	last := u.last
	last.Actions = slices.Clone(last.Actions)
	return last
}

// quoted is how the operator's texts name a release.
func quoted(r configv1.Release) string {
	return fmt.Sprintf("version=%q image=%q", r.Version, r.Image)
}
