package preconditions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph/risk"
)

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
	docs          = "https://docs.redhat.com/en/documentation/openshift_container_platform/"
	conditionDocs = "updating_clusters/understanding-openshift-updates-1#understanding_clusteroperator_conditiontypes_understanding-openshift-updates"
	deletionDocs  = "updating_clusters/understanding-openshift-updates-1#update-manifest-application_how-updates-work"
	overrideDocs  = "config_apis/clusterversion-config-openshift-io-v1#spec-8"
)

func docsURL(v *semver.Version, page string) string {
	return docs + minorText(v) + "/html/" + page
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
	cv, err := getClusterVersion(ctx, o.Reader)
	if err != nil || cv == nil || !isTrue(condition(cv.Status.Conditions, configv1.OperatorProgressing)) {
		return nil, err
	}
	return clusterVersionRisk(cv, sourceUpdating,
		"An update is already in progress and the details are in the Progressing condition.", conditionDocs)
}

// overrides: some resource of the payload is not managed. That the object
// cannot be read is reported by updating, which reads the same one.
func (o RiskOptions) overrides(ctx context.Context) ([]Risk, error) {
	cv, err := getClusterVersion(ctx, o.Reader)
	if err != nil || cv == nil || !hasUnmanagedOverride(cv) {
		return nil, nil
	}
	return clusterVersionRisk(cv, sourceOverrides,
		"Disabling ownership via cluster version overrides prevents updates between minor or major versions. Please remove overrides before requesting a minor or major version update.",
		overrideDocs)
}

func clusterVersionRisk(cv *configv1.ClusterVersion, name, message, page string) ([]Risk, error) {
	current, err := parseVersion(cv.Status.Desired.Version)
	if err != nil {
		return nil, fmt.Errorf("failed to parse current target %q to SemVer: %w", cv.Status.Desired.Version, err)
	}
	return []Risk{newRisk(name, message, docsURL(current, page))}, nil
}

// deletions: objects that the payload wants gone are still there.
func (o RiskOptions) deletions(context.Context) ([]Risk, error) {
	own, err := parseVersion(o.OwnVersion)
	if err != nil {
		return unknownRisk(sourceDeletions, fmt.Errorf("Failed to parse cluster version to check resource deletion: %w", err), docs)
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
	own, err := parseVersion(o.OwnVersion)
	if err != nil {
		return unknownRisk(sourceOperators, fmt.Errorf("Failed to parse cluster version to check Upgradeable conditions: %w", err), docs)
	}
	operators, err := clusterapi.ReadAll[configv1.ClusterOperator](ctx, o.Reader, clusterapi.ListOptions{})
	if isMissing(err) {
		return nil, nil
	}
	url := docsURL(own, conditionDocs)
	if err != nil {
		return unknownRisk(sourceOperators, fmt.Errorf("Failed to retrieve ClusterOperators to check Upgradeable conditions: %w", err), url)
	}
	slices.SortFunc(operators, func(a, b *configv1.ClusterOperator) int { return strings.Compare(a.Name, b.Name) })
	var risks []Risk
	for _, co := range operators {
		if c := condition(co.Status.Conditions, configv1.OperatorUpgradeable); isFalse(c) {
			r := newRisk(sourceOperators+"-"+co.Name, c.Message, url)
			r.Operator, r.OperatorReason = co.Name, c.Reason
			risks = append(risks, r)
		}
	}
	return risks, nil
}

// adminAcks: a gate of the own minor version is open, or cannot be judged.
func (o RiskOptions) adminAcks(ctx context.Context) ([]Risk, error) {
	own, err := parseVersion(o.OwnVersion)
	if err != nil {
		return unknownRisk(sourceAdminAck, fmt.Errorf("Failed to parse cluster version to check admin-acks: %w", err), docs)
	}
	gates, acks, err := readGates(ctx, o.Reader)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return unknownRisk(sourceAdminAck, err, docs)
	}
	var risks []Risk
	for _, g := range OpenGates(gates, acks, minorText(own)) {
		risks = append(risks, newRisk(sourceAdminAck+"-"+g.Key, cmp.Or(g.Problem, g.Text), g.URL))
	}
	return risks, nil
}
