package upgradeconfig

import (
	"context"
	"errors"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
)

// readInProgress reports whether an upgrade is in progress: the entry of the
// desired version is in phase Upgrading and a step of it is done, or the
// ClusterVersion, which is read only if that matters, is Progressing. If that
// fails, the error is [ErrClusterVersion].
func readInProgress(ctx context.Context, r clusterapi.Reader, current *UpgradeConfig) (bool, error) {
	if upgrading(current) {
		return true, nil
	}
	cv, err := clusterversion.Get(ctx, r)
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
	return slices.ContainsFunc(cv.Status.Conditions, func(c configv1.ClusterOperatorStatusCondition) bool {
		return c.Type == configv1.OperatorProgressing && c.Status == configv1.ConditionTrue
	})
}

// CurrentVersion returns the version whose update completed last; false if none
// has.
func CurrentVersion(cv *configv1.ClusterVersion) (string, bool) {
	if cv == nil {
		return "", false
	}
	var current *configv1.UpdateHistory
	for i := range cv.Status.History {
		h := &cv.Status.History[i]
		if h.State != configv1.CompletedUpdate || h.CompletionTime == nil {
			continue
		}
		if current == nil || h.CompletionTime.After(current.CompletionTime.Time) {
			current = h
		}
	}
	if current == nil || current.Version == "" {
		return "", false
	}
	return current.Version, true
}

var errNoCurrent = errors.New("failed to get current version")
