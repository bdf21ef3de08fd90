package clusterupdate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph"
)

// lists is what the last retrievals of the update graph gave.
type lists struct {
	attempted, changed time.Time
	asked              listQuery // of the last attempt
	condition          configv1.ClusterOperatorStatusCondition
	current            configv1.Release
	available          []configv1.Release
	conditional        []configv1.ConditionalUpdate
}

// listQuery is what the lists depend on.
type listQuery struct {
	upstream, channel string
	version           string // what the cluster is at
	arch              string // as the update service names it
	current, desired  string // as a release names it
}

// staleLists is how old lists may become while the graph cannot be reached.
const staleLists = 24 * time.Hour

// fetchPlan says whether to retrieve the graph now.
type fetchPlan struct {
	fetch bool
	keep  bool      // what is known outlives a failure to reach the service
	next  time.Time // when to ask again at the latest
}

// plan decides about the retrieval of the graph. A changed question is asked
// at once, and its failure clears the lists; otherwise the graph is retrieved
// at intervals, and a service that cannot be reached leaves the lists as they
// are for a day.
func (s *lists) plan(q listQuery, interval time.Duration, now time.Time) fetchPlan {
	switch {
	case s.attempted.IsZero(), s.asked != q:
		return fetchPlan{fetch: true, next: now}
	case now.Sub(s.attempted) < interval:
		return fetchPlan{next: s.attempted.Add(interval)}
	}
	return fetchPlan{fetch: true, keep: now.Sub(s.changed) < staleLists, next: now}
}

// startFetch begins to retrieve the updates there are, where that is due.
func (l *loop) startFetch(now time.Time) bool {
	q := l.listQuery()
	if l.o.Graph == nil || l.fetching || l.once && l.fetched == q {
		return false
	}
	p := l.s.lists.plan(q, l.o.Interval, now)
	if !p.fetch {
		l.after(p.next)
		return false
	}
	cv, prev, accepted := l.cv, l.s.lists, acceptedRisks(l.cv, l.d.gates)
	l.fetching = true
	l.goDo(func() func() {
		next := l.fetch(l.ctx, cv, q, accepted, prev, p.keep)
		return func() {
			l.fetching, l.fetched = false, q
			if l.ctx.Err() != nil {
				return
			}
			l.s.lists = next
			l.emit(Event{Type: EventRetrievedUpdates, Release: next.current, Message: next.condition.Message, Updates: next.available})
		}
	})
	return true
}

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

// fetch retrieves the graph and judges the updates of the current version. It
// returns the next lists, whatever happens.
func (u *Updater) fetch(ctx context.Context, cv *configv1.ClusterVersion, q listQuery, accepted []string, prev lists, keep bool) lists {
	now := u.o.Clock.Now()
	next := lists{attempted: now, changed: now, asked: q, current: prev.current}
	available, conditional, current, err := u.updates(ctx, cv, q, accepted, prev, now)
	next.condition = graph.RetrievedUpdates(err)
	if err == nil {
		next.available, next.conditional, next.current = available, conditional, current
		return next
	}
	u.log("updates could not be retrieved", err)
	var ge *graph.Error
	if keep && errors.As(err, &ge) && ge.KeepsUpdates() {
		next.available, next.conditional = prev.available, prev.conditional
	}
	if q == prev.asked {
		next.changed = prev.changed
	}
	return next
}

func (u *Updater) updates(ctx context.Context, cv *configv1.ClusterVersion, q listQuery, accepted []string, prev lists, now time.Time) (
	available []configv1.Release, conditional []configv1.ConditionalUpdate, current configv1.Release, err error,
) {
	source := u.o.Graph
	if up, ok := source.(graph.Upstreamer); ok && q.upstream != "" {
		source = up.WithUpstream(q.upstream)
	}
	g, err := source.Fetch(ctx, graph.Query{Channel: q.channel, Arch: q.arch, Version: q.version, ClusterID: string(cv.Spec.ClusterID)})
	if err != nil {
		return nil, nil, current, err
	}
	updates, err := g.Updates(graph.UpdatesQuery{
		Version: q.version, Channel: q.channel, Architecture: q.current, DesiredArchitecture: q.desired,
	})
	if err != nil {
		return nil, nil, current, err
	}
	known := prev.conditional
	if prev.attempted.IsZero() {
		known = cv.Status.ConditionalUpdates
	}
	available, conditional = graph.Evaluate(ctx, updates, u.o.Risks, known, accepted, now)
	return available, conditional, updates.Current, nil
}

// answer reports whether the lists are about what a specification asks for.
func (s *lists) answer(spec configv1.ClusterVersionSpec) bool {
	return !s.attempted.IsZero() && s.asked.upstream == string(spec.Upstream) && s.asked.channel == spec.Channel
}

// acceptedRisks are the risks that a request accepts by name.
func acceptedRisks(cv *configv1.ClusterVersion, g gates) (names []string) {
	if u := cv.Spec.DesiredUpdate; g.acceptRisks && u != nil {
		for _, risk := range u.AcceptRisks {
			names = append(names, risk.Name)
		}
	}
	return names
}

// publishLists writes what was retrieved, as far as it answers what the object
// asks now.
func publishLists(s *configv1.ClusterVersionStatus, in statusInput, set func(configv1.ClusterStatusConditionType, configv1.ConditionStatus, string, string)) {
	l := in.lists
	switch {
	case in.noGraph && in.spec.Channel == "":
		c := graph.RetrievedUpdates(&graph.Error{Reason: string(graph.ErrNoChannel), Message: "The update channel has not been configured."})
		s.AvailableUpdates, s.ConditionalUpdates = nil, nil
		set(configv1.RetrievedUpdates, c.Status, c.Reason, c.Message)
		return
	case in.noGraph:
		set(configv1.RetrievedUpdates, configv1.ConditionUnknown, "", "Updates are not retrieved: no update service is configured.")
		return
	}
	if !l.answer(in.spec) {
		return
	}
	s.AvailableUpdates = slices.Clone(l.available)
	s.ConditionalUpdates = slices.Clone(l.conditional)
	if !in.d.gates.architecture {
		for i := range s.AvailableUpdates {
			s.AvailableUpdates[i].Architecture = ""
		}
		for i := range s.ConditionalUpdates {
			s.ConditionalUpdates[i].Release.Architecture = ""
		}
	}
	set(configv1.RetrievedUpdates, l.condition.Status, l.condition.Reason, l.condition.Message)
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
