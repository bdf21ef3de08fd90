package graph

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The condition types of conditional updates and of their risks.
const (
	ConditionRecommended = "Recommended"
	ConditionApplies     = "Applies"
)

// Evaluator judges risks for one cluster. The zero value knows rules of type
// Always alone, so that every update with a PromQL risk is Unknown. It holds no
// state and is as safe for concurrent use as its Matcher and Rules are.
type Evaluator struct {
	// Matcher judges rules of type PromQL; nil means that only Always is known.
	Matcher RiskMatcher
	// Rules replaces Always and PromQL by a registry; Matcher is not used then.
	Rules *Rules
	// Accepted are the names of risks that the administrator accepts, from
	// spec.desiredUpdate.acceptRisks.
	Accepted []string
	// RiskConditions writes the verdicts into the risks' conditions and sets
	// RiskNames, which the API has only with the feature gate
	// ClusterUpdateAcceptRisks.
	RiskConditions bool
	// ByName gives risks of one name one verdict, that of the definition of
	// the highest version, though their contents differ. By default each
	// content has its own.
	ByName bool
	// Compat judges as the cluster-version operator does: by name, an update
	// without risks is recommended, and so is one whose rules are all of
	// unknown types. For comparisons only.
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
}

// Verdict says whether a risk applies to the cluster.
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
func Evaluate(ctx context.Context, u *Updates, m RiskMatcher, prev []configv1.ConditionalUpdate, accepted []string, now time.Time) (available []configv1.Release, conditional []configv1.ConditionalUpdate) {
	e := Evaluator{Matcher: m, Accepted: accepted}.Evaluate(ctx, u.Available, u.Conditional, prev, now)
	return e.Available, e.Conditional
}

// Evaluate judges the risks of conditional updates and sorts the lists. The
// inputs, which must be the lists as retrieved and not those of an evaluation
// before, are not changed.
func (e Evaluator) Evaluate(ctx context.Context, available []configv1.Release, conditional, prev []configv1.ConditionalUpdate, now time.Time) *Evaluation {
	risks, diverging := e.collect(conditional)
	result := &Evaluation{Available: slices.Clone(available), Diverging: diverging}
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
			of[j] = verdicts[e.key(&c.Risks[j])]
			if e.RiskConditions {
				c.Risks[j].Conditions = []metav1.Condition{of[j].Applies}
			} else {
				c.Risks[j].Conditions = nil
			}
		}
		if e.RiskConditions {
			c.RiskNames = riskNames(c.Risks)
		}
		c.Conditions = inherit(c, prev)
		setCondition(&c.Conditions, e.recommended(c.Risks, of), now)
		result.Conditional = append(result.Conditional, c)
		result.Available = place(result.Available, c)
	}
	slices.SortStableFunc(result.Available, descending)
	slices.SortStableFunc(result.Conditional, func(a, b configv1.ConditionalUpdate) int { return descending(a.Release, b.Release) })
	if len(result.Available) == 0 {
		result.Available = nil
	}
	return result
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
func (e Evaluator) collect(conditional []configv1.ConditionalUpdate) (risks []*collected, diverging []string) {
	byKey := map[string]*collected{}
	firstByName := map[string]*configv1.ConditionalUpdateRisk{}
	for i := range conditional {
		version := conditional[i].Release.Version
		for j := range conditional[i].Risks {
			risk := &conditional[i].Risks[j]
			if first, ok := firstByName[risk.Name]; !ok {
				firstByName[risk.Name] = risk
			} else if !equalRisks(*first, *risk) && !slices.Contains(diverging, risk.Name) {
				diverging = append(diverging, risk.Name)
			}
			key := e.key(risk)
			r, ok := byKey[key]
			if !ok {
				r = &collected{key: key, risk: risk, highest: version}
				byKey[key] = r
				risks = append(risks, r)
			}
			if CompareVersions(version, r.highest) > 0 {
				r.risk, r.highest = risk, version
			}
			if r.own == nil {
				r.own = findCondition(risk.Conditions, ConditionApplies)
			}
			if !slices.Contains(r.versions, version) {
				r.versions = append(r.versions, version)
			}
		}
	}
	slices.SortStableFunc(risks, func(a, b *collected) int {
		return cmp.Or(CompareVersions(b.highest, a.highest), cmp.Compare(a.risk.Name, b.risk.Name))
	})
	slices.Sort(diverging)
	return risks, diverging
}

// key identifies the risks that share a verdict.
func (e Evaluator) key(risk *configv1.ConditionalUpdateRisk) string {
	if e.ByName || e.Compat {
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
			if c := findCondition(risk.Conditions, ConditionApplies); c != nil && before[e.key(risk)] == nil {
				before[e.key(risk)] = c
			}
		}
	}
	return before
}

// judge evaluates a risk.
func (e Evaluator) judge(ctx context.Context, r *collected, before map[string]*metav1.Condition, now time.Time) Verdict {
	v := Verdict{Risk: *r.risk.DeepCopy(), Accepted: slices.Contains(e.Accepted, r.risk.Name), Versions: r.versions}
	v.Risk.Conditions = nil
	applies := metav1.Condition{Type: ConditionApplies, LastTransitionTime: metav1.NewTime(now)}

	rules := e.Rules
	if rules == nil {
		rules = NewRules(e.Matcher)
	}
	matched, err := rules.Match(ctx, r.risk.MatchingRules)
	if e.Compat && errors.Is(err, ErrNoUsableRule) {
		matched, err = false, nil
	}
	switch {
	case err != nil:
		v.Err = err
		applies.Status, applies.Reason = metav1.ConditionUnknown, reasonEvaluationFailed
		applies.Message = fmt.Sprintf("Could not evaluate exposure to update risk %s (%s)\n  %s description: %s\n  %s URL: %s",
			r.risk.Name, err, r.risk.Name, r.risk.Message, r.risk.Name, r.risk.URL)
	case matched:
		applies.Status, applies.Reason = metav1.ConditionTrue, "Match"
	default:
		applies.Status, applies.Reason = metav1.ConditionFalse, "NotMatch"
	}
	if old := before[r.key]; old != nil && old.Status == applies.Status {
		applies.LastTransitionTime = old.LastTransitionTime
	}
	if err == nil && r.own != nil && r.own.Status == applies.Status {
		applies = *r.own
	}
	v.Applies = applies
	return v
}

// place puts a conditional update into the available ones, or takes it out.
func place(available []configv1.Release, c configv1.ConditionalUpdate) []configv1.Release {
	same := func(r configv1.Release) bool { return r.Image == c.Release.Image }
	if findCondition(c.Conditions, ConditionRecommended).Status != metav1.ConditionTrue {
		return slices.DeleteFunc(available, same)
	}
	if slices.ContainsFunc(available, same) {
		return available
	}
	return append(available, *c.Release.DeepCopy())
}

// descending orders releases: highest version first, then by image.
func descending(a, b configv1.Release) int {
	return cmp.Or(CompareVersions(b.Version, a.Version), cmp.Compare(a.Image, b.Image))
}

// inherit returns the conditions that were published for the same image.
func inherit(c configv1.ConditionalUpdate, prev []configv1.ConditionalUpdate) []metav1.Condition {
	for i := range prev {
		if prev[i].Release.Image == c.Release.Image {
			return slices.Clone(prev[i].Conditions)
		}
	}
	return slices.Clone(c.Conditions)
}

// setCondition replaces a condition of the same type. The transition time moves
// only with the status.
func setCondition(conditions *[]metav1.Condition, c metav1.Condition, now time.Time) {
	c.LastTransitionTime = metav1.NewTime(now)
	if old := findCondition(*conditions, c.Type); old != nil {
		if old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		*old = c
		return
	}
	*conditions = append(*conditions, c)
}

func findCondition(conditions []metav1.Condition, kind string) *metav1.Condition {
	for i := range conditions {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return nil
}

func riskNames(risks []configv1.ConditionalUpdateRisk) []string {
	var names []string
	for i := range risks {
		names = append(names, risks[i].Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
