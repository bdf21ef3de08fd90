package preconditions

import (
	"fmt"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"
)

// rollback lets an older version pass only if it is the one that the cluster
// ran before, within one minor version.
func rollback(cv *configv1.ClusterVersion, targetText string) *Finding {
	currentText := cv.Status.Desired.Version
	current, target, fault := parseBoth(currentText, targetText)
	if fault != nil {
		return fault
	}
	if !target.LessThan(current) {
		return nil
	}
	previous, entry := previousVersion(cv)
	f := &Finding{Severity: Blocking, Reason: "LowDesiredVersion", Remedy: "ask for a version that is not older than " + currentText}
	switch {
	case previous == nil:
		f.Message = fmt.Sprintf("%s is less than the current target %s, and the cluster has no previous Semantic Version", targetText, currentText)
	case !target.Equal(previous):
		f.Message = fmt.Sprintf("%s is less than the current target %s, and the only supported rollback is to the cluster's previous version %s (%s)", targetText, currentText, entry.Version, entry.Image)
	case sameMinor(previous, current):
		return nil
	default:
		f.Message = fmt.Sprintf("%s is less than the current target %s and matches the cluster's previous version, but rollbacks that change major or minor versions are not recommended", targetText, currentText)
	}
	return f
}

// previousVersion returns the newest history entry of another release than the
// current one. If its version is not a semantic version there is none; older
// entries are not tried.
func previousVersion(cv *configv1.ClusterVersion) (*semver.Version, configv1.UpdateHistory) {
	for _, entry := range cv.Status.History {
		if entry.Version != cv.Status.Desired.Version || entry.Image != cv.Status.Desired.Image {
			return versionOrNil(entry.Version), entry
		}
	}
	return nil, configv1.UpdateHistory{}
}
