package preconditions

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/Masterminds/semver/v3"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Names of the checks that the cluster-version operator runs.
const (
	ClusterVersionRollback          = "ClusterVersionRollback"
	ClusterVersionGiantHop          = "ClusterVersionGiantHop"
	ClusterVersionUpgradeable       = "ClusterVersionUpgradeable"
	ClusterVersionRecommendedUpdate = "ClusterVersionRecommendedUpdate"
)

// Operator returns exactly the checks of the cluster-version operator, in its
// order. They read one object, the ClusterVersion "version"; where there is
// none they pass. An unreadable one is Unknown, which blocks in the first three.
func Operator() []Check {
	return []Check{
		operatorCheck{ClusterVersionRollback, rollback},
		operatorCheck{ClusterVersionGiantHop, giantHop},
		operatorCheck{ClusterVersionUpgradeable, upgradeable},
		operatorCheck{ClusterVersionRecommendedUpdate, recommendedUpdate},
	}
}

// AtLoad returns the checks for a payload that has just been loaded: those of
// [Operator], then [ReleasePrevious] and [ReleaseNewer], then MultiArch of
// [Documented], without which an image could take a cluster back from several
// architectures to one.
func AtLoad() []Check {
	return append(Operator(), ReleasePrevious{}, ReleaseNewer{}, multiArchCheck())
}

// Default returns all checks of this package: those of [Operator],
// [ReleasePrevious], [ReleaseNewer], then those of [Documented].
func Default() []Check {
	return append(append(Operator(), ReleasePrevious{}, ReleaseNewer{}), Documented()...)
}

func isOperatorCheck(name string) bool {
	switch name {
	case ClusterVersionRollback, ClusterVersionGiantHop, ClusterVersionUpgradeable, ClusterVersionRecommendedUpdate:
		return true
	}
	return false
}

// operatorCheck is a decision about a ClusterVersion and the text of the
// target's version; nil means that it passes.
type operatorCheck struct {
	name   string
	decide func(cv *configv1.ClusterVersion, target string) *Finding
}

func (c operatorCheck) Name() string            { return c.name }
func (c operatorCheck) Applies(Transition) bool { return true }

func (c operatorCheck) Run(ctx context.Context, in *Input) ([]Finding, error) {
	cv, err := getClusterVersion(ctx, in.Reader)
	if err != nil || cv == nil {
		return nil, err
	}
	f := c.decide(cv, in.targetVersion())
	if f == nil {
		return nil, nil
	}
	f.Source = "cluster-version operator, precondition " + c.name
	f.Objects = []Object{{GVK: configv1.GroupVersion.WithKind("ClusterVersion"), Name: clusterVersionName}}
	return []Finding{*f}, nil
}

// clusterVersionName is the name of the one ClusterVersion that counts.
const clusterVersionName = "version"

// getClusterVersion returns nil where there is none, or no such kind. The
// result must not be changed.
func getClusterVersion(ctx context.Context, r clusterapi.Reader) (*configv1.ClusterVersion, error) {
	cv, err := clusterapi.Read[configv1.ClusterVersion](ctx, r, clusterapi.Key("", clusterVersionName))
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	return cv, err
}

// parseBoth parses the versions that a check compares. A bad current version
// only warns: a cluster must be able to leave it.
func parseBoth(current, target string) (c, t *semver.Version, f *Finding) {
	c, err := parseVersion(current)
	if err != nil {
		return nil, nil, &Finding{Severity: Warning, Reason: "InvalidCurrentVersion", Message: err.Error()}
	}
	t, err = parseVersion(target)
	if err != nil {
		return nil, nil, &Finding{Severity: Blocking, Reason: "InvalidDesiredVersion", Message: err.Error(),
			Remedy: "ask for a release whose version is a semantic version"}
	}
	return c, t, nil
}

// condition returns the condition of a type, or nil.
func condition(conditions []configv1.ClusterOperatorStatusCondition, t configv1.ClusterStatusConditionType) *configv1.ClusterOperatorStatusCondition {
	for i := range conditions {
		if conditions[i].Type == t {
			return &conditions[i]
		}
	}
	return nil
}

func hasUnmanagedOverride(cv *configv1.ClusterVersion) bool {
	for _, o := range cv.Spec.Overrides {
		if o.Unmanaged {
			return true
		}
	}
	return false
}
