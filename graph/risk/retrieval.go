package risk

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/graph"
)

// The times of the retrieval.
const (
	// staleAfter is how long updates outlive a service that is out of reach.
	staleAfter = 24 * time.Hour
	// RecheckAfter is when to look again where a risk is still unknown.
	RecheckAfter = time.Second
)

// CheckInterval is the time between two fetches of one question: 2 minutes times a factor
// from 1 up to 2, which a random number from 0 up to 1 chooses. Draw one per
// process, so that clusters do not ask all at once.
func CheckInterval(random float64) time.Duration {
	return time.Duration(float64(2*time.Minute) * (1 + random))
}

// Wanted is what the updates of a cluster depend on.
type Wanted struct {
	// Upstream is spec.upstream; empty and [graph.DefaultUpstream] are the same.
	Upstream string
	// Channel is spec.channel.
	Channel string
	// Architecture is spec.desiredUpdate's, else the current one.
	Architecture string
	// Version is what the cluster reconciles now. Once that changes, the lists
	// are about another release. Empty where the caller looks after that.
	Version string
	// Accepted are the names of the risks that are accepted, in any order.
	Accepted []string
	// RisksChanged reports that a source of risks in the cluster has news.
	RisksChanged bool
}

// sameQuestion reports whether the same graph answers both.
func (w Wanted) sameQuestion(o Wanted) bool {
	return w.sameService(o) && w.Architecture == o.Architecture && w.Version == o.Version
}

// sameService compares what is published: upstream and channel.
func (w Wanted) sameService(o Wanted) bool {
	return cmp.Or(w.Upstream, graph.DefaultUpstream) == cmp.Or(o.Upstream, graph.DefaultUpstream) && w.Channel == o.Channel
}

func sameNames(a, b []string) bool {
	sorted := func(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }
	return slices.Equal(sorted(a), sorted(b))
}

// Retrieval is what is known about the updates of a cluster: the state between
// the passes of a loop that calls [Retrieval.Plan], fetches,
// [Retrieval.Fetched] and [Retrieval.Evaluate] as the plan says, and publishes
// [Retrieval.Published]. The zero value knows nothing yet. It is a value
// without a clock or a network, and not safe for concurrent use; a copy of it is
// independent, so that a fetch that runs alongside the loop can work on one.
type Retrieval struct {
	// Attempted is the time of the last fetch, zero for none.
	Attempted time.Time
	// Changed is when a fetch last succeeded or the question changed. If it is a
	// day ago, a failure clears what is known.
	Changed time.Time
	// Asked is the question of the last fetch.
	Asked Wanted
	// Condition is RetrievedUpdates, without a transition time.
	Condition configv1.ClusterOperatorStatusCondition
	// Updates are the lists as retrieved, nil for none.
	Updates *graph.Updates
	// Evaluation is the last judgement of them, nil for none.
	Evaluation *Evaluation
	// Remembered are conditional updates as published before the first fetch,
	// whose conditions keep their transition times: seed them from status.
	Remembered []configv1.ConditionalUpdate
}

// FetchPlan describes what to do now.
type FetchPlan struct {
	// Fetch says to retrieve the graph. Reevaluate says to judge the risks of
	// the lists that are known again; it goes without Fetch, after which they
	// are judged anyway.
	Fetch      bool
	Reevaluate bool
	// KeepOnFailure reports that what is known outlives a fetch that fails because
	// the service is out of reach or answers nonsense.
	KeepOnFailure bool
	// Next is when the interval is over, if there is nothing to fetch.
	Next time.Time
}

// Plan decides. A changed question is asked at once, and its failure clears
// the lists. The same question is asked once per interval. In between, risks
// are judged again if a verdict is missing or unknown, if other risks are
// accepted, or if a source has news.
func (r *Retrieval) Plan(w Wanted, interval time.Duration, now time.Time) FetchPlan {
	age, idle := now.Sub(r.Changed), now.Sub(r.Attempted)
	switch {
	case r.Attempted.IsZero(), !r.Asked.sameQuestion(w):
		return FetchPlan{Fetch: true, Next: now}
	case idle >= interval:
		return FetchPlan{Fetch: true, KeepOnFailure: age < staleAfter, Next: now}
	}
	again := r.Updates != nil && (w.RisksChanged || r.Undecided() || !sameNames(w.Accepted, r.Asked.Accepted))
	return FetchPlan{Reevaluate: again, Next: r.Attempted.Add(interval)}
}

// Undecided reports whether a conditional update has no verdict of True or False,
// so that another look after RecheckAfter may help.
func (r *Retrieval) Undecided() bool {
	if r.Updates == nil {
		return false
	}
	if r.Evaluation == nil {
		return len(r.Updates.Conditional) > 0
	}
	return slices.ContainsFunc(r.Evaluation.Conditional, func(c configv1.ConditionalUpdate) bool {
		recommended := meta.FindStatusCondition(c.Conditions, graph.ConditionRecommended)
		return recommended == nil || recommended.Status != metav1.ConditionTrue && recommended.Status != metav1.ConditionFalse
	})
}

// Fetched notes the result of a fetch that a plan asked for: updates, or the
// error. A failure clears what is known unless the plan keeps it and the error
// is one that [graph.Error.KeepsUpdates].
func (r *Retrieval) Fetched(w Wanted, p FetchPlan, u *graph.Updates, err error, now time.Time) {
	if err == nil || r.Attempted.IsZero() || !r.Asked.sameQuestion(w) {
		r.Changed = now
	}
	r.Attempted = now
	r.Condition = graph.RetrievedUpdates(err)
	accepted := r.Asked.Accepted
	r.Asked = w
	r.Asked.RisksChanged = false
	if err == nil {
		if r.Evaluation != nil {
			r.Remembered = r.Evaluation.Conditional
		}
		r.Updates, r.Evaluation = u, nil
		return
	}
	var e *graph.Error
	if p.KeepOnFailure && errors.As(err, &e) && e.KeepsUpdates() {
		r.Asked.Accepted = accepted // what is kept was judged by these
		return
	}
	r.Updates, r.Evaluation, r.Remembered = nil, nil, nil
}

// Evaluate judges the lists as retrieved, with what risks the merge adds; nil adds
// none. Transition times continue from the judgement before. If nothing is known it
// does nothing.
func (r *Retrieval) Evaluate(ctx context.Context, e Evaluator, merge func(available []configv1.Release, conditional []configv1.ConditionalUpdate) ([]configv1.Release, []configv1.ConditionalUpdate), now time.Time) {
	if r.Updates == nil {
		return
	}
	prev := r.Remembered
	if r.Evaluation != nil {
		prev = r.Evaluation.Conditional
	}
	available, conditional := r.Updates.Available, r.Updates.Conditional
	if merge != nil {
		available, conditional = merge(available, conditional)
	}
	r.Evaluation = e.Evaluate(ctx, available, conditional, prev, now)
	r.Asked.Accepted = slices.Clone(e.Accepted)
}

// Published returns the lists for status, if they answer what is wanted; ok is
// false while they are about another upstream or channel. Without
// architectures, which the feature gate StatusReleaseArchitecture adds, these
// fields are empty. The lists are the caller's.
func (r *Retrieval) Published(w Wanted, architectures bool) (available []configv1.Release, conditional []configv1.ConditionalUpdate, ok bool) {
	if r.Attempted.IsZero() || !r.Asked.sameService(w) {
		return nil, nil, false
	}
	if r.Evaluation == nil {
		return nil, nil, true
	}
	for i := range r.Evaluation.Available {
		release := *r.Evaluation.Available[i].DeepCopy()
		if !architectures {
			release.Architecture = ""
		}
		available = append(available, release)
	}
	for i := range r.Evaluation.Conditional {
		c := *r.Evaluation.Conditional[i].DeepCopy()
		if !architectures {
			c.Release.Architecture = ""
		}
		conditional = append(conditional, c)
	}
	return available, conditional, true
}

// Current is the release that the cluster reconciles as the graph has it, zero
// if that is not known.
func (r *Retrieval) Current() configv1.Release {
	if r.Updates == nil {
		return configv1.Release{}
	}
	return r.Updates.Current
}

// Alerts names the alerts that a retrieval gives rise to: CannotRetrieveUpdates
// when the last change is an hour ago or more and there is a channel,
// CannotEvaluateConditionalUpdates when a Recommended condition has been
// Unknown for an hour.
func (r *Retrieval) Alerts(now time.Time) []string {
	const hour = time.Hour
	var alerts []string
	if !r.Attempted.IsZero() && now.Sub(r.Changed) >= hour && r.Condition.Reason != string(graph.ErrNoChannel) {
		alerts = append(alerts, "CannotRetrieveUpdates")
	}
	if r.Evaluation != nil && slices.ContainsFunc(r.Evaluation.Conditional, func(c configv1.ConditionalUpdate) bool {
		recommended := meta.FindStatusCondition(c.Conditions, graph.ConditionRecommended)
		return recommended != nil && recommended.Status == metav1.ConditionUnknown && now.Sub(recommended.LastTransitionTime.Time) >= hour
	}) {
		alerts = append(alerts, "CannotEvaluateConditionalUpdates")
	}
	return alerts
}
