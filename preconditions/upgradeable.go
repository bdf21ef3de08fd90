package preconditions

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/risk"
)

// ReasonStyle says how the condition Upgradeable is worded.
type ReasonStyle string

// The styles; the zero value is SourceName.
const (
	// SourceName is RiskName, except that a lone risk whose name is not a valid
	// reason (a single admin gate, a single ClusterOperator) gives the stable
	// name of its source.
	SourceName ReasonStyle = ""
	// RiskName is what the cluster-version operator writes today: the risk's
	// name, or RiskNameNotCompatibleWithReasonProperty.
	RiskName ReasonStyle = "RiskName"
	// Legacy has the reasons of older releases, which alerts and scripts still
	// match: AdminAckRequired, ClusterOperatorsNotUpgradeable,
	// ClusterVersionOverridesSet, and the reason of a lone ClusterOperator.
	Legacy ReasonStyle = "Legacy"
)

// Reasons of the condition Upgradeable that do not stand for a single risk.
const (
	ReasonEvaluationFailed = "EvaluationFailed"
	ReasonMultiple         = "MultipleReasons"
	ReasonIncompatibleName = "RiskNameNotCompatibleWithReasonProperty"
)

// Upgradeability is the condition Upgradeable and the reasons for it.
type Upgradeability struct {
	// Condition is to be set; nil means that it is to be removed: nothing is
	// known against an update to another minor version. It is never True. The
	// transition time is left to the writer.
	Condition *configv1.ClusterOperatorStatusCondition
	// Risks are those that count, in the order of the sources.
	Risks []Risk
	// Errors are those of the sources, in their order. The condition shows them
	// only where there is no risk.
	Errors []error
}

// Upgradeable asks the sources in order and computes the condition Upgradeable
// of the ClusterVersion; nil means that the condition is to be removed. versions
// are those of both lists of updates. The risks are what the sources report and
// the cluster is exposed to; two of one name count once. See
// [ExplainUpgradeable] for the errors and the details of risks.
func Upgradeable(ctx context.Context, sources []risk.RiskSource, versions []string, style ReasonStyle) (*configv1.ClusterOperatorStatusCondition, []configv1.ConditionalUpdateRisk) {
	u := ExplainUpgradeable(ctx, sources, versions, style, nil)
	var risks []configv1.ConditionalUpdateRisk
	for _, r := range u.Risks {
		risks = append(risks, r.ConditionalUpdateRisk)
	}
	return u.Condition, risks
}

// ExplainUpgradeable is [Upgradeable] with all that is known. matcher evaluates
// the rules of risks that carry no verdict of their own; nil knows the rule
// Always only, and takes a PromQL rule as failed, so that its risk counts.
func ExplainUpgradeable(ctx context.Context, sources []risk.RiskSource, versions []string, style ReasonStyle, matcher graph.RiskMatcher) Upgradeability {
	all, errs := collect(ctx, sources, versions)
	u := Upgradeability{Errors: errs}
	for _, r := range all {
		if exposed(ctx, r.ConditionalUpdateRisk, matcher) {
			u.Risks = append(u.Risks, r)
		}
	}
	switch {
	case len(u.Risks) == 0 && len(errs) == 0:
	case len(u.Risks) == 0:
		texts := make([]string, len(errs))
		for i, err := range errs {
			texts[i] = err.Error()
		}
		u.Condition = upgradeableCondition(configv1.ConditionUnknown, ReasonEvaluationFailed, strings.Join(texts, "\n"))
	case style == Legacy:
		u.Condition = legacyCondition(u.Risks)
	case len(u.Risks) == 1:
		u.Condition = upgradeableCondition(configv1.ConditionFalse, loneReason(u.Risks[0], style), u.Risks[0].Message)
	default:
		var message strings.Builder
		message.WriteString("Cluster should not be upgraded between minor or major versions for multiple reasons:")
		for _, r := range u.Risks {
			message.WriteString("\n* " + r.Message)
		}
		u.Condition = upgradeableCondition(configv1.ConditionFalse, ReasonMultiple, message.String())
	}
	return u
}

func upgradeableCondition(status configv1.ConditionStatus, reason, message string) *configv1.ClusterOperatorStatusCondition {
	return &configv1.ClusterOperatorStatusCondition{
		Type: configv1.OperatorUpgradeable, Status: status, Reason: reason, Message: message,
	}
}

// conditionReason is what the API accepts as the reason of a condition.
var conditionReason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

func loneReason(r Risk, style ReasonStyle) string {
	switch {
	case conditionReason.MatchString(r.Name):
		return r.Name
	case style != RiskName && conditionReason.MatchString(r.Source):
		return r.Source
	default:
		return ReasonIncompatibleName
	}
}

// collect asks the sources in order. Of two risks with one name the first is
// kept; that they differ, apart from their conditions, is an error.
func collect(ctx context.Context, sources []risk.RiskSource, versions []string) ([]Risk, []error) {
	var all []Risk
	var errs []error
	at := make(map[string]int)
	for _, s := range sources {
		risks, err := details(ctx, s, versions)
		if err != nil {
			errs = append(errs, err)
		}
		for _, r := range risks {
			i, ok := at[r.Name]
			if !ok {
				at[r.Name] = len(all)
				all = append(all, r)
				continue
			}
			if diff := difference(all[i].ConditionalUpdateRisk, r.ConditionalUpdateRisk); diff != "" {
				errs = append(errs, fmt.Errorf("divergent definitions of risk %q from %q:%s", r.Name, s.Name(), diff))
			}
		}
	}
	return all, errs
}

func details(ctx context.Context, s risk.RiskSource, versions []string) ([]Risk, error) {
	if d, ok := s.(detailer); ok {
		return d.Details(ctx, versions)
	}
	published, err := s.Risks(ctx, versions)
	risks := make([]Risk, len(published))
	for i, r := range published {
		risks[i] = Risk{ConditionalUpdateRisk: r, Source: s.Name()}
	}
	return risks, err
}

// difference lists the fields in which two definitions differ, one a line;
// empty if in none.
func difference(a, b configv1.ConditionalUpdateRisk) string {
	var diff strings.Builder
	note := func(field string, old, new any) {
		fmt.Fprintf(&diff, "\n- %s: %v\n+ %s: %v", field, old, field, new)
	}
	if a.URL != b.URL {
		note("url", a.URL, b.URL)
	}
	if a.Message != b.Message {
		note("message", a.Message, b.Message)
	}
	if !equality.Semantic.DeepEqual(a.MatchingRules, b.MatchingRules) {
		note("matchingRules", rules(a.MatchingRules), rules(b.MatchingRules))
	}
	return diff.String()
}

func rules(list []configv1.ClusterCondition) string {
	texts := make([]string, len(list))
	for i, rule := range list {
		texts[i] = rule.Type
		if rule.PromQL != nil {
			texts[i] += "(" + rule.PromQL.PromQL + ")"
		}
	}
	return strings.Join(texts, ", ")
}

// exposed says whether a risk counts: by its own verdict, else by its rules, of
// which the first that can be evaluated decides. A rule that fails counts as a
// match; rules of unknown types do not.
func exposed(ctx context.Context, r configv1.ConditionalUpdateRisk, matcher graph.RiskMatcher) bool {
	if c := meta.FindStatusCondition(r.Conditions, "Applies"); c != nil {
		return c.Status != metav1.ConditionFalse
	}
	if matcher == nil {
		matcher = alwaysMatcher{}
	}
	failed := false
	for _, rule := range r.MatchingRules {
		if rule.Type != "Always" && rule.Type != "PromQL" {
			continue
		}
		match, err := matcher.Match(ctx, rule)
		if err == nil {
			return match
		}
		failed = true
	}
	return failed
}

type alwaysMatcher struct{}

func (alwaysMatcher) Match(_ context.Context, rule configv1.ClusterCondition) (bool, error) {
	if rule.Type == "Always" {
		return true, nil
	}
	return false, errors.New("no source of metrics")
}
