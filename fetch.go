package clusterupdate

import (
	"context"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// listQuery is what the lists depend on.
type listQuery struct {
	upstream, channel string
	version           string // what the cluster is at
	arch              string // as the update service names it
	current, desired  string // as a release names it
}

// wanted is what an evaluation of the updates depends on.
func (q listQuery) wanted(accepted []string) graph.Wanted {
	w := graph.Wanted{Upstream: q.upstream, Channel: q.channel, Architecture: q.current, Version: q.version, Accepted: accepted}
	if q.desired != "" {
		w.Architecture = q.desired
	}
	return w
}

// listJob retrieves the updates, or only judges those that are known.
type listJob struct {
	cv     *configv1.ClusterVersion
	query  listQuery
	wanted graph.Wanted
	plan   graph.FetchPlan
	lists  lists
	own    string // version of the cluster's own release
	now    time.Time
}

// listID tells jobs apart.
type listID struct {
	query    listQuery
	accepted string
	fetch    bool
}

func (j *listJob) id() listID {
	return listID{j.query, strings.Join(slices.Sorted(slices.Values(j.wanted.Accepted)), "\n"), j.plan.Fetch}
}

// fetch asks the update service which updates there are, where that is due.
func (p *planning) fetch() {
	if p.Graph == nil {
		return
	}
	j := p.listJob()
	if !j.plan.Fetch {
		p.waitUntil(stepFetch, configv1.Release{}, j.plan.Next, "the updates are known")
		p.evaluate(j)
		return
	}
	reason := "the interval since the last retrieval is over"
	if p.lists.Attempted.IsZero() {
		reason = "nothing is known of the updates yet"
	} else if p.now.Sub(p.lists.Attempted) < p.interval {
		reason = "the question is another one"
	}
	p.do(Action{Step: stepFetch, Reason: reason, fetch: j})
}

// listJob is what there is to do about the updates.
func (p *planning) listJob() *listJob {
	j := &listJob{cv: p.o.cv, query: p.listQuery(), lists: p.lists, own: p.d.own.Version, now: p.now}
	j.wanted = j.query.wanted(acceptedRisks(p.o.cv, p.d.gates))
	if j.lists.risks != p.risks {
		j.lists.risks, j.wanted.RisksChanged = p.risks, true
	}
	if j.lists.Attempted.After(p.now) { // the clock was set back
		j.lists.Attempted = p.now.Add(-p.interval)
	}
	j.plan = j.lists.Plan(j.wanted, p.interval, p.now)
	if j.lists.Attempted.IsZero() {
		j.lists.Remembered = p.o.cv.Status.ConditionalUpdates
	}
	return j
}

func (p *planning) listQuery() listQuery {
	q := listQuery{upstream: string(p.o.cv.Spec.Upstream), channel: p.o.cv.Spec.Channel, arch: p.Architecture}
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

// bringUp retrieves the graph if that is planned, and judges the updates of
// the current version. It returns the next lists, whatever happens.
func (c *core) bringUp(ctx context.Context, j *listJob) lists {
	next := j.lists
	if j.plan.Fetch {
		var updates *graph.Updates
		err := panics.Isolate(func() (err error) {
			updates, err = c.updates(ctx, j.cv, j.query)
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

func (c *core) updates(ctx context.Context, cv *configv1.ClusterVersion, q listQuery) (*graph.Updates, error) {
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
