package graph

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/clusterupdate/clusterupdate/graph/internal/schema"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	configv1 "github.com/openshift/api/config/v1"
)

// The types of matching rules that every cluster knows.
const (
	RuleAlways = "Always"
	RulePromQL = "PromQL"
)

// RiskMatcher judges one matching rule of a risk by the state of a cluster. It is
// not asked about rules of type Always. An error reports that the rule could not be
// evaluated, which makes an update neither recommended nor not: a matcher that
// answered false instead would let clusters run into the risk. An evaluation asks
// about one rule at a time, so that a matcher need be safe for concurrent use
// only where several evaluations share it.
type RiskMatcher interface {
	// Match reports whether the rule matches. The error explains why that is
	// unknown.
	Match(ctx context.Context, rule configv1.ClusterCondition) (bool, error)
}

// RiskMatcherFunc is a function as a [RiskMatcher]. It is as safe for concurrent
// use as the function, and its errors are the function's.
type RiskMatcherFunc func(ctx context.Context, rule configv1.ClusterCondition) (bool, error)

// Match calls f and returns its error.
func (f RiskMatcherFunc) Match(ctx context.Context, rule configv1.ClusterCondition) (bool, error) {
	return f(ctx, rule)
}

// Facts is a [RiskMatcher] that knows the answers: what each PromQL query
// returns, 0 or 1. A query that it does not have is an error.
type Facts map[string]float64

// Match looks the query up. A rule without a query, a query without an answer and
// an answer other than 0 and 1 are errors.
func (f Facts) Match(_ context.Context, rule configv1.ClusterCondition) (bool, error) {
	if rule.PromQL == nil {
		return false, fmt.Errorf("no fact can answer a rule of type %q", rule.Type)
	}
	value, ok := f[rule.PromQL.PromQL]
	switch {
	case !ok:
		return false, fmt.Errorf("no fact for the query %q", rule.PromQL.PromQL)
	case value == 0:
		return false, nil
	case value == 1:
		return true, nil
	}
	return false, fmt.Errorf("invalid PromQL result (must be 0 or 1): %v", value)
}

// ErrNoUsableRule reports that a list of rules has none whose type is known, so
// that it is unknown whether the risk applies.
var ErrNoUsableRule = errors.New("no matching rule of a known type")

// RuleType is one type of matching rules. It must be as safe for concurrent use
// as the [Rules] that it is registered in.
type RuleType interface {
	// Valid returns an error that reports what is wrong with a rule's content.
	Valid(rule configv1.ClusterCondition) error
	// Match evaluates a rule, as [RiskMatcher] does, with the same errors. A rule that
	// is not valid is an error.
	Match(ctx context.Context, rule configv1.ClusterCondition) (bool, error)
}

// Rules is a registry of rule types. Registering is not safe for concurrent
// use, everything else is. The zero value knows no types.
type Rules struct {
	types map[string]RuleType
}

// NewRules returns a registry of Always and PromQL, whose rules m judges. With
// a nil m only Always is known.
func NewRules(m RiskMatcher) *Rules {
	r := &Rules{types: map[string]RuleType{RuleAlways: alwaysRule{}}}
	if m != nil {
		r.types[RulePromQL] = promQLRule{m}
	}
	return r
}

// Register adds a type. Another implementation under a name that is in use is
// an error, the same one again is not.
func (r *Rules) Register(name string, t RuleType) error {
	if old, ok := r.types[name]; ok {
		if reflect.TypeOf(old) == reflect.TypeOf(t) && reflect.TypeOf(t).Comparable() && old == t {
			return nil
		}
		return fmt.Errorf("the cluster condition type %q is registered already", name)
	}
	if r.types == nil {
		r.types = map[string]RuleType{}
	}
	r.types[name] = t
	return nil
}

// Prune keeps the rules that are of a known type and valid, in their order. The
// error aggregates what is wrong with the others; both results count. If nothing is
// wrong the result is the list that was given.
func (r *Rules) Prune(rules []configv1.ClusterCondition) ([]configv1.ClusterCondition, error) {
	var errs []error
	for i := range rules {
		if err := r.check(&rules[i]); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 {
		return rules, nil
	}
	var kept []configv1.ClusterCondition
	for i := range rules {
		if r.check(&rules[i]) == nil {
			kept = append(kept, rules[i])
		}
	}
	return kept, bounded.Aggregate(errs)
}

// PruneRisks keeps the rules that are known and valid; risks stays as it is. The
// error reports which risks have none left.
func (r *Rules) PruneRisks(risks []configv1.ConditionalUpdateRisk) ([]configv1.ConditionalUpdateRisk, error) {
	pruned := risks
	var errs []error
	for i := range risks {
		kept, err := r.Prune(risks[i].MatchingRules)
		if len(kept) == 0 {
			if err == nil {
				err = errors.New("no matching rules")
			}
			errs = append(errs, fmt.Errorf("risk %q: %w", risks[i].Name, err))
		}
		if len(kept) == len(risks[i].MatchingRules) {
			continue
		}
		if &pruned[0] == &risks[0] {
			pruned = slices.Clone(risks)
		}
		pruned[i].MatchingRules = kept
	}
	return pruned, bounded.Aggregate(errs)
}

// check explains why a rule cannot be evaluated, nil if it can.
func (r *Rules) check(rule *configv1.ClusterCondition) error {
	t, ok := r.types[rule.Type]
	if !ok {
		return fmt.Errorf("skipping unrecognized cluster condition type %q", rule.Type)
	}
	return t.Valid(*rule)
}

// Match walks the rules until one can be evaluated: its answer is the answer.
// Rules of unknown types are skipped. Where none could be evaluated the error
// aggregates why; where none is of a known type it is [ErrNoUsableRule].
func (r *Rules) Match(ctx context.Context, rules []configv1.ClusterCondition) (bool, error) {
	var errs []error
	for _, rule := range rules {
		t, ok := r.types[rule.Type]
		if !ok {
			continue
		}
		matched, err := t.Match(ctx, rule)
		if err == nil {
			return matched, nil
		}
		errs = append(errs, err)
	}
	if len(errs) == 0 {
		return false, ErrNoUsableRule
	}
	return false, bounded.Aggregate(errs)
}

type alwaysRule struct{}

func (alwaysRule) Valid(rule configv1.ClusterCondition) error {
	if rule.PromQL != nil {
		return errors.New("the 'promql' property is not valid for 'type: Always' conditions")
	}
	return nil
}

func (alwaysRule) Match(context.Context, configv1.ClusterCondition) (bool, error) { return true, nil }

type promQLRule struct{ matcher RiskMatcher }

func (promQLRule) Valid(rule configv1.ClusterCondition) error { return schema.CheckPromQL(rule) }

func (p promQLRule) Match(ctx context.Context, rule configv1.ClusterCondition) (bool, error) {
	if err := p.Valid(rule); err != nil {
		return false, err
	}
	return p.matcher.Match(ctx, rule)
}
