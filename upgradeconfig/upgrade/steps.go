package upgrade

import (
	"fmt"
	"slices"
	"time"

	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stepsOf returns the steps of an upgrade in their order. An empty type is ARO;
// one that does not exist is an error.
func stepsOf(t upgradeconfig.UpgradeType) ([]upgradeconfig.ConditionType, error) {
	steps := []upgradeconfig.ConditionType{
		upgradeconfig.StartedNotificationSent, upgradeconfig.IsClusterUpgradable, upgradeconfig.ClusterHealthyBeforeUpgrade, upgradeconfig.ExternalDependenciesAvailable,
		upgradeconfig.ComputeCapacityReserved, upgradeconfig.ControlPlaneMaintenanceWindowCreated, upgradeconfig.UpgradeCommenced, upgradeconfig.ControlPlaneUpgraded,
		upgradeconfig.ControlPlaneMaintenanceWindowRemoved, upgradeconfig.WorkersMaintenanceWindowCreated, upgradeconfig.WorkerNodesUpgraded, upgradeconfig.ComputeCapacityRemoved,
		upgradeconfig.WorkersMaintenanceWindowRemoved, upgradeconfig.ClusterHealthyAfterUpgrade, upgradeconfig.PostUpgradeTasksCompleted, upgradeconfig.CompletedNotificationSent,
	}
	switch t {
	case upgradeconfig.OSD:
		return steps, nil
	case upgradeconfig.ARO, "":
		return slices.DeleteFunc(steps, func(c upgradeconfig.ConditionType) bool {
			return c == upgradeconfig.IsClusterUpgradable || c == upgradeconfig.PostUpgradeTasksCompleted
		}), nil
	}
	return nil, fmt.Errorf("spec.type: %q is not one of %s, %s", t, upgradeconfig.OSD, upgradeconfig.ARO)
}

// nextStep returns the step to run after a step, or from the beginning if that is
// empty; false if absent. It skips steps that are done, except those which gate the
// upgrade until it has commenced.
func nextStep(steps []upgradeconfig.ConditionType, e upgradeconfig.HistoryEntry, after upgradeconfig.ConditionType, commenced bool) (upgradeconfig.ConditionType, bool) {
	for _, t := range steps[slices.Index(steps, after)+1:] {
		if !e.IsTrue(t) || !commenced && gate(t) {
			return t, true
		}
	}
	return "", false
}

// gate reports whether a step must hold at the time when the upgrade commences.
func gate(t upgradeconfig.ConditionType) bool {
	switch t {
	case upgradeconfig.IsClusterUpgradable, upgradeconfig.ClusterHealthyBeforeUpgrade, upgradeconfig.ExternalDependenciesAvailable, upgradeconfig.ComputeCapacityReserved:
		return true
	}
	return false
}

// startStep gives an entry the condition of a step that starts. One that has it
// stays as it is; then the result is false.
func startStep(e *upgradeconfig.HistoryEntry, t upgradeconfig.ConditionType, now time.Time) bool {
	if _, ok := e.Condition(t); ok {
		return false
	}
	return e.SetCondition(upgradeconfig.Condition{
		Type: t, Status: metav1.ConditionFalse, Reason: string(t) + " not done", Message: string(t) + " has started", StartTime: seconds(now),
	}, now)
}

// endStep gives an entry the condition of a step that was run: it is done, or
// in progress, or failed with err, which is then its message. It reports
// whether the condition changed.
func endStep(e *upgradeconfig.HistoryEntry, t upgradeconfig.ConditionType, done bool, err error, now time.Time) bool {
	startStep(e, t, now)
	c, _ := e.Condition(t)
	switch {
	case err != nil:
		c.Status, c.Message, c.CompleteTime = metav1.ConditionFalse, err.Error(), nil
	case !done:
		c.Status, c.Message, c.CompleteTime = metav1.ConditionFalse, string(t)+" still in progress", nil
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, string(t)+" done", string(t)+" is completed"
		if c.CompleteTime == nil {
			c.CompleteTime = seconds(now)
		}
	}
	return e.SetCondition(c, now)
}

// setFailed gives an entry its condition FailedUpgrade. Without an error the phase
// becomes PhaseFailed; else it stays, because it is tried again.
func setFailed(e *upgradeconfig.HistoryEntry, err error, now time.Time) {
	c, ok := e.Condition(upgradeconfig.FailedUpgrade)
	if !ok {
		c = upgradeconfig.Condition{Type: upgradeconfig.FailedUpgrade, StartTime: seconds(now)}
	}
	c.Reason = "Upgrade failed"
	if err != nil {
		c.Status, c.Message = metav1.ConditionFalse, err.Error()
	} else {
		c.Status, c.Message, c.CompleteTime = metav1.ConditionTrue, "FailedUpgrade notification sent", seconds(now)
		e.Phase = upgradeconfig.PhaseFailed
	}
	e.SetCondition(c, now)
}
