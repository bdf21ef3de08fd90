package clusterupdate

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// core is what the reconcilers of one process share. It starts empty: what it
// knows is read from the cluster, or found again.
type core struct {
	o     Options // API is the process's own
	u     *Updater
	fatal func(error) // ends Run; nil elsewhere

	trust   trust
	alerts  *risk.AlertRisks       // nil: alerts are not risks
	accepts clusterapi.Definitions // what the cluster accepts
	watches payloadWatches
	lists   bool // what is watched is listed again in each Sync

	observing sync.Mutex // events come from several goroutines, one at a time

	// Of the reconciler that decides.
	s           session
	updates     availableUpdates
	d           decision
	cv          *configv1.ClusterVersion // as last read or written; shared
	known       configv1.Release         // that the cluster was last seen at
	opened      configv1.Release         // an Own without a version, as its payload names it
	initialErr  error                    // of asking what it was installed with
	initialAsks int                      // for that in vain
	loads       int                      // that have ended
	saved       tracked                  // by an earlier process; empty once a pass has begun
	calledOff   *pass                    // that was called off last

	mu            sync.Mutex
	tracker       *runlevel.Tracker // of the release that the cluster is at; the decider replaces it
	drawnInterval time.Duration     // the interval; zero: not drawn yet
	pass          *pass             // under way; nil: none
}

func newCore(u *Updater, api clusterapi.ClusterAPI) *core {
	c := &core{o: u.o, u: u}
	c.o.API = api
	if _, cached := c.o.Risks.(*risk.Cache); c.o.Risks != nil && !cached {
		c.o.Risks = &risk.Cache{Matcher: c.o.Risks, Clock: c.o.Clock}
	}
	if c.o.Alerts != nil {
		c.alerts = &risk.AlertRisks{Alerts: c.o.Alerts}
	}
	c.tracker = runlevel.NewTracker(c.o.Clock)
	c.watches = payloadWatches{tracker: c.tracker, mode: c.o.ApplyMode}
	c.saved, _ = readTracked(u.o.Tracker) // New has seen its faults
	return c
}

// forgetRelease drops what is kept about the release that the cluster was at: its
// deletions, what was applied of it, and the verifier that its payload configures.
// Calls of a pass that was called off may still write to the old Tracker.
func (c *core) forgetRelease() {
	c.watches.want(nil)
	tracker := runlevel.NewTracker(c.o.Clock)
	c.watches.tracker = tracker
	c.trust.forget()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tracker = tracker
}

// pendingDeletions are those of the release that the cluster is at.
func (c *core) pendingDeletions() []string {
	c.mu.Lock()
	tracker := c.tracker
	c.mu.Unlock()
	return tracker.PendingDeletions()
}

// interval is the time between passes, drawn once.
func (c *core) interval(q reconcile.Request) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.drawnInterval == 0 {
		c.drawnInterval = c.o.Interval
		if c.drawnInterval == 0 {
			c.drawnInterval = risk.CheckInterval(q.Rand.Float64())
		}
	}
	return c.drawnInterval
}

// current is the pass under way, nil while there is none.
func (c *core) current() *pass {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pass
}

func (c *core) setPass(p *pass) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pass = p
}

// result is where the cluster stands.
func (c *core) result() Result {
	s := &c.s
	r := Result{ClusterVersion: c.cv.DeepCopy(), Resolution: c.d.resolution}
	r.Done = r.Resolution.Outcome != clusterversion.NotFound && s.sync != nil && s.report.Reconciling && s.report.Failure == nil && s.passErr == nil &&
		s.sync.release.Image == c.d.want.Image && c.hooksDone()
	switch {
	case s.load.err != nil:
		r.Failure = s.load.err
	case s.sync == nil && c.d.lost != nil:
		r.Failure = c.d.lost
	case !r.Done && s.passErr != nil:
		r.Failure = s.passErr
	case !r.Done:
		r.Failure = s.report.Failure
		if r.Failure == nil && c.cv != nil {
			r.Failure = s.hookTrouble(c.cv.UID, c.cv.Status.History, c.o.Hooks).err
		}
	}
	return r
}

// hooksDone reports whether the hooks have done what comes after an update.
func (c *core) hooksDone() bool {
	if c.cv == nil {
		return false
	}
	phase, _ := phaseOf(c.cv.UID, c.cv.Status.History)
	for i := range c.o.Hooks {
		if a := c.s.answer(i, phase); !phase.after || !a.done() {
			return false
		}
	}
	return true
}

// lastWrite is how long a write may take for which a caller that has ended
// everything waits.
const lastWrite = 2 * time.Second

// flush writes how far a pass came that is called off.
func (c *core) flush(ctx context.Context) {
	p := c.current()
	if p == nil || c.cv == nil || c.s.sync == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
	defer cancel()
	c.s.report = p.reported()
	in := newStatusInput(c.o.Clock.Now(), c.cv, c.d, &c.s, c.updates, &settings{Options: c.o})
	_, err := clusterversion.WriteStatus(ctx, c.o.API, &c.accepts, c.cv, nextStatus(c.cv.Status, in))
	c.log("the last status could not be written", err)
}

// emit sends an event about a release to the observer.
func (c *core) emit(e clusterapi.Event, d EventData) {
	if c.o.Observe == nil {
		return
	}
	e.Data = &d
	if name := cmp.Or(d.Release.Version, d.Release.Image); name != "" {
		e.Subject = "release " + name
	}
	c.observing.Lock()
	defer c.observing.Unlock()
	if e.Time.IsZero() {
		e.Time = c.o.Clock.Now()
	}
	// What happens in the cluster does not depend on the observer.
	c.log("the observer failed", panics.Catch(func() error {
		c.o.Observe(e)
		return nil
	}))
}

func (c *core) log(msg string, err error) {
	if p, ok := errors.AsType[*clusterapi.PanicError](err); ok {
		c.o.Logger.Error(msg, "error", err, "stack", string(p.Stack))
		return
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		c.o.Logger.Warn(msg, "error", err)
	}
}
