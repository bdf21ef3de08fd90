package clusterupdate

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// process is what the reconcilers of an [Updater] have in common: its options, and
// those who get events and the log.
type process struct {
	o       Options                // API is the process's own
	accepts clusterapi.Definitions // what the cluster accepts

	observing sync.Mutex // events come from several goroutines, one at a time

	mu            sync.Mutex
	drawnInterval time.Duration // the interval; zero: not drawn yet
}

func newProcess(o Options, api clusterapi.ClusterAPI) *process {
	o.API = api
	if _, cached := o.Risks.(*risk.Cache); o.Risks != nil && !cached {
		o.Risks = &risk.Cache{Matcher: o.Risks, Clock: o.Clock}
	}
	return &process{o: o}
}

// interval is the time between passes, drawn once.
func (p *process) interval(q reconcile.Request) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drawnInterval == 0 {
		p.drawnInterval = p.o.Interval
		if p.drawnInterval == 0 {
			p.drawnInterval = risk.CheckInterval(q.Rand.Float64())
		}
	}
	return p.drawnInterval
}

// emit sends an event about a release to the observer.
func (p *process) emit(e clusterapi.Event, d EventData) {
	if p.o.Observe == nil {
		return
	}
	e.Data = &d
	e.Subject = releaseSubject(d.Release)
	p.observing.Lock()
	defer p.observing.Unlock()
	if e.Time.IsZero() {
		e.Time = p.o.Clock.Now()
	}
	// What happens in the cluster does not depend on the observer.
	p.log("the observer failed", panics.Catch(func() error {
		p.o.Observe(e)
		return nil
	}))
}

// releaseSubject names a release as the Subject of an event; empty for none.
func releaseSubject(r configv1.Release) string {
	if name := cmp.Or(r.Version, r.Image); name != "" {
		return "release " + name
	}
	return ""
}

func (p *process) log(msg string, err error) {
	if caught, ok := errors.AsType[*clusterapi.PanicError](err); ok {
		p.o.Logger.Error(msg, "error", err, "stack", string(caught.Stack))
		return
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		p.o.Logger.Warn(msg, "error", err)
	}
}
