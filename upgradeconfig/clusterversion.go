package upgradeconfig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph"
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

// CurrentVersion returns the version that completed last; false if none has.
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

// NotUpgradeableError says that the cluster refuses updates to another minor
// version.
type NotUpgradeableError struct {
	Version string
	// At is when the upgrade was to start.
	At time.Time
	// Reason and Message are those of the ClusterVersion's condition.
	Reason, Message string
}

func (e *NotUpgradeableError) Error() string {
	return fmt.Sprintf("cluster upgrade to version %s on %s has been cancelled: %s: %s", e.Version, e.At.UTC().Format(time.UnixDate), e.Reason, e.Message)
}

// CheckUpgradeable refuses an upgrade to a higher minor or major version while
// the condition Upgradeable of the ClusterVersion is False. The error is a
// [*NotUpgradeableError], or says which version does not parse. A release that
// is known by its image alone passes.
func CheckUpgradeable(s Spec, cv *configv1.ClusterVersion) error {
	switch {
	case s.Desired.Version == "":
		return nil
	case cv == nil:
		return errNoCurrent
	}
	refusal := slices.IndexFunc(cv.Status.Conditions, func(c configv1.ClusterOperatorStatusCondition) bool {
		return c.Type == configv1.OperatorUpgradeable && c.Status == configv1.ConditionFalse
	})
	if refusal < 0 {
		return nil
	}
	current, ok := CurrentVersion(cv)
	if !ok {
		return errNoCurrent
	}
	from, err := graph.ParseVersion(current)
	if err != nil {
		return fmt.Errorf("failed to parse current cluster version %s as semver: %w", current, err)
	}
	to, err := graph.ParseVersion(s.Desired.Version)
	if err != nil {
		return fmt.Errorf("failed to parse upgrade config desired version %s as semver: %w", s.Desired.Version, err)
	}
	if to.Major() < from.Major() || to.Major() == from.Major() && to.Minor() <= from.Minor() {
		return nil
	}
	at, err := time.Parse(time.RFC3339, s.UpgradeAt)
	if err != nil {
		return fmt.Errorf("upgradeAt: %w", err)
	}
	c := cv.Status.Conditions[refusal]
	return &NotUpgradeableError{Version: s.Desired.Version, At: at, Reason: c.Reason, Message: c.Message}
}

var errNoCurrent = errors.New("failed to get current version")
