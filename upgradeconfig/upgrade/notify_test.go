package upgrade_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade"
)

func TestAllowed(t *testing.T) {
	states := []upgradeconfig.State{
		"StatePending", "StateScheduled", "StateStarted", "StateScaleSkipped", "StateDelayed", "StateSkipped", "StateCompleted", "StateFailed", "StateCancelled",
		"StateControlPlaneStartedSL", "StateControlPlaneFinishedSL", "StateWorkerPlaneFinishedSL", "StateHealthCheckSL", "StatePreHealthCheckSL", "",
	}
	want := map[upgradeconfig.State]string{
		"StateScheduled":    "StateStarted",
		"StateStarted":      "StateScaleSkipped StateDelayed StateCompleted StateFailed",
		"StateScaleSkipped": "StateDelayed StateSkipped StateCompleted StateFailed",
		"StateDelayed":      "StateSkipped StateCompleted StateFailed",
		"StateSkipped":      "StateCompleted StateFailed",
	}
	for _, from := range states {
		var to []string
		for _, s := range states {
			if from.Allows(s) {
				to = append(to, string(s))
			}
		}
		checktest.Equal(t, want[from], strings.Join(to, " "), "from %s to", from)
	}
}

func TestDescribe(t *testing.T) {
	const end = " This is an informational notification and no action is required by you"
	const again = " Automated upgrades will be retried on their next scheduling cycle. If you have manually scheduled an upgrade instead, it must now be rescheduled"
	for _, tt := range []struct {
		state upgradeconfig.State
		// undone steps, the latest first
		undone []upgradeconfig.ConditionType
		want   string
	}{
		{"StateStarted", nil, "Cluster is currently being upgraded to version V"},
		{"StateCompleted", nil, "Cluster has been successfully upgraded to version V"},
		{"StateScaleSkipped", nil, "Cluster upgrade to version V has skipped Scale-Up additional Worker Node step for compute capacity reservation." + end},
		{"StateSkipped", nil, "Cluster upgrade to version V has experienced an issue during capacity reservation efforts. This could be caused by cloud service provider quota limitations or temporary connectivity issues to/from the new worker node. The upgrade will continue without extra compute." + end},
		{"StateDelayed", []upgradeconfig.ConditionType{"ClusterHealthyBeforeUpgrade", "ComputeCapacityReserved"}, "Cluster upgrade to version V is experiencing a delay as health alerts are firing in the cluster which could impact the upgrade's operation. The upgrade will continue to retry." + end},
		{"StateDelayed", []upgradeconfig.ConditionType{"FailedUpgrade", "ExternalDependenciesAvailable"}, "Cluster upgrade to version V is experiencing a delay as an external dependency of the upgrade is currently unavailable. The upgrade will continue to retry." + end},
		{"StateDelayed", []upgradeconfig.ConditionType{"ComputeCapacityReserved"}, "Cluster upgrade to version V is experiencing a delay attempting to scale up an additional worker node. The upgrade will continue to retry." + end},
		{"StateDelayed", []upgradeconfig.ConditionType{"IsClusterUpgradable"}, "Cluster upgrade to version V is experiencing a delay whilst it performs necessary pre-upgrade procedures. The upgrade will continue to retry. This is an informational notification and no action is required"},
		{"StateDelayed", nil, "Cluster upgrade to version V is experiencing a delay whilst it performs necessary pre-upgrade procedures. The upgrade will continue to retry. This is an informational notification and no action is required"},
		{"StateFailed", []upgradeconfig.ConditionType{"ClusterHealthyBeforeUpgrade"}, "Cluster upgrade to version V was cancelled during the Pre-Health Check step. Health alerts are firing in the cluster which could impact the upgrade's operation, so the upgrade did not proceed." + again},
		{"StateFailed", []upgradeconfig.ConditionType{"ExternalDependenciesAvailable"}, "Cluster upgrade to version V was cancelled during the External Dependency Availability Check step. A required external dependency of the upgrade was unavailable, so the upgrade did not proceed." + again},
		{"StateFailed", []upgradeconfig.ConditionType{"ComputeCapacityReserved"}, "Cluster upgrade to version V was cancelled during the Scale-Up Worker Node step. A temporary additional worker node was unable to be created to temporarily house workloads, so the upgrade did not proceed." + again},
		{"StateFailed", []upgradeconfig.ConditionType{"IsClusterUpgradable"}, "message of IsClusterUpgradable"},
		{"StateFailed", []upgradeconfig.ConditionType{"FailedUpgrade", "UpgradeCommenced"}, "Cluster upgrade to version V was cancelled as the cluster did not pass its pre-upgrade verification checks." + again},
		{"StateControlPlaneStartedSL", nil, "Cluster upgrade to version V is starting with control and worker plane upgrade. This is an informational notification and no action is required"},
		{"StateControlPlaneFinishedSL", nil, "Cluster upgrade to version V has finished control plane upgrade. This is an informational notification and no action is required"},
		{"StateWorkerPlaneFinishedSL", nil, "Cluster upgrade to version V has finished worker plane upgrade. This is an informational notification and no action is required."},
		{"StateHealthCheckSL", nil, "Cluster upgrade to version V may experience a delay as following healthcheck(s): A, B are failing for the cluster which could impact the upgrade's operation."},
		{"StatePreHealthCheckSL", nil, "Cluster upgrade to version V has been scheduled for more than 2 hours, cluster pre-upgrade health check has identified the following points which may impact the upgrade process: A, B. Please take actions to review and fix the issues before the upgrade begins to have seamless upgrade experience"},
		{"StatePending", nil, ""},
	} {
		e := upgradeconfig.HistoryEntry{Conditions: []upgradeconfig.Condition{{Type: "ExternalDependenciesAvailable", Status: "True"}}}
		if len(tt.undone) > 0 {
			e.Conditions = nil
		}
		for _, u := range tt.undone {
			e.Conditions = append(e.Conditions, upgradeconfig.Condition{Type: u, Status: "False", Message: "message of " + string(u)})
		}
		got := upgrade.Describe(tt.state, "V", e, []string{"A", "B"})
		checktest.Equal(t, tt.want, got, "%s %v", tt.state, tt.undone)
		// The only way to tell the two apart that OCM calls delayed.
		if tt.state != "StateDelayed" && strings.Contains(got, "retry") || tt.state == "StateDelayed" && !strings.Contains(got, "retry") {
			t.Errorf("%s: %s", tt.state, got)
		}
	}
}

func TestNewNotification(t *testing.T) {
	c := object(specA, upgradeconfig.Status{})
	for state, want := range map[upgradeconfig.State]string{
		"StateStarted":                "",
		"StateControlPlaneStartedSL":  "Cluster is starting with control and worker plane upgrade",
		"StateControlPlaneFinishedSL": "Cluster has finished control plane upgrade",
		"StateWorkerPlaneFinishedSL":  "Cluster has finished with worker plane upgrade",
		"StateHealthCheckSL":          "Cluster has encountered healthcheck failure during upgrade",
		"StatePreHealthCheckSL":       "Cluster has encountered pre-upgrade healthcheck failure",
	} {
		n := upgrade.NewNotification(state, c, nil)
		health := strings.Contains(string(state), "HealthCheck")
		if n.Summary != want || n.Version != "4.20.3" || n.Config != c || health != (len(n.References) == 1) {
			t.Errorf("%s: %+v", state, n)
		}
	}
}

func TestNotificationLog(t *testing.T) {
	var out bytes.Buffer
	upgrade.NewNotification("StateStarted", object(specA, upgradeconfig.Status{}), nil).Log(t.Context(), slog.New(slog.NewTextHandler(&out, nil)))
	checktest.Has(t, out.String(),
		`msg="Upgrade-State: StateStarted Description: Cluster is currently being upgraded to version 4.20.3"`)
}
