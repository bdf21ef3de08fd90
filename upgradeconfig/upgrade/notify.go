package upgrade

import (
	"strings"

	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

// The ends of most texts.
const (
	noAction      = " This is an informational notification and no action is required"
	noActionByYou = noAction + " by you"
)

// healthReference is the document that service logs about health checks point
// to.
const healthReference = "https://access.redhat.com/solutions/7081505"

// words returns what users see about a state of the upgrade to a version: the text,
// and the headline of a service log. The texts of StateDelayed and StateFailed name the
// step that is not done: the first condition of e with status False, FailedUpgrade
// aside. Those about health checks list what was found. States that are never sent have
// no text.
//
// OCM has one state for delayed and skipped. The word "retry" distinguishes them:
// only the texts of StateDelayed have it.
func words(s upgradeconfig.State, version string, e upgradeconfig.HistoryEntry, found []string) (text, headline string) {
	upgrade, failing := "Cluster upgrade to version "+version, strings.Join(found, ", ")
	switch s {
	case upgradeconfig.StateStarted:
		return "Cluster is currently being upgraded to version " + version, ""
	case upgradeconfig.StateCompleted:
		return "Cluster has been successfully upgraded to version " + version, ""
	case upgradeconfig.StateScaleSkipped:
		return upgrade + " has skipped Scale-Up additional Worker Node step for compute capacity reservation." + noActionByYou, ""
	case upgradeconfig.StateSkipped:
		return upgrade + " has experienced an issue during capacity reservation efforts. This could be caused by cloud service provider quota limitations or temporary connectivity issues to/from the new worker node. The upgrade will continue without extra compute." + noActionByYou, ""
	case upgradeconfig.StateDelayed:
		return upgrade + delay(e), ""
	case upgradeconfig.StateFailed:
		return failure(upgrade, e), ""
	case upgradeconfig.StateControlPlaneStartedSL:
		const starts = " is starting with control and worker plane upgrade"
		return upgrade + starts + "." + noAction, "Cluster" + starts
	case upgradeconfig.StateControlPlaneFinishedSL:
		const finished = " has finished control plane upgrade"
		return upgrade + finished + "." + noAction, "Cluster" + finished
	case upgradeconfig.StateWorkerPlaneFinishedSL:
		return upgrade + " has finished worker plane upgrade." + noAction + ".", "Cluster has finished with worker plane upgrade"
	case upgradeconfig.StateHealthCheckSL:
		return upgrade + " may experience a delay as following healthcheck(s): " + failing + " are failing for the cluster which could impact the upgrade's operation.",
			"Cluster has encountered healthcheck failure during upgrade"
	case upgradeconfig.StatePreHealthCheckSL:
		return upgrade + " has been scheduled for more than 2 hours, cluster pre-upgrade health check has identified the following points which may impact the upgrade process: " + failing + ". Please take actions to review and fix the issues before the upgrade begins to have seamless upgrade experience",
			"Cluster has encountered pre-upgrade healthcheck failure"
	}
	return "", ""
}

func delay(e upgradeconfig.HistoryEntry) string {
	why, end := "whilst it performs necessary pre-upgrade procedures", noAction
	switch undone(e).Type {
	case upgradeconfig.ClusterHealthyBeforeUpgrade:
		why, end = "as health alerts are firing in the cluster which could impact the upgrade's operation", noActionByYou
	case upgradeconfig.ExternalDependenciesAvailable:
		why, end = "as an external dependency of the upgrade is currently unavailable", noActionByYou
	case upgradeconfig.ComputeCapacityReserved:
		why, end = "attempting to scale up an additional worker node", noActionByYou
	}
	return " is experiencing a delay " + why + ". The upgrade will continue to retry." + end
}

func failure(upgrade string, e upgradeconfig.HistoryEntry) string {
	if e.IsTrue(upgradeconfig.UpgradeCommenced) {
		return upgrade + " was cancelled, as the cluster is not asked to update to that version any more. It must be rescheduled"
	}
	why := "as the cluster did not pass its pre-upgrade verification checks"
	switch c := undone(e); c.Type {
	case upgradeconfig.IsClusterUpgradable:
		return c.Message
	case upgradeconfig.ClusterHealthyBeforeUpgrade:
		why = "during the Pre-Health Check step. Health alerts are firing in the cluster which could impact the upgrade's operation, so the upgrade did not proceed"
	case upgradeconfig.ExternalDependenciesAvailable:
		why = "during the External Dependency Availability Check step. A required external dependency of the upgrade was unavailable, so the upgrade did not proceed"
	case upgradeconfig.ComputeCapacityReserved:
		why = "during the Scale-Up Worker Node step. A temporary additional worker node was unable to be created to temporarily house workloads, so the upgrade did not proceed"
	}
	return upgrade + " was cancelled " + why + ". Automated upgrades will be retried on their next scheduling cycle. If you have manually scheduled an upgrade instead, it must now be rescheduled"
}

// undone is the first condition that is False, FailedUpgrade aside; its type is
// empty if absent.
func undone(e upgradeconfig.HistoryEntry) upgradeconfig.Condition {
	for _, c := range e.Conditions {
		if c.Status == "False" && c.Type != upgradeconfig.FailedUpgrade {
			return c
		}
	}
	return upgradeconfig.Condition{}
}

// NewNotification returns the notification of a state of the upgrade that c
// asks for. found is what a health check found. Without an UpgradeConfig the
// notification has only a state, and a [upgradeconfig.Notifier] ignores it.
func NewNotification(s upgradeconfig.State, c *upgradeconfig.UpgradeConfig, found []string) upgradeconfig.Notification {
	if c == nil {
		return upgradeconfig.Notification{State: s}
	}
	version := c.Spec.Desired.Version
	e, _ := c.Status.Entry(version)
	n := upgradeconfig.Notification{State: s, Config: c, Version: version}
	n.Description, n.Summary = words(s, version, e, found)
	if s == upgradeconfig.StateHealthCheckSL || s == upgradeconfig.StatePreHealthCheckSL {
		n.References = []string{healthReference}
	}
	return n
}
