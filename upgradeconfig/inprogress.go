package upgradeconfig

import (
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// ClusterVersionName is the name of the one ClusterVersion.
const ClusterVersionName = "version"

// InProgress says whether an upgrade is in progress: the entry of the desired
// version is in phase Upgrading and a step of it is done, or the ClusterVersion
// is Progressing. Either may be nil, and then says nothing.
func InProgress(current *UpgradeConfig, cv *configv1.ClusterVersion) bool {
	return upgrading(current) || progressing(cv)
}

// ReadInProgress is [InProgress] with the ClusterVersion of a cluster, which it
// reads if it has to. Where that fails, the error is [ErrClusterVersion].
func ReadInProgress(ctx context.Context, r clusterapi.Reader, current *UpgradeConfig) (bool, error) {
	if upgrading(current) {
		return true, nil
	}
	cv, err := clusterapi.Get[configv1.ClusterVersion](ctx, r, clusterapi.Key("", ClusterVersionName))
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrClusterVersion, err)
	}
	return progressing(cv), nil
}

func upgrading(current *UpgradeConfig) bool {
	if current == nil {
		return false
	}
	e, ok := current.Status.Entry(current.Spec.Desired.Version)
	return ok && e.Phase == PhaseUpgrading && slices.ContainsFunc(e.Conditions, func(c Condition) bool {
		return c.Status == metav1.ConditionTrue
	})
}

func progressing(cv *configv1.ClusterVersion) bool {
	return cv != nil && slices.ContainsFunc(cv.Status.Conditions, func(c configv1.ClusterOperatorStatusCondition) bool {
		return c.Type == configv1.OperatorProgressing && c.Status == configv1.ConditionTrue
	})
}
