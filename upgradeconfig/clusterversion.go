package upgradeconfig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
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

// ChannelError is the error of [InferChannel].
type ChannelError struct {
	Group, Version string
	// PolicyID is the policy that names the version; empty if absent.
	PolicyID string
	// Err is what is wrong with the version.
	Err error
}

func (e *ChannelError) Error() string {
	text := fmt.Sprintf("unable to determine channel from channel group '%s' and version '%s'", e.Group, e.Version)
	if e.PolicyID != "" {
		text += fmt.Sprintf(" for policy ID '%s'", e.PolicyID)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *ChannelError) Unwrap() error { return e.Err }

// InferChannel returns the channel from which a cluster of a channel group
// gets a version: GROUP-MAJOR.MINOR of the version. An empty group is stable.
// The group eus has channels of minors with extended update support only, so others are
// rounded up.
// The error is a [*ChannelError] if the version is not a full semantic version.
func InferChannel(group, version string) (string, error) {
	group = cmp.Or(group, "stable")
	v, err := openshift.ParseVersion(version)
	if err != nil {
		return "", &ChannelError{Group: group, Version: version, Err: err}
	}
	minor := openshift.MinorOf(v)
	if group == "eus" {
		if minor.Minor == math.MaxUint64 {
			return "", &ChannelError{Group: group, Version: version, Err: errors.New("the minor version is too large")}
		}
		minor = minor.RoundUpEUS()
	}
	return fmt.Sprintf("%s-%s", group, minor), nil
}
