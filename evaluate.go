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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/preconditions"
)

// evaluate judges the risks of the updates that are known again, if there is news:
// other risks are accepted, the cluster's own have changed, or a query may have an
// answer now.
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

// clusterRisks answers the reads of the sources of risks in the cluster from
// what was read before, and with any ClusterVersion.
type clusterRisks struct {
	answers map[read]answer
	version *clusterapi.Object
}

type read struct {
	gvk schema.GroupVersionKind
	key types.NamespacedName // empty: all of the kind
}

type answer struct {
	objects []*clusterapi.Object
	err     error
}

// readRisks reads what the sources of risks look at. A read that fails is an
// answer too: the sources say what it means.
func readRisks(ctx context.Context, api clusterapi.Reader) clusterRisks {
	r := clusterRisks{answers: make(map[read]answer)}
	operators, err := clusterapi.ListShared(ctx, api, operatorKind, clusterapi.ListOptions{})
	r.answers[read{gvk: operatorKind}] = answer{operators, err}
	for _, key := range []types.NamespacedName{adminGates, adminAcks} {
		o, err := clusterapi.GetShared(ctx, api, configMapKind, key)
		r.answers[read{configMapKind, key}] = answer{[]*clusterapi.Object{o}, err}
	}
	return r
}

// upgradeable computes the condition Upgradeable of a ClusterVersion, and the risks
// behind it.
func (r clusterRisks) upgradeable(cv *configv1.ClusterVersion, own string, deletions []string, style preconditions.ReasonStyle) preconditions.Upgradeability {
	versions := risk.TargetVersions(cv.Status.AvailableUpdates, cv.Status.ConditionalUpdates)
	asked := *cv // without the long lists, at which no source looks
	asked.ManagedFields, asked.Status.History, asked.Status.AvailableUpdates, asked.Status.ConditionalUpdates = nil, nil, nil, nil
	u, err := clusterapi.ToUnstructured(&asked)
	if err != nil {
		return preconditions.Upgradeability{} // it was read from one
	}
	r.version = clusterapi.NewObject(u)
	sources := preconditions.Sources(preconditions.RiskOptions{Reader: r, OwnVersion: own, Deletions: func() []string { return deletions }})
	return preconditions.Upgradeable(context.Background(), sources, versions, style, nil)
}

// GetShared implements [clusterapi.Shared].
func (r clusterRisks) GetShared(_ context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*clusterapi.Object, error) {
	if gvk == versionKind && key == clusterVersionKey {
		return r.version, nil
	}
	a, ok := r.answers[read{gvk, key}]
	if !ok {
		return nil, fmt.Errorf("%s %s was not read", gvk.Kind, key)
	}
	return a.objects[0], a.err
}

// ListShared implements [clusterapi.Shared].
func (r clusterRisks) ListShared(_ context.Context, gvk schema.GroupVersionKind, _ clusterapi.ListOptions) ([]*clusterapi.Object, error) {
	a, ok := r.answers[read{gvk: gvk}]
	if !ok {
		return nil, fmt.Errorf("%s were not read", gvk.Kind)
	}
	return a.objects, a.err
}

// Get implements [clusterapi.Reader].
func (r clusterRisks) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	o, err := r.GetShared(ctx, gvk, key)
	if err != nil {
		return nil, err
	}
	return o.Unstructured().DeepCopy(), nil
}

// List implements [clusterapi.Reader].
func (r clusterRisks) List(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	objects, err := r.ListShared(ctx, gvk, opts)
	if err != nil && !errors.Is(err, clusterapi.ErrNotCollected) {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	for _, o := range objects {
		list.Items = append(list.Items, *o.Unstructured().DeepCopy())
	}
	return list, err
}
