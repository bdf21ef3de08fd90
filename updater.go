package clusterupdate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/panics"
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
// Two Updaters on one cluster disturb each other.
type Updater struct {
	o    Options
	busy sync.Mutex
	s    session

	trust   trust
	alerts  *graph.AlertRisks // nil: alerts are no risks
	observe chan struct{}     // holds one token: events come from several goroutines, one at a time
}

// New returns an Updater. It reads nothing yet.
func New(o Options) (*Updater, error) {
	switch {
	case o.API == nil:
		return nil, errors.New("clusterupdate: Options.API is required")
	case o.Payloads == nil:
		return nil, errors.New("clusterupdate: Options.Payloads is required")
	}
	for _, b := range o.Bypasses {
		if b.Image == "" {
			return nil, fmt.Errorf("clusterupdate: the bypass of %s names no image: it would hold for every release", b.Check)
		}
	}
	o = o.withDefaults()
	u := &Updater{o: o, observe: make(chan struct{}, 1)}
	if o.Alerts != nil {
		u.alerts = &graph.AlertRisks{Alerts: o.Alerts}
	}
	u.s.tracker = runlevel.NewTracker(o.Clock)
	return u, nil
}

// Result is where a [Updater.Sync] left the cluster.
type Result struct {
	// ClusterVersion as it was last written.
	ClusterVersion *configv1.ClusterVersion
	// Resolution is the answer to its request.
	Resolution Resolution
	// Done says that every manifest of the wanted release has been applied
	// and nothing is left to do but to keep it so.
	Done bool
	// Failure is why not, as of the last attempt: a [*LoadError] where the
	// release could not be accepted, else what [runlevel.Run] returned. An
	// update that waits for a ClusterOperator fails pass after pass until that
	// one is done.
	Failure error
	// After is how long the caller should wait before it calls Sync again.
	After time.Duration
}

// Sync does one pass: it reads the ClusterVersion, refreshes the updates there
// are where that is due, answers the request, retrieves, verifies and checks a
// release that is new, applies its manifests once, and writes the status.
//
// Its error is one of reading or writing the ClusterVersion, or of ctx. What
// keeps the update from being done is in the Result instead.
func (u *Updater) Sync(ctx context.Context) (Result, error) {
	if !u.busy.TryLock() {
		return Result{}, ErrBusy
	}
	defer u.busy.Unlock()
	return u.loop(ctx, true)
}

// Run does as Sync does until ctx ends, and then returns nil: at intervals,
// when what it waits for has changed if the cluster can be watched, and sooner
// while the update is not done. Faults of the API are retried for ever; only
// [ErrNoRelease] ends it.
//
// A change of the ClusterVersion's spec interrupts the pass at hand.
func (u *Updater) Run(ctx context.Context) error {
	if !u.busy.TryLock() {
		return ErrBusy
	}
	defer u.busy.Unlock()
	if _, err := u.loop(ctx, false); ctx.Err() == nil {
		return err
	}
	return nil
}

// loop alternates between deciding, which it does alone, and waiting for the
// work that it started beside itself: at most one of each kind.
func (u *Updater) loop(ctx context.Context, once bool) (Result, error) {
	parent := ctx
	ctx, cancel := context.WithCancel(ctx)
	l := &loop{Updater: u, ctx: ctx, once: once, wake: make(chan struct{}, 1), results: make(chan func(), 4)}
	defer l.jobs.Wait()
	defer cancel()
	if once {
		defer u.saveSignatures(parent)
	} else {
		l.watch()
		if p := u.persister(); p != nil {
			l.jobs.Go(func() { _ = p.Run(ctx) })
		}
	}
	for {
		started := false
		err := l.step()
		if err == nil {
			started, err = l.start()
		}
		switch {
		case parent.Err() != nil:
			cancel()
			l.jobs.Wait()
			return l.result(), l.flush(parent)
		case err != nil && (once && l.running() == 0 || errors.Is(err, ErrNoRelease)):
			return l.result(), err
		case err != nil:
			l.log("the cluster version could not be brought up to date", err)
			l.after(l.o.Clock.Now().Add(l.errorDelay()))
		default:
			l.errors = 0
			if started {
				continue // what has begun shows in the status
			}
			if once && l.running() == 0 && l.ended == nil {
				return l.result(), nil
			}
		}
		l.wait()
	}
}

// flush writes the progress of a pass that was called off, within a moment.
// It returns the error that ended the loop.
func (l *loop) flush(parent context.Context) error {
	if l.pass != nil && l.cv != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(parent), lastWrite)
		defer cancel()
		l.ctx, l.lastEdge = ctx, ""
		l.log("the last status could not be written", l.writeStatus())
	}
	return parent.Err()
}

// loop is one Sync or Run. All its fields but the channels belong to the
// goroutine that runs it.
type loop struct {
	*Updater
	ctx    context.Context
	once   bool
	errors int // in a row

	cv       *configv1.ClusterVersion // as last read or written
	d        decision
	looked   time.Time // when the last step began
	written  time.Time // when the status was last brought up to date
	lastEdge string    // what was then worth writing at once
	next     time.Time // when to look again at the latest

	fetching bool
	listed   *listQuery  // once: is not asked again
	risks    riskSources // as of the last status
	loading  *loadRequest
	ended    *loadEnd        // of a load, until the next step
	tried    map[string]bool // once: is not loaded again
	pass     *pass
	passed   bool // once: the work has had its pass
	active   bool // a ClusterOperator got further while the pass ran

	jobs    sync.WaitGroup
	wake    chan struct{}
	results chan func() // run by the loop when work ends
}

func (l *loop) running() int {
	n := 0
	for _, on := range []bool{l.fetching, l.loading != nil, l.pass != nil} {
		if on {
			n++
		}
	}
	return n
}

// goDo runs work beside the loop; what it returns is run by the loop.
func (l *loop) goDo(work func() func()) {
	l.jobs.Go(func() {
		done := work()
		select {
		case l.results <- done:
		case <-l.ctx.Done():
		}
	})
}

// poke makes the loop look again soon.
func (l *loop) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// after makes the loop look again at t at the latest.
func (l *loop) after(t time.Time) {
	if l.next.IsZero() || t.Before(l.next) {
		l.next = t
	}
}

// wait returns when there may be something to do.
func (l *loop) wait() {
	if l.pass != nil || l.loading != nil {
		// Progress shows in the status, and a cluster that cannot be watched
		// may want something else meanwhile.
		l.after(l.looked.Add(l.o.StatusInterval))
	} else if !l.once {
		l.after(l.looked.Add(l.o.Interval))
	}
	var due <-chan time.Time
	if !l.next.IsZero() {
		timer := l.o.Clock.NewTimer(max(l.next.Sub(l.o.Clock.Now()), 0))
		defer timer.Stop()
		due = timer.C()
	}
	l.next = time.Time{}
	select {
	case <-l.ctx.Done():
		return
	case done := <-l.results:
		done()
	case <-l.wake:
	case <-due:
	}
	for { // what ended meanwhile is taken in one go
		select {
		case done := <-l.results:
			done()
		default:
			return
		}
	}
}

// errorDelay grows from 10 ms to 10 s with the errors in a row.
func (l *loop) errorDelay() time.Duration {
	l.errors++
	return min(10*time.Millisecond<<min(l.errors-1, 20), 10*time.Second)
}

// watch wakes the loop when the ClusterVersion changes, and tells it of the
// ClusterOperators whose state did, as far as the cluster can be watched.
func (l *loop) watch() {
	w, ok := l.o.API.(clusterapi.Watcher)
	if !ok {
		return
	}
	l.jobs.Go(func() {
		watchKind(l, w, "ClusterVersion", func(cv *configv1.ClusterVersion) { l.poke() })
	})
	l.jobs.Go(func() {
		seen := map[types.NamespacedName]operatorState{}
		watchKind(l, w, "ClusterOperator", func(co *configv1.ClusterOperator) {
			now, key := stateOf(co), types.NamespacedName{Name: co.Name}
			if old, ok := seen[key]; ok && old != now {
				select {
				case l.results <- l.activity:
				case <-l.ctx.Done():
				}
			}
			seen[key] = now
		})
	})
}

// watchKind follows all objects of a kind until the loop ends. A watch that
// breaks is begun again.
func watchKind[T any](l *loop, w clusterapi.Watcher, kind string, changed func(*T)) {
	gvk := configv1.GroupVersion.WithKind(kind)
	for l.ctx.Err() == nil {
		l.log("watch of "+kind+" ended", panics.Isolate(func() error {
			for ev, err := range w.Watch(l.ctx, gvk, clusterapi.ListOptions{}) {
				if err != nil {
					return err
				}
				if ev.Object == nil {
					continue
				}
				if obj, err := clusterapi.FromUnstructured[T](ev.Object); err == nil {
					changed(obj)
				}
			}
			return nil
		}))
		select {
		case <-l.ctx.Done():
		case <-l.o.Clock.After(l.o.StatusInterval):
		}
	}
}

// operatorState is what of a ClusterOperator may let an update go on.
type operatorState struct {
	version             string
	available, degraded configv1.ConditionStatus
}

func stateOf(co *configv1.ClusterOperator) (s operatorState) {
	for _, v := range co.Status.Versions {
		if v.Name == "operator" {
			s.version = v.Version
		}
	}
	for _, c := range co.Status.Conditions {
		switch c.Type {
		case configv1.OperatorAvailable:
			s.available = c.Status
		case configv1.OperatorDegraded:
			s.degraded = c.Status
		}
	}
	return s
}

func (l *loop) result() Result {
	s := &l.s
	r := Result{ClusterVersion: l.cv, Resolution: l.d.resolution}
	r.Done = s.work != nil && s.report.Reconciling && s.report.Failure == nil && s.passErr == nil &&
		s.work.release.Image == l.d.want.Image
	now := l.o.Clock.Now()
	next := now.Add(l.o.Interval)
	sooner := func(t time.Time) {
		if t.Before(next) {
			next = t
		}
	}
	if s.work != nil {
		sooner(s.nextPass)
	}
	if l.o.Graph != nil {
		sooner(s.lists.Attempted.Add(l.o.Interval))
		if l.o.Risks != nil && s.lists.Undecided() {
			sooner(s.recheck)
		}
	}
	switch {
	case s.load.err != nil:
		r.Failure = s.load.err
		sooner(s.load.retry)
	case !r.Done && s.passErr != nil:
		r.Failure = s.passErr
	case !r.Done:
		r.Failure = s.report.Failure
	}
	r.After = max(next.Sub(now), 0)
	return r
}

// emit hands an event to the observer. A panic in it is logged: what goes on in
// the cluster does not depend on who looks on.
func (u *Updater) emit(e Event) {
	if u.o.Observe == nil {
		return
	}
	u.observe <- struct{}{}
	defer func() { <-u.observe }()
	if e.Time.IsZero() {
		e.Time = u.o.Clock.Now()
	}
	u.log("the observer failed", panics.Catch(func() error {
		u.o.Observe(e)
		return nil
	}))
}

func (u *Updater) log(msg string, err error) {
	if p, ok := errors.AsType[*clusterapi.PanicError](err); ok {
		u.o.Logger.Error(msg, "error", err, "stack", string(p.Stack))
		return
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		u.o.Logger.Warn(msg, "error", err)
	}
}

// quoted is how the operator's texts name a release.
func quoted(r configv1.Release) string {
	return fmt.Sprintf("version=%q image=%q", r.Version, r.Image)
}
