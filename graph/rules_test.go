package graph_test

import (
	"context"
	"errors"
	"testing"

	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestRulesPrune(t *testing.T) {
	rules := graph.NewRules(graph.Facts{})
	for _, tt := range []struct {
		name     string
		in, kept []configv1.ClusterCondition
		err      string
	}{
		{"none", nil, nil, ""},
		{"valid, in order", []configv1.ClusterCondition{graphtest.PromQL("a"), graphtest.AlwaysRule}, []configv1.ClusterCondition{graphtest.PromQL("a"), graphtest.AlwaysRule}, ""},
		{"unknown", []configv1.ClusterCondition{{Type: "CEL"}, graphtest.AlwaysRule}, []configv1.ClusterCondition{graphtest.AlwaysRule}, `skipping unrecognized cluster condition type "CEL"`},
		{"Always with an empty query", []configv1.ClusterCondition{{Type: "Always", PromQL: &configv1.PromQLClusterCondition{}}}, nil, "the 'promql' property is not valid for 'type: Always' conditions"},
		{"PromQL without", []configv1.ClusterCondition{{Type: "PromQL"}}, nil, "the 'promql' property is required for 'type: PromQL' conditions"},
		{"PromQL empty", []configv1.ClusterCondition{graphtest.PromQL("")}, nil, "the 'promql.promql' query string must be non-empty for 'type: PromQL' conditions"},
		{"several, equal texts once", []configv1.ClusterCondition{{Type: "b"}, {Type: "a"}, {Type: "b"}}, nil, `[skipping unrecognized cluster condition type "b", skipping unrecognized cluster condition type "a"]`},
		{"equal texts alone", []configv1.ClusterCondition{{Type: "b"}, {Type: "b"}}, nil, `skipping unrecognized cluster condition type "b"`},
		{"syntax is not checked", []configv1.ClusterCondition{graphtest.PromQL("((")}, []configv1.ClusterCondition{graphtest.PromQL("((")}, ""},
	} {
		kept, err := rules.Prune(tt.in)
		text := ""
		if err != nil {
			text = err.Error()
		}
		checktest.Equal(t, "", cmp.Diff(tt.kept, kept)+cmp.Diff(tt.err, text), "%s", tt.name)
	}
}

func TestRulesMatch(t *testing.T) {
	rules := graph.NewRules(graph.Facts{"one": 1, "zero": 0, "two": 2})
	for _, tt := range []struct {
		name string
		in   []configv1.ClusterCondition
		want bool
		err  string
	}{
		{"always", []configv1.ClusterCondition{graphtest.AlwaysRule}, true, ""},
		{"one", []configv1.ClusterCondition{graphtest.PromQL("one")}, true, ""},
		{"zero decides", []configv1.ClusterCondition{graphtest.PromQL("zero"), graphtest.AlwaysRule}, false, ""},
		{"the next after an error", []configv1.ClusterCondition{graphtest.PromQL("none"), graphtest.PromQL("two"), graphtest.AlwaysRule}, true, ""},
		{"unknown types are skipped", []configv1.ClusterCondition{{Type: "CEL"}, graphtest.PromQL("zero")}, false, ""},
		{"one error", []configv1.ClusterCondition{{Type: "CEL"}, graphtest.PromQL("two")}, false, "invalid PromQL result (must be 0 or 1): 2"},
		{"a rule without a query", []configv1.ClusterCondition{{Type: "PromQL"}}, false, "the 'promql' property is required for 'type: PromQL' conditions"},
		{"errors", []configv1.ClusterCondition{graphtest.PromQL("two"), graphtest.PromQL("none"), graphtest.PromQL("two")}, false, `[invalid PromQL result (must be 0 or 1): 2, no fact for the query "none"]`},
		{"no rule", nil, false, graph.ErrNoUsableRule.Error()},
		{"no known rule", []configv1.ClusterCondition{{Type: "CEL"}}, false, graph.ErrNoUsableRule.Error()},
	} {
		got, err := rules.Match(context.Background(), tt.in)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if got != tt.want || text != tt.err {
			t.Errorf("%s: %v, %q", tt.name, got, text)
		}
	}
}

type never struct{}

func (never) Valid(configv1.ClusterCondition) error                          { return nil }
func (never) Match(context.Context, configv1.ClusterCondition) (bool, error) { return false, nil }

type uncomparable struct {
	never
	_ []int
}

func TestRulesRegister(t *testing.T) {
	var rules graph.Rules
	checktest.OK(t, rules.Register("Never", never{}))
	if err := rules.Register("Never", never{}); err != nil {
		t.Errorf("the same again: %v", err)
	}
	for _, other := range []graph.RuleType{&never{}, uncomparable{}} {
		checktest.Fails(t, rules.Register("Never", other), "%T replaced another", other)
	}
	if matched, err := rules.Match(context.Background(), []configv1.ClusterCondition{graphtest.AlwaysRule, {Type: "Never"}}); matched || err != nil {
		t.Errorf("%v, %v: Always is not registered here", matched, err)
	}
	checktest.OK(t, rules.Register("U", uncomparable{}))
	checktest.Fails(t, rules.Register("U", uncomparable{}), "two that cannot be compared are taken for one")
}

// Matchers say what they cannot judge.
func TestMatchersRefuse(t *testing.T) {
	for text, match := range map[string]func() (bool, error){
		`no fact can answer a rule of type "CEL"`: func() (bool, error) {
			return graph.Facts{}.Match(context.Background(), configv1.ClusterCondition{Type: "CEL"})
		},
		`no fact for the query "up"`:                func() (bool, error) { return graph.Facts{}.Match(context.Background(), graphtest.PromQL("up")) },
		"invalid PromQL result (must be 0 or 1): 2": func() (bool, error) { return graph.Facts{"up": 2}.Match(context.Background(), graphtest.PromQL("up")) },
		"the 'promql' property is required for 'type: PromQL' conditions": func() (bool, error) {
			return risk.InstantQuery(nil).Match(context.Background(), configv1.ClusterCondition{Type: "PromQL"})
		},
	} {
		if matched, err := match(); matched || err == nil || err.Error() != text {
			t.Errorf("%v, %v, want %s", matched, err, text)
		}
	}
}

func TestMatchErrorsAreFound(t *testing.T) {
	broken := errors.New("broken")
	rules := graph.NewRules(graph.RiskMatcherFunc(func(context.Context, configv1.ClusterCondition) (bool, error) { return false, broken }))
	if _, err := rules.Match(context.Background(), []configv1.ClusterCondition{graphtest.PromQL("a"), graphtest.PromQL("b")}); !errors.Is(err, broken) || err.Error() != "broken" {
		t.Errorf("error %v", err)
	}
}
