package clusterupdate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// writer writes the status of the ClusterVersion, and requests.
type writer struct {
	process *process
	written time.Time // when the status was last brought up to date
	version string    // the resourceVersion that it has had since
	reached milestone // what was then worth writing at once
}

// due is when a status is to be written: now, unless nothing but progress is new, or
// somebody else has written over it. Progress is written once in a while; two writers that
// do not agree must not answer each other. passes reports that a pass is under way.
func (w *writer) due(now time.Time, read *configv1.ClusterVersion, passes bool, next milestone) time.Time {
	due := w.written.Add(w.process.o.StatusInterval)
	mere := (passes || read.ResourceVersion != w.version) && next == w.reached
	if mere && now.Before(due) && !now.Before(w.written) {
		return due
	}
	return now
}

// write brings the status of cv up to date and returns the object as stored.
func (w *writer) write(
	ctx context.Context, now time.Time, cv *configv1.ClusterVersion, status configv1.ClusterVersionStatus,
) (*configv1.ClusterVersion, error) {
	stored, err := clusterversion.WriteStatus(ctx, w.process.o.API, &w.process.accepts, cv, status)
	if err != nil {
		return nil, fmt.Errorf("status of the cluster version: %w", err)
	}
	if stored.ResourceVersion != cv.ResourceVersion {
		e := clusterapi.Event{Type: EventStatus, Time: now, Message: progressMessage(stored)}
		w.process.emit(e, EventData{Release: stored.Status.Desired})
	}
	w.written, w.version = now, stored.ResourceVersion
	return stored, nil
}

func progressMessage(cv *configv1.ClusterVersion) string {
	if c := openshift.FindCondition(cv.Status.Conditions, configv1.OperatorProgressing); c != nil {
		return c.Message
	}
	return ""
}

// lastWrite is how long a write may take for which a caller that has ended
// everything waits.
const lastWrite = 2 * time.Second

// flush writes a status when ctx has ended.
func (w *writer) flush(ctx context.Context, cv *configv1.ClusterVersion, status configv1.ClusterVersionStatus) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
	defer cancel()
	_, err := clusterversion.WriteStatus(ctx, w.process.o.API, &w.process.accepts, cv, status)
	w.process.log("the last status could not be written", err)
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
	waits, failed        int // of the hooks
	preflight            preflightKey
	preflights           int  // that have ended
	news                 bool // something is accepted, complete or being loaded
}

// milestone is what is reached with actions, for a ClusterVersion with so many faults.
func (m *memory) milestone(
	cv *configv1.ClusterVersion, faults int, hooks []clusterversion.Hook, actions []Action,
) milestone {
	e := milestone{
		uid: cv.UID, generation: cv.Generation, entry: entryOf(cv), load: m.loads.wanted.err, accepted: m.loads.accepted,
		reconciling: m.work.report.Reconciling, failing: m.work.report.Failure != nil,
		evaluations: m.updates.evaluations, faults: faults,
	}
	if m.work.sync != nil {
		e.image = m.work.sync.loaded.release.Image
	}
	e.preflight, e.preflights = m.preflights.asked, m.preflights.changes
	trouble := m.hookTrouble(cv.UID, cv.Status.History, hooks)
	e.waits, e.failed = len(trouble.waits)+len(trouble.blocked), len(trouble.failed)
	e.news = slices.ContainsFunc(actions, func(a Action) bool {
		return a.adopt != nil || a.load != nil || a.Step == stepComplete && !a.Waits && a.hook == nil
	})
	return e
}

var errSpecChanged = errors.New("the specification has changed")

// ask requests a release, and reports whether it did: not if somebody else has changed
// the request of cv in the meantime.
func (w *writer) ask(ctx context.Context, cv *configv1.ClusterVersion, u configv1.Update) (asked bool, err error) {
	o := clusterapi.ModifyOptions{}
	_, err = clusterversion.Modify(ctx, w.process.o.API, o, func(live *configv1.ClusterVersion) (bool, error) {
		if live.Generation != cv.Generation {
			return false, errSpecChanged
		}
		clusterversion.SetDesired(live, u)
		return true, nil
	})
	switch {
	case errors.Is(err, errSpecChanged):
		return false, nil // which wakes the decider
	case err != nil:
		return false, fmt.Errorf("request of %s: %w", u.Version, err)
	}
	release := configv1.Release{Version: u.Version, Image: u.Image}
	w.process.report(EventUpdateRequested, release, "requesting "+u.Version)
	return true, nil
}
