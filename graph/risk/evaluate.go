package risk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/internal/schema"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// Evaluator judges risks for one cluster. The zero value knows rules of type
// Always alone, so that every update with a PromQL risk is Unknown. It holds no
// state and is as safe for concurrent use as its Matcher and Rules are.
type Evaluator struct {
	// Matcher judges rules of type PromQL; nil means that only Always is known.
	Matcher graph.RiskMatcher
	// Rules replaces Always and PromQL by a registry; Matcher is not used then.
	Rules *graph.Rules
	// Accepted are the names of risks that the administrator accepts, from
	// spec.desiredUpdate.acceptRisks.
	Accepted []string
	// RiskConditions writes the verdicts into the risks' conditions and sets
	// RiskNames, which the API has only with the feature gate
	// ClusterUpdateAcceptRisks.
	RiskConditions bool
	// ByName gives risks of one name one verdict, by the definition of the highest
	// version, though their contents differ. By default each content has its own.
	ByName bool
	// MaxBytes bounds the lists together, in bytes of JSON and with what
	// [ConditionalUpdateRisks] makes of them; zero means 1 MiB. Longer lists get
	// shorter messages, and if that is not enough, the lowest versions go. Below
	// zero nothing fits.
	MaxBytes int
	// Compat judges as the cluster-version operator does: by name; an update
	// without risks is recommended, and so is one whose rules are all of unknown
	// types; what a ClusterVersion cannot hold stays. MaxBytes holds. For
	// comparisons only. The file compat.go lists the points.
	Compat bool
}

// Evaluation is what an [Evaluator] finds.
type Evaluation struct {
	// Available are the recommended updates, Conditional all that have risks,
	// recommended or not, with a condition Recommended. Both are sorted by
	// version, the highest first, then by image, and nil when empty.
	Available   []configv1.Release
	Conditional []configv1.ConditionalUpdate
	// Verdicts are those of the risks, in the order of their evaluation.
	Verdicts []Verdict
	// Diverging are the names that stand for risks of different content,
	// sorted.
	Diverging []string
	// Dropped are the conditional updates that a ClusterVersion cannot hold, of
	// cause InvalidRisks or ExceedsLimit, and the available ones that exceed
	// the limit. They are in neither list.
	Dropped []graph.Dropped
}

// Verdict reports whether a risk applies to the cluster.
type Verdict struct {
	Risk     configv1.ConditionalUpdateRisk `json:"risk"`    // without conditions
	Applies  metav1.Condition               `json:"applies"` // type Applies
	Accepted bool                           `json:"accepted"`
	Err      error                          `json:"-"`        // why Applies is Unknown, as its message says
	Versions []string                       `json:"versions"` // the targets that carry the risk, in the lists' order
}

// Evaluate judges the risks of u: an [Evaluator] with m and accepted. A nil m
// knows rules of type Always alone. prev are the conditional updates as
// published before: a condition keeps its transition time while its status
// stays. u is not changed.
func Evaluate(ctx context.Context, u *graph.Updates, m graph.RiskMatcher, prev []configv1.ConditionalUpdate, accepted []string, now time.Time) (available []configv1.Release, conditional []configv1.ConditionalUpdate) {
	e := Evaluator{Matcher: m, Accepted: accepted}.Evaluate(ctx, u.Available, u.Conditional, prev, now)
	return e.Available, e.Conditional
}

// Evaluate judges the risks of conditional updates and sorts the lists. The
// inputs, which must be the lists as retrieved and not those of an evaluation
// before, are not changed.
func (e Evaluator) Evaluate(ctx context.Context, available []configv1.Release, conditional, prev []configv1.ConditionalUpdate, now time.Time) *Evaluation {
	order := versionOrder{}
	risks, diverging := e.collect(conditional, order)
	result := &Evaluation{Diverging: diverging}
	listed := newReleaseList(available)
	published := publishedConditions(prev)
	verdicts := make(map[string]*Verdict, len(risks))
	result.Verdicts = make([]Verdict, len(risks))
	before := e.appliesBefore(prev)
	for i, r := range risks {
		result.Verdicts[i] = e.judge(ctx, r, before, now)
		verdicts[r.key] = &result.Verdicts[i]
	}
	for i := range conditional {
		c := *conditional[i].DeepCopy()
		of := make([]*Verdict, len(c.Risks))
		for j := range c.Risks {
			of[j] = verdicts[e.Key(&c.Risks[j])]
			if e.RiskConditions {
				c.Risks[j].Conditions = []metav1.Condition{of[j].Applies}
			} else {
				c.Risks[j].Conditions = nil
			}
		}
		if e.RiskConditions {
			c.RiskNames = riskNames(c.Risks)
		}
		c.Conditions = published.of(&c, now)
		setCondition(&c.Conditions, e.recommended(c.Risks, of), now)
		if err := e.publishable(&c); err != nil {
			result.drop(c, graph.InvalidRisks, err)
			listed.remove(c.Release.Image)
			continue
		}
		result.Conditional = append(result.Conditional, c)
		if meta.IsStatusConditionTrue(c.Conditions, graph.ConditionRecommended) {
			listed.add(c.Release)
		} else {
			listed.remove(c.Release.Image)
		}
	}
	result.Available = listed.kept()
	slices.SortStableFunc(result.Available, order.releases)
	slices.SortStableFunc(result.Conditional, func(a, b configv1.ConditionalUpdate) int { return order.releases(a.Release, b.Release) })
	e.limit(result)
	if len(result.Available) == 0 {
		result.Available = nil
	}
	if len(result.Conditional) == 0 {
		result.Conditional = nil
	}
	return result
}

// publishable brings an update whose risks [graph.Graph.Updates] let pass into a form
// that a ClusterVersion can hold: with the rules that the API has. The error explains
// why it is missing.
func (e Evaluator) publishable(c *configv1.ConditionalUpdate) error {
	if e.keepsAll() {
		return nil
	}
	if len(c.Risks) > schema.MaxRisks {
		return fmt.Errorf("%d risks, of which a ClusterVersion can hold %d", len(c.Risks), schema.MaxRisks)
	}
	for i := range c.Risks {
		risk := &c.Risks[i]
		public := publicRules(risk.MatchingRules)
		if len(public) == 0 && len(risk.MatchingRules) > 0 {
			return fmt.Errorf("risks[%d]: no matching rule of a type that a ClusterVersion can hold", i)
		}
		risk.MatchingRules = public
	}
	return nil
}

// publicRules returns the rules of the types that the API has.
func publicRules(rules []configv1.ClusterCondition) []configv1.ClusterCondition {
	var public []configv1.ClusterCondition
	for i := range rules {
		if rules[i].Type == graph.RuleAlways || rules[i].Type == graph.RulePromQL {
			public = append(public, rules[i])
		}
	}
	return public
}

// drop reports that an update is in neither list. Its caller removes it from both:
// a release whose risks are unknown is not available either.
func (r *Evaluation) drop(c configv1.ConditionalUpdate, cause graph.DropCause, err error) {
	r.Dropped = append(r.Dropped, graph.Dropped{Release: c.Release, Risks: c.Risks, Cause: cause, Err: err})
}

// removeImages removes releases from the available ones.
func (r *Evaluation) removeImages(images map[string]bool) {
	if len(images) > 0 {
		r.Available = slices.DeleteFunc(r.Available, func(a configv1.Release) bool { return images[a.Image] })
	}
}

// limit brings the sorted lists to what a ClusterVersion can hold.
func (e Evaluator) limit(r *Evaluation) {
	maxBytes := cmp.Or(e.MaxBytes, schema.MaxListBytes)
	if !e.keepsAll() && len(r.Conditional) > schema.MaxConditionalUpdates {
		images := map[string]bool{}
		for _, c := range r.Conditional[schema.MaxConditionalUpdates:] {
			r.drop(c, graph.ExceedsLimit, &graph.LimitError{What: schema.LimitConditional, Max: schema.MaxConditionalUpdates})
			images[c.Release.Image] = true
		}
		r.Conditional = slices.Delete(r.Conditional, schema.MaxConditionalUpdates, len(r.Conditional))
		r.removeImages(images)
	}
	for _, longest := range [...]int{schema.MaxMessage, 4096, 1024, 256} {
		if longest < schema.MaxMessage {
			cutMessages(r.Conditional, longest)
		}
		s := schema.Sizer{Left: maxBytes, Listed: e.RiskConditions}
		if s.Available(r.Available) && !slices.ContainsFunc(r.Conditional, func(c configv1.ConditionalUpdate) bool { return !s.Conditional(&c) }) {
			return
		}
	}
	s := schema.Sizer{Left: maxBytes, Listed: e.RiskConditions}
	tooLong := &graph.LimitError{What: schema.LimitList, Max: int64(maxBytes)}
	available := r.Available
	r.Available = nil
	for i := range available {
		if s.Available(available[i : i+1]) {
			r.Available = append(r.Available, available[i])
		} else {
			r.Dropped = append(r.Dropped, graph.Dropped{Release: available[i], Cause: graph.ExceedsLimit, Err: tooLong})
		}
	}
	conditional, images := r.Conditional, map[string]bool{}
	r.Conditional = nil
	for _, c := range conditional {
		if s.Conditional(&c) {
			r.Conditional = append(r.Conditional, c)
		} else {
			r.drop(c, graph.ExceedsLimit, tooLong)
			images[c.Release.Image] = true
		}
	}
	r.removeImages(images)
}

// cutMessages shortens the messages of conditions.
func cutMessages(updates []configv1.ConditionalUpdate, longest int) {
	for i := range updates {
		for j := range updates[i].Conditions {
			c := &updates[i].Conditions[j]
			c.Message = bounded.Text(c.Message, longest)
		}
		for j := range updates[i].Risks {
			for k := range updates[i].Risks[j].Conditions {
				c := &updates[i].Risks[j].Conditions[k]
				c.Message = bounded.Text(c.Message, longest)
			}
		}
	}
}

// collected is one risk that is to be evaluated.
type collected struct {
	key      string
	risk     *configv1.ConditionalUpdateRisk
	own      *metav1.Condition // the Applies condition that it brings
	highest  string            // the highest target
	versions []string
}

// collect lists the different risks in the order of their evaluation: those of
// the highest targets first, since throttled queries are answered late.
func (e Evaluator) collect(conditional []configv1.ConditionalUpdate, order versionOrder) (risks []*collected, diverging []string) {
	byKey := map[string]*collected{}
	firstByName := map[string]*configv1.ConditionalUpdateRisk{}
	diverges := map[string]bool{}
	type target struct {
		risk    *collected
		version string
	}
	listed := map[target]bool{}
	for i := range conditional {
		version := conditional[i].Release.Version
		for j := range conditional[i].Risks {
			risk := &conditional[i].Risks[j]
			if first, ok := firstByName[risk.Name]; !ok {
				firstByName[risk.Name] = risk
			} else if !diverges[risk.Name] && !schema.EqualRisks(*first, *risk) {
				diverges[risk.Name] = true
				diverging = append(diverging, risk.Name)
			}
			key := e.Key(risk)
			r, ok := byKey[key]
			if !ok {
				r = &collected{key: key, risk: risk, highest: version}
				byKey[key] = r
				risks = append(risks, r)
			}
			if order.compare(version, r.highest) > 0 {
				r.risk, r.highest = risk, version
			}
			if r.own == nil {
				r.own = meta.FindStatusCondition(risk.Conditions, graph.ConditionApplies)
			}
			if t := (target{r, version}); !listed[t] {
				listed[t] = true
				r.versions = append(r.versions, version)
			}
		}
	}
	slices.SortStableFunc(risks, func(a, b *collected) int {
		return cmp.Or(order.compare(b.highest, a.highest), cmp.Compare(a.risk.Name, b.risk.Name))
	})
	slices.Sort(diverging)
	return risks, diverging
}

// Key identifies the risks that share a verdict.
func (e Evaluator) Key(risk *configv1.ConditionalUpdateRisk) string {
	if e.sharesVerdicts() {
		return risk.Name
	}
	var b strings.Builder
	for _, s := range [...]string{risk.Name, risk.URL, risk.Message} {
		b.WriteString(strconv.Quote(s))
	}
	for _, rule := range risk.MatchingRules {
		b.WriteString(strconv.Quote(rule.Type))
		if rule.PromQL != nil {
			b.WriteString(":" + strconv.Quote(rule.PromQL.PromQL))
		}
	}
	return b.String()
}

// appliesBefore returns the verdicts that were published, by key.
func (e Evaluator) appliesBefore(prev []configv1.ConditionalUpdate) map[string]*metav1.Condition {
	before := map[string]*metav1.Condition{}
	for i := range prev {
		for j := range prev[i].Risks {
			risk := &prev[i].Risks[j]
			if c := meta.FindStatusCondition(risk.Conditions, graph.ConditionApplies); c != nil && before[e.Key(risk)] == nil {
				before[e.Key(risk)] = c
			}
		}
	}
	return before
}

// Judge evaluates one risk, without regard to what was published before; versions
// are the targets that carry it. The verdict has no transition time.
func (e Evaluator) Judge(ctx context.Context, risk *configv1.ConditionalUpdateRisk, versions []string) Verdict {
	return e.judge(ctx, &collected{risk: risk, versions: versions}, nil, time.Time{})
}

// judge evaluates a risk.
func (e Evaluator) judge(ctx context.Context, r *collected, before map[string]*metav1.Condition, now time.Time) Verdict {
	v := Verdict{Risk: *r.risk.DeepCopy(), Accepted: slices.Contains(e.Accepted, r.risk.Name), Versions: r.versions}
	v.Risk.Conditions = nil
	applies := metav1.Condition{Type: graph.ConditionApplies, LastTransitionTime: metav1.NewTime(now)}

	rules := e.Rules
	if rules == nil {
		rules = graph.NewRules(e.Matcher)
	}
	matched, err := rules.Match(ctx, r.risk.MatchingRules)
	if e.Compat && errors.Is(err, graph.ErrNoUsableRule) {
		matched, err = false, nil
	}
	switch {
	case err != nil:
		v.Err = err
		applies.Status, applies.Reason = metav1.ConditionUnknown, reasonEvaluationFailed
		applies.Message = schema.CutMessage(fmt.Sprintf("Could not evaluate exposure to update risk %s (%s)\n  %s description: %s\n  %s URL: %s",
			r.risk.Name, bounded.Text(err.Error(), schema.MaxMessage/2), r.risk.Name, r.risk.Message, r.risk.Name, r.risk.URL))
	case matched:
		applies.Status, applies.Reason = metav1.ConditionTrue, "Match"
	default:
		applies.Status, applies.Reason = metav1.ConditionFalse, "NotMatch"
	}
	if old := before[r.key]; old != nil && old.Status == applies.Status && schema.IsDate(old.LastTransitionTime) {
		applies.LastTransitionTime = old.LastTransitionTime
	}
	if err == nil && r.own != nil && r.own.Status == applies.Status {
		applies, _ = schema.Accepted(*r.own, applies.LastTransitionTime.Time)
	}
	v.Applies = applies
	return v
}

func riskNames(risks []configv1.ConditionalUpdateRisk) []string {
	var names []string
	for i := range risks {
		names = append(names, risks[i].Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
