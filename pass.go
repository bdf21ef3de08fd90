package clusterupdate

import (
	"context"
	"slices"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/runlevel"
)

// pass is one application of a release's manifests that is under way.
type pass struct {
	work   *work
	start  runlevel.Report
	cancel context.CancelFunc

	mu     sync.Mutex
	raw    runlevel.Report // of this pass alone
	report runlevel.Report // what to tell
}

// startPass begins a pass over what the loop last decided to apply.
func (l *loop) startPass() {
	s := &l.s
	w := s.work
	tasks := w.payload.Tasks()
	ctx, cancel := context.WithCancel(l.ctx)
	p := &pass{work: w, start: s.report, cancel: cancel}
	l.active = false
	p.raw = runlevel.Report{
		Version:      w.release.Version,
		Image:        w.release.Image,
		Hash:         w.payload.Hash,
		Total:        len(tasks),
		Reconciling:  s.state == runlevel.Reconciling,
		Initial:      s.state == runlevel.Initializing,
		LastProgress: s.report.LastProgress,
	}
	p.report = p.start
	if folded, ok := runlevel.Fold(p.start, p.raw, l.o.Clock.Now()); ok {
		p.report = folded
	}
	l.pass = p
	opts := runlevel.Options{
		API:     l.o.API,
		State:   s.state,
		Attempt: s.attempt,
		Workers: l.o.Workers,
		Filter:  w.filter(),
		Owner:   ownerOf(l.cv),
		Clock:   l.o.Clock,
		Tracker: s.tracker,
		Logger:  l.o.Logger,
		Observe: func(e runlevel.Event) {
			l.emit(Event{Type: EventTask, Time: e.Time, Release: w.release, Message: e.Message, Err: e.Err, Progress: &e})
			p.progress(e, l.o.Clock.Now())
		},
	}
	limit := runlevel.PassLimit(s.state, l.o.Interval)
	l.goDo(func() func() {
		defer cancel()
		limited, stop := clockTimeout(ctx, l.o.Clock, limit)
		defer stop()
		res, err := runlevel.Run(limited, tasks, opts)
		interrupted := ctx.Err() != nil
		return func() { l.passDone(p, res, err, interrupted) }
	})
}

// progress notes how far the pass has come.
func (p *pass) progress(e runlevel.Event, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.raw.Done = e.Done
	if folded, ok := runlevel.Fold(p.start, p.raw, now); ok {
		p.report = folded
	}
}

func (p *pass) current() runlevel.Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.report
}

// passDone takes note of the end of a pass and sets the time of the next.
func (l *loop) passDone(p *pass, res *runlevel.Result, err error, interrupted bool) {
	s := &l.s
	l.pass = nil
	now := l.o.Clock.Now()
	if interrupted || !p.work.same(s.work) {
		s.nextPass = now // it was made to end: not a failure
		return
	}
	l.passed = true
	first := s.state != runlevel.Reconciling
	r := p.progressed()
	s.passErr = err
	if err != nil {
		r.Completed = 0
		if r.Failure = err; res != nil {
			r.Failure = res.Failure // a pass that merely ended with its time has none
		}
		s.attempt++
		s.failures++
		s.nextPass = now.Add(runlevel.Delay(s.failures, l.o.Interval, l.o.Rand()))
		if l.active {
			s.nextPass = now
		}
		l.emit(Event{Type: EventPassFailed, Release: p.work.release, Message: err.Error(), Err: err})
	} else {
		r.Failure, r.Completed, r.Initial, r.Reconciling = res.Report, p.start.Completed+1, false, true
		s.state, s.attempt, s.failures = runlevel.Reconciling, 0, 0
		s.nextPass = now.Add(l.o.Interval)
	}
	if folded, ok := runlevel.Fold(p.start, r, now); ok {
		s.report = folded
	} else {
		s.report = p.start // earlier trouble shows until a pass gets past it
	}
	if err == nil && first {
		l.emit(Event{Type: EventCompleted, Release: p.work.release, Message: "Done applying " + versionText(p.work.release)})
	}
}

// progressed is how far the pass itself came.
func (p *pass) progressed() runlevel.Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.raw
}

// activity cuts short the wait for the next pass when a ClusterOperator may
// let it get further. A cluster that is as wanted need not be looked at.
func (l *loop) activity() {
	l.active = true
	if l.s.state != runlevel.Reconciling || l.s.report.Failure != nil {
		l.s.nextPass = time.Time{}
	}
}

// ownerOf makes the ClusterVersion the owner of what it applies.
func ownerOf(cv *configv1.ClusterVersion) *metav1.OwnerReference {
	controller := true
	return &metav1.OwnerReference{
		APIVersion: configv1.GroupVersion.String(),
		Kind:       "ClusterVersion",
		Name:       cv.Name,
		UID:        cv.UID,
		Controller: &controller,
	}
}

// clockTimeout is context.WithTimeout by any clock.
func clockTimeout(ctx context.Context, c clock.Clock, d time.Duration) (context.Context, context.CancelFunc) {
	if _, real := c.(clock.RealClock); real {
		return context.WithTimeout(ctx, d)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	timer := c.NewTimer(d)
	go func() {
		defer timer.Stop()
		select {
		case <-timer.C():
			cancel(context.DeadlineExceeded)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}

func joinLines(lines []string) string {
	out := ""
	for i, s := range slices.DeleteFunc(slices.Clone(lines), func(s string) bool { return s == "" }) {
		if i > 0 {
			out += "\n"
		}
		out += s
	}
	return out
}

// versionText names a release in conditions.
func versionText(r configv1.Release) string {
	switch {
	case r.Version != "":
		return r.Version
	case r.Image != "":
		return r.Image
	}
	return "<unknown>"
}
