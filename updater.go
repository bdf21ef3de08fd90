package clusterupdate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// ErrBusy reports that a Sync or Run of the same [Updater] is still at work.
var ErrBusy = errors.New("clusterupdate: the updater is busy")

// Updater keeps a cluster at the release that its ClusterVersion asks for, as the
// cluster-version operator does. All that must survive it is in the cluster: a new
// Updater continues where another was stopped, at whatever point that was.
//
// An Updater may be shared between goroutines, but does one thing at a time. Of two
// Updaters on one cluster, the status is written by whichever read it last; the
// other one finds that out, and continues from what it says. Running two at a time
// is still a waste.
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

// New returns an Updater. It reads nothing yet. Its error is that Options cannot
// work: API or Payloads is missing, a number is negative, a bypass names no image,
// a hook is nil or has the name of another, or Tracker is not what
// [Updater.Tracker] of this or an earlier version returned.
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
	// Done reports that every manifest of the wanted release has been applied and
	// nothing is left to do but to keep it so. A request for a version that no list
	// has is not done, nor is an invalid one for another release.
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

// Sync brings what it knows of the cluster up to date and does all that is due now:
// it refreshes the updates there are, answers the request, retrieves, verifies and
// checks a release that is new, applies its manifests, and writes the status. What
// must wait, for a ClusterOperator or the next attempt, returns as After; the next
// Sync continues there.
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
	err := reconcile.Run(ctx, u.driver(), u.reconcilers(func(d *decider) { run, d.reader.fatal = d, cancel }))
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

// trackedVersion is the version of the form in which clocks are saved.
const trackedVersion = 1

// tracked is what [Updater.Tracker] saves: the clocks of an update, and which
// update that is.
type tracked struct {
	Version int             `json:"version"`
	UID     types.UID       `json:"uid,omitempty"`
	Image   string          `json:"image,omitempty"`
	Started int64           `json:"started,omitempty"` // in seconds
	Tracker json.RawMessage `json:"tracker"`
}

func (t *tracked) entry() entry { return entry{t.UID, t.Image, t.Started} }

// Tracker returns, as JSON, since when each ClusterOperator is awaited and which
// deletions are pending, with the update that this is about: what is not in the
// cluster, and would start again with a new process. Give it to that one as
// [Options].Tracker. It may be called at any time; before the first pass starts it
// is what Options.Tracker was. Its error, which nothing is known to cause, is one
// of encoding.
func (u *Updater) Tracker() ([]byte, error) {
	u.mu.Lock()
	e, tracker := u.entry, u.tracker
	u.mu.Unlock()
	if tracker == nil {
		return u.o.Tracker, nil
	}
	data, err := json.Marshal(tracker)
	if err != nil {
		return nil, err
	}
	return json.Marshal(tracked{Version: trackedVersion, UID: e.uid, Image: e.image, Started: e.started, Tracker: data})
}

// readTracked reads what was saved; nil is nothing.
func readTracked(data []byte) (t tracked, err error) {
	if len(data) == 0 {
		return t, nil
	}
	if err := json.Unmarshal(data, &t); err != nil {
		return t, fmt.Errorf("clusterupdate: Options.Tracker: %w", err)
	}
	if t.Version < 1 || t.Version > trackedVersion {
		return t, fmt.Errorf("clusterupdate: Options.Tracker has version %d; this program knows 1 to %d", t.Version, trackedVersion)
	}
	if err := json.Unmarshal(t.Tracker, runlevel.NewTracker(nil)); err != nil {
		return t, fmt.Errorf("clusterupdate: Options.Tracker: %w", err)
	}
	return t, nil
}

// restore continues with the clocks that were saved, if they are those of an entry
// of the history.
func (a *applier) restore(e entry) {
	if a.saved.Version > 0 && a.saved.entry() == e {
		a.process.log("the clocks of operators start again", json.Unmarshal(a.saved.Tracker, a.tracker))
	}
}

// startClocks records that a pass over an entry of the history has started, and
// with it the clocks. The first one of a process continues with those that were
// saved.
func (a *applier) startClocks(e entry) {
	a.restore(e)
	a.saved = tracked{}
	a.updater.mu.Lock()
	defer a.updater.mu.Unlock()
	a.updater.entry, a.updater.tracker = e, a.tracker
}
