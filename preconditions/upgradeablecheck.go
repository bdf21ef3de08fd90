package preconditions

import (
	"fmt"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"
)

// upgradeable stops updates to another minor or major version while the
// condition Upgradeable is False. Others pass, some with a warning.
func upgradeable(cv *configv1.ClusterVersion, targetText string) *Finding {
	c := condition(cv.Status.Conditions, configv1.OperatorUpgradeable)
	if c == nil || c.Status != configv1.ConditionFalse {
		return nil
	}
	currentText := cv.Status.Desired.Version
	current, target, fault := parseBoth(currentText, targetText)
	if fault != nil {
		return fault
	}
	same := sameMinor(target, current)
	harmless := same || !target.GreaterThan(current)

	if harmless && hasUnmanagedOverride(cv) {
		return &Finding{
			Severity: Warning, Reason: "ClusterVersionOverridesSet",
			Message: fmt.Sprintf("Retarget from %s to %s is not blocked by ClusterVersionOverridesSet. But the cluster-version operator is not managing these resources; they are currently the responsibility of the agent that set the overrides: %s",
				currentText, targetText, overridesPreventUpgrades),
			Remedy: "remove spec.overrides",
		}
	}
	if same && isTrue(condition(cv.Status.Conditions, configv1.OperatorProgressing)) {
		if step, from := stepInProgress(cv, current); step != "" {
			reason := "MinorVersionClusterUpdateInProgress"
			if step == "major" {
				reason = "MajorVersionClusterUpdateInProgress"
			}
			return &Finding{
				Severity: Warning, Reason: reason,
				Message: fmt.Sprintf("Retarget to %s while a %s version update from %s to %s is in progress", targetText, step, from, currentText),
			}
		}
	}
	if harmless {
		return nil
	}
	return &Finding{
		Severity: Blocking, Reason: c.Reason, Message: c.Message, Risk: riskOfReason(c.Reason),
		Remedy: "resolve what the message names; updates within the current minor version are not affected",
	}
}

// overridesPreventUpgrades is worded differently in the Upgradeable condition
// itself ("updates"): both texts are in use.
const overridesPreventUpgrades = "Disabling ownership via cluster version overrides prevents upgrades between minor or major versions. Please remove overrides before requesting a minor or major version update."

// stepInProgress returns whether the update that is going on changes the
// "major" or the "minor" version, and from what version; "" if neither.
func stepInProgress(cv *configv1.ClusterVersion, current *semver.Version) (step, from string) {
	from, ok := completedVersion(cv.Status.History)
	if !ok {
		n := len(cv.Status.History)
		if n == 0 {
			return "", ""
		}
		from = cv.Status.History[n-1].Version
	}
	completed := versionOrNil(from)
	switch {
	case completed == nil:
		return "", ""
	case completed.Major() < current.Major():
		return "major", from
	case completed.Major() == current.Major() && completed.Minor() < current.Minor():
		return "minor", from
	}
	return "", ""
}

// riskOfReason returns the name of the one risk that a reason of the condition
// Upgradeable stands for. Reasons that stand for several, or for a whole
// source, name none.
func riskOfReason(reason string) string {
	switch reason {
	case SourceUpdating, SourceOverrides, SourceDeletions, SourceDeletions + "Unknown", SourceAdminAck + "Unknown", SourceOperators + "Unknown":
		return reason
	}
	return ""
}

func isTrue(c *configv1.ClusterOperatorStatusCondition) bool {
	return c != nil && c.Status == configv1.ConditionTrue
}
