package clusterupdate

import (
	"context"
	"errors"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// decider makes all decisions, and has them carried out. What takes time are its jobs, and
// the nodes of a pass.
type decider struct {
	process   *process
	reader    *reader
	writer    *writer
	explainer *explainer
	retriever *retriever
	loader    *loader
	applier   *applier

	cv         *configv1.ClusterVersion // as last read or written; shared
	entry      entry                    // of its history
	d          intent                   // of it
	hooks      hookAnswers              // what the hooks said
	hookCalls  []int                    // of each hook that have ended
	asked      *configv1.Update         // by automatic mode, last
	preflights preflights
	watched    []schema.GroupVersionKind // for preflights
	ended      []func(now time.Time, q reconcile.Request)
	active     bool // a ClusterOperator got further
}

func newDecider(u *Updater, api clusterapi.ClusterAPI) *decider {
	p := newProcess(u.o, api)
	a := newApplier(u, p)
	return &decider{
		process: p, reader: &reader{process: p}, writer: &writer{process: p}, explainer: &explainer{process: p, updater: u},
		retriever: newRetriever(p, a.pendingDeletions), loader: &loader{process: p}, applier: a,
		hookCalls: make([]int, len(p.o.Hooks)),
	}
}

// memory is what is remembered now.
func (r *decider) memory() memory {
	return memory{
		updates: r.retriever.updates, loads: r.loader.loads, work: r.applier.work,
		hooks: r.hooks, asked: r.asked, hookCalls: r.hookCalls, preflights: r.preflights,
	}
}

const deciderName = "version"

var (
	// decideKey is the key that makes decisions.
	decideKey = reconcile.Key{Kind: "ClusterVersion", Name: clusterVersionKey.Name}
	// preflightsKey is the key that watches what preflights read: of the watches of one
	// key, those for the payload's objects would come first.
	preflightsKey = reconcile.Key{Kind: "Preflights"}
)

// Name implements [reconcile.Reconciler].
func (r *decider) Name() string { return deciderName }

// Keys implements [reconcile.Lister].
func (r *decider) Keys() []reconcile.Key { return []reconcile.Key{decideKey} }

// Watches implements [reconcile.Reconciler].
func (r *decider) Watches() []reconcile.Watch {
	now := []reconcile.Wake{{Key: decideKey}}
	named := func(key types.NamespacedName) func(time.Time, *clusterapi.Object, *clusterapi.Object) []reconcile.Wake {
		return func(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake {
			if new == nil {
				new = old
			}
			if new.Key() != key || key == clusterVersionKey && r.cv != nil && new.ResourceVersion() == r.cv.ResourceVersion {
				return nil // somebody else, or what was written here
			}
			r.reader.forget()
			if key != clusterVersionKey {
				r.preflights.changed()
			}
			return now
		}
	}
	watches := []reconcile.Watch{
		{GVK: versionKind, Changed: named(clusterVersionKey)},
		{GVK: gateKind, Changed: named(clusterapi.Key("", "cluster"))},
		{GVK: operatorKind, Changed: func(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake {
			r.reader.forget()
			if old != nil && new != nil {
				before, _ := clusterapi.As[configv1.ClusterOperator](old)
				after, _ := clusterapi.As[configv1.ClusterOperator](new)
				moved := before != nil && after != nil && stateOf(before) != stateOf(after)
				r.active = r.active || moved
				if moved {
					r.preflights.changed()
				}
			}
			return now
		}},
	}
	for _, key := range []types.NamespacedName{adminGates, adminAcks} {
		watches = append(watches, reconcile.Watch{
			GVK: configMapKind, Options: clusterapi.ListOptions{Namespace: key.Namespace}, Changed: named(key),
			Trim: trimmed,
		})
	}
	return watches
}

// operatorState is the part of a ClusterOperator that may let an update continue.
type operatorState struct {
	version                          string
	available, degraded, upgradeable configv1.ConditionStatus
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
		case configv1.OperatorUpgradeable:
			s.upgradeable = c.Status
		}
	}
	return s
}

// Reconcile implements [reconcile.Reconciler]: it reads the ClusterVersion, drops
// what is known of another state of it, decides, writes the status unless somebody
// else has since, and then does what was decided.
func (r *decider) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	if q.Key == preflightsKey {
		return reconcile.Result{Watches: r.preflightWatches()}, nil
	}
	res, err := r.decide(ctx, q)
	if err != nil {
		r.reader.forget()
	}
	if r.explainer.ended(ctx, q.Now, r.d.want, err) {
		r.show()
	}
	return res, err
}

// decide makes a look.
func (r *decider) decide(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	o, err := r.read(ctx, q.Now)
	if errors.Is(err, ErrNoRelease) {
		return r.reader.findRelease(err)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	r.settle(q)

	a, hooks := r.applier, r.process.o.Hooks
	set := settings{
		o: &r.process.o, interval: r.process.interval(q),
		deletions: a.tracker.PendingDeletions(), starts: a.tracker.COStart, draining: a.draining(),
	}
	m := r.memory()
	r.d = intentOf(*o, m, set)
	r.loader.loads.ask(r.d.target(r.d.want, r.d.origin), r.d.target(r.d.base, r.d.baseOrigin), m.work.release())
	r.preflights.ask(r.d.preflightKey(o.cv.UID), o.cv)
	m = r.memory()
	status, actions := plan(q.Now, *o, r.d, m, set)
	r.explainer.decided(q.Now, &r.d, actions)
	r.show()

	next := &look{at: q.Now.Add(set.interval)}
	reached := m.milestone(r.cv, len(r.d.faults), hooks, actions)
	if due := r.writer.due(q.Now, o.cv, a.current() != nil, reached); due.After(q.Now) {
		next.sooner(due)
	} else if err := r.write(ctx, q.Now, status); err != nil {
		return reconcile.Result{}, err
	} else if r.cv.ResourceVersion != o.cv.ResourceVersion {
		next.sooner(q.Now) // what was written may be news
	}
	for i := range actions {
		if err := r.act(ctx, q, o, &actions[i], next); err != nil {
			return reconcile.Result{}, err
		}
	}
	if p := a.current(); p != nil && !a.work.waits && q.Now.Before(p.began.Add(p.limit)) {
		next.sooner(p.began.Add(p.limit)) // from then on it is made to end
	}
	m = r.memory()
	r.writer.reached = m.milestone(r.cv, len(r.d.faults), hooks, nil)
	if o.lost != nil && r.d.origin != requested {
		return reconcile.Result{}, o.lost
	}
	if kinds := r.preflightKinds(); !slices.Equal(kinds, r.watched) {
		r.watched = kinds
		next.wakes = append(next.wakes, reconcile.Wake{Key: preflightsKey})
	}
	watches := a.watches.want(a.watched(&r.cv.Status))
	return reconcile.Result{At: next.at, Wake: next.wakes, Jobs: next.jobs, Watches: watches}, nil
}

// read reads what a decision is made from, unless what was read of a cluster at rest
// still holds: one that is as wanted, as far as watches show. A Sync always reads. What
// is known of another entry of the history than the newest one is dropped.
func (r *decider) read(ctx context.Context, now time.Time) (*object, error) {
	if r.reader.holds(now) && !r.applier.lists && r.applier.work.rests() {
		o := *r.reader.last
		o.cv = r.cv
		return &o, nil
	}
	o, err := r.reader.version(ctx)
	if err != nil {
		return nil, err
	}
	r.cv = o.cv
	r.follow(entryOf(o.cv))
	w := &r.applier.work
	ran, err := r.reader.reports(o)
	if err != nil {
		return nil, err
	}
	w.ran = w.ran || ran
	if err := r.reader.identify(o, w.ran, r.loader.loads.version); err != nil {
		return nil, err
	}
	versions := []string{reconciledVersion(o.cv, o.own, w.ran), o.own.Version}
	if o.lost != nil {
		versions = o.operators.versions()
	}
	o.gates, err = readGates(ctx, r.process.o.API, versions...)
	if err != nil {
		return nil, err
	}
	r.reader.last, r.reader.lastRead = o, now
	return o, nil
}

// write brings the status up to date.
func (r *decider) write(ctx context.Context, now time.Time, status configv1.ClusterVersionStatus) error {
	stored, err := r.writer.write(ctx, now, r.cv, status)
	if err != nil {
		return err
	}
	if stored.ResourceVersion != r.cv.ResourceVersion {
		r.reader.forget()
	}
	r.cv, r.entry = stored, entryOf(stored)
	r.preflights.stale = false
	return nil
}

// show shows the last decision, with what is remembered now.
func (r *decider) show() {
	m := r.memory()
	r.explainer.show(&m, r.cv)
}

// result is where the cluster stands.
func (r *decider) result() Result {
	m := r.memory()
	return m.result(r.cv, &r.d, r.process.o.Hooks)
}

// flush writes how far a pass got that is called off.
func (r *decider) flush(ctx context.Context) {
	p := r.applier.current()
	if p == nil || r.cv == nil || r.applier.work.sync == nil {
		return
	}
	m := r.memory()
	m.work.report = p.reported()
	in := newStatusInput(r.process.o.Clock.Now(), r.cv, r.d, &m, &settings{o: &r.process.o})
	status := nextStatus(r.cv.Status, in)
	m.preflights.show(&status, in.now.Time, r.cv, &r.d, false)
	r.writer.flush(ctx, r.cv, status)
}

// look is what a look leads to.
type look struct {
	at    time.Time // of the next one
	wakes []reconcile.Wake
	jobs  []reconcile.Job
}

// sooner makes the next look one at t, unless that is later or zero.
func (l *look) sooner(t time.Time) {
	if !t.IsZero() && t.Before(l.at) {
		l.at = t
	}
}

// follow drops what is known about another entry of the history: the release that
// passes apply, their progress and their waits.
func (r *decider) follow(e entry) {
	before := r.entry
	if before != e {
		r.entry, r.hooks, r.loader.loads = e, nil, loads{}
		r.applier.work = work{ran: r.applier.work.ran}
	}
	if before != e && before != (entry{}) {
		r.applier.callOff()
		r.forgetRelease()
	}
	r.applier.restore(e)
}

// forgetRelease drops what is kept about the release that the cluster was at, with the
// verifier that its payload configures and what preflights found.
func (r *decider) forgetRelease() {
	r.applier.forget()
	r.loader.trust.forget()
	r.preflights = preflights{stale: true}
}

// act does what an action says.
func (r *decider) act(ctx context.Context, q reconcile.Request, o *object, a *Action, next *look) error {
	switch {
	case a.Waits:
		next.sooner(a.At)
	case a.fetch != nil:
		next.jobs = append(next.jobs, r.retriever.job(a.fetch, func(found availableUpdates) {
			r.ended = append(r.ended, func(now time.Time, _ reconcile.Request) { r.retriever.learn(now, a.fetch, found) })
		}))
	case a.hook != nil:
		next.jobs = append(next.jobs, r.hookJob(a.hook))
	case a.recheck != nil:
		next.jobs = append(next.jobs, r.loader.recheckJob(a.recheck, func(decision preconditions.Decision, err error) {
			r.ended = append(r.ended, func(now time.Time, q reconcile.Request) {
				r.rechecked(a.recheck.id, decision, err, now, q)
			})
		}))
	case a.preflight != nil:
		next.jobs = append(next.jobs, r.preflightJob(a.preflight))
	case a.load != nil:
		next.jobs = append(next.jobs, r.loader.job(a.load, func(out *loaded, refusal *LoadError) {
			r.ended = append(r.ended, func(now time.Time, q reconcile.Request) {
				r.loader.loads.note(a.load, out, refusal, now, r.process.interval(q))
			})
		}))
	case a.ask != nil:
		asked, err := r.writer.ask(ctx, r.cv, *a.ask)
		if asked {
			r.asked = a.ask
		}
		return err
	case a.adopt != nil:
		r.applier.callOff()
		if a.Step == stepAccept {
			r.forgetRelease()
		}
		m := r.memory()
		m.adopt(a.adopt, &o.cv.Status, r.process.o.architecture(a.Release))
		r.loader.loads, r.applier.work = m.loads, m.work
		r.reader.known = a.Release
	case a.resume:
		next.wakes = append(next.wakes, r.applier.resume(q.Now)...)
	case a.pass != nil:
		if r.applier.draining() { // it was called off just now
			next.sooner(q.Now)
			return nil
		}
		wakes, err := r.applier.begin(q, a.pass, r.cv)
		next.wakes = append(next.wakes, wakes...)
		return err
	}
	return nil
}

// settle records what has ended since the last look.
func (r *decider) settle(q reconcile.Request) {
	for _, end := range r.ended {
		end(q.Now, q)
	}
	r.ended = nil
	r.applier.review(q)
	w := &r.applier.work
	if r.active && (w.state(&r.cv.Status, w.report.Image) != runlevel.Reconciling || w.report.Failure != nil) {
		w.nextPass = time.Time{} // it may let the next pass get further
	}
	r.active = false
}

// rechecked records the present result of the checks, unless it is about another
// release than passes apply.
func (r *decider) rechecked(id recheckID, decision preconditions.Decision, err error, now time.Time, q reconcile.Request) {
	if w := r.applier.work.sync; w != nil && w.loaded == id.of {
		r.loader.rechecked(id, decision, err, now, r.process.interval(q))
	}
}

// entry identifies the newest entry of a ClusterVersion's history.
type entry struct {
	uid     types.UID
	image   string
	started int64 // in seconds, as it is stored
}

func entryOf(cv *configv1.ClusterVersion) entry {
	e := entry{uid: cv.UID}
	if len(cv.Status.History) > 0 {
		h := cv.Status.History[0]
		e.image, e.started = h.Image, h.StartedTime.Unix()
	}
	return e
}
