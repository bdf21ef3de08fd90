package risk_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

const (
	notExposed = "The update is recommended, because none of the conditional update risks apply to this cluster."
	acceptedOK = "The update is recommended, because either risk does not apply to this cluster or it is accepted by cluster admins."
)

func templateU(name, err string) string {
	return fmt.Sprintf("Could not evaluate exposure to update risk %[1]s (%[2]s)\n  %[1]s description: About %[1]s.\n  %[1]s URL: https://x.io/%[1]s", name, err)
}

func TestRecommended(t *testing.T) {
	yes, no, unknown := metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	for _, tt := range []struct {
		name     string
		risks    string // name:query, separated by blanks
		accepted []string
		status   metav1.ConditionStatus
		reason   string
		message  string
	}{
		{"none applies", "A:F B:F", nil, yes, "NotExposedToRisks", notExposed},
		{"one applies", "A:F B:T", nil, no, "B", "About B. https://x.io/B"},
		{"name is not a reason", "net-slow:T", nil, no, "ExposedToRisks", "About net-slow. https://x.io/net-slow"},
		{"name with a dot", "a.b:T", nil, no, "ExposedToRisks", "About a.b. https://x.io/a.b"},
		{"name with a digit first", "1a:T", nil, no, "ExposedToRisks", "About 1a. https://x.io/1a"},
		{"name with a colon last", "a::T", nil, no, "ExposedToRisks", "About a:. https://x.io/a:"},
		{"one letter", "a:T", nil, no, "a", "About a. https://x.io/a"},
		{"two apply", "A:T B:T", nil, no, "MultipleReasons", "About A. https://x.io/A\n\nAbout B. https://x.io/B"},
		{"one fails", "A:U", nil, unknown, "EvaluationFailed", templateU("A", "no data")},
		{"two fail", "A:U B:U", nil, unknown, "EvaluationFailed", templateU("A", "no data") + "\n\n" + templateU("B", "no data")},
		{"applies, then fails", "DiskFull:T net-slow:U", nil, no, "MultipleReasons", "About DiskFull. https://x.io/DiskFull\n\n" + templateU("net-slow", "no data")},
		{"fails, then applies", "net-slow:U DiskFull:T", nil, no, "MultipleReasons", templateU("net-slow", "no data") + "\n\nAbout DiskFull. https://x.io/DiskFull"},
		{"no reason, then fails", "net-slow:T DiskFull:U", nil, no, "ExposedToRisks", "About net-slow. https://x.io/net-slow\n\n" + templateU("DiskFull", "no data")},
		{"fails, then no reason", "DiskFull:U net-slow:T", nil, no, "ExposedToRisks", templateU("DiskFull", "no data") + "\n\nAbout net-slow. https://x.io/net-slow"},
		{"no reasons", "a-b:T c-d:T", nil, no, "ExposedToRisks", "About a-b. https://x.io/a-b\n\nAbout c-d. https://x.io/c-d"},
		{"no reason, then a name", "a-b:T C:T", nil, no, "MultipleReasons", "About a-b. https://x.io/a-b\n\nAbout C. https://x.io/C"},
		{"a name, then no reason", "C:T a-b:T", nil, no, "MultipleReasons", "About C. https://x.io/C\n\nAbout a-b. https://x.io/a-b"},
		{"accepted", "A:T B:F", []string{"A"}, yes, "AllExposedRisksAccepted", acceptedOK},
		{"accepted, none applies", "A:F", []string{"A"}, yes, "NotExposedToRisks", notExposed},
		{"accepted, then another", "A:T B:T", []string{"A"}, no, "B", "About B. https://x.io/B"},
		{"another, then accepted", "B:T A:T", []string{"A"}, no, "MultipleReasons", "About B. https://x.io/B"},
		{"accepted, then no reason", "A:T b-b:T", []string{"A"}, no, "ExposedToRisks", "About b-b. https://x.io/b-b"},
		{"no reason, then accepted", "b-b:T A:T", []string{"A"}, no, "ExposedToRisks", "About b-b. https://x.io/b-b"},
		{"accepted, then fails", "A:T B:U", []string{"A", "B"}, unknown, "EvaluationFailed", templateU("B", "no data")},
		{"fails, then accepted", "B:U A:T", []string{"A", "B"}, unknown, "EvaluationFailed", templateU("B", "no data")},
		{"fails though accepted", "A:U", []string{"A"}, unknown, "EvaluationFailed", templateU("A", "no data")},
		{"acceptance is case-sensitive", "A:T", []string{"a"}, no, "A", "About A. https://x.io/A"},
		{"many reasons stay many", "A:T B:T C:U D:T d-d:T", []string{"D"}, no, "MultipleReasons",
			"About A. https://x.io/A\n\nAbout B. https://x.io/B\n\n" + templateU("C", "no data") + "\n\nAbout d-d. https://x.io/d-d"},
		{"named MultipleReasons", "MultipleReasons:T", nil, no, "MultipleReasons", "About MultipleReasons. https://x.io/MultipleReasons"},
		{"named NotExposedToRisks", "A:U NotExposedToRisks:T", nil, no, "EvaluationFailed", templateU("A", "no data") + "\n\nAbout NotExposedToRisks. https://x.io/NotExposedToRisks"},
		{"named ExposedToRisks", "A:U ExposedToRisks:T", nil, no, "ExposedToRisks", templateU("A", "no data") + "\n\nAbout ExposedToRisks. https://x.io/ExposedToRisks"},
		{"no risks", "", nil, unknown, "EvaluationFailed", "The update service lists this update as conditional without naming a risk, so it is unknown whether it is recommended."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := graphtest.Update("4.2.1")
			for _, r := range strings.Fields(tt.risks) {
				at := strings.LastIndex(r, ":")
				c.Risks = append(c.Risks, graphtest.Risk(r[:at], r[at+1:]))
			}
			u := &graph.Updates{Conditional: []configv1.ConditionalUpdate{c}}
			available, conditional := risk.Evaluate(context.Background(), u, graphtest.Facts, nil, tt.accepted, graphtest.Start)
			want := []metav1.Condition{{Type: "Recommended", Status: tt.status, Reason: tt.reason, Message: tt.message, LastTransitionTime: metav1.NewTime(graphtest.Start)}}
			checktest.Same(t, want, conditional[0].Conditions)
			checktest.Equal(t, tt.status == yes, len(available) == 1, "available: %v", available)
			if u.Conditional[0].Conditions != nil {
				t.Error("the input was changed")
			}
		})
	}
}

func TestEvaluateWithoutMatcher(t *testing.T) {
	u := &graph.Updates{Conditional: []configv1.ConditionalUpdate{
		graphtest.Update("4.2.1", graphtest.Risk("A", "F")),
		graphtest.Update("4.2.2", configv1.ConditionalUpdateRisk{Name: "B", URL: "u", Message: "m", MatchingRules: []configv1.ClusterCondition{graphtest.PromQL("F"), graphtest.AlwaysRule}}),
	}}
	_, got := risk.Evaluate(context.Background(), u, nil, nil, nil, graphtest.Start)
	if c := got[0].Conditions[0]; got[0].Release.Version != "4.2.2" || c.Status != "False" || c.Reason != "B" {
		t.Errorf("%+v: Always must be known", got[0])
	}
	if c := got[1].Conditions[0]; c.Status != "Unknown" || c.Reason != "EvaluationFailed" || c.Message != templateU("A", graph.ErrNoUsableRule.Error()) {
		t.Errorf("%+v: PromQL must be unknown", c)
	}
	peer := risk.Evaluator{Compat: true}.Evaluate(context.Background(), nil, append(u.Conditional, graphtest.Update("4.2.3")), nil, graphtest.Start)
	if len(peer.Available) != 2 || peer.Available[0].Version != "4.2.3" || peer.Available[1].Version != "4.2.1" {
		t.Errorf("Compat recommends %v", peer.Available)
	}
}

func TestEvaluateLists(t *testing.T) {
	odd := configv1.Release{Version: "4.2.5", Image: "i-4.2.1"} // another version, the image of 4.2.1
	twin := configv1.Release{Version: "4.2.9", Image: "a"}
	available := []configv1.Release{graphtest.Release("4.2.9"), graphtest.Release("4.10.0"), graphtest.Release("4.2.1"), odd, graphtest.Release("4.2.3"), twin, graphtest.Release("4.2.9-rc.1")}
	conditional := []configv1.ConditionalUpdate{graphtest.Update("4.2.1", graphtest.Risk("A", "T")), graphtest.Update("4.2.3", graphtest.Risk("B", "F")), graphtest.Update("4.9.0", graphtest.Risk("B", "F"))}
	e := risk.Evaluator{Matcher: graphtest.Facts}.Evaluate(context.Background(), available, conditional, nil, graphtest.Start)
	var got []string
	for _, r := range e.Available {
		got = append(got, r.Version+"@"+r.Image)
	}
	want := []string{"4.10.0@i-4.10.0", "4.9.0@i-4.9.0", "4.2.9@a", "4.2.9@i-4.2.9", "4.2.9-rc.1@i-4.2.9-rc.1", "4.2.3@i-4.2.3"}
	checktest.Same(t, want, got)
	var order []string
	for _, c := range e.Conditional {
		order = append(order, c.Release.Version)
	}
	checktest.Same(t, []string{"4.9.0", "4.2.3", "4.2.1"}, order)
	if available[0].Version != "4.2.9" || len(available) != 7 || available[2].Version != "4.2.1" {
		t.Error("the input was changed")
	}
	none := risk.Evaluator{Matcher: graphtest.Facts}.Evaluate(context.Background(), []configv1.Release{graphtest.Release("4.2.1")}, conditional[:1], nil, graphtest.Start)
	checktest.FailIf(t, none.Available != nil, "%v is not nil", none.Available)
}

func TestEvaluateTransitionTimes(t *testing.T) {
	ctx, status := context.Background(), "U"
	matcher := graph.RiskMatcherFunc(func(ctx context.Context, rule configv1.ClusterCondition) (bool, error) {
		return graphtest.Facts(ctx, graphtest.PromQL(status))
	})
	u := &graph.Updates{Conditional: []configv1.ConditionalUpdate{graphtest.Update("4.2.1", graphtest.Risk("A", "x"))}}
	e := risk.Evaluator{Matcher: matcher, RiskConditions: true}
	var prev []configv1.ConditionalUpdate
	var got []string
	for i, s := range []string{"U", "U", "T", "T", "F", "T"} {
		status = s
		prev = e.Evaluate(ctx, u.Available, u.Conditional, prev, graphtest.Start.Add(time.Duration(i)*time.Hour)).Conditional
		c, applies := prev[0].Conditions[0], prev[0].Risks[0].Conditions[0]
		got = append(got, fmt.Sprintf("%s %d %s %d", c.Status, int(c.LastTransitionTime.Sub(graphtest.Start).Hours()), applies.Status, int(applies.LastTransitionTime.Sub(graphtest.Start).Hours())))
	}
	want := []string{"Unknown 0 Unknown 0", "Unknown 0 Unknown 0", "False 2 True 2", "False 2 True 2", "True 4 False 4", "False 5 True 5"}
	checktest.Same(t, want, got)
	// Conditions are inherited by image, other types with them.
	prev[0].Conditions = append(prev[0].Conditions, metav1.Condition{Type: "Other", Status: "True"})
	prev[0].Release.Version = "renamed"
	next := e.Evaluate(ctx, nil, u.Conditional, prev, graphtest.Start.Add(9*time.Hour)).Conditional
	if c := next[0].Conditions; len(c) != 2 || c[1].Type != "Other" || !c[0].LastTransitionTime.Equal(&prev[0].Conditions[0].LastTransitionTime) {
		t.Errorf("%+v", c)
	}
}

func TestEvaluateVerdicts(t *testing.T) {
	var asked []string
	matcher := graph.RiskMatcherFunc(func(ctx context.Context, rule configv1.ClusterCondition) (bool, error) {
		asked = append(asked, rule.PromQL.PromQL)
		return graphtest.Facts(ctx, rule)
	})
	conditional := []configv1.ConditionalUpdate{
		graphtest.Update("4.2.1", graphtest.Risk("Same", "F old"), graphtest.Risk("Z", "T")),
		graphtest.Update("4.2.10", graphtest.Risk("Same", "T new"), graphtest.Risk("B", "F")),
		graphtest.Update("4.2.9", graphtest.Risk("A", "U"), graphtest.Risk("Z", "T")),
	}
	e := risk.Evaluator{Matcher: matcher, Accepted: []string{"Z"}}.Evaluate(context.Background(), nil, conditional, nil, graphtest.Start)
	checktest.SameIn(t, "order of evaluation", []string{"F", "T new", "U", "T", "F old"}, asked)
	checktest.Same(t, []string{"Same"}, e.Diverging)
	var got []string
	for _, v := range e.Verdicts {
		got = append(got, fmt.Sprint(v.Risk.Name, " ", v.Applies.Status, " ", v.Applies.Reason, " ", v.Accepted, " ", v.Err, " ", v.Versions))
	}
	want := []string{
		"B False NotMatch false <nil> [4.2.10]", "Same True Match false <nil> [4.2.10]", "A Unknown EvaluationFailed false no data [4.2.9]",
		"Z True Match true <nil> [4.2.1 4.2.9]", "Same False NotMatch false <nil> [4.2.1]",
	}
	checktest.Same(t, want, got)
	if e.Conditional[0].Risks[0].Conditions != nil || e.Conditional[0].RiskNames != nil {
		t.Error("conditions of risks need the option")
	}
	asked = nil
	byName := risk.Evaluator{Matcher: matcher, ByName: true, RiskConditions: true}.Evaluate(context.Background(), nil, conditional, nil, graphtest.Start)
	checktest.SameIn(t, "by name", []string{"F", "T new", "U", "T"}, asked)
	last := byName.Conditional[2]
	if last.Release.Version != "4.2.1" || last.Conditions[0].Reason != "MultipleReasons" || last.Risks[0].Conditions[0].Status != "True" {
		t.Errorf("by name, the newest definition decides: %+v", last)
	}
	checktest.Same(t, []string{"Same", "Z"}, last.RiskNames)
}

// By name the definition of the highest version counts, of equal ones the first.
func TestEvaluateByName(t *testing.T) {
	for name, tt := range map[string]struct{ first, second, want string }{
		"the higher":               {"4.2.1", "4.2.2", "False"},
		"the higher, though first": {"4.2.2", "4.2.1", "True"},
		"the first of equals":      {"4.2.1+a", "4.2.1+b", "True"},
	} {
		e := risk.Evaluator{Matcher: graphtest.Facts, ByName: true}.Evaluate(context.Background(), nil, []configv1.ConditionalUpdate{graphtest.Update(tt.first, graphtest.Risk("R", "T")), graphtest.Update(tt.second, graphtest.Risk("R", "F"))}, nil, graphtest.Start)
		if len(e.Verdicts) != 1 || string(e.Verdicts[0].Applies.Status) != tt.want || !slices.Equal(e.Diverging, []string{"R"}) {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestEvaluateOwnCondition(t *testing.T) {
	own := metav1.Condition{Type: "Applies", Status: "True", Reason: "Alert:firing", Message: "critical", LastTransitionTime: metav1.NewTime(graphtest.Start.Add(-time.Hour))}
	for query, keeps := range map[string]bool{"T": true, "F": false, "U": false} {
		r := graphtest.Risk("A", query)
		r.Conditions = []metav1.Condition{own}
		if query == "U" {
			r.Conditions[0].Status = "Unknown"
		}
		e := risk.Evaluator{Matcher: graphtest.Facts, RiskConditions: true}.Evaluate(context.Background(), nil, []configv1.ConditionalUpdate{graphtest.Update("4.2.1", r)}, nil, graphtest.Start)
		got := e.Conditional[0].Risks[0].Conditions
		if kept := cmp.Equal(got, r.Conditions); kept != keeps || len(got) != 1 {
			t.Errorf("%s: %+v", query, got)
		}
	}
}

func TestNextUpdate(t *testing.T) {
	available := []configv1.Release{graphtest.Release("4.2.9"), graphtest.Release("4.10.1"), graphtest.Release("5.0.0"), graphtest.Release("4.2.1"), {Version: "6.0.0"}, {Version: "x", Image: "i"}, {Version: "4.10.1", Image: "a"}, graphtest.Release("4.2.0")}
	desired := &configv1.Update{Version: "4.2.1", Image: "old", Architecture: "Multi", Force: true, AcceptRisks: []configv1.AcceptRisk{{Name: "A"}}}
	for _, tt := range []struct {
		name string
		s    graph.AutoState
		p    graph.AutoPolicy
		want string
		why  string
	}{
		{"newest", graph.AutoState{Current: "4.2.1"}, graph.AutoPolicy{}, "5.0.0@i-5.0.0", ""},
		{"minor", graph.AutoState{Current: "4.2.1"}, graph.AutoPolicy{SameMajor: true}, "4.10.1@a", ""},
		{"patch", graph.AutoState{Current: "4.2.1"}, graph.AutoPolicy{SameMinor: true}, "4.2.9@i-4.2.9", ""},
		{"nothing newer", graph.AutoState{Current: "5.0.0"}, graph.AutoPolicy{}, "", "no recommended update is allowed and newer than 5.0.0"},
		{"equal but for the build", graph.AutoState{Current: "5.0.0+x"}, graph.AutoPolicy{}, "", "no recommended update is allowed and newer than 5.0.0+x"},
		{"not eligible", graph.AutoState{Current: "4.2.1"}, graph.AutoPolicy{Eligible: func(r configv1.Release) bool { return strings.HasPrefix(r.Version, "4.2.") }}, "4.2.9@i-4.2.9", ""},
		{"progressing", graph.AutoState{Current: "4.2.1", Progressing: true}, graph.AutoPolicy{}, "", "an update is in progress"},
		{"progressing, told so", graph.AutoState{Current: "4.2.1", Progressing: true}, graph.AutoPolicy{WhileProgressing: true}, "5.0.0@i-5.0.0", ""},
		{"keeps what is accepted", graph.AutoState{Current: "4.2.1", Desired: desired}, graph.AutoPolicy{}, "5.0.0@i-5.0.0", ""},
		{"no current version", graph.AutoState{}, graph.AutoPolicy{}, "", "the current version is not known"},
	} {
		tt.s.Available = slices.Clone(available)
		next, why := graph.NextUpdate(tt.s, tt.p)
		got := ""
		if next != nil {
			got = next.Version + "@" + next.Image
			if next.Force || next.Architecture != "" || (len(next.AcceptRisks) == 1) != (tt.s.Desired != nil) {
				t.Errorf("%s: %+v", tt.name, next)
			}
		}
		checktest.FailIf(t, got != tt.want || why != tt.why, "%s: %q, %q", tt.name, got, why)
	}
}
