package clusterupdate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// decider makes all decisions and writes the status. What takes time are its
// jobs, and the nodes of a pass.
type decider struct {
	*core
	written    time.Time // when the status was last brought up to date
	wrote      string    // the resourceVersion that it has had since
	reached    milestone // what was then worth writing at once
	ended      []func(now time.Time, q reconcile.Request)
	active     bool   // a ClusterOperator got further
	ignored    string // why the request changes nothing, as it was told
	refusal    string // what the server says of a status that it refuses, as it was told
	told       Plan   // without that
	selfHosted bool   // the control plane is the cluster's own, as was read once
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
			return now
		}
	}
	watches := []reconcile.Watch{
		{GVK: versionKind, Changed: named(clusterVersionKey)},
		{GVK: gateKind, Changed: named(clusterapi.Key("", "cluster"))},
		{GVK: operatorKind, Changed: func(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake {
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
// drops what is known of another state of it, plans, writes the status on
// condition that nobody else has meanwhile, and then does what was planned.
func (r *decider) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	shared, err := clusterapi.GetShared(ctx, r.o.API, versionKind, clusterVersionKey)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("cluster version: %w", err)
	}
	cv, err := clusterapi.As[configv1.ClusterVersion](shared)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("cluster version: %w", err)
	}
	if err := r.refuseHosted(ctx); err != nil {
		return reconcile.Result{}, err
	}
	r.cv = cv
	if r.s.follow(cv) {
		r.callOff()
		r.forgetRelease()
	}
	r.restore()
	o := object{cv: cv, risks: readRisks(ctx, r.o.API), notUnderstood: clusterversion.NotUnderstood(shared.Unstructured())}
	if err := r.identify(&o); err != nil {
		if errors.Is(err, ErrNoRelease) {
			return r.findRelease(err)
		}
		return reconcile.Result{}, err
	}
	versions := []string{reconciledVersion(cv, o.own, r.s.ran), o.own.Version}
	if o.lost != nil {
		versions = o.operators.versions()
	}
	o.gates, err = readGates(ctx, r.o.API, versions...)
	if err != nil {
		return reconcile.Result{}, err
	}
	r.settle(q)

	set := settings{Options: r.o, interval: r.interval(q), deletions: r.tracker.PendingDeletions(), starts: r.tracker.COStart, draining: r.calledOff.draining()}
	r.d = decide(o, r.s, r.updates, set)
	r.s.ask(r.d.target(r.d.want, r.d.origin), r.d.target(r.d.base, r.d.baseOrigin))
	status, actions := plan(q.Now, o, r.s, r.updates, set)
	r.tell(q.Now, actions)

	res := reconcile.Result{At: q.Now.Add(set.interval)}
	sooner := func(t time.Time) {
		if !t.IsZero() && t.Before(res.At) {
			res.At = t
		}
	}
	if due := r.written.Add(r.o.StatusInterval); (r.current() != nil || cv.ResourceVersion != r.wrote) && r.milestone(actions) == r.reached &&
		q.Now.Before(due) && !q.Now.Before(r.written) {
		// Mere progress is written once in a while, and so is what somebody else
		// has written over: two that do not agree must not answer each other.
		sooner(due)
	} else if err := r.write(ctx, q.Now, status); err != nil {
		return reconcile.Result{}, err
	} else if r.cv.ResourceVersion != cv.ResourceVersion {
		sooner(q.Now) // what was written may be news
	}
	for _, a := range actions {
		switch {
		case a.Waits:
			sooner(a.At)
		case a.fetch != nil:
			res.Jobs = append(res.Jobs, r.retrievalJob(a.fetch))
		case a.hook != nil:
			res.Jobs = append(res.Jobs, r.hookJob(a.hook))
		case a.recheck != nil:
			res.Jobs = append(res.Jobs, r.recheckJob(a.recheck))
		case a.load != nil:
			res.Jobs = append(res.Jobs, r.loadJob(a.load, r.loaded))
		case a.ask != nil:
			if err := r.ask(ctx, a); err != nil {
				return reconcile.Result{}, err
			}
		case a.adopt != nil:
			r.callOff()
			if a.Step == stepAccept {
				r.forgetRelease()
			}
			r.s.adopt(a.adopt, &cv.Status, loadedMessage(a.Release, r.o.architecture(a.Release)))
			r.known = a.Release
		case a.again:
			r.s.waits = false
			res.Wake = append(res.Wake, r.current().again(q.Now)...)
		case a.pass != nil:
			if r.calledOff.draining() { // it was called off just now
				sooner(q.Now)
				continue
			}
			wakes, err := r.begin(q, a.pass)
			if err != nil {
				return reconcile.Result{}, err
			}
			res.Wake = append(res.Wake, wakes...)
		}
	}
	if p := r.current(); p != nil && !r.s.waits && q.Now.Before(p.began.Add(p.limit)) {
		sooner(p.began.Add(p.limit)) // from then on it is made to end, which tells
	}
	r.reached = r.milestone(nil)
	res.Watches = r.watches.want(r.watched())
	if o.lost != nil && r.d.origin != requested {
		return reconcile.Result{}, o.lost
	}
	return res, nil
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
	r.s.ran = r.s.ran || completed || o.operators.ran(o.cv.Status.History)
	o.own, err = r.own(o.cv, o.operators)
	if isLost(err) || errors.Is(err, ErrNoRelease) && len(o.operators) > 0 && r.cannotSay() && requestsImage(o) {
		o.lost, err = err, nil
	}
	return err
}

// cannotSay reports whether the source of payloads does not know what the cluster
// was installed with.
func (r *decider) cannotSay() bool {
	_, ok := r.o.Payloads.(manifest.InitialReleaser)
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
	err := clusterversion.RefuseHosted(ctx, r.o.API)
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
	source, ok := r.o.Payloads.(manifest.InitialReleaser)
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
	r.look(q)
	if r.active && (r.s.state(&r.cv.Status, r.s.report.Image) != runlevel.Reconciling || r.s.report.Failure != nil) {
		r.s.nextPass = time.Time{} // it may let the next pass get further
	}
	r.active = false
}

// loaded takes note of how a load ended.
func (r *decider) loaded(request *loadRequest, out *loaded, refusal *LoadError) {
	r.ended = append(r.ended, func(now time.Time, q reconcile.Request) {
		a := &r.s.load
		if request.key.target != r.s.target {
			a = &r.s.fallback
		}
		failures := 1
		if a.key == request.key {
			failures += a.failures
		}
		*a = attempt{key: request.key, out: out, force: request.force, err: refusal}
		if refusal != nil {
			a.failures, a.retry = failures, now.Add(loadRetry(failures, r.interval(q)))
		}
	})
}

func (r *decider) retrievalJob(j *retrieval) reconcile.Job {
	return reconcile.Job{
		ID:  j.id(),
		Run: func(ctx context.Context, _ func(any)) (any, error) { return r.retrieve(ctx, j), nil },
		Done: func(out any, err error) []reconcile.Wake {
			next, ok := out.(availableUpdates)
			if !ok { // a panic: as if nothing had been asked
				r.log("updates could not be retrieved", err)
				return []reconcile.Wake{{Key: decideKey, After: recheckFailed}}
			}
			r.ended = append(r.ended, func(now time.Time, _ reconcile.Request) {
				next.recheck = now.Add(recheckAfter(&next))
				r.updates = next
				if j.plan.Fetch {
					r.emit(clusterapi.Event{Type: EventRetrievedUpdates, Time: now, Message: next.Condition.Message}, EventData{Release: next.Current(), Updates: next.available()})
				}
			})
			return []reconcile.Wake{{Key: decideKey}}
		},
	}
}

// tell keeps the plan, and tells why a request is ignored.
func (r *decider) tell(now time.Time, actions []Action) {
	if why := r.d.resolution.Why; why != r.ignored {
		r.ignored = why
		if why != "" {
			r.emit(clusterapi.Event{Type: EventRequestIgnored, Time: now, Message: why}, EventData{Release: r.d.want})
		}
	}
	r.told = Plan{Time: now, Resolution: r.d.resolution, Actions: actions}
	r.show()
}

// show keeps the plan for those who ask, with what the server says of a status that it
// refuses: until it accepts one, nothing of the plan is done.
func (r *decider) show() {
	last := r.told
	if r.refusal != "" {
		at := slices.IndexFunc(last.Actions, func(a Action) bool { return slices.Index(steps, a.Step) >= slices.Index(steps, stepAccept) })
		if at < 0 {
			at = len(last.Actions)
		}
		last.Actions = slices.Insert(slices.Clone(last.Actions), at,
			Action{Step: stepAccept, Release: r.d.want, Reason: "the server refuses the status: " + r.refusal, Waits: true})
	}
	r.u.mu.Lock()
	defer r.u.mu.Unlock()
	r.u.last = last
}

// write brings the status up to date.
func (r *decider) write(ctx context.Context, now time.Time, status configv1.ClusterVersionStatus) error {
	cv, err := clusterversion.WriteStatus(ctx, r.o.API, &r.accepts, r.cv, status)
	r.refused(now, err)
	if err != nil {
		return fmt.Errorf("status of the cluster version: %w", err)
	}
	if cv.ResourceVersion != r.cv.ResourceVersion {
		r.emit(clusterapi.Event{Type: EventStatus, Time: now, Message: progressMessage(cv)}, EventData{Release: cv.Status.Desired})
	}
	r.cv, r.written, r.wrote, r.s.entry = cv, now, cv.ResourceVersion, entryOf(cv)
	return nil
}

// refused tells what the server says of a status that it refuses: once, and in each
// plan until it accepts one. What could not be written for another cause says nothing.
func (r *decider) refused(now time.Time, err error) {
	words := refused(err)
	if err != nil && words == "" || words == r.refusal {
		return
	}
	r.refusal = words
	if words != "" {
		r.emit(clusterapi.Event{Type: EventStatusRefused, Time: now, Message: words, Err: err}, EventData{Release: r.d.want})
	}
	r.show()
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
	s := &r.s
	e := milestone{uid: r.cv.UID, generation: r.cv.Generation, entry: s.entry, reconciling: s.report.Reconciling, failing: s.report.Failure != nil,
		load: s.load.err, accepted: s.accepted, evaluations: r.updates.evaluations, faults: len(r.d.faults)}
	if s.sync != nil {
		e.image = s.sync.release.Image
	}
	trouble := s.hookTrouble(r.cv.UID, r.cv.Status.History, r.o.Hooks)
	e.waits, e.failed = len(trouble.waits), len(trouble.failed)
	e.news = slices.ContainsFunc(actions, func(a Action) bool {
		return a.adopt != nil || a.load != nil || a.Step == stepComplete && !a.Waits && a.hook == nil
	})
	return e
}

var errSpecChanged = errors.New("the specification has changed")

// ask asks for a release, unless somebody else asks for something meanwhile.
func (r *decider) ask(ctx context.Context, a Action) error {
	_, err := clusterversion.Modify(ctx, r.o.API, clusterapi.ModifyOptions{}, func(live *configv1.ClusterVersion) (bool, error) {
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
	r.s.asked = a.ask
	r.emit(clusterapi.Event{Type: EventUpdateRequested, Message: "requesting " + a.ask.Version}, EventData{Release: a.Release})
	return nil
}

// callOff ends the pass under way, which is of no interest any more. Another one
// begins when the last of its calls has ended.
func (r *decider) callOff() {
	if p := r.current(); p != nil {
		r.setPass(nil)
		r.calledOff = p
		p.stop(context.Canceled)
	}
	r.s.pass, r.s.waits = false, false
}
