package preconditions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/preconditions/internal/facts"
)

// ReasonStyle describes how the condition Upgradeable is worded.
type ReasonStyle string

// The styles. The zero value is RiskName, except that a lone risk whose name is not a
// valid reason (a single admin gate, a single ClusterOperator) gives the stable name of
// its source.
const (
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
	reasonEvaluationFailed = "EvaluationFailed"
	reasonMultiple         = "MultipleReasons"
	reasonIncompatibleName = "RiskNameNotCompatibleWithReasonProperty"
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
	// only if there is no risk.
	Errors []error
}

// Upgradeable asks the sources in order and computes the condition Upgradeable of the
// ClusterVersion. versions are those of both lists of updates. The risks are what the
// sources report and the cluster is exposed to; two of one name count once.
//
// matcher evaluates the rules of risks that carry no verdict of their own; nil knows the
// rule Always only, and takes a PromQL rule as failed, so that its risk counts.
func Upgradeable(ctx context.Context, sources []risk.RiskSource, versions []string, style ReasonStyle, matcher graph.RiskMatcher) Upgradeability {
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
		u.Condition = upgradeableCondition(configv1.ConditionUnknown, reasonEvaluationFailed, errors.Join(errs...).Error())
	case style == Legacy:
		u.Condition = legacyCondition(u.Risks)
	case len(u.Risks) == 1:
		u.Condition = upgradeableCondition(configv1.ConditionFalse, loneReason(u.Risks[0], style), u.Risks[0].Message)
	default:
		message := "Cluster should not be upgraded between minor or major versions for multiple reasons:"
		for _, r := range u.Risks {
			message += "\n* " + r.Message
		}
		u.Condition = upgradeableCondition(configv1.ConditionFalse, reasonMultiple, message)
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
		return reasonIncompatibleName
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

// details asks a source for its risks, with their details if it is one of this package.
func details(ctx context.Context, s risk.RiskSource, versions []string) ([]Risk, error) {
	if own, ok := s.(source); ok {
		return own.details(ctx)
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

// exposed reports whether a risk counts: by its own verdict, else by its rules, of
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

// legacyCondition words the condition as older releases did: one reason per
// source, all ClusterOperators and all admin gates taken together.
func legacyCondition(risks []Risk) *configv1.ClusterOperatorStatusCondition {
	var reasons, messages []string
	for _, group := range bySource(risks) {
		reason, message := legacyReason(group)
		reasons = append(reasons, reason)
		messages = append(messages, message)
	}
	if len(reasons) == 1 {
		return upgradeableCondition(configv1.ConditionFalse, reasons[0], messages[0])
	}
	return upgradeableCondition(configv1.ConditionFalse, reasonMultiple,
		fmt.Sprintf("Cluster should not be upgraded between minor versions for multiple reasons: %s\n* %s",
			strings.Join(reasons, ","), strings.Join(messages, "\n* ")))
}

// bySource groups the risks of each source, in order of first appearance.
func bySource(risks []Risk) [][]Risk {
	var groups [][]Risk
	for _, r := range risks {
		i := slices.IndexFunc(groups, func(g []Risk) bool { return g[0].Source == r.Source })
		if i < 0 {
			i = len(groups)
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], r)
	}
	return groups
}

// legacyReason returns reason and message of the risks of one source.
func legacyReason(risks []Risk) (reason, message string) {
	messages := make([]string, len(risks))
	for i, r := range risks {
		messages[i] = r.Message
	}
	message = strings.Join(messages, " ")
	switch first := risks[0]; first.Source {
	case sourceOperators:
		return legacyOperators(risks)
	case sourceAdminAck:
		if !strings.HasPrefix(first.Name, sourceAdminAck+"-") {
			return first.Name, message
		}
		return "AdminAckRequired", message
	case sourceOverrides:
		return "ClusterVersionOverridesSet", message
	case sourceUpdating:
		return "UpdateInProgress", message
	case sourceDeletions:
		if first.Name == sourceDeletions {
			return "ResourceDeletesInProgress", message
		}
		return first.Name, message
	default:
		if len(risks) > 1 {
			return reasonMultiple, message
		}
		return loneReason(first, ""), message
	}
}

func legacyOperators(risks []Risk) (reason, message string) {
	const plural, held = "ClusterOperatorsNotUpgradeable", "Cluster operator %s should not be upgraded between minor versions: %s"
	first := risks[0]
	switch {
	case len(risks) == 1 && first.Operator == "":
		return first.Name, first.Message // the operators could not be read
	case len(risks) == 1:
		return cmp.Or(first.OperatorReason, plural), fmt.Sprintf(held, first.Operator, first.Message)
	}
	message = "Multiple cluster operators should not be upgraded between minor versions:"
	for _, r := range risks {
		why := r.Message
		if r.OperatorReason != "" {
			why = r.OperatorReason + ": " + why
		}
		message += "\n* " + fmt.Sprintf(held, r.Operator, why)
	}
	return plural, message
}

// Names of the sources of risks that the cluster itself brings. They are stable
// and serve as reasons too.
const (
	sourceUpdating  = "ClusterVersionUpdating"
	sourceOverrides = "ClusterVersionOverrides"
	sourceDeletions = "ResourceDeletionInProgress"
	sourceAdminAck  = "AdminAck"
	sourceOperators = "ClusterOperatorUpgradeable"
)

// RiskOptions say where the sources look.
type RiskOptions struct {
	// Reader reads the cluster; required.
	Reader clusterapi.Reader
	// OwnVersion is the version of the release that manages the cluster: admin
	// gates are those of its minor version. A text that is not a semantic version
	// makes the sources that need it report a risk that says so.
	OwnVersion string
	// Deletions returns the deletions that a payload asked for and that have
	// not been verified, as texts like `deployment "ns/name"`. Nil: none.
	Deletions func() []string
}

// Risk is a risk with what its published form leaves out.
type Risk struct {
	configv1.ConditionalUpdateRisk
	// Source is the name of the source that reports it.
	Source string
	// Operator and OperatorReason are the ClusterOperator that is not
	// upgradeable and the reason in its own condition; empty for other risks.
	Operator, OperatorReason string
}

// Sources returns the five sources of risks in the order in which the
// cluster-version operator asks them: an update in progress, overrides,
// deletions in progress, administrator acknowledgements, ClusterOperators.
//
// They read again at each call, return what they found together with an error,
// and are safe for concurrent use if the Reader and Deletions are. All their risks
// apply to every cluster (rule Always) and concern updates to another minor or
// major version only.
func Sources(o RiskOptions) []risk.RiskSource {
	return []risk.RiskSource{
		source{sourceUpdating, o.updating},
		source{sourceOverrides, o.overrides},
		source{sourceDeletions, o.deletions},
		source{sourceAdminAck, o.adminAcks},
		source{sourceOperators, o.operators},
	}
}

type source struct {
	name string
	risk func(context.Context) ([]Risk, error)
}

func (s source) Name() string { return s.name }

// details are the risks, with what their published form leaves out.
func (s source) details(ctx context.Context) ([]Risk, error) {
	risks, err := s.risk(ctx)
	for i := range risks {
		risks[i].Source = s.name
		risks[i].MatchingRules = []configv1.ClusterCondition{{Type: "Always"}}
	}
	return risks, err
}

// Risks returns the risks in their published form; the versions do not matter.
func (s source) Risks(ctx context.Context, _ []string) ([]configv1.ConditionalUpdateRisk, error) {
	risks, err := s.details(ctx)
	return published(risks), err
}

func published(risks []Risk) []configv1.ConditionalUpdateRisk {
	var out []configv1.ConditionalUpdateRisk
	for _, r := range risks {
		out = append(out, r.ConditionalUpdateRisk)
	}
	return out
}

// Where the documentation of a minor version explains the risks.
const (
	conditionDocs = "updating_clusters/understanding-openshift-updates-1#understanding_clusteroperator_conditiontypes_understanding-openshift-updates"
	deletionDocs  = "updating_clusters/understanding-openshift-updates-1#update-manifest-application_how-updates-work"
	overrideDocs  = "config_apis/clusterversion-config-openshift-io-v1#spec-8"
)

func docsURL(v *semver.Version, page string) string {
	return facts.Docs + openshift.MinorOf(v).String() + "/html/" + page
}

func newRisk(name, message, url string) Risk {
	return Risk{ConditionalUpdateRisk: configv1.ConditionalUpdateRisk{Name: name, Message: message, URL: url}}
}

// unknownRisk stands for what a source could not find out, which the error says.
func unknownRisk(source string, err error, url string) ([]Risk, error) {
	return []Risk{newRisk(source+"Unknown", err.Error(), url)}, err
}

// updating: an update is going on.
func (o RiskOptions) updating(ctx context.Context) ([]Risk, error) {
	cv, err := facts.ClusterVersion(ctx, o.Reader)
	if err != nil || cv == nil || !facts.IsTrue(openshift.FindCondition(cv.Status.Conditions, configv1.OperatorProgressing)) {
		return nil, err
	}
	return clusterVersionRisk(cv, sourceUpdating,
		"An update is already in progress and the details are in the Progressing condition.", conditionDocs)
}

// overrides: some resource of the payload is not managed. That the object
// cannot be read is reported by updating, which reads the same one.
func (o RiskOptions) overrides(ctx context.Context) ([]Risk, error) {
	cv, err := facts.ClusterVersion(ctx, o.Reader)
	if err != nil || cv == nil || !hasUnmanagedOverride(cv) {
		return nil, nil
	}
	return clusterVersionRisk(cv, sourceOverrides,
		"Disabling ownership via cluster version overrides prevents updates between minor or major versions. Please remove overrides before requesting a minor or major version update.",
		overrideDocs)
}

func clusterVersionRisk(cv *configv1.ClusterVersion, name, message, page string) ([]Risk, error) {
	current, err := facts.ParseVersion(cv.Status.Desired.Version)
	if err != nil {
		return nil, fmt.Errorf("failed to parse current target %q to SemVer: %w", cv.Status.Desired.Version, err)
	}
	return []Risk{newRisk(name, message, docsURL(current, page))}, nil
}

// deletions: objects that the payload wants gone are still there.
func (o RiskOptions) deletions(context.Context) ([]Risk, error) {
	own, err := facts.ParseVersion(o.OwnVersion)
	if err != nil {
		return unknownRisk(
			sourceDeletions, fmt.Errorf("Failed to parse cluster version to check resource deletion: %w", err), facts.Docs,
		)
	}
	if o.Deletions == nil {
		return nil, nil
	}
	pending := slices.Sorted(slices.Values(o.Deletions()))
	if len(pending) == 0 {
		return nil, nil
	}
	message := "Cluster minor or major version upgrades are not allowed while resource deletions are in progress; resources=" + strings.Join(pending, ",")
	return []Risk{newRisk(sourceDeletions, message, docsURL(own, deletionDocs))}, nil
}

// operators: a ClusterOperator says Upgradeable=False. That counts from the first
// moment to the last.
func (o RiskOptions) operators(ctx context.Context) ([]Risk, error) {
	own, err := facts.ParseVersion(o.OwnVersion)
	if err != nil {
		return unknownRisk(
			sourceOperators, fmt.Errorf("Failed to parse cluster version to check Upgradeable conditions: %w", err), facts.Docs,
		)
	}
	operators, err := clusterapi.ReadAll[configv1.ClusterOperator](ctx, o.Reader, clusterapi.ListOptions{})
	if clusterapi.IsMissing(err) {
		return nil, nil
	}
	url := docsURL(own, conditionDocs)
	if err != nil {
		return unknownRisk(
			sourceOperators, fmt.Errorf("Failed to retrieve ClusterOperators to check Upgradeable conditions: %w", err), url,
		)
	}
	slices.SortFunc(operators, func(a, b *configv1.ClusterOperator) int { return strings.Compare(a.Name, b.Name) })
	var risks []Risk
	for _, co := range operators {
		if c := openshift.FindCondition(co.Status.Conditions, configv1.OperatorUpgradeable); facts.IsFalse(c) {
			r := newRisk(sourceOperators+"-"+co.Name, c.Message, url)
			r.Operator, r.OperatorReason = co.Name, c.Reason
			risks = append(risks, r)
		}
	}
	return risks, nil
}

// adminAcks: a gate of the own minor version is open, or cannot be judged.
func (o RiskOptions) adminAcks(ctx context.Context) ([]Risk, error) {
	own, err := facts.ParseVersion(o.OwnVersion)
	if err != nil {
		return unknownRisk(sourceAdminAck, fmt.Errorf("Failed to parse cluster version to check admin-acks: %w", err), facts.Docs)
	}
	gates, acks, err := facts.Gates(ctx, o.Reader)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return unknownRisk(sourceAdminAck, err, facts.Docs)
	}
	var risks []Risk
	for _, g := range OpenGates(Gates(gates), acks, openshift.MinorOf(own).String()) {
		risks = append(risks, newRisk(sourceAdminAck+"-"+g.Key, cmp.Or(g.Problem, g.Text), g.URL))
	}
	return risks, nil
}
