package upgrade

import (
	"errors"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

// ErrNoTarget reports that an UpgradeConfig names neither an image nor a version
// together with a channel.
var ErrNoTarget = errors.New("cannot find the correct upgrade spec source")

// hasCommenced reports whether the cluster has the request to update to the desired
// release: spec.desiredUpdate of the ClusterVersion names its image, or without an
// image its version. A release without an image needs version and channel; else the
// error is [ErrNoTarget].
func hasCommenced(desired upgradeconfig.Update, cv *configv1.ClusterVersion) (bool, error) {
	if desired.Image == "" && (desired.Version == "" || desired.Channel == "") {
		return false, ErrNoTarget
	}
	return cv != nil && clusterversion.Asks(cv, desired.Version, desired.Image), nil
}

// precedingVersion returns the version that a cluster is upgraded from: the one
// that its ClusterVersion is at or, if that is the desired one already, the
// newest completed one that is another. It is empty if that is not known.
func precedingVersion(desired string, cv *configv1.ClusterVersion) string {
	if cv == nil {
		return ""
	}
	at := cv.Status.Desired.Version
	if at != desired {
		return at
	}
	for _, h := range cv.Status.History {
		if h.State == configv1.CompletedUpdate && h.Version != "" && h.Version != desired {
			return h.Version
		}
	}
	return at
}

// target is the release that is desired, if the cluster can be asked to update
// to it: by its image always, by its version if it is among the updates, with
// its image.
func target(desired upgradeconfig.Update, cv *configv1.ClusterVersion) (configv1.Release, bool) {
	if desired.Image != "" {
		return configv1.Release{Version: desired.Version, Image: desired.Image}, true
	}
	o, ok := offered(cv, desired.Version)
	return o.release, ok && o.release.Image != ""
}

// request makes the desired release the request of a ClusterVersion, and reports
// whether it could: an image as it is, a version if it is among the updates. An
// update under a risk is requested together with its image, by which its risks
// are accepted.
func request(desired upgradeconfig.Update, cv *configv1.ClusterVersion) bool {
	if cv == nil {
		return false
	}
	if _, ok := target(desired, cv); !ok {
		return false
	}
	u := configv1.Update{Image: desired.Image}
	if desired.Image == "" {
		u.Version = desired.Version
		if o, _ := offered(cv, desired.Version); o.conditional {
			u.Image = o.release.Image
		}
	}
	clusterversion.SetDesired(cv, u)
	return true
}

// offer is an update that the ClusterVersion lists.
type offer struct {
	release     configv1.Release
	conditional bool
}

// offered finds a version among the updates of a ClusterVersion.
func offered(cv *configv1.ClusterVersion, version string) (offer, bool) {
	for _, r := range cv.Status.AvailableUpdates {
		if r.Version == version {
			return offer{release: r}, true
		}
	}
	for _, c := range cv.Status.ConditionalUpdates {
		if c.Release.Version == version {
			return offer{release: c.Release, conditional: true}, true
		}
	}
	return offer{}, false
}

// isDesired reports whether an entry of the history is of the desired release.
func isDesired(desired upgradeconfig.Update, h configv1.UpdateHistory) bool {
	if desired.Image != "" {
		return h.Image == desired.Image
	}
	return h.Version == desired.Version
}

// isUnderWay reports whether the cluster is on its way to the desired release,
// whatever is requested now, or has reached it.
func isUnderWay(desired upgradeconfig.Update, cv *configv1.ClusterVersion, since *metav1.Time) bool {
	return cv != nil && (len(cv.Status.History) > 0 && isDesired(desired, cv.Status.History[0]) || controlPlaneUpgraded(desired, cv, since))
}

// controlPlaneUpgraded reports whether an update to the desired release has
// completed: the newest one, or one since the upgrade began.
func controlPlaneUpgraded(desired upgradeconfig.Update, cv *configv1.ClusterVersion, since *metav1.Time) bool {
	for i, h := range cv.Status.History {
		if h.State != configv1.CompletedUpdate || !isDesired(desired, h) {
			continue
		}
		if i == 0 || since != nil && h.CompletionTime != nil && !h.CompletionTime.Before(since) {
			return true
		}
	}
	return false
}

// NotUpgradeableError is the error of the step IsClusterUpgradable: the cluster
// refuses updates to another minor version.
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

// checkUpgradeable refuses an upgrade to a higher minor or major version while the
// condition Upgradeable of the ClusterVersion is False. The error is a
// [*NotUpgradeableError], or reports which version does not parse. A release that
// is known by its image alone passes.
func checkUpgradeable(s upgradeconfig.Spec, cv *configv1.ClusterVersion) error {
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
	current, ok := upgradeconfig.CurrentVersion(cv)
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
