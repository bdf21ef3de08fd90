package clusterupdate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// decider makes all decisions and writes the status. What takes time are its
// jobs, and the nodes of a pass.
type decider struct {
	process   *process
	updater   *Updater    // which shows decisions
	fatal     func(error) // ends Run; nil elsewhere
	retriever *retriever
	loader    *loader
	applier   *applier

	entry     entry       // of the history, as last read or written
	hooks     hookAnswers // what the hooks said
	hookCalls []int       // of each hook that have ended
	asked     *configv1.Update
	cv        *configv1.ClusterVersion // as last read or written; shared
	d         intent                   // of it

	known       configv1.Release // that the cluster was last seen at
	opened      configv1.Release // an Own without a version, as its payload names it
	initialErr  error            // of asking what it was installed with
	initialAsks int              // for that in vain

	written    time.Time // when the status was last brought up to date
	wrote      string    // the resourceVersion that it has had since
	reached    milestone // what was then worth writing at once
	ended      []func(now time.Time, q reconcile.Request)
	last       *object   // as read last; nil: it is to be read again
	lastRead   time.Time // when that was
	active     bool      // a ClusterOperator got further
	ignored    string    // why the request changes nothing, as the last event has it
	failed     failedLook
	decision   Decision // without these
	selfHosted bool     // the control plane is the cluster's own, as was read once
}

func newDecider(u *Updater, api clusterapi.ClusterAPI) *decider {
	p := newProcess(u.o, api)
	a := newApplier(u, p)
	return &decider{
		process: p, updater: u,
		retriever: newRetriever(p, a.pendingDeletions), loader: &loader{process: p}, applier: a,
		hookCalls: make([]int, len(p.o.Hooks)),
	}
}

// memory is what is remembered now.
func (r *decider) memory() memory {
	return memory{
		updates: r.retriever.updates, loads: r.loader.loads, work: r.applier.work,
		hooks: r.hooks, asked: r.asked, hookCalls: r.hookCalls,
	}
}

const deciderName = "version"

// decideKey is the one key.
var decideKey = reconcile.Key{Kind: "ClusterVersion", Name: clusterVersionKey.Name}

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
			r.last = nil
			return now
		}
	}
	watches := []reconcile.Watch{
		{GVK: versionKind, Changed: named(clusterVersionKey)},
		{GVK: gateKind, Changed: named(clusterapi.Key("", "cluster"))},
		{GVK: operatorKind, Changed: func(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake {
			r.last = nil
			if old != nil && new != nil {
				before, _ := clusterapi.As[configv1.ClusterOperator](old)
				after, _ := clusterapi.As[configv1.ClusterOperator](new)
				r.active = r.active || before != nil && after != nil && stateOf(before) != stateOf(after)
			}
			return now
		}},
	}
	for _, key := range []types.NamespacedName{adminGates, adminAcks} {
		watches = append(watches, reconcile.Watch{
			GVK: configMapKind, Options: clusterapi.ListOptions{Namespace: key.Namespace}, Changed: named(key),
			Trim: func(u *unstructured.Unstructured) *unstructured.Unstructured {
				out := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
					"namespace": u.GetNamespace(), "name": u.GetName(), "resourceVersion": u.GetResourceVersion()}}}
				out.SetGroupVersionKind(u.GroupVersionKind())
				return out
			},
		})
	}
	return watches
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

// Reconcile implements [reconcile.Reconciler]: it reads the ClusterVersion,
// drops what is known of another state of it, decides, writes the status on
// condition that nobody else has meanwhile, and then does what was decided.
func (r *decider) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	res, err := r.decide(ctx, q)
	if err != nil {
		r.last = nil
	}
	r.note(ctx, q.Now, err)
	return res, err
}

// note takes note of how a look ended. What fails is an event when it begins to, for
// another reason, and when it ends, and stands in the Decision as long as it lasts. A
// conflict is looked at again at once.
func (r *decider) note(ctx context.Context, now time.Time, err error) {
	before := r.failed
	switch {
	case ctx.Err() != nil, apierrors.IsConflict(err), err == nil && before.err == nil:
		return
	case err == nil:
		r.failed = failedLook{}
		e := clusterapi.Event{Type: EventRecovered, Time: now, Message: "the cluster can be read and written again"}
		r.process.emit(e, EventData{Release: r.d.want})
	default:
		r.failed = failedLook{err: err, since: before.since}
		if before.err == nil {
			r.failed.since = now
		}
		if before.err == nil || apierrors.ReasonForError(before.err) != apierrors.ReasonForError(err) {
			e := clusterapi.Event{Type: EventFailed, Time: now, Message: r.failed.text(), Err: err}
			r.process.emit(e, EventData{Release: r.d.want})
		}
	}
	r.show()
}

// failedLook is an error of looks in a row; nil: the last one had none.
type failedLook struct {
	err   error
	since time.Time
}

func (f *failedLook) text() string { return bounded.Text(f.err.Error(), clusterversion.MaxMessage) }

// decide makes a look.
func (r *decider) decide(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	o, err := r.read(ctx, q.Now)
	if errors.Is(err, ErrNoRelease) {
		return r.findRelease(err)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	r.settle(q)

	a := r.applier
	set := settings{
		o: &r.process.o, interval: r.process.interval(q),
		deletions: a.tracker.PendingDeletions(), starts: a.tracker.COStart, draining: a.draining(),
	}
	r.d = intentOf(*o, r.memory(), set)
	var applied configv1.Release
	if a.work.sync != nil {
		applied = a.work.sync.release
	}
	r.loader.loads.ask(r.d.target(r.d.want, r.d.origin), r.d.target(r.d.base, r.d.baseOrigin), applied)
	status, actions := plan(q.Now, *o, r.d, r.memory(), set)
	r.explain(q.Now, actions)

	next := &look{at: q.Now.Add(set.interval)}
	if err := r.writeDue(ctx, q.Now, o.cv, status, actions, next); err != nil {
		return reconcile.Result{}, err
	}
	for i := range actions {
		if err := r.act(ctx, q, o, &actions[i], next); err != nil {
			return reconcile.Result{}, err
		}
	}
	if p := a.current(); p != nil && !a.work.waits && q.Now.Before(p.began.Add(p.limit)) {
		next.sooner(p.began.Add(p.limit)) // from then on it is made to end
	}
	r.reached = r.milestone(nil)
	if o.lost != nil && r.d.origin != requested {
		return reconcile.Result{}, o.lost
	}
	watches := a.watches.want(a.watched(&r.cv.Status))
	return reconcile.Result{At: next.at, Wake: next.wakes, Jobs: next.jobs, Watches: watches}, nil
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

// readAgain is the longest time for which what was read of a cluster at rest holds,
// unless a watch shows that it has changed.
const readAgain = 10 * time.Minute

// atRest reports whether the cluster is as wanted, as far as watches show, so that what
// was read last holds. A Sync reads what there is.
func (r *decider) atRest(now time.Time) bool {
	w := &r.applier.work
	if r.last == nil || r.applier.lists || now.Before(r.lastRead) || !now.Before(r.lastRead.Add(readAgain)) {
		return false
	}
	return w.sync != nil && w.report.Reconciling && w.report.Failure == nil && w.passErr == nil
}

// read reads what a decision is made from. Where the history is about another entry
// than before, what is known of that one is dropped.
func (r *decider) read(ctx context.Context, now time.Time) (*object, error) {
	if r.atRest(now) {
		o := *r.last
		o.cv = r.cv
		return &o, nil
	}
	api := r.process.o.API
	shared, err := clusterapi.GetShared(ctx, api, versionKind, clusterVersionKey)
	if err != nil {
		return nil, fmt.Errorf("cluster version: %w", err)
	}
	cv, err := clusterapi.As[configv1.ClusterVersion](shared)
	if err != nil {
		return nil, fmt.Errorf("cluster version: %w", err)
	}
	if err := r.refuseHosted(ctx); err != nil {
		return nil, err
	}
	r.cv = cv
	r.follow(entryOf(cv))
	o := &object{cv: cv, risks: readRisks(ctx, api), notUnderstood: clusterversion.NotUnderstood(shared.Unstructured())}
	if err := r.identify(o); err != nil {
		return nil, err
	}
	versions := []string{reconciledVersion(cv, o.own, r.applier.work.ran), o.own.Version}
	if o.lost != nil {
		versions = o.operators.versions()
	}
	o.gates, err = readGates(ctx, api, versions...)
	if err != nil {
		return nil, err
	}
	r.last, r.lastRead = o, now
	return o, nil
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
// verifier that its payload configures.
func (r *decider) forgetRelease() {
	r.applier.forget()
	r.loader.trust.forget()
}

// writeDue writes the status, unless that is to wait. Mere progress is written once in
// a while, and so is what somebody else has written over: two that do not agree must not
// answer each other.
func (r *decider) writeDue(ctx context.Context, now time.Time, read *configv1.ClusterVersion,
	status configv1.ClusterVersionStatus, actions []Action, next *look) error {
	due := r.written.Add(r.process.o.StatusInterval)
	mere := (r.applier.current() != nil || read.ResourceVersion != r.wrote) && r.milestone(actions) == r.reached
	if mere && now.Before(due) && !now.Before(r.written) {
		next.sooner(due)
		return nil
	}
	if err := r.write(ctx, now, status); err != nil {
		return err
	}
	if r.cv.ResourceVersion != read.ResourceVersion {
		next.sooner(now) // what was written may be news
	}
	return nil
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
			r.ended = append(r.ended, func(now time.Time, q reconcile.Request) { r.rechecked(a.recheck.id, decision, err, now, q) })
		}))
	case a.load != nil:
		next.jobs = append(next.jobs, r.loader.job(a.load, func(out *loaded, refusal *LoadError) {
			r.ended = append(r.ended, func(now time.Time, q reconcile.Request) {
				r.loader.loads.note(a.load, out, refusal, now, r.process.interval(q))
			})
		}))
	case a.ask != nil:
		return r.ask(ctx, *a)
	case a.adopt != nil:
		r.applier.callOff()
		if a.Step == stepAccept {
			r.forgetRelease()
		}
		m := r.memory()
		m.adopt(a.adopt, &o.cv.Status, r.process.o.architecture(a.Release))
		r.loader.loads, r.applier.work = m.loads, m.work
		r.known = a.Release
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

// identify finds out what the cluster runs, and whether it is being installed.
func (r *decider) identify(o *object) (err error) {
	completed := clusterversion.EverCompleted(o.cv)
	if !completed {
		o.operators, err = o.risks.reported()
		if err != nil {
			return err
		}
	}
	r.applier.work.ran = r.applier.work.ran || completed || o.operators.ran(o.cv.Status.History)
	o.own, err = r.own(o.cv, o.operators)
	if isLost(err) || errors.Is(err, ErrNoRelease) && len(o.operators) > 0 && r.cannotSay() && requestsImage(o) {
		o.lost, err = err, nil
	}
	return err
}

// cannotSay reports whether the source of payloads does not know what the cluster
// was installed with.
func (r *decider) cannotSay() bool {
	_, ok := r.process.o.Payloads.(manifest.InitialReleaser)
	return !ok
}

func requestsImage(o *object) bool {
	u := o.cv.Spec.DesiredUpdate
	return u != nil && u.Image != "" && len(o.notUnderstood) == 0
}

// refuseHosted ends an Updater of a cluster whose control plane is hosted elsewhere.
// A cluster is hosted from its beginning, or never: it is asked until it has answered.
func (r *decider) refuseHosted(ctx context.Context) error {
	if r.selfHosted {
		return nil
	}
	err := clusterversion.RefuseHosted(ctx, r.process.o.API)
	r.selfHosted = err == nil
	if errors.Is(err, clusterversion.ErrHostedControlPlane) && r.fatal != nil {
		r.fatal(err)
	}
	return err
}

// initialID tells the questions for the initial release apart, by how many of
// them failed before.
type initialID int

// findRelease asks the source of payloads what the cluster was installed with.
func (r *decider) findRelease(unknown error) (reconcile.Result, error) {
	source, ok := r.process.o.Payloads.(manifest.InitialReleaser)
	if !ok {
		if r.fatal != nil {
			r.fatal(unknown)
		}
		return reconcile.Result{}, unknown
	}
	if err := r.initialErr; err != nil {
		r.initialErr = nil
		r.initialAsks++
		return reconcile.Result{}, fmt.Errorf("initial release: %w", err)
	}
	return reconcile.Result{Jobs: []reconcile.Job{{
		ID: initialID(r.initialAsks),
		Run: func(ctx context.Context, _ func(any)) (found any, err error) {
			err = panics.Isolate(func() (err error) {
				found, err = source.InitialRelease(ctx)
				return err
			})
			return found, err
		},
		Done: func(found any, err error) []reconcile.Wake {
			r.known, _ = found.(configv1.Release)
			r.initialErr = err
			return []reconcile.Wake{{Key: decideKey}}
		},
	}}}, nil
}

// settle takes note of what has ended since the last look.
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

// rechecked takes note of what the checks say now, unless that is about another
// release than passes apply.
func (r *decider) rechecked(id recheckID, decision preconditions.Decision, err error, now time.Time, q reconcile.Request) {
	if w := r.applier.work.sync; w != nil && w.loaded == id.of {
		r.loader.rechecked(id, decision, err, now, r.process.interval(q))
	}
}

// explain keeps the decision, and sends an event if a request is ignored.
func (r *decider) explain(now time.Time, actions []Action) {
	if why := r.d.resolution.Why; why != r.ignored {
		r.ignored = why
		if why != "" {
			r.process.emit(clusterapi.Event{Type: EventRequestIgnored, Time: now, Message: why}, EventData{Release: r.d.want})
		}
	}
	r.decision = Decision{Time: now, Resolution: r.d.resolution, Actions: actions}
	r.show()
}

// show keeps the decision for those who ask.
func (r *decider) show() {
	last := r.decision
	if r.cv != nil {
		m := r.memory()
		last.Awaits, last.Failures = m.causes(r.cv, r.process.o.Hooks)
	}
	if r.failed.err != nil {
		c := Cause{Subject: "clusterversion/" + clusterVersionKey.Name, Message: r.failed.text(), Since: r.failed.since}
		last.Failures = append(last.Failures, c)
	}
	r.updater.mu.Lock()
	defer r.updater.mu.Unlock()
	r.updater.last = last
}

// write brings the status up to date.
func (r *decider) write(ctx context.Context, now time.Time, status configv1.ClusterVersionStatus) error {
	cv, err := clusterversion.WriteStatus(ctx, r.process.o.API, &r.process.accepts, r.cv, status)
	if err != nil {
		return fmt.Errorf("status of the cluster version: %w", err)
	}
	if cv.ResourceVersion != r.cv.ResourceVersion {
		r.last = nil
		r.process.emit(clusterapi.Event{Type: EventStatus, Time: now, Message: progressMessage(cv)}, EventData{Release: cv.Status.Desired})
	}
	r.cv, r.written, r.wrote, r.entry = cv, now, cv.ResourceVersion, entryOf(cv)
	return nil
}

func progressMessage(cv *configv1.ClusterVersion) string {
	if c := clusterapi.FindCondition(cv.Status.Conditions, configv1.OperatorProgressing); c != nil {
		return c.Message
	}
	return ""
}

// milestone is what about a status is worth writing at once.
type milestone struct {
	uid                  types.UID
	generation           int64
	entry                entry
	image                string
	reconciling, failing bool
	load                 *LoadError
	accepted             string
	evaluations, faults  int
	waits, failed        int  // of the hooks
	news                 bool // something is accepted, complete or being loaded
}

func (r *decider) milestone(actions []Action) milestone {
	m := r.memory()
	e := milestone{uid: r.cv.UID, generation: r.cv.Generation, entry: r.entry, load: m.loads.wanted.err, accepted: m.loads.accepted,
		reconciling: m.work.report.Reconciling, failing: m.work.report.Failure != nil, evaluations: m.updates.evaluations, faults: len(r.d.faults)}
	if m.work.sync != nil {
		e.image = m.work.sync.release.Image
	}
	trouble := m.hookTrouble(r.cv.UID, r.cv.Status.History, r.process.o.Hooks)
	e.waits, e.failed = len(trouble.waits), len(trouble.failed)
	e.news = slices.ContainsFunc(actions, func(a Action) bool {
		return a.adopt != nil || a.load != nil || a.Step == stepComplete && !a.Waits && a.hook == nil
	})
	return e
}

var errSpecChanged = errors.New("the specification has changed")

// ask asks for a release, unless somebody else asks for something meanwhile.
func (r *decider) ask(ctx context.Context, a Action) error {
	_, err := clusterversion.Modify(ctx, r.process.o.API, clusterapi.ModifyOptions{}, func(live *configv1.ClusterVersion) (bool, error) {
		if live.Generation != r.cv.Generation {
			return false, errSpecChanged
		}
		clusterversion.SetDesired(live, *a.ask)
		return true, nil
	})
	if errors.Is(err, errSpecChanged) {
		return nil // which wakes this reconciler
	}
	if err != nil {
		return fmt.Errorf("request of %s: %w", a.ask.Version, err)
	}
	r.asked = a.ask
	r.process.emit(clusterapi.Event{Type: EventUpdateRequested, Message: "requesting " + a.ask.Version}, EventData{Release: a.Release})
	return nil
}

// result is where the cluster stands.
func (r *decider) result() Result {
	m := r.memory()
	w := &m.work
	out := Result{ClusterVersion: r.cv.DeepCopy(), Resolution: r.d.resolution}
	out.Done = out.Resolution.Outcome != clusterversion.NotFound && w.sync != nil && w.report.Reconciling && w.report.Failure == nil && w.passErr == nil &&
		w.sync.release.Image == r.d.want.Image && r.hooks.done(r.cv, r.process.o.Hooks)
	switch {
	case m.loads.wanted.err != nil:
		out.Failure = m.loads.wanted.err
	case w.sync == nil && r.d.lost != nil:
		out.Failure = r.d.lost
	case out.Done:
	case w.onlyWaits():
		out.Failure = r.hookFailure(&m)
	case w.passErr != nil:
		out.Failure = w.passErr
	default:
		out.Failure = w.report.Failure
		if out.Failure == nil {
			out.Failure = r.hookFailure(&m)
		}
	}
	if !out.Done && r.cv != nil {
		out.Awaits, _ = m.causes(r.cv, r.process.o.Hooks)
	}
	return out
}

// hookFailure is what failed in hooks.
func (r *decider) hookFailure(m *memory) error {
	if r.cv == nil {
		return nil
	}
	return m.hookTrouble(r.cv.UID, r.cv.Status.History, r.process.o.Hooks).err
}

// lastWrite is how long a write may take for which a caller that has ended
// everything waits.
const lastWrite = 2 * time.Second

// flush writes how far a pass came that is called off.
func (r *decider) flush(ctx context.Context) {
	p := r.applier.current()
	if p == nil || r.cv == nil || r.applier.work.sync == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
	defer cancel()
	m := r.memory()
	m.work.report = p.reported()
	in := newStatusInput(r.process.o.Clock.Now(), r.cv, r.d, &m, &settings{o: &r.process.o})
	_, err := clusterversion.WriteStatus(ctx, r.process.o.API, &r.process.accepts, r.cv, nextStatus(r.cv.Status, in))
	r.process.log("the last status could not be written", err)
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
