package clusterupdate

import (
	"context"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// explainer keeps the last decision for those who ask, with what keeps the update from
// being done and what fails.
type explainer struct {
	process  *process
	updater  *Updater // which shows decisions
	decision Decision // without causes
	ignored  string   // why the request changes nothing, as the last event has it
	failed   failedLook
}

// failedLook is an error of looks in a row; nil: the last one had none.
type failedLook struct {
	err   error
	since time.Time
}

func (f *failedLook) text() string { return bounded.Text(f.err.Error(), clusterversion.MaxMessage) }

// decided keeps a decision, and sends an event if a request is ignored.
func (x *explainer) decided(now time.Time, d *intent, actions []Action) {
	if why := d.resolution.Why; why != x.ignored {
		x.ignored = why
		if why != "" {
			x.process.emit(clusterapi.Event{Type: EventRequestIgnored, Time: now, Message: why}, EventData{Release: d.want})
		}
	}
	x.decision = Decision{Time: now, Resolution: d.resolution, Actions: actions}
}

// ended records how a look ended that was about a release, and reports whether that is
// worth showing. What fails is an event when it starts to, for another reason, and when it
// ends, and is in the Decision as long as it lasts. A conflict is looked at again at once.
func (x *explainer) ended(ctx context.Context, now time.Time, release configv1.Release, err error) bool {
	before := x.failed
	switch {
	case ctx.Err() != nil, apierrors.IsConflict(err), err == nil && before.err == nil:
		return false
	case err == nil:
		x.failed = failedLook{}
		e := clusterapi.Event{Type: EventRecovered, Time: now, Message: "the cluster can be read and written again"}
		x.process.emit(e, EventData{Release: release})
		return true
	}
	x.failed = failedLook{err: err, since: before.since}
	if before.err == nil {
		x.failed.since = now
	}
	if before.err == nil || apierrors.ReasonForError(before.err) != apierrors.ReasonForError(err) {
		e := clusterapi.Event{Type: EventFailed, Time: now, Message: x.failed.text(), Err: err}
		x.process.emit(e, EventData{Release: release})
	}
	return true
}

// show shows the decision, with what is remembered now. cv is nil if none was read.
func (x *explainer) show(m *memory, cv *configv1.ClusterVersion) {
	last := x.decision
	if cv != nil {
		last.Awaits, last.Failures = m.causes(cv, x.process.o.Hooks)
	}
	if x.failed.err != nil {
		c := Cause{Subject: "clusterversion/" + clusterVersionKey.Name, Message: x.failed.text(), Since: x.failed.since}
		last.Failures = append(last.Failures, c)
	}
	x.updater.mu.Lock()
	defer x.updater.mu.Unlock()
	x.updater.last = last
}

// result is where a cluster stands that asks for d. cv is nil if none was read.
func (m *memory) result(cv *configv1.ClusterVersion, d *intent, hooks []clusterversion.Hook) Result {
	w := &m.work
	out := Result{ClusterVersion: cv.DeepCopy(), Resolution: d.resolution}
	out.Done = !d.isIgnored(cv) && w.applies(d.want) && w.rests() && m.hooks.done(cv, hooks)
	switch {
	case m.loads.wanted.err != nil:
		out.Failure = m.loads.wanted.err
	case w.sync == nil && d.lost != nil:
		out.Failure = d.lost
	case out.Done:
	case w.onlyWaits():
		out.Failure = m.hookFailure(cv, hooks)
	case w.passErr != nil:
		out.Failure = w.passErr
	case w.report.Failure != nil:
		out.Failure = w.report.Failure
	default:
		out.Failure = m.hookFailure(cv, hooks)
	}
	if !out.Done && cv != nil {
		out.Awaits, _ = m.causes(cv, hooks)
	}
	return out
}

// isIgnored reports whether a ClusterVersion asks for something that changes nothing: a
// version that no list has, or an invalid request for another release than d wants.
func (d *intent) isIgnored(cv *configv1.ClusterVersion) bool {
	switch d.resolution.Outcome {
	case clusterversion.NotFound:
		return true
	case clusterversion.Invalid:
		u := cv.Spec.DesiredUpdate
		return u != nil && u.Image != d.want.Image && (u.Image != "" || u.Version != d.want.Version)
	}
	return false
}

// hookFailure is what failed in hooks.
func (m *memory) hookFailure(cv *configv1.ClusterVersion, hooks []clusterversion.Hook) error {
	if cv == nil {
		return nil
	}
	return m.hookTrouble(cv.UID, cv.Status.History, hooks).err
}
