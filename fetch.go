package clusterupdate

import (
	"context"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"

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

// id tells retrievals apart.
func (j *retrieval) id() string {
	return fmt.Sprintf("%q %q %t", j.query, slices.Sorted(slices.Values(j.wanted.Accepted)), j.plan.Fetch)
}

// fetch asks the update service which updates there are, where that is due.
func (p *planner) fetch() {
	if p.Graph == nil || p.d.lost != nil {
		return
	}
	j := p.retrieval()
	if !j.plan.Fetch {
		p.waitUntil(stepFetch, configv1.Release{}, j.plan.Next, "the updates are known")
		p.evaluate(j)
		return
	}
	reason := "the interval since the last retrieval is over"
	if p.updates.Attempted.IsZero() {
		reason = "nothing is known of the updates yet"
	} else if p.now.Sub(p.updates.Attempted) < p.interval {
		reason = "the question is another one"
	}
	p.do(Action{Step: stepFetch, Reason: reason, fetch: j})
}

// retrieval is what there is to do about the updates.
func (p *planner) retrieval() *retrieval {
	j := &retrieval{cv: p.o.cv, query: p.updatesQuery(), updates: p.updates, own: p.d.own.Version, now: p.now}
	asked := p.o.cv
	if len(p.o.notUnderstood) > 0 {
		asked = p.d.cleared
	}
	j.wanted = j.query.wanted(acceptedRisks(asked, p.d.gates))
	if j.updates.clusterRisks != p.risks {
		j.updates.clusterRisks, j.wanted.RisksChanged = p.risks, true
	}
	if j.updates.Attempted.After(p.now) { // the clock was set back
		j.updates.Attempted = p.now.Add(-p.interval)
	}
	j.plan = j.updates.Plan(j.wanted, p.interval, p.now)
	if j.updates.Attempted.IsZero() {
		j.updates.Remembered = p.o.cv.Status.ConditionalUpdates
	}
	return j
}

func (p *planner) updatesQuery() updatesQuery {
	q := updatesQuery{upstream: string(p.o.cv.Spec.Upstream), channel: p.o.cv.Spec.Channel, arch: p.Architecture}
	arch := p.d.base.Architecture
	q.version, q.current = p.status.Desired.Version, string(arch)
	if q.version == "" {
		q.version = p.d.base.Version
	}
	if u := p.d.cleared.Spec.DesiredUpdate; u != nil && u.Architecture != "" {
		arch = u.Architecture
	}
	if arch == configv1.ClusterVersionArchitectureMulti {
		q.arch, q.desired = "multi", string(arch)
	}
	return q
}

// retrieve retrieves the graph if that is planned, and judges the updates of
// the current version. It returns what is known of them then, whatever happens.
func (c *core) retrieve(ctx context.Context, j *retrieval) availableUpdates {
	next := j.updates
	if j.plan.Fetch {
		var updates *graph.Updates
		err := panics.Isolate(func() (err error) {
			updates, err = c.fetchUpdates(ctx, j.cv, j.query)
			return err
		})
		c.log("updates could not be retrieved", err)
		if err == nil {
			c.logDropped(updates.Dropped)
		}
		next.Fetched(j.wanted, j.plan, updates, err, j.now)
	}
	c.evaluate(ctx, j, &next)
	return next
}

func (c *core) fetchUpdates(ctx context.Context, cv *configv1.ClusterVersion, q updatesQuery) (*graph.Updates, error) {
	source := c.o.Graph
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

// logDropped tells of updates that the graph has and the cluster is not offered,
// where that is the graph's fault: of the first few.
func (c *core) logDropped(dropped []graph.Dropped) {
	const most = 10
	told := 0
	for _, d := range dropped {
		if d.Err != nil && told < most {
			c.log("the update to "+d.Release.Version+" is not offered: "+string(d.Cause), d.Err)
			told++
		}
	}
}
