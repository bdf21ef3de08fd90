package clusterupdate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// lists is what is known of the updates there are.
type lists struct {
	graph.Retrieval
	risks riskSources // that the last evaluation took into account
	turn  int         // counts evaluations
}

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
}

// startFetch begins to bring the updates up to date, where that is due.
func (l *loop) startFetch(now time.Time) bool {
	if l.o.Graph == nil || l.fetching {
		return false
	}
	j := l.listJob(now)
	if due, next := l.due(j, now); !due {
		if !l.once {
			l.after(next)
		}
		return false
	}
	l.fetching = true
	l.goDo(func() func() {
		next := l.bringUp(l.ctx, j)
		return func() {
			l.fetching, l.listed = false, &j.query
			if l.ctx.Err() != nil {
				return
			}
			l.s.lists = next
			l.s.recheck = l.o.Clock.Now().Add(recheckAfter(&next))
			if j.plan.Fetch {
				l.emit(Event{Type: EventRetrievedUpdates, Release: next.Current(), Message: next.Condition.Message, Updates: next.available()})
			}
		}
	})
	return true
}

// listJob decides what to do about the updates.
func (l *loop) listJob(now time.Time) *listJob {
	j := &listJob{cv: l.cv, query: l.listQuery(), lists: l.s.lists, own: l.d.own.Version}
	j.wanted = j.query.wanted(acceptedRisks(l.cv, l.d.gates))
	if l.s.lists.risks != l.risks {
		j.lists.risks, j.wanted.RisksChanged = l.risks, true
	}
	j.plan = l.s.lists.Plan(j.wanted, l.o.Interval, now)
	if j.lists.Attempted.IsZero() {
		j.lists.Remembered = l.cv.Status.ConditionalUpdates
	}
	return j
}

// due reports whether a job has anything to do, and if not, when to look again.
func (l *loop) due(j *listJob, now time.Time) (bool, time.Time) {
	news := l.s.lists.unjudged(j.wanted.Accepted)
	switch {
	case l.once && l.listed != nil && *l.listed == j.query && !news:
		return false, j.plan.Next
	case j.plan.Fetch, news, j.plan.Reevaluate && j.wanted.RisksChanged:
		return true, now
	case !j.plan.Reevaluate, l.o.Risks == nil:
		return false, j.plan.Next
	}
	return !now.Before(l.s.recheck), l.s.recheck
}

// recheckAfter is when another look at a risk that could not be judged may
// help: soon while its query waits for its turn, else when it is tried again.
func recheckAfter(s *lists) time.Duration {
	if s.Evaluation != nil && slices.ContainsFunc(s.Evaluation.Verdicts, func(v graph.Verdict) bool { return errors.Is(v.Err, graph.ErrThrottled) }) {
		return graph.RecheckAfter
	}
	return recheckFailed
}

// recheckFailed is the time between looks at a risk whose query fails, which
// is not repeated sooner anyway.
const recheckFailed = 30 * time.Second

func (l *loop) listQuery() listQuery {
	q := listQuery{upstream: string(l.cv.Spec.Upstream), channel: l.cv.Spec.Channel, arch: l.o.Architecture}
	arch := l.d.base.Architecture
	q.version, q.current = l.cv.Status.Desired.Version, string(arch)
	if q.version == "" {
		q.version = l.d.base.Version
	}
	if u := l.d.cleared.Spec.DesiredUpdate; u != nil && u.Architecture != "" {
		arch = u.Architecture
	}
	if arch == configv1.ClusterVersionArchitectureMulti {
		q.arch, q.desired = "multi", string(arch)
	}
	return q
}

// bringUp retrieves the graph if that is planned, and judges the updates of
// the current version. It returns the next lists, whatever happens.
func (u *Updater) bringUp(ctx context.Context, j *listJob) lists {
	next := j.lists
	if j.plan.Fetch {
		var updates *graph.Updates
		err := panics.Isolate(func() (err error) {
			updates, err = u.updates(ctx, j.cv, j.query)
			return err
		})
		u.log("updates could not be retrieved", err)
		if err == nil {
			u.logDropped(updates.Dropped)
		}
		next.Fetched(j.wanted, j.plan, updates, err, u.o.Clock.Now())
	}
	e := graph.Evaluator{Matcher: matcher(u.o.Risks), Accepted: j.wanted.Accepted, RiskConditions: next.risks.merged}
	next.Evaluate(ctx, e, u.merge(ctx, j), u.o.Clock.Now())
	if j.plan.Fetch && next.Evaluation != nil {
		u.logDropped(next.Evaluation.Dropped)
	}
	next.turn++
	return next
}

// matcher makes a panic in an embedder's matcher an error of the rule.
func matcher(m graph.RiskMatcher) graph.RiskMatcher {
	if m == nil {
		return nil
	}
	return graph.RiskMatcherFunc(func(ctx context.Context, rule configv1.ClusterCondition) (matched bool, err error) {
		err = panics.Isolate(func() (err error) {
			matched, err = m.Match(ctx, rule)
			return err
		})
		return matched && err == nil, err
	})
}

// logDropped tells of updates that the graph has and the cluster is not offered,
// where that is the graph's fault: of the first few.
func (u *Updater) logDropped(dropped []graph.Dropped) {
	const most = 10
	told := 0
	for _, d := range dropped {
		if d.Err != nil && told < most {
			u.log("the update to "+d.Release.Version+" is not offered: "+string(d.Cause), d.Err)
			told++
		}
	}
}

func (u *Updater) updates(ctx context.Context, cv *configv1.ClusterVersion, q listQuery) (*graph.Updates, error) {
	source := u.o.Graph
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

// answer returns the lists, if they are about what a specification asks for.
func (s *lists) answer(spec configv1.ClusterVersionSpec, architectures bool) ([]configv1.Release, []configv1.ConditionalUpdate, bool) {
	return s.Published(graph.Wanted{Upstream: string(spec.Upstream), Channel: spec.Channel}, architectures)
}

// unjudged reports whether the lists are about to be retrieved for the first
// time, or to be judged with other risks accepted.
func (s *lists) unjudged(accepted []string) bool {
	return s.Attempted.IsZero() || s.Updates != nil && !sets.New(accepted...).Equal(sets.New(s.Asked.Accepted...))
}

// available are the recommended updates.
func (s *lists) available() []configv1.Release {
	if s.Evaluation == nil {
		return nil
	}
	return s.Evaluation.Available
}

// retrieved are the updates that the graph has without conditions, whatever
// the cluster's own risks.
func (s *lists) retrieved() []configv1.Release {
	if s.Updates == nil {
		return nil
	}
	return s.Updates.Available
}

// publishLists writes what was retrieved, as far as it answers what the object
// asks now.
func publishLists(s *configv1.ClusterVersionStatus, in statusInput, set func(configv1.ClusterStatusConditionType, configv1.ConditionStatus, string, string)) {
	l := in.lists
	switch {
	case in.noGraph && in.spec.Channel == "":
		c := graph.RetrievedUpdates(&graph.Error{Reason: string(graph.ErrNoChannel), Message: "The update channel has not been configured."})
		s.AvailableUpdates, s.ConditionalUpdates, s.ConditionalUpdateRisks = nil, nil, nil
		set(configv1.RetrievedUpdates, c.Status, c.Reason, c.Message)
		return
	case in.noGraph:
		set(configv1.RetrievedUpdates, configv1.ConditionUnknown, "", "Updates are not retrieved: no update service is configured.")
		return
	}
	available, conditional, ok := l.answer(in.spec, in.d.gates.architecture)
	if !ok {
		return
	}
	s.AvailableUpdates, s.ConditionalUpdates, s.ConditionalUpdateRisks = available, conditional, nil
	if l.risks.merged {
		s.ConditionalUpdateRisks = graph.ConditionalUpdateRisks(conditional)
	}
	set(configv1.RetrievedUpdates, l.Condition.Status, l.Condition.Reason, l.Condition.Message)
}

// requestNewest asks for the newest recommended update in automatic mode, once
// the cluster has finished the one before. A request of somebody else that is
// not fulfilled yet goes first. It reports whether it asked.
func (l *loop) requestNewest() (bool, error) {
	cv, s := l.cv, &l.s
	if !l.o.Auto || l.d.installing || s.work == nil || !s.report.Reconciling || len(cv.Status.History) == 0 ||
		cv.Status.History[0].State != configv1.CompletedUpdate {
		return false, nil
	}
	if u := cv.Spec.DesiredUpdate; u != nil && l.d.resolution.Outcome != OwnRelease && !equality.Semantic.DeepEqual(u, s.asked) {
		return false, nil
	}
	state := graph.AutoState{
		Current:     cv.Status.Desired.Version,
		Available:   cv.Status.AvailableUpdates,
		Desired:     cv.Spec.DesiredUpdate,
		Progressing: conditionTrue(cv.Status.Conditions, configv1.OperatorProgressing),
	}
	next, _ := graph.NextUpdate(state, l.o.AutoPolicy)
	if next == nil || equality.Semantic.DeepEqual(next, cv.Spec.DesiredUpdate) {
		return false, nil
	}
	_, err := clusterapi.Modify(l.ctx, l.o.API, clusterVersionKey, clusterapi.ModifyOptions{}, func(live *configv1.ClusterVersion) error {
		if live.Generation != cv.Generation {
			return errSpecChanged
		}
		live.Spec.DesiredUpdate = next
		return nil
	})
	if errors.Is(err, errSpecChanged) {
		return true, nil // somebody else asks for something: look again
	}
	if err != nil {
		return false, fmt.Errorf("request of %s: %w", next.Version, err)
	}
	s.asked = next
	release := configv1.Release{Version: next.Version, Image: next.Image}
	l.emit(Event{Type: EventUpdateRequested, Release: release, Message: "requesting " + next.Version})
	return true, nil
}

var errSpecChanged = errors.New("the specification has changed")
