package clusterupdate

import (
	"context"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/preconditions"
)

// checksHold is how long the answers of the checks count for a release that was
// accepted and of which nothing has been applied yet: hooks may hold it up.
const checksHold = 10 * time.Minute

// recheck is the state of the checks that run again before the first manifest of a
// release is applied.
type recheck struct {
	of       *loaded
	passed   time.Time
	blocked  string    // why nothing is applied
	since    time.Time // when they blocked first
	failures int       // in a row
	retry    time.Time
}

// recheckCall is a run of the checks.
type recheckCall struct {
	id      recheckID
	request loadRequest
}

// recheckID distinguishes runs.
type recheckID struct {
	of       *loaded
	failures int
	passed   time.Time
}

// unchecked runs the checks again if that is due before the first pass over a
// release, and reports whether the pass has to wait for them. A process that
// continues with an update does not: it cannot know that nothing was applied.
func (p *planner) unchecked(w *syncWork) bool {
	if w.loaded.origin != requested || p.mem.work.applied == w.loaded {
		return false
	}
	c := p.mem.loads.checks
	if c.of != w.loaded {
		c = recheck{of: w.loaded, passed: w.loaded.checked}
	}
	switch {
	case !p.now.After(c.passed.Add(checksHold)):
		return false
	case c.blocked != "" && p.later(c.retry, p.longestWait()):
		p.waitUntil(stepApply, w.loaded.release, c.retry, c.blocked)
	default:
		r := loadRequest{cv: p.o.cv, own: p.d.own, now: p.now, gates: w.loaded.gates, force: w.force, release: w.loaded.release}
		p.do(Action{Step: stepApply, Release: w.loaded.release, Reason: fmt.Sprintf("the checks ran more than %s ago: they run again before anything is applied", checksHold),
			recheck: &recheckCall{recheckID{w.loaded, c.failures, c.passed}, r}})
	}
	return true
}

// recheckJob runs the checks while decisions continue. done gets what they say.
func (l *loader) recheckJob(call *recheckCall, done func(preconditions.Decision, error)) reconcile.Job {
	return reconcile.Job{
		ID: call.id,
		Run: func(ctx context.Context, _ func(any)) (any, error) {
			request := call.request
			request.cv = beforeEntry(request.cv, request.own)
			if _, err := l.runningPayload(ctx, &request); err != nil {
				l.process.log("the running release's payload cannot be read: checks go without it", err)
			}
			return l.precheck(ctx, &request, call.id.of.payload)
		},
		Done: func(out any, err error) []reconcile.Wake {
			decision, _ := out.(preconditions.Decision)
			done(decision, err)
			return []reconcile.Wake{{Key: decideKey}}
		},
	}
}

// rechecked records the present result of the checks of the release that passes
// apply.
func (l *loader) rechecked(id recheckID, decision preconditions.Decision, err error, now time.Time, interval time.Duration) {
	if err == nil && !decision.Blocked {
		l.loads.checks = recheck{of: id.of, passed: now}
		return
	}
	text := decision.Summary
	if err != nil {
		text = err.Error()
	}
	c := recheck{of: id.of, passed: id.passed, failures: id.failures + 1, since: now, blocked: "the checks block what is to be applied: " + text}
	c.retry = now.Add(loadRetry(c.failures, interval))
	last := &l.loads.checks
	if last.of == id.of && last.blocked != "" {
		c.since = last.since
	}
	if c.blocked != last.blocked {
		l.process.emit(clusterapi.Event{Type: EventPreconditionBlock, Time: now, Message: c.blocked, Err: err}, EventData{Release: id.of.release})
	}
	*last = c
}

// beforeEntry is a ClusterVersion as it was before its newest entry was accepted:
// what the checks compare the target with is what the cluster runs.
func beforeEntry(cv *configv1.ClusterVersion, own configv1.Release) *configv1.ClusterVersion {
	out := cv.DeepCopy()
	out.Status.Desired = own
	if len(out.Status.History) > 0 && out.Status.History[0].State == configv1.PartialUpdate {
		out.Status.History = slices.Delete(out.Status.History, 0, 1)
	}
	return out
}
