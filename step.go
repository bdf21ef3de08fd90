package clusterupdate

import (
	"context"
	"errors"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// step reads the ClusterVersion, decides, and writes the status.
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
	g, err := l.readGates(l.ctx, own.Version)
	if err != nil {
		return err
	}
	current := cv
	if l.s.lists.answer(cv.Spec) { // what was retrieved counts, published or not
		current = cv.DeepCopy()
		current.Status.AvailableUpdates, current.Status.ConditionalUpdates = l.s.lists.available, l.s.lists.conditional
	}
	f := facts{cv: current, own: own, gates: g, unfetched: l.s.lists.attempted.IsZero() && l.o.Graph != nil}
	if l.s.work != nil {
		f.applied = l.s.work.release
	}
	d := decide(f)
	if why := d.resolution.Why; why != "" && why != l.d.resolution.Why {
		l.emit(Event{Type: EventRequestIgnored, Release: d.want, Message: why})
	}
	l.d, l.cv = d, cv
	l.updateWork()

	in := l.statusInput()
	written, err := clusterapi.Modify(l.ctx, l.o.API, clusterVersionKey, clusterapi.ModifyOptions{Status: true, FieldManager: clusterapi.ManagerStatus},
		func(live *configv1.ClusterVersion) error {
			if live.UID != cv.UID {
				return errors.New("cluster version was deleted and recreated, cannot update status")
			}
			live.Status = nextStatus(live.Status, in)
			return nil
		})
	if err != nil {
		return fmt.Errorf("status of the cluster version: %w", err)
	}
	if written.ResourceVersion != cv.ResourceVersion {
		l.emit(Event{Type: EventStatus, Release: written.Status.Desired, Message: progressMessage(written)})
	}
	l.cv = written
	return nil
}

func progressMessage(cv *configv1.ClusterVersion) string {
	if c := findCondition(cv.Status.Conditions, configv1.OperatorProgressing); c != nil {
		return c.Message
	}
	return ""
}

// updateWork takes over what the object says about how the accepted release is
// applied. Other work interrupts the pass at hand and starts anew.
func (l *loop) updateWork() {
	s := &l.s
	if s.work == nil {
		return
	}
	w := &work{
		loaded:    s.work.loaded,
		force:     s.work.force,
		overrides: l.d.cleared.Spec.Overrides,
		caps:      l.capabilities(s.work.loaded),
	}
	key := workKey(w)
	if key != s.workKey {
		l.changeWork(w, key)
		return
	}
	s.work = w
}

func (l *loop) changeWork(w *work, key string) {
	s := &l.s
	if l.pass != nil {
		l.pass.cancel()
	}
	if s.report.Image != w.release.Image {
		s.report = runlevel.Report{Version: w.release.Version, Image: w.release.Image, LastProgress: s.report.LastProgress}
	}
	if s.state != runlevel.Initializing {
		s.state = runlevel.Updating
	}
	s.work, s.workKey, s.attempt, s.failures, s.nextPass = w, key, 0, 0, time.Time{}
	l.passed = false
}

// accept makes a loaded release the one that passes apply.
func (l *loop) accept(out *loaded, force bool) {
	s := &l.s
	first := s.work == nil
	w := &work{loaded: out, force: force, overrides: l.d.cleared.Spec.Overrides}
	w.caps = l.capabilities(out)
	l.changeWork(w, workKey(w))
	if first {
		s.state = firstState(l.cv, out.release)
		s.report.Initial = s.state == runlevel.Initializing
		s.report.Reconciling = s.state == runlevel.Reconciling
	}
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

// workKey tells whether work is the same as before.
func workKey(w *work) string {
	return fmt.Sprintf("%q %v %v %q %q", w.release.Image, w.force, w.overrides, sets.List(w.caps.Enabled), w.gates.key())
}

// capabilities resolves those of the cluster for a release: none that is
// enabled is ever switched off again.
func (l *loop) capabilities(w *loaded) manifest.Capabilities {
	stay := sets.New(l.o.EnabledCapabilities...).Insert(w.implicit...)
	if l.cv != nil {
		for _, c := range l.cv.Status.Capabilities.EnabledCapabilities {
			stay.Insert(string(c))
		}
	}
	return manifest.ResolveCapabilities(l.d.cleared.Spec.Capabilities, sets.List(stay), w.gates.enabled)
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
	if l.startLoad(now) {
		return true, nil
	}
	return l.startDuePass(now), nil
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
// apply already. Where that is refused, and nothing is applied yet, it begins
// with what the cluster has been at so far.
func (l *loop) startLoad(now time.Time) bool {
	s := &l.s
	want := l.request(l.d.want, l.d.origin)
	if l.loading != nil {
		if l.loading.key != want.key && l.loading.origin == requested {
			l.loading.cancel() // somebody wants something else now
		}
		return false
	}
	if s.work != nil && s.work.release.Image == want.release.Image && s.work.gates.key() == want.gates.key() {
		if s.load.err != nil { // a refusal of something else is history
			s.load = loadState{key: want.key, step: PayloadLoaded, message: "Payload loaded " + quoted(s.work.release)}
			return true
		}
		return false
	}
	if want.release.Image == "" {
		return false // there is nothing to load: the status says so
	}
	if !l.refused(&s.load, want, now) {
		s.load = loadState{key: want.key, attempts: s.load.attemptsOf(want.key), step: RetrievePayload,
			message: "Retrieving and verifying payload " + quoted(want.release)}
		l.beginLoad(want, &s.load)
		return true
	}
	if s.work != nil || want.release.Image == l.d.base.Image {
		return false
	}
	base := l.request(l.d.base, l.d.baseOrigin)
	if l.refused(&s.fallback, base, now) {
		return false
	}
	s.fallback.key, s.fallback.attempts = base.key, s.fallback.attemptsOf(base.key)
	l.beginLoad(base, &s.fallback)
	return true
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
	r.key = fmt.Sprintf("%s %q %q %v %d %s", from, release.Image, release.Version, r.force, l.cv.Generation, r.gates.key())
	if l.s.work != nil {
		r.previous = l.s.work.loaded
	}
	r.caps = l.capabilities(&loaded{gates: r.gates})
	return r
}

// refused reports whether r failed not long ago.
func (l *loop) refused(last *loadState, r *loadRequest, now time.Time) bool {
	if last.err == nil || last.key != r.key {
		return false
	}
	if now.Before(last.retry) || l.once && l.tried[r.key] {
		l.after(last.retry)
		return true
	}
	return false
}

// beginLoad loads a release beside the loop and notes the result in state.
func (l *loop) beginLoad(r *loadRequest, state *loadState) {
	if l.tried == nil {
		l.tried = map[string]bool{}
	}
	l.tried[r.key] = true
	ctx, cancel := context.WithCancel(l.ctx)
	r.cancel = cancel
	l.loading = r
	l.goDo(func() func() {
		defer cancel()
		out, err := l.load(ctx, r)
		cancelled := ctx.Err() != nil
		return func() {
			l.loading = nil
			switch {
			case cancelled:
			case err != nil:
				attempts := state.attempts + 1
				*state = loadState{key: r.key, step: err.Step, message: err.Message, err: err, attempts: attempts,
					retry: l.o.Clock.Now().Add(loadRetry(attempts, l.o.Interval))}
			default:
				*state = loadState{key: r.key, step: PayloadLoaded, message: loadedMessage(out.release, l.architecture(out.release))}
				l.accept(out, r.force)
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
// stands against an update to another minor version.
func (l *loop) upgradeable() *configv1.ClusterOperatorStatusCondition {
	sources := preconditions.Sources(preconditions.RiskOptions{
		Reader:     l.o.API,
		OwnVersion: l.d.own.Version,
		Deletions:  l.s.tracker.PendingDeletions,
	})
	var versions []string
	for _, r := range l.cv.Status.AvailableUpdates {
		versions = append(versions, r.Version)
	}
	for _, c := range l.cv.Status.ConditionalUpdates {
		versions = append(versions, c.Release.Version)
	}
	cond, _ := preconditions.Upgradeable(l.ctx, sources, versions, l.o.ReasonStyle)
	return cond
}
