package clusterupdate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/preconditions"
)

// evaluate judges the risks of the updates that are known again, where there is
// news: other risks are accepted, the cluster's own have changed, or a query
// may have an answer now.
func (p *planner) evaluate(j *retrieval) {
	reason := ""
	switch {
	case p.mem.updates.unjudged(j.wanted.Accepted):
		reason = "other risks are accepted"
	case !j.plan.Reevaluate:
		return
	case j.wanted.RisksChanged:
		reason = "the cluster's own risks have changed"
	case p.set.o.Risks == nil:
		return
	case p.later(p.mem.updates.recheck, recheckFailed):
		p.waitUntil(stepEvaluate, configv1.Release{}, p.mem.updates.recheck, "some risks could not be judged")
		return
	default:
		reason = "some risks could not be judged"
	}
	p.do(Action{Step: stepEvaluate, Reason: reason, fetch: j})
}

// evaluate judges the updates of a job.
func (r *retriever) evaluate(ctx context.Context, j *retrieval, next *availableUpdates) {
	e := risk.Evaluator{Matcher: matcher(r.process.o.Risks), Accepted: j.wanted.Accepted, RiskConditions: next.clusterRisks != ""}
	next.Evaluate(ctx, e, r.merge(ctx, j), j.now)
	if j.plan.Fetch && next.Evaluation != nil {
		r.logDropped(next.Evaluation.Dropped)
	}
	next.evaluations++
}

// recheckAfter is when another look at a risk that could not be judged may
// help: soon while its query waits for its turn, else when it is tried again.
func recheckAfter(s *availableUpdates) time.Duration {
	if s.Evaluation != nil && slices.ContainsFunc(s.Evaluation.Verdicts, func(v risk.Verdict) bool { return errors.Is(v.Err, risk.ErrThrottled) }) {
		return risk.RecheckAfter
	}
	return recheckFailed
}

// recheckFailed is the time between looks at a risk whose query fails, which
// is not repeated sooner anyway.
const recheckFailed = 30 * time.Second

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

// riskText tells sets of the cluster's own risks apart. It is empty where the
// feature gate does not let them count.
func riskText(g gates, risks []preconditions.Risk) string {
	if !g.acceptRisks {
		return ""
	}
	var b strings.Builder
	b.WriteString("counted\n")
	for _, risk := range risks {
		fmt.Fprintf(&b, "%q %q %q\n", risk.Name, risk.URL, risk.Message)
	}
	return b.String()
}

// merge returns what puts the risks of the cluster onto updates; nil where the
// API does not have them.
func (r *retriever) merge(ctx context.Context, j *retrieval) func([]configv1.Release, []configv1.ConditionalUpdate) ([]configv1.Release, []configv1.ConditionalUpdate) {
	if j.updates.clusterRisks == "" {
		return nil
	}
	return func(available []configv1.Release, conditional []configv1.ConditionalUpdate) ([]configv1.Release, []configv1.ConditionalUpdate) {
		sources := r.riskSources(j.own)
		if r.alerts != nil {
			sources = append([]risk.RiskSource{r.alerts}, sources...)
		}
		risks, err := risk.Aggregate(ctx, sources, j.query.version, risk.TargetVersions(available, conditional))
		r.process.log("some risks of the cluster are not known", err)
		if r.alerts != nil {
			r.process.log("the alerts could not be read: those read last count", r.alerts.Stale())
		}
		available, conditional, err = risk.Merge(available, conditional, risks)
		r.process.log("some risks of the cluster could not be merged", err)
		return available, conditional
	}
}

// riskSources are the sources of risks in the cluster that also stand behind
// the condition Upgradeable.
func (r *retriever) riskSources(own string) []risk.RiskSource {
	return preconditions.Sources(preconditions.RiskOptions{Reader: r.process.o.API, OwnVersion: own, Deletions: r.deletions})
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

// acceptedOf names the risks of an update to an image, where those that apply
// were all accepted; else none.
func (s *availableUpdates) acceptedOf(image string) []string {
	if s.Evaluation == nil || image == "" {
		return nil
	}
	for i := range s.Evaluation.Conditional {
		c := &s.Evaluation.Conditional[i]
		recommended := meta.FindStatusCondition(c.Conditions, graph.ConditionRecommended)
		if graph.SameDigest(c.Release.Image, image) && recommended != nil &&
			recommended.Status == metav1.ConditionTrue && recommended.Reason == "AllExposedRisksAccepted" {
			return c.RiskNames
		}
	}
	return nil
}

// availableUpdates is what is known of the available updates.
type availableUpdates struct {
	risk.Retrieval
	clusterRisks string    // that the last evaluation took into account, see [riskText]
	recheck      time.Time // when to judge again what could not be judged
	evaluations  int       // counts evaluations
}

// answer returns the updates, if they are about what a specification asks for.
func (s *availableUpdates) answer(spec configv1.ClusterVersionSpec, architectures bool) ([]configv1.Release, []configv1.ConditionalUpdate, bool) {
	return s.Published(risk.Wanted{Upstream: string(spec.Upstream), Channel: spec.Channel}, architectures)
}

// unjudged reports whether the updates are about to be retrieved for the first
// time, or to be judged with other risks accepted.
func (s *availableUpdates) unjudged(accepted []string) bool {
	return s.Attempted.IsZero() || s.Updates != nil && !sets.New(accepted...).Equal(sets.New(s.Asked.Accepted...))
}

// available are the recommended updates.
func (s *availableUpdates) available() []configv1.Release {
	if s.Evaluation == nil {
		return nil
	}
	return s.Evaluation.Available
}

// retrieved are the updates that the graph has without conditions, whatever
// the cluster's own risks.
func (s *availableUpdates) retrieved() []configv1.Release {
	if s.Updates == nil {
		return nil
	}
	return s.Updates.Available
}

// publishUpdates writes what was retrieved, as far as it answers what the object
// asks now.
func publishUpdates(s *configv1.ClusterVersionStatus, in statusInput, set func(configv1.ClusterStatusConditionType, configv1.ConditionStatus, string, string)) {
	l := in.updates
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
	if l.clusterRisks != "" {
		s.ConditionalUpdateRisks = risk.ConditionalUpdateRisks(conditional)
	}
	set(configv1.RetrievedUpdates, l.Condition.Status, l.Condition.Reason, l.Condition.Message)
}
