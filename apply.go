package clusterupdate

import (
	"cmp"
	"fmt"
	"reflect"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// renewAfter is how long a pass continues where it waits. Then one starts at the
// first manifest again, so that what somebody has changed or deleted meanwhile
// returns: an operator whose Deployment is gone would be awaited in vain.
const renewAfter = 10 * time.Minute

// passStart is how a pass starts.
type passStart struct {
	state   runlevel.State
	attempt int
}

// syncWork is what passes apply.
type syncWork struct {
	loaded    *loaded
	owner     types.UID // of the ClusterVersion
	force     bool
	overrides []configv1.ComponentOverride
	caps      manifest.Capabilities
	found     bool // operators report it already: it becomes a Completed entry
}

// same reports whether nothing has changed that a pass would have to start again
// for.
func (w *syncWork) same(o *syncWork) bool {
	return w.loaded == o.loaded && w.owner == o.owner && w.force == o.force &&
		reflect.DeepEqual(w.overrides, o.overrides) && w.caps.Equal(o.caps)
}

func (w *syncWork) filter() manifest.Filter {
	return manifest.Filter{Gates: w.loaded.gates.enabled, Capabilities: &w.caps, Overrides: w.overrides}
}

// work is what passes apply, and their results. It is a cache, about one entry of the
// history.
type work struct {
	ran      bool      // a release was completed before: what is applied is not an installation
	sync     *syncWork // nil: nothing is loaded yet
	pass     bool      // one is under way
	waits    bool      // all that is left of it
	begun    time.Time // of the last pass, at its first manifest
	changed  bool      // sync, since the last pass that got through
	report   passReport
	passErr  error   // of the last pass
	awaits   []Cause // of it; all that is wrong with it, unless there are failures
	failing  []Cause
	reported string    // its trouble, as the last event has it
	attempt  int       // of the pass in its state
	failures int       // passes failed in a row
	nextPass time.Time // zero: at once
	applied  *loaded   // of which a pass has begun
}

// release is what passes apply; zero without any.
func (w *work) release() configv1.Release {
	if w.sync == nil {
		return configv1.Release{}
	}
	return w.sync.loaded.release
}

// applies reports whether passes apply a release: its image and, if it names one, its
// version. An image that is requested as another version is not what they apply.
func (w *work) applies(r configv1.Release) bool {
	applied := w.release()
	return w.sync != nil && applied.Image == r.Image && (r.Version == "" || r.Version == applied.Version)
}

// rests reports whether the last pass found the cluster to be as wanted.
func (w *work) rests() bool {
	return w.sync != nil && w.report.Reconciling && w.report.Failure == nil && w.passErr == nil
}

// adopt makes o what passes apply. Other work than before starts with a pass of its
// own.
func (w *work) adopt(o *syncWork, status *configv1.ClusterVersionStatus) {
	next := work{
		ran: w.ran, sync: o, begun: w.begun, changed: w.sync != nil,
		report: w.report, reported: w.reported, applied: w.applied,
	}
	if w.sync == nil || w.sync.loaded != o.loaded {
		next.reported = ""
	} else {
		next.awaits, next.failing = w.awaits, w.failing
	}
	if w.report.Image != o.loaded.release.Image {
		next.report = passReport{Version: o.loaded.release.Version, Image: o.loaded.release.Image, LastProgress: w.report.LastProgress}
	}
	state := next.state(status, o.loaded.release.Image)
	if o.found {
		state = runlevel.Reconciling
	}
	next.report.Completed = 0
	next.report.Reconciling, next.report.Initial = state == runlevel.Reconciling, state == runlevel.Initializing
	*w = next
}

// state is what a pass over a release is for, as the object says it. Work that
// changed is brought to the cluster as carefully as an update.
func (w *work) state(status *configv1.ClusterVersionStatus, image string) runlevel.State {
	switch h := status.History; {
	case !w.ran:
		return runlevel.Initializing
	case len(h) > 0 && h[0].State == configv1.CompletedUpdate && h[0].Image == image && !w.changed:
		return runlevel.Reconciling
	}
	return runlevel.Updating
}

// apply starts a pass over the manifests of the release that the cluster is at, if
// that is due. What is applied is on record before: it is the newest entry of the
// history.
func (p *planner) apply() {
	w, h := &p.mem.work, p.status.History
	if w.sync == nil {
		return
	}
	release := w.sync.loaded.release
	switch {
	case len(h) == 0 || !clusterversion.SameRelease(&h[0], release):
		p.wait(stepApply, release, "it is not what the history says")
	case p.set.draining:
		p.wait(stepApply, release, "calls of the pass before, which was called off, are under way")
	case w.pass && !w.waits:
		p.wait(stepApply, release, "the pass is under way")
	case p.later(w.nextPass, p.longestWait()):
		p.waitUntil(stepApply, release, w.nextPass, w.pause())
	case p.held:
		p.wait(stepApply, release, "a pass is due, and hooks come before it")
	case w.pass && p.later(w.begun.Add(renewAfter), renewAfter):
		p.do(Action{Step: stepApply, Release: release, Reason: "what the pass waits for is looked at again", resume: true})
	case p.unchecked(w.sync):
	default:
		st := w.state(&p.status, release.Image)
		p.do(Action{Step: stepApply, Release: release, Reason: fmt.Sprintf("a pass is due: %s, attempt %d", st, w.attempt+1),
			pass: &passStart{st, w.attempt}})
	}
}

// pause explains why the next pass is later.
func (w *work) pause() string {
	switch {
	case w.passErr == nil:
		return "the cluster is as wanted: the next pass makes sure"
	case w.onlyWaits():
		return fmt.Sprintf("the pass waits: %v", w.passErr)
	}
	return fmt.Sprintf("attempt %d failed: %v", w.failures, w.passErr)
}

// passReport is what a worker reports about itself: the state of a pass, seen from
// outside.
type passReport struct {
	// Failure is the trouble of the last pass, nil if absent.
	Failure error
	// Done counts the tasks that succeeded in this pass, Total all of them.
	// Skipped ones are never done.
	Done, Total int
	// Completed counts the good passes since the last change or failure. It
	// is 0 in every report but the last of a good pass.
	Completed int
	// Reconciling reports that the pass keeps a release; Initial that none was ever
	// completed.
	Reconciling, Initial bool
	// Version and Image are the release at work.
	Version, Image string
	// Hash is the hash of its payload.
	Hash string
	// LastProgress is when it last got further; zero when never.
	LastProgress time.Time
}

// nextReport decides what becomes of a new report in a pass that began with start.
//
// It is dropped (ok is false) when there was trouble at the start, it reports none
// and has not got further about the same image: earlier trouble stays visible until
// the pass gets past it. Otherwise it is returned with LastProgress set: now where
// more is done or completed than at the start, or the image has changed without a
// failure, else as it was.
func nextReport(start, next passReport, now time.Time) (report passReport, ok bool) {
	change := compareProgress(next, start)
	if start.Failure != nil && next.Failure == nil && start.Image == next.Image && change < 0 {
		return passReport{}, false
	}
	moved := start.Image != next.Image && next.Failure == nil
	if change > 0 || next.Completed > start.Completed || moved {
		next.LastProgress = now
	} else if next.LastProgress.IsZero() {
		next.LastProgress = start.LastProgress
	}
	return next, true
}

// compareProgress compares done/total of two reports, exactly. A report that
// does not know its total has done nothing.
func compareProgress(a, b passReport) int {
	return cmp.Compare(a.Done*max(b.Total, 1), b.Done*max(a.Total, 1))
}

// The times of the cluster-version operator's worker, as pure functions: the
// caller draws the random numbers, each in [0, 1).

// passLimit returns the time that one pass may take: the interval while
// Initializing, otherwise twice that.
func passLimit(state runlevel.State, interval time.Duration) time.Duration {
	if state == runlevel.Initializing {
		return interval
	}
	return 2 * interval
}

// passDelay returns the time until the next pass, given how many passes have
// failed in a row. After a success (0) that is the interval; after failures
// an eighth, a quarter and half of it, then the whole, each lengthened by up
// to a fifth.
func passDelay(failures int, interval time.Duration, random float64) time.Duration {
	switch {
	case failures <= 0:
		return interval
	case failures <= 3:
		interval /= 1 << (4 - failures)
	}
	return spread(interval, random/5)
}

func spread(d time.Duration, part float64) time.Duration {
	return d + time.Duration(float64(d)*part)
}
