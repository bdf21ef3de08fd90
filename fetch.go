package clusterupdate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// updatesQuery is what the available updates depend on.
type updatesQuery struct {
	upstream, channel string
	version           string // what the cluster is at
	arch              string // as the update service names it
	current, desired  string // as a release names it
}

// wanted is what an evaluation of the updates depends on.
func (q updatesQuery) wanted(accepted []string) risk.Wanted {
	w := risk.Wanted{Upstream: q.upstream, Channel: q.channel, Architecture: q.current, Version: q.version, Accepted: accepted}
	if q.desired != "" {
		w.Architecture = q.desired
	}
	return w
}

// retrieval retrieves the updates, or only judges those that are known.
type retrieval struct {
	cv      *configv1.ClusterVersion
	query   updatesQuery
	wanted  risk.Wanted
	plan    risk.FetchPlan
	updates availableUpdates
	own     string // version of the cluster's own release
	now     time.Time
}

// question is what a retrieval asks.
func (j *retrieval) question() string {
	return fmt.Sprintf("%q %q %t", j.query, slices.Sorted(slices.Values(j.wanted.Accepted)), j.plan.Fetch)
}

// fetch asks the update service which updates there are, if that is due.
func (p *planner) fetch() {
	if p.set.o.Graph == nil || p.d.lost != nil {
		return
	}
	j := p.retrieval()
	if !j.plan.Fetch {
		p.waitUntil(stepFetch, configv1.Release{}, j.plan.Next, "the updates are known")
		p.evaluate(j)
		return
	}
	reason := "the interval since the last retrieval is over"
	if p.mem.updates.Attempted.IsZero() {
		reason = "nothing is known of the updates yet"
	} else if p.now.Sub(p.mem.updates.Attempted) < p.set.interval {
		reason = "the question is another one"
	}
	p.do(Action{Step: stepFetch, Reason: reason, fetch: j})
}

// retrieval is what there is to do about the updates.
func (p *planner) retrieval() *retrieval {
	j := &retrieval{cv: p.o.cv, query: p.updatesQuery(), updates: p.mem.updates, own: p.d.own.Version, now: p.now}
	asked := p.o.cv
	if len(p.o.notUnderstood) > 0 {
		asked = p.d.cleared
	}
	j.wanted = j.query.wanted(acceptedRisks(asked, p.d.gates))
	if j.updates.clusterRisks != p.risks {
		j.updates.clusterRisks, j.wanted.RisksChanged = p.risks, true
	}
	if j.updates.Attempted.After(p.now) { // the clock was set back
		j.updates.Attempted = p.now.Add(-p.set.interval)
	}
	j.plan = j.updates.Plan(j.wanted, p.set.interval, p.now)
	if j.updates.Attempted.IsZero() {
		before := p.o.cv.Status.DeepCopy()
		clusterversion.RemovePreflights(before)
		j.updates.Remembered = before.ConditionalUpdates
	}
	return j
}

func (p *planner) updatesQuery() updatesQuery {
	q := updatesQuery{upstream: string(p.o.cv.Spec.Upstream), channel: p.o.cv.Spec.Channel, arch: p.set.o.Architecture}
	arch := p.d.base.Architecture
	q.version, q.current = cmp.Or(p.status.Desired.Version, p.d.base.Version), string(arch)
	if u := p.d.cleared.Spec.DesiredUpdate; u != nil && u.Architecture != "" {
		arch = u.Architecture
	}
	if arch == configv1.ClusterVersionArchitectureMulti {
		q.arch, q.desired = "multi", string(arch)
	}
	return q
}

// retriever asks which updates there are, and judges their risks.
type retriever struct {
	process   *process
	alerts    *risk.AlertRisks // nil: alerts are not risks
	deletions func() []string  // that are pending
	updates   availableUpdates // as known; the decider's
	ended     int              // retrievals that have ended
}

func newRetriever(p *process, deletions func() []string) *retriever {
	r := &retriever{process: p, deletions: deletions}
	if p.o.Alerts != nil {
		r.alerts = &risk.AlertRisks{Alerts: p.o.Alerts}
	}
	return r
}

// retrievalID distinguishes retrievals. What one found out may come too late to be
// of use: the same may have to be asked again.
type retrievalID struct {
	before   int // retrievals that have ended
	question string
}

// job retrieves updates while decisions continue. done gets what is known then.
func (r *retriever) job(j *retrieval, done func(availableUpdates)) reconcile.Job {
	return reconcile.Job{
		ID:  retrievalID{r.ended, j.question()},
		Run: func(ctx context.Context, _ func(any)) (any, error) { return r.retrieve(ctx, j), nil },
		Done: func(out any, err error) []reconcile.Wake {
			r.ended++
			next, ok := out.(availableUpdates)
			if !ok { // a panic: as if nothing had been asked
				r.process.log("updates could not be retrieved", err)
				return []reconcile.Wake{{Key: decideKey, After: recheckFailed}}
			}
			done(next)
			return []reconcile.Wake{{Key: decideKey}}
		},
	}
}

// learn keeps what a retrieval found out, and sends an event about another answer than before.
func (r *retriever) learn(now time.Time, j *retrieval, next availableUpdates) {
	next.recheck = now.Add(recheckAfter(&next))
	before := r.updates
	r.updates = next
	news := before.Condition.Status != next.Condition.Status || before.Condition.Message != next.Condition.Message ||
		!equality.Semantic.DeepEqual(before.available(), next.available())
	if j.plan.Fetch && (before.Attempted.IsZero() || news) {
		r.process.emit(clusterapi.Event{Type: EventRetrievedUpdates, Time: now, Message: next.Condition.Message},
			EventData{Release: next.Current(), Updates: next.available()})
	}
}

// retrieve retrieves the graph if that is planned, and judges the updates of
// the current version. It returns what is known of them then, whatever happens.
func (r *retriever) retrieve(ctx context.Context, j *retrieval) availableUpdates {
	next := j.updates
	if j.plan.Fetch {
		var updates *graph.Updates
		err := panics.Isolate(func() (err error) {
			updates, err = r.fetchUpdates(ctx, j.cv, j.query)
			return err
		})
		r.process.log("updates could not be retrieved", err)
		if err == nil {
			r.logDropped(updates.Dropped)
		}
		next.Fetched(j.wanted, j.plan, updates, err, j.now)
	}
	r.evaluate(ctx, j, &next)
	return next
}

func (r *retriever) fetchUpdates(ctx context.Context, cv *configv1.ClusterVersion, q updatesQuery) (*graph.Updates, error) {
	source := r.process.o.Graph
	if up, ok := source.(graph.Upstreamer); ok && cv.Spec.Upstream != "" {
		source = up.WithUpstream(string(cv.Spec.Upstream))
	}
	g, err := source.Fetch(ctx, graph.Query{Channel: q.channel, Arch: q.arch, Version: q.version, ClusterID: string(cv.Spec.ClusterID)})
	if err != nil {
		return nil, err
	}
	return g.Updates(graph.UpdatesQuery{
		Version: q.version, Channel: q.channel, Architecture: q.current, DesiredArchitecture: q.desired,
	})
}

// logDropped logs the first few updates that the graph has and the cluster is not
// offered, if that is the graph's fault.
func (r *retriever) logDropped(dropped []graph.Dropped) {
	const most = 10
	told := 0
	for _, d := range dropped {
		if d.Err != nil && told < most {
			r.process.log("the update to "+d.Release.Version+" is not offered: "+string(d.Cause), d.Err)
			told++
		}
	}
}
