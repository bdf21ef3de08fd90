package clusterupdate

import (
	"fmt"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// renewAfter is how long a pass goes on where it waits. Then one begins at the
// first manifest again, so that what somebody has changed or deleted meanwhile
// comes back: an operator whose Deployment is gone would be awaited in vain.
const renewAfter = 10 * time.Minute

// passStart is how a pass begins.
type passStart struct {
	state   runlevel.State
	attempt int
}

// apply begins a pass over the manifests of the release that the cluster is at,
// where that is due. What is applied is on record before: it is the newest
// entry of the history.
func (p *planner) apply() {
	s := &p.s
	w, h := s.sync, p.status.History
	switch {
	case w == nil:
	case len(h) == 0 || !clusterversion.SameRelease(&h[0], w.release):
		p.wait(stepApply, w.release, "it is not what the history says")
	case p.draining:
		p.wait(stepApply, w.release, "calls of the pass before, which was called off, are under way")
	case s.pass && !s.waits:
		p.wait(stepApply, w.release, "the pass is under way")
	case p.later(s.nextPass, p.longestWait()):
		reason := "the cluster is as wanted: the next pass makes sure"
		if s.passErr != nil {
			reason = fmt.Sprintf("attempt %d failed: %v", s.failures, s.passErr)
		}
		p.waitUntil(stepApply, w.release, s.nextPass, reason)
	case p.held:
		p.wait(stepApply, w.release, "a pass is due, and hooks come before it")
	case s.pass && p.later(s.begun.Add(renewAfter), renewAfter):
		p.do(Action{Step: stepApply, Release: w.release, Reason: "what the pass waits for is looked at again", again: true})
	case p.unchecked(w):
	default:
		st := s.state(&p.status, w.release.Image)
		p.do(Action{Step: stepApply, Release: w.release, Reason: fmt.Sprintf("a pass is due: %s, attempt %d", st, s.attempt+1),
			pass: &passStart{st, s.attempt}})
	}
}
