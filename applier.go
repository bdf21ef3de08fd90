package clusterupdate

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// applier applies the manifests of the release that the cluster is at, by passes that
// follow one another. It is a reconciler whose keys are those of the pass under way.
type applier struct {
	process *process
	updater *Updater // which shows the tracker
	lists   bool     // what is watched is listed again in each Sync

	// Of the decider.
	work      work
	watches   payloadWatches
	saved     tracked // by an earlier process; empty once a pass has begun
	calledOff *pass   // that was called off last

	mu      sync.Mutex
	tracker *runlevel.Tracker // of the release that the cluster is at; the decider replaces it
	pass    *pass             // under way; nil if absent
}

func newApplier(u *Updater, p *process) *applier {
	a := &applier{process: p, updater: u, tracker: runlevel.NewTracker(p.o.Clock)}
	a.watches = payloadWatches{tracker: a.tracker}
	a.saved, _ = readTracked(p.o.Tracker) // New has seen its faults
	return a
}

const applierName = "pass"

// Name implements [reconcile.Reconciler].
func (a *applier) Name() string { return applierName }

// Watches implements [reconcile.Reconciler].
func (a *applier) Watches() []reconcile.Watch {
	return []reconcile.Watch{runlevel.OperatorWatch(func() *runlevel.Pass {
		if p := a.current(); p != nil {
			return p.run
		}
		return nil
	})}
}

// Workers implements [reconcile.Concurrent].
func (a *applier) Workers() int {
	if a.process.o.Workers == 1 {
		return 1
	}
	return max(a.process.o.Workers, 64) // how many nodes are at work at once is the pass's decision
}

// Reconcile implements [reconcile.Reconciler].
func (a *applier) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	p := a.current()
	if p == nil {
		return reconcile.Result{}, nil
	}
	res, err := p.run.Reconcile(ctx, q)
	if ctx.Err() != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.cut = true
	}
	return res, err
}

// current is the pass under way, nil if absent.
func (a *applier) current() *pass {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pass
}

func (a *applier) setCurrent(p *pass) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pass = p
}

// pass is one pass over the manifests of a release, and how far it is.
type pass struct {
	run   *runlevel.Pass
	sync  *syncWork
	began time.Time     // to be at work
	limit time.Duration // of being at work

	mu      sync.Mutex
	start   passReport
	raw     passReport // of this pass alone
	report  passReport // what to show
	settled bool       // no node is at work, and decisions do not know yet
	cut     bool       // the driver ended calls of it: it cannot continue
	quiet   bool       // it only keeps the cluster
	trouble bool       // its end is worth an event: something failed, now or before
}

// begin starts a pass over what is on record as the cluster's release, in the place
// of one that waits. One that only keeps the cluster as it is ends with its
// failures, so that the next one looks at everything again.
func (a *applier) begin(q reconcile.Request, start *passStart, cv *configv1.ClusterVersion) ([]reconcile.Wake, error) {
	if before := a.current(); before != nil {
		if !before.run.Settled() {
			return nil, nil // it has just continued
		}
		a.callOff()
		if a.draining() {
			return nil, nil
		}
	}
	w, o := &a.work, &a.process.o
	tasks := w.sync.loaded.payload.Tasks()
	p := &pass{sync: w.sync, start: w.report, began: q.Now, limit: passLimit(start.state, a.process.interval(q))}
	p.raw = passReport{
		Version: p.sync.loaded.release.Version, Image: p.sync.loaded.release.Image, Hash: p.sync.loaded.payload.Hash, Total: len(tasks),
		Reconciling: start.state == runlevel.Reconciling, Initial: start.state == runlevel.Initializing,
		LastProgress: w.report.LastProgress,
	}
	p.quiet = p.raw.Reconciling
	p.trouble = w.applied != w.sync.loaded || w.passErr != nil
	p.report = p.start
	p.updateReport(q.Now)
	run, err := runlevel.NewPass(tasks, runlevel.Options{
		API: o.API, State: start.state, Attempt: start.attempt, Workers: o.Workers,
		Filter: w.sync.filter(), Owner: ownerOf(cv), Clock: o.Clock, Tracker: a.tracker, Logger: o.Logger,
		Stay: start.state != runlevel.Reconciling, ApplyAlways: o.ApplyAlways, Mode: o.ApplyMode, Adopt: o.Adopt,
		Observe: func(e clusterapi.Event) { a.observe(p, e) },
		Stepped: func(settled bool) []reconcile.Wake { return a.stepped(p, settled) },
	})
	if err != nil {
		return nil, err
	}
	p.run = run
	o.Logger.Debug("a pass begins",
		"release", versionText(p.sync.loaded.release), "state", start.state, "attempt", start.attempt+1)
	w.pass, w.begun, w.applied = true, q.Now, w.sync.loaded
	a.process.accepts.Forget() // somebody may have changed it since the last pass
	a.setCurrent(p)
	wakes := nodeWakes(run.Keys())
	a.startClocks(entryOf(cv))
	return wakes, nil
}

// nodeWakes are wakes of nodes of the pass under way.
func nodeWakes(keys []reconcile.Key) []reconcile.Wake {
	wakes := make([]reconcile.Wake, len(keys))
	for i, key := range keys {
		wakes[i] = reconcile.Wake{Reconciler: applierName, Key: key}
	}
	return wakes
}

// stepped records a look at a node, and wakes the decider: at once if decisions
// depend on it.
func (a *applier) stepped(p *pass, settled bool) []reconcile.Wake {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settled = settled
	decide := reconcile.Wake{Reconciler: deciderName, Key: decideKey}
	if !settled {
		decide.After = a.process.o.StatusInterval
	}
	return []reconcile.Wake{decide}
}

// observe takes an event of a pass.
func (a *applier) observe(p *pass, e clusterapi.Event) {
	at, _ := e.Data.(*runlevel.Progress)
	if at.Task != nil && at.Task.Manifest.Identity().Name == versionDefinition {
		a.process.accepts.Forget()
	}
	if p.shows(&e, at) {
		task := clusterapi.Event{Type: EventTask, Time: e.Time, Message: e.Message, Err: e.Err}
		a.process.emit(task, EventData{Release: p.sync.loaded.release, Pass: &e})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.raw.Done = at.Done
	p.updateReport(e.Time)
}

// shows reports whether an event of the pass is worth an event of the Updater. Of a
// pass that only keeps the cluster, those are drift, trouble and its end.
func (p *pass) shows(e *clusterapi.Event, at *runlevel.Progress) bool {
	if !p.quiet {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e.Type {
	case runlevel.EventDrifted, runlevel.EventWarning:
		return true
	case runlevel.EventTaskDone:
		return e.Err != nil || at.Attempt > 1
	case runlevel.EventTaskRetry, runlevel.EventTaskFailed, runlevel.EventWaiting:
		p.trouble = true
		return true
	case runlevel.EventPassDone:
		return p.trouble || e.Err != nil
	}
	return false
}

// updateReport brings the report up to date.
func (p *pass) updateReport(now time.Time) {
	if next, ok := nextReport(p.start, p.raw, now); ok {
		p.report = next
	}
}

// reported is how far the pass has come.
func (p *pass) reported() passReport {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.report
}

// resume makes all that is stalled continue: the time of the next pass has come.
func (a *applier) resume(now time.Time) []reconcile.Wake {
	a.work.waits = false
	p := a.current()
	p.began = now
	return nodeWakes(p.run.Resume())
}

// callOff ends the pass under way, which is of no interest any more. Another starts
// when the last of its calls has ended.
func (a *applier) callOff() {
	if p := a.current(); p != nil {
		a.setCurrent(nil)
		a.calledOff = p
		p.run.Stop(context.Canceled)
	}
	a.work.pass, a.work.waits = false, false
}

// draining reports whether calls of a pass that was called off are under way.
func (a *applier) draining() bool {
	return a.calledOff != nil && !a.calledOff.run.Finished()
}

// review brings what is known of the pass under way up to date.
func (a *applier) review(q reconcile.Request) {
	p, w := a.current(), &a.work
	if p == nil {
		return
	}
	if q.Now.Before(p.began) {
		p.began = q.Now // the clock was set back
	}
	late := !q.Now.Before(p.began.Add(p.limit))
	p.mu.Lock()
	w.report = p.report
	settled, cut := p.settled, p.cut
	p.settled = false
	p.mu.Unlock()
	switch {
	case cut:
		a.callOff()
		w.nextPass = q.Now // it was made to end: not a failure
	case p.run.Finished():
		a.setCurrent(nil)
		w.pass = false
		a.passEnded(q, p)
	case settled:
		a.passEnded(q, p) // for now: it continues where it waits
		w.waits = true
	case w.waits: // for the time of the next pass
	case late && p.run.Stop(context.DeadlineExceeded):
		a.setCurrent(nil)
		w.pass = false
		a.passEnded(q, p)
	}
}

// passEnded records that a pass has ended, or that the rest of it has to wait, and
// sets the time of the next.
func (a *applier) passEnded(q reconcile.Request, p *pass) {
	w, interval := &a.work, a.process.interval(q)
	w.waits = false
	res, err := p.run.Result()
	p.mu.Lock()
	defer p.mu.Unlock()
	next := p.raw
	w.passErr = err
	w.awaits, w.failing = a.causes(p, res, q.Now)
	if err != nil {
		next.Completed = 0
		next.Failure = err
		if res != nil {
			next.Failure = res.Failure // a pass that merely ended with its time has none
		}
		w.attempt++
		w.failures++
		w.nextPass = q.Now.Add(passDelay(w.failures, interval, q.Rand.Float64()))
		a.report(q.Now, p.sync.loaded.release)
	} else {
		w.reported = ""
		next.Failure, next.Completed, next.Initial, next.Reconciling = res.Report, p.start.Completed+1, false, true
		w.attempt, w.failures, w.changed = 0, 0, false
		w.nextPass = q.Now.Add(interval)
	}
	if report, ok := nextReport(p.start, next, q.Now); ok {
		w.report = report
	} else {
		w.report = p.start // earlier trouble shows until a pass gets past it
	}
	p.report, p.start = w.report, w.report
	if err == nil && !p.raw.Reconciling {
		done := clusterapi.Event{Type: EventCompleted, Time: q.Now, Message: "Done applying " + versionText(p.sync.loaded.release)}
		a.process.emit(done, EventData{Release: p.sync.loaded.release})
	}
}

// forget drops what is kept about the release that the cluster was at: its deletions,
// and what was applied of it. Calls of a pass that was called off may still write to the
// old Tracker.
func (a *applier) forget() {
	a.watches.want(nil)
	tracker := runlevel.NewTracker(a.process.o.Clock)
	a.watches.tracker = tracker
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tracker = tracker
}

// pendingDeletions are those of the release that the cluster is at.
func (a *applier) pendingDeletions() []string {
	a.mu.Lock()
	tracker := a.tracker
	a.mu.Unlock()
	return tracker.PendingDeletions()
}

// report sends an event about the trouble of a pass, when it is new. A pass that waits for
// operators which are being updated, as they should be, has not failed.
func (a *applier) report(now time.Time, release configv1.Release) {
	w := &a.work
	text := w.passErr.Error()
	if text == w.reported {
		return
	}
	w.reported = text
	e := clusterapi.Event{Type: EventPassFailed, Time: now, Message: text, Err: w.passErr}
	if w.onlyWaits() {
		e.Type, e.Err = EventWaiting, nil
	}
	a.process.emit(e, EventData{Release: release, Awaits: w.awaits})
}

// onlyWaits reports whether all that is wrong with the last pass is that it waits.
func (w *work) onlyWaits() bool {
	return len(w.failing) == 0 && len(w.awaits) > 0
}

// causes sorts the errors of a pass into what it awaits and what failed. since is when
// it was seen first, of what was wrong with the pass before too.
func (a *applier) causes(p *pass, res *runlevel.Result, now time.Time) (awaits, failing []Cause) {
	if res == nil {
		return nil, nil
	}
	before := slices.Concat(a.work.awaits, a.work.failing)
	for _, err := range res.Errors {
		te, ok := errors.AsType[*runlevel.TaskError](err)
		if !ok || te.Task == nil {
			continue
		}
		c := Cause{Subject: subjectOf(te.Task.Manifest.Identity()), Message: te.Error(), Since: now}
		if i := slices.IndexFunc(before, func(b Cause) bool { return b.Subject == c.Subject }); i >= 0 {
			c.Since = before[i].Since
		}
		if te.Wait != nil {
			if start, known := a.tracker.COStart(te.Wait.Operator); known {
				c.Since = start
			}
		}
		if te.Effect == runlevel.EffectNone {
			awaits = append(awaits, c)
		} else {
			failing = append(failing, c)
		}
	}
	return awaits, failing
}

// subjectOf names an object as the Subject of an event.
func subjectOf(id manifest.Identity) string {
	name := id.Name
	if id.Namespace != "" {
		name = id.Namespace + "/" + name
	}
	return strings.ToLower(id.Kind) + "/" + name
}

// ownerOf makes the ClusterVersion the owner of what it applies.
func ownerOf(cv *configv1.ClusterVersion) *metav1.OwnerReference {
	controller := true
	return &metav1.OwnerReference{
		APIVersion: configv1.GroupVersion.String(),
		Kind:       "ClusterVersion",
		Name:       cv.Name,
		UID:        cv.UID,
		Controller: &controller,
	}
}

// versionText names a release in conditions.
func versionText(r configv1.Release) string {
	return cmp.Or(r.Version, r.Image, "<unknown>")
}

func joinLines(lines []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(lines), func(s string) bool { return s == "" }), "\n")
}
