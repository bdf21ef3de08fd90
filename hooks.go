package clusterupdate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
)

const (
	hookLimit        = time.Minute // of a call
	leastHookWait    = time.Second
	defaultHookWait  = 15 * time.Second
	reasonHookFailed = "UpdateHookFailed"
)

// hookPhase is what hooks are asked for: before or after an entry of the
// history is complete.
type hookPhase struct {
	entry entry
	after bool
}

func phaseOf(uid types.UID, history []configv1.UpdateHistory) (hookPhase, bool) {
	cv := configv1.ClusterVersion{Status: configv1.ClusterVersionStatus{History: history}}
	cv.UID = uid
	return hookPhase{entryOf(&cv), len(history) > 0 && history[0].State == configv1.CompletedUpdate}, len(history) > 0
}

// newest is the release of the newest entry of a history.
func newest(history []configv1.UpdateHistory) configv1.Release {
	return configv1.Release{Version: history[0].Version, Image: history[0].Image}
}

// hookAnswer is what a hook said last.
type hookAnswer struct {
	phase    hookPhase
	asked    int // how often
	wait     clusterversion.HookWait
	err      error
	failures int       // in a row
	next     time.Time // when to ask again
	since    time.Time // when it waited or failed first, of answers in a row
	told     string
}

func (a *hookAnswer) done() bool {
	return a.asked > 0 && a.err == nil && a.wait == (clusterversion.HookWait{})
}

// text describes what keeps a hook from being done.
func (a *hookAnswer) text(h clusterversion.Hook) string {
	switch {
	case a.err != nil:
		return fmt.Sprintf("hook %s failed: %v", h.Name(), a.err)
	case a.wait != (clusterversion.HookWait{}):
		return fmt.Sprintf("waiting on hook %s: %s", h.Name(), a.wait.Reason)
	}
	return fmt.Sprintf("hook %s is done", h.Name())
}

// hookCall is a call of a hook to make.
type hookCall struct {
	id  hookID
	cv  *configv1.ClusterVersion
	now time.Time
}

// hookID distinguishes calls. What a call said may have been dropped: the hook is
// then asked about the same phase again.
type hookID struct {
	hook   int
	phase  hookPhase
	before int // calls of the hook that have ended
}

// hookAnswers is what the hooks of Options said, in their order.
type hookAnswers []hookAnswer

// of is what a hook said last about a phase.
func (h hookAnswers) of(hook int, phase hookPhase) hookAnswer {
	if hook < len(h) && h[hook].phase == phase {
		return h[hook]
	}
	return hookAnswer{phase: phase}
}

// done reports whether the hooks have done what comes after an update.
func (h hookAnswers) done(cv *configv1.ClusterVersion, hooks []clusterversion.Hook) bool {
	if cv == nil {
		return false
	}
	phase, _ := phaseOf(cv.UID, cv.Status.History)
	for i := range hooks {
		if a := h.of(i, phase); !phase.after || !a.done() {
			return false
		}
	}
	return true
}

// hooks asks the hooks, if that is due, and keeps passes from beginning until they
// are done.
func (p *planner) hooks() {
	phase, ok := phaseOf(p.o.cv.UID, p.status.History)
	if !ok {
		return
	}
	step, when := stepApply, "before anything is applied"
	if phase.after {
		step, when = stepComplete, "after the update"
	}
	release := newest(p.status.History)
	for i, h := range p.set.o.Hooks {
		a := p.mem.hooks.of(i, phase)
		if a.asked > 0 && p.later(a.next, p.set.interval) {
			p.waitUntil(step, release, a.next, a.text(h))
		} else {
			cv := p.o.cv
			if p.accepts { // which is not in what was read
				cv = cv.DeepCopy()
				cv.Status = p.status
			}
			p.do(Action{Step: step, Release: release, Reason: fmt.Sprintf("hook %s is asked %s", h.Name(), when),
				hook: &hookCall{hookID{i, phase, p.mem.hookCalls[i]}, cv, p.now}})
		}
		p.held = p.held || !phase.after && !a.done()
	}
}

// hookJob calls a hook while decisions continue.
func (r *decider) hookJob(call *hookCall) reconcile.Job {
	h := r.process.o.Hooks[call.id.hook]
	return reconcile.Job{
		ID: call.id, Limit: hookLimit,
		Run: func(ctx context.Context, _ func(any)) (any, error) {
			ask := h.BeforeApply
			if call.id.phase.after {
				ask = h.AfterComplete
			}
			return ask(ctx, clusterversion.HookRequest{API: r.process.o.API, ClusterVersion: call.cv, Now: call.now})
		},
		Done: func(out any, err error) []reconcile.Wake {
			r.hookCalls[call.id.hook]++
			r.ended = append(r.ended, func(now time.Time, q reconcile.Request) {
				wait, _ := out.(clusterversion.HookWait)
				r.answered(call.id, wait, err, now, r.process.interval(q))
			})
			return []reconcile.Wake{{Key: decideKey}}
		},
	}
}

// answered records a hook's answer.
func (r *decider) answered(id hookID, wait clusterversion.HookWait, err error, now time.Time, interval time.Duration) {
	if phase, _ := phaseOf(r.cv.UID, r.cv.Status.History); phase != id.phase {
		return // the entry has changed since
	}
	a := r.hooks.of(id.hook, id.phase)
	if a.asked == 0 || a.done() {
		a.since = now
	}
	a.asked++
	a.wait, a.err = wait, err
	event := EventHookDone
	switch {
	case err != nil:
		event = EventHookFailed
		a.wait = clusterversion.HookWait{}
		a.failures++
		a.next = now.Add(loadRetry(a.failures, interval))
	case wait != (clusterversion.HookWait{}):
		event = EventHookWaiting
		after := cmp.Or(wait.After, defaultHookWait)
		a.failures, a.next = 0, now.Add(min(max(after, leastHookWait), interval))
	default:
		a.failures, a.next = 0, now.Add(interval)
	}
	if text := a.text(r.process.o.Hooks[id.hook]); text != a.told {
		a.told = text
		r.process.emit(clusterapi.Event{Type: event, Time: now, Message: text, Err: err}, EventData{Release: newest(r.cv.Status.History)})
	}
	r.hooks = slices.Clone(r.hooks)
	for len(r.hooks) <= id.hook {
		r.hooks = append(r.hooks, hookAnswer{})
	}
	r.hooks[id.hook] = a
}

// hookTrouble is what the hooks wait for, and what failed in them; and what checks that
// run again block.
type hookTrouble struct {
	waits, failed, blocked []Cause
	err                    error // the failures of hooks
}

func (m *memory) hookTrouble(uid types.UID, history []configv1.UpdateHistory, hooks []clusterversion.Hook) (t hookTrouble) {
	phase, _ := phaseOf(uid, history)
	for i, h := range hooks {
		a := m.hooks.of(i, phase)
		c := Cause{Subject: "hook/" + h.Name(), Message: a.text(h), Since: a.since}
		switch {
		case a.asked == 0 || a.done():
		case a.err != nil:
			t.failed = append(t.failed, c)
			t.err = errors.Join(t.err, fmt.Errorf("hook %s: %w", h.Name(), a.err))
		default:
			t.waits = append(t.waits, c)
		}
	}
	if w, c := m.work.sync, &m.loads.checks; w != nil && c.of == w.loaded && c.blocked != "" {
		t.blocked = []Cause{{Subject: releaseSubject(w.loaded.release), Message: c.blocked, Since: c.since}}
	}
	return t
}

// show adds the trouble with hooks to what conditions say of the pass.
func (t hookTrouble) show(failing, progressing *configv1.ClusterOperatorStatusCondition) {
	for _, c := range slices.Concat(t.failed, t.waits, t.blocked) {
		progressing.Message += ", " + c.Message
	}
	for _, c := range t.failed {
		if failing.Status == configv1.ConditionTrue {
			failing.Message += "\n" + c.Message
			continue
		}
		failing.Status, failing.Reason, failing.Message = configv1.ConditionTrue, reasonHookFailed, c.Message
	}
}
