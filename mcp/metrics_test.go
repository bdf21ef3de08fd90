package mcp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
)

func TestMetrics(t *testing.T) {
	counted := func(p *mcfgv1.MachineConfigPool) {
		p.Status.MachineCount, p.Status.UpdatedMachineCount, p.Status.DegradedMachineCount, p.Status.UnavailableMachineCount = 4, 3, 2, 1
	}
	objs := mcp.Objects{Pools: mcptest.Pools(mcptest.Pool("worker", "N", counted), mcptest.Pool("master", "N"), mcptest.Pool("infra", "N"))}
	objs.Nodes = append(objs.Nodes,
		mcptest.Worker("w0", mcptest.State(mcp.StateDegraded), mcptest.Reason(`content mismatch for file "/etc/x"`)),
		mcptest.Worker("w1", mcptest.Desired("N"), mcptest.State(mcp.StateWorking)),
		mcptest.Worker("w2", mcptest.State(mcp.StateDegraded), mcptest.Reason("disk full")),
		mcptest.Worker("w3", mcptest.Without(mcp.AnnotationState)),
		mcptest.Worker("unmanaged", mcptest.Without(mcp.AnnotationCurrentConfig)),
		mcptest.Master("m0", mcptest.Label(mcp.LabelNodeRolePrefix+"infra", "")))
	var got []string
	for _, m := range mcp.NewState(objs, mcp.Options{}).Metrics(mcp.MetricsInput{Now: mcptest.Epoch, DrainErrors: []string{"w1", "gone", "w1"}}) {
		got = append(got, m.String())
	}
	want := strings.Split(strings.TrimSpace(strings.ReplaceAll(`
mcc_drain_err{node="w1"} 1
mcc_pool_alert{node="m0"} 1
mcd_config_drift{node="m0"} 0
mcd_config_drift{node="w0"} NOW
mcd_config_drift{node="w1"} 0
mcd_config_drift{node="w2"} 0
mcd_config_drift{node="w3"} 0
mcd_state{node="m0",reason="",state="Done"} NOW
mcd_state{node="w0",reason="content mismatch for file \"/etc/x\"",state="Degraded"} NOW
mcd_state{node="w1",reason="",state="Working"} NOW
mcd_state{node="w2",reason="disk full",state="Degraded"} NOW
mcd_state{node="w3",reason="",state="Done"} NOW
mco_degraded_machine_count{pool="infra"} 0
mco_degraded_machine_count{pool="master"} 0
mco_degraded_machine_count{pool="worker"} 2
mco_machine_count{pool="infra"} 0
mco_machine_count{pool="master"} 0
mco_machine_count{pool="worker"} 4
mco_unavailable_machine_count{pool="infra"} 0
mco_unavailable_machine_count{pool="master"} 0
mco_unavailable_machine_count{pool="worker"} 1
mco_updated_machine_count{pool="infra"} 0
mco_updated_machine_count{pool="master"} 0
mco_updated_machine_count{pool="worker"} 3`, "NOW", fmt.Sprint(mcptest.Epoch.Unix()))), "\n")
	checktest.Same(t, want, got)
	if got := mcp.NewState(mcp.Objects{}, mcp.Options{}).Metrics(mcp.MetricsInput{}); len(got) != 0 {
		t.Error(got)
	}
}

func TestAlerts(t *testing.T) {
	all := func(major, minor uint64) string {
		var out []string
		for _, a := range mcp.Alerts(major, minor) {
			out = append(out, fmt.Sprintf("%s: %s for %v, %s", a.Name, a.Expr, a.For, a.Severity))
			if a.Text == "" {
				t.Errorf("%+v", a)
			}
		}
		return strings.Join(out, "\n")
	}
	const always = `MCCDrainError: mcc_drain_err > 0 for 0s, warning
MCCPoolAlert: mcc_pool_alert > 0 for 0s, warning
MCDRebootError: mcd_reboots_failed_total > 0 for 5m0s, critical
MCDPivotError: mcd_pivot_errors_total > 0 for 2m0s, warning
KubeletHealthState: mcd_kubelet_state > 2 for 0s, warning`
	const missing = "\nMissingMachineConfig: mcd_missing_mc > 0 for 0s, warning"
	for version, more := range map[[2]uint64]string{
		{4, 9}: "", {4, 13}: "\nMachineConfigControllerPausedPoolKubeletCA: machine_config_controller_paused_pool_kubelet_ca > 0 for 1h0m0s, warning",
		{4, 16}: "", {4, 17}: missing, {4, 18}: missing, {4, 19}: "", {5, 10}: "", {5, 18}: "",
	} {
		if diff := cmp.Diff(always+more, all(version[0], version[1])); diff != "" {
			t.Errorf("%v: %s", version, diff)
		}
	}
}
