package clusterupdate

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// session is what an Updater remembers between passes. Nothing of it is needed
// to go on after a restart.
type session struct {
	tracker  *runlevel.Tracker
	lists    lists
	recheck  time.Time        // when to judge again what could not be judged
	asked    *configv1.Update // what automatic mode asked for
	load     loadState        // of the wanted release
	fallback loadState        // of what the cluster has been at, where that is refused
	work     *work            // what passes apply; nil: nothing is accepted yet

	state    runlevel.State
	report   runlevel.Report
	passErr  error     // of the last pass
	attempt  int       // of the pass in its state
	failures int       // passes failed in a row
	nextPass time.Time // zero: at once
}

// work is what passes apply.
type work struct {
	*loaded
	owner     types.UID // of the ClusterVersion
	force     bool
	overrides []configv1.ComponentOverride
	caps      manifest.Capabilities
}

// same reports whether nothing has changed that a pass would have to begin
// anew for.
func (w *work) same(o *work) bool {
	return w.loaded == o.loaded && w.owner == o.owner && w.force == o.force &&
		reflect.DeepEqual(w.overrides, o.overrides) && w.caps.Equal(o.caps)
}

func (w *work) filter() manifest.Filter {
	return manifest.Filter{Gates: w.gates.enabled, Capabilities: &w.caps, Overrides: w.overrides}
}

// step reads the ClusterVersion, decides, takes over what has been loaded, and
// writes the status. Nothing else changes what passes apply.
func (l *loop) step() error {
	l.looked = l.o.Clock.Now()
	cv, err := clusterapi.Get[configv1.ClusterVersion](l.ctx, l.o.API, clusterVersionKey)
	if err != nil {
		return fmt.Errorf("cluster version: %w", err)
	}
	own, err := l.own(l.ctx, cv)
	if err != nil {
		return err
	}
	g, err := l.readGates(l.ctx, reconciledVersion(cv, own), own.Version)
	if err != nil {
		return err
	}
	f := facts{cv: cv, own: own, gates: g, unfetched: l.o.Graph != nil && l.s.lists.unjudged(acceptedRisks(cv, g))}
	if available, conditional, ok := l.s.lists.answer(cv.Spec, true); ok { // what was retrieved counts, published or not
		f.cv = cv.DeepCopy()
		f.cv.Status.AvailableUpdates, f.cv.Status.ConditionalUpdates = available, conditional
	}
	if l.s.work != nil {
		f.applied = l.s.work.release
	}
	d := decide(f)
	if why := d.resolution.Why; why != "" && why != l.d.resolution.Why {
		l.emit(Event{Type: EventRequestIgnored, Release: d.want, Message: why})
	}
	l.d, l.cv = d, cv
	l.takeLoaded()
	l.updateWork()
	return l.writeStatus()
}

// writeStatus brings the status up to date. Mere progress of a pass is written
// once in a while.
func (l *loop) writeStatus() error {
	now := l.looked
	edge := l.edge()
	if due := l.written.Add(l.o.StatusInterval); l.pass != nil && edge == l.lastEdge && now.Before(due) {
		l.after(due)
		return nil
	}
	upgradeable := l.upgradeable()
	in := l.statusInput()
	in.upgradeable = upgradeable
	uid, before := l.cv.UID, l.cv.ResourceVersion
	cv, err := clusterapi.Modify(l.ctx, l.o.API, clusterVersionKey, clusterapi.ModifyOptions{Status: true, FieldManager: clusterapi.ManagerStatus},
		func(live *configv1.ClusterVersion) error {
			if live.UID != uid {
				return errors.New("cluster version was deleted and recreated, cannot update status")
			}
			live.Status = nextStatus(live.Status, in)
			return nil
		})
	if err != nil {
		return fmt.Errorf("status of the cluster version: %w", err)
	}
	if cv.ResourceVersion != before {
		l.emit(Event{Type: EventStatus, Release: cv.Status.Desired, Message: progressMessage(cv)})
	}
	l.cv, l.written, l.lastEdge = cv, now, edge
	return nil
}

// edge is what about a status is worth writing at once.
func (l *loop) edge() string {
	s := &l.s
	image, report := "", s.report
	if s.work != nil {
		image = s.work.release.Image
	}
	if l.pass != nil {
		report = l.pass.current()
	}
	return fmt.Sprint(l.cv.UID, l.cv.Generation, image, report.Reconciling, report.Failure != nil, s.load.step, s.load.message,
		s.lists.turn, len(l.d.faults))
}

func progressMessage(cv *configv1.ClusterVersion) string {
	if c := findCondition(cv.Status.Conditions, configv1.OperatorProgressing); c != nil {
		return c.Message
	}
	return ""
}

// takeLoaded takes note of how the last load ended, and makes its release the
// one that passes apply. What is not wanted any more is dropped.
func (l *loop) takeLoaded() {
	e := l.ended
	l.ended = nil
	if e == nil {
		return
	}
	r, state := e.request, &l.s.load
	switch r.wish {
	case l.request(l.d.want, l.d.origin).wish:
	case l.request(l.d.base, l.d.baseOrigin).wish:
		state = &l.s.fallback
	default:
		return
	}
	if e.err != nil {
		attempts := state.attemptsOf(r.key) + 1
		*state = loadState{key: r.key, step: e.err.Step, message: e.err.Message, err: e.err, attempts: attempts,
			retry: l.o.Clock.Now().Add(loadRetry(attempts, l.o.Interval))}
		return
	}
	*state = loadState{key: r.key, step: PayloadLoaded, message: loadedMessage(e.out.release, l.architecture(e.out.release))}
	first := l.s.work == nil
	l.changeWork(l.newWork(e.out, r.force))
	if first {
		l.s.state = firstState(l.cv, e.out.release)
		l.s.report.Initial = l.s.state == runlevel.Initializing
		l.s.report.Reconciling = l.s.state == runlevel.Reconciling
	}
}

// updateWork takes over what the object says about how the accepted release is
// applied. Other work interrupts the pass at hand and begins anew.
func (l *loop) updateWork() {
	if old := l.s.work; old != nil {
		if w := l.newWork(old.loaded, old.force); w.same(old) {
			l.s.work = w
		} else {
			l.changeWork(w)
		}
	}
}

func (l *loop) newWork(release *loaded, force bool) *work {
	return &work{loaded: release, owner: l.cv.UID, force: force,
		overrides: l.d.cleared.Spec.Overrides, caps: l.capabilities(release.gates, release.implicit)}
}

func (l *loop) changeWork(w *work) {
	s := &l.s
	if l.pass != nil {
		l.pass.cancel()
	}
	if s.report.Image != w.release.Image {
		s.report = runlevel.Report{Version: w.release.Version, Image: w.release.Image, LastProgress: s.report.LastProgress}
	}
	s.report.Completed, s.report.Reconciling = 0, false
	if s.state != runlevel.Initializing {
		s.state = runlevel.Updating
	}
	s.work, s.passErr, s.attempt, s.failures, s.nextPass = w, nil, 0, 0, time.Time{}
	l.passed = false
}

// firstState is the state in which a worker starts.
func firstState(cv *configv1.ClusterVersion, want configv1.Release) runlevel.State {
	switch {
	case !everCompleted(cv):
		return runlevel.Initializing
	case cv.Status.History[0].State == configv1.CompletedUpdate && cv.Status.History[0].Image == want.Image:
		return runlevel.Reconciling
	}
	return runlevel.Updating
}

// capabilities resolves those of the cluster for a release: none that is
// enabled is ever switched off again.
func (l *loop) capabilities(g gates, implicit []string) manifest.Capabilities {
	stay := sets.New(l.o.EnabledCapabilities...).Insert(implicit...)
	for _, c := range l.cv.Status.Capabilities.EnabledCapabilities {
		stay.Insert(string(c))
	}
	return manifest.ResolveCapabilities(l.d.cleared.Spec.Capabilities, sets.List(stay), g.enabled)
}

// start begins what is due, and reports whether something did.
func (l *loop) start() (bool, error) {
	now := l.o.Clock.Now()
	if l.startFetch(now) {
		return true, nil
	}
	if asked, err := l.requestNewest(); asked || err != nil {
		return asked, err
	}
	return l.startLoad(now) || l.startDuePass(now), nil
}

func (l *loop) startDuePass(now time.Time) bool {
	s := &l.s
	switch {
	case s.work == nil || l.pass != nil || l.once && (l.passed || l.loading != nil || l.fetching):
		return false
	case l.cv.Status.Desired.Image != s.work.release.Image:
		return false // acceptance must be on record before anything is applied
	case s.nextPass.After(now) && !l.once:
		l.after(s.nextPass)
		return false
	}
	l.startPass()
	return true
}

// startLoad begins to load the wanted release where it is not what passes
// apply already. Where that is refused, it sees to it that passes apply what
// the cluster has been at so far.
func (l *loop) startLoad(now time.Time) bool {
	s := &l.s
	want := l.request(l.d.want, l.d.origin)
	base := l.request(l.d.base, l.d.baseOrigin)
	if l.loading != nil {
		if l.loading.wish != want.wish && l.loading.wish != base.wish {
			l.loading.cancel() // somebody wants something else now
		}
		return false
	}
	if l.applies(want) {
		if s.load.step != "" && (s.load.err != nil || s.load.step != PayloadLoaded) {
			// A request that was withdrawn is history.
			s.load = loadState{key: want.key, step: PayloadLoaded, message: "Payload loaded " + quoted(s.work.release)}
			return true
		}
		return false
	}
	if want.release.Image == "" {
		return false // there is nothing to load: the status says so
	}
	if !l.refused(&s.load, want, now) {
		if s.load.key != want.key {
			s.load = loadState{key: want.key, step: RetrievePayload, message: "Retrieving and verifying payload " + quoted(want.release)}
		}
		l.beginLoad(want)
		return true
	}
	if want.wish == base.wish || l.applies(base) || l.refused(&s.fallback, base, now) {
		return false
	}
	l.beginLoad(base)
	return true
}

// applies reports whether passes apply a release as it would be loaded now.
func (l *loop) applies(r *loadRequest) bool {
	w := l.s.work
	return w != nil && w.release.Image == r.release.Image && w.gates.key() == r.gates.key()
}

// request makes the request to load a release as the last decision has it.
func (l *loop) request(release configv1.Release, from origin) *loadRequest {
	r := &loadRequest{
		release: release, origin: from, force: from == requested && l.d.resolution.Force,
		gates: l.d.gates, cv: l.cv, own: l.d.own,
	}
	// What the cluster runs was verified when it came, as was an update that
	// had been accepted, unless in spite of its signature.
	r.verify = release.Image != l.d.own.Image && (from == requested || from == resumed && l.d.verified)
	r.wish = fmt.Sprintf("%s %q %q %v %s", from, release.Image, release.Version, r.force, r.gates.key())
	r.key = fmt.Sprintf("%s %s %d", r.wish, l.cv.UID, l.cv.Generation)
	if l.s.work != nil {
		r.previous = l.s.work.payload
	}
	r.caps = l.capabilities(r.gates, nil)
	if from == requested && l.d.gates.acceptRisks {
		r.accepted = l.s.lists.acceptedOf(release.Image)
	}
	return r
}

// refused reports whether r failed not long ago.
func (l *loop) refused(last *loadState, r *loadRequest, now time.Time) bool {
	if last.err == nil || last.key != r.key {
		return false
	}
	if now.Before(last.retry) {
		l.after(last.retry)
		return true
	}
	return l.once && l.tried[r.key]
}

// beginLoad loads a release beside the loop.
func (l *loop) beginLoad(r *loadRequest) {
	if l.tried == nil {
		l.tried = map[string]bool{}
	}
	l.tried[r.key] = true
	ctx, cancel := context.WithCancel(l.ctx)
	r.cancel = cancel
	l.loading = r
	l.goDo(func() func() {
		defer cancel()
		var out *loaded
		var err *LoadError
		// A panic in the verifier or the source of payloads is a failed retrieval.
		if fault := panics.Isolate(func() error {
			out, err = l.load(ctx, r)
			return nil
		}); fault != nil {
			l.log("the release could not be loaded", fault)
			out, err = nil, l.failed(ctx, RetrievePayload, EventRetrievePayloadFailed, r.release, ReasonRetrievalFailed, fault)
		}
		cancelled := ctx.Err() != nil
		return func() {
			l.loading = nil
			if !cancelled {
				l.ended = &loadEnd{request: r, out: out, err: err}
			}
		}
	})
}

// loadRetry is how long to wait after the n-th failed load in a row: it
// doubles from 15 seconds up to the interval between passes.
func loadRetry(n int, interval time.Duration) time.Duration {
	return min(15*time.Second<<min(n-1, 10), interval)
}

// upgradeable computes the condition Upgradeable; nil means that nothing
// stands against an update to another minor version. It takes note of the
// risks behind it.
func (l *loop) upgradeable() *configv1.ClusterOperatorStatusCondition {
	versions := graph.TargetVersions(l.cv.Status.AvailableUpdates, l.cv.Status.ConditionalUpdates)
	cond, risks := preconditions.Upgradeable(l.ctx, l.riskSources(l.d.own.Version), versions, l.o.ReasonStyle)
	l.risks = riskSources{}
	if l.d.gates.acceptRisks {
		l.risks.merged = true
		for _, r := range risks {
			l.risks.risks += fmt.Sprintf("%q %q %q\n", r.Name, r.URL, r.Message)
		}
	}
	return cond
}
