package upgradeconfig

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
)

// Allowed says whether a provider that has a policy in state from is to be told
// state to. Whatever is not allowed is not sent, and that counts as success.
func Allowed(from, to State) bool {
	switch from {
	case StateScheduled:
		return to == StateStarted
	case StateStarted:
		return to == StateScaleSkipped || to == StateDelayed || to == StateCompleted || to == StateFailed
	case StateScaleSkipped:
		return to == StateSkipped || to == StateDelayed || to == StateCompleted || to == StateFailed
	case StateDelayed:
		return to == StateSkipped || to == StateCompleted || to == StateFailed
	case StateSkipped:
		return to == StateCompleted || to == StateFailed
	}
	return false
}

// The ends of most texts.
const (
	noAction      = " This is an informational notification and no action is required"
	noActionByYou = noAction + " by you"
)

// HealthReference is the document that service logs about health checks point
// to.
const HealthReference = "https://access.redhat.com/solutions/7081505"

// Describe returns the text that users see about a state of the upgrade to a
// version. Those of StateDelayed and StateFailed tell which step is not done:
// the first condition of e with status False, FailedUpgrade aside. Those about
// health checks tell what was found. States that are never sent have no text.
//
// OCM makes no difference between delayed and skipped: the word "retry" in the
// text does, which therefore is in the texts of StateDelayed and in no other.
func Describe(s State, version string, e HistoryEntry, found []string) string {
	upgrade := "Cluster upgrade to version " + version
	switch s {
	case StateStarted:
		return "Cluster is currently being upgraded to version " + version
	case StateCompleted:
		return "Cluster has been successfully upgraded to version " + version
	case StateScaleSkipped:
		return upgrade + " has skipped Scale-Up additional Worker Node step for compute capacity reservation." + noActionByYou
	case StateSkipped:
		return upgrade + " has experienced an issue during capacity reservation efforts. This could be caused by cloud service provider quota limitations or temporary connectivity issues to/from the new worker node. The upgrade will continue without extra compute." + noActionByYou
	case StateDelayed:
		return upgrade + delay(e)
	case StateFailed:
		return failure(upgrade, e)
	case StateControlPlaneStartedSL:
		return upgrade + " is starting with control and worker plane upgrade." + noAction
	case StateControlPlaneFinishedSL:
		return upgrade + " has finished control plane upgrade." + noAction
	case StateWorkerPlaneFinishedSL:
		return upgrade + " has finished worker plane upgrade." + noAction + "."
	case StateHealthCheckSL:
		return upgrade + " may experience a delay as following healthcheck(s): " + strings.Join(found, ", ") + " are failing for the cluster which could impact the upgrade's operation."
	case StatePreHealthCheckSL:
		return upgrade + " has been scheduled for more than 2 hours, cluster pre-upgrade health check has identified the following points which may impact the upgrade process: " + strings.Join(found, ", ") + ". Please take actions to review and fix the issues before the upgrade begins to have seamless upgrade experience"
	}
	return ""
}

func delay(e HistoryEntry) string {
	why, end := "whilst it performs necessary pre-upgrade procedures", noAction
	switch undone(e).Type {
	case ClusterHealthyBeforeUpgrade:
		why, end = "as health alerts are firing in the cluster which could impact the upgrade's operation", noActionByYou
	case ExternalDependenciesAvailable:
		why, end = "as an external dependency of the upgrade is currently unavailable", noActionByYou
	case ComputeCapacityReserved:
		why, end = "attempting to scale up an additional worker node", noActionByYou
	}
	return " is experiencing a delay " + why + ". The upgrade will continue to retry." + end
}

func failure(upgrade string, e HistoryEntry) string {
	why := "as the cluster did not pass its pre-upgrade verification checks"
	switch c := undone(e); c.Type {
	case IsClusterUpgradable:
		return c.Message
	case ClusterHealthyBeforeUpgrade:
		why = "during the Pre-Health Check step. Health alerts are firing in the cluster which could impact the upgrade's operation, so the upgrade did not proceed"
	case ExternalDependenciesAvailable:
		why = "during the External Dependency Availability Check step. A required external dependency of the upgrade was unavailable, so the upgrade did not proceed"
	case ComputeCapacityReserved:
		why = "during the Scale-Up Worker Node step. A temporary additional worker node was unable to be created to temporarily house workloads, so the upgrade did not proceed"
	}
	return upgrade + " was cancelled " + why + ". Automated upgrades will be retried on their next scheduling cycle. If you have manually scheduled an upgrade instead, it must now be rescheduled"
}

// undone is the first condition that is False, FailedUpgrade aside; its type is
// empty if there is none.
func undone(e HistoryEntry) Condition {
	for _, c := range e.Conditions {
		if c.Status == "False" && c.Type != FailedUpgrade {
			return c
		}
	}
	return Condition{}
}

// Summary returns the headline of a service log, and empty for other states.
func Summary(s State) string {
	switch s {
	case StateControlPlaneStartedSL:
		return "Cluster is starting with control and worker plane upgrade"
	case StateControlPlaneFinishedSL:
		return "Cluster has finished control plane upgrade"
	case StateWorkerPlaneFinishedSL:
		return "Cluster has finished with worker plane upgrade"
	case StateHealthCheckSL:
		return "Cluster has encountered healthcheck failure during upgrade"
	case StatePreHealthCheckSL:
		return "Cluster has encountered pre-upgrade healthcheck failure"
	}
	return ""
}

// NewNotification returns the notification of a state of the upgrade that c
// asks for. found is what a health check found. Without an UpgradeConfig there
// is nothing to tell, and a [Notifier] does not.
func NewNotification(s State, c *UpgradeConfig, found []string) Notification {
	if c == nil {
		return Notification{State: s}
	}
	version := c.Spec.Desired.Version
	e, _ := c.Status.Entry(version)
	n := Notification{State: s, Config: c, Version: version, Description: Describe(s, version, e, found), Summary: Summary(s)}
	if s == StateHealthCheckSL || s == StatePreHealthCheckSL {
		n.References = []string{HealthReference}
	}
	return n
}

// LogNotifier writes notifications to a log: what is done where no provider is
// to be told.
type LogNotifier struct {
	// Logger nil means no logging.
	Logger *slog.Logger
}

// Notify writes one line.
func (l LogNotifier) Notify(ctx context.Context, n Notification) error {
	if l.Logger != nil {
		l.Logger.InfoContext(ctx, fmt.Sprintf("Upgrade-State: %s Description: %s", n.State, n.Description))
	}
	return nil
}
