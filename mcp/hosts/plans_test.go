package hosts_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/hosts"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/internal/actiontest"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

var update = flag.Bool("update", false, "write the golden files again")

const rhel88 = "Red Hat Enterprise Linux 8.8 (Ootpa)"

// clusterOf is a cluster at rest at a version, with nodes by name: those that begin with
// an m are of the control plane, those with an r run Red Hat Enterprise Linux.
func clusterOf(version string, names ...string) plan.Cluster {
	c := plan.Cluster{Version: actiontest.Version(version)}
	for _, name := range names {
		role := "worker"
		if name[0] == 'm' {
			role = "master"
		}
		n := mcptest.Node(name, role, "O")
		if name[0] == 'r' {
			n.Status.NodeInfo.OSImage = rhel88
		}
		c.Nodes = append(c.Nodes, n)
	}
	return c
}

func rhelCluster() plan.Cluster { return clusterOf("4.18.7", "m0", "m1", "m2", "w000", "r0", "r1") }

func vsphereCluster() plan.Cluster { return clusterOf("4.20.3", "m0", "m1", "m2", "w000") }

// What the builders make. Package plan runs these plans, and writes them for people.
func TestGoldenPlans(t *testing.T) {
	workers := rhelCluster()
	workers.Nodes = workers.Nodes[4:]
	for i := range workers.Nodes {
		workers.Nodes[i].Name = fmt.Sprint("worker-", i)
	}
	machines := clusterOf("4.20.3", "master-0", "worker-0", "worker-1")
	for _, tt := range []struct {
		file  string
		build func() (plan.Plan, []string, error)
	}{
		{"rhel", func() (plan.Plan, []string, error) {
			return hosts.PlanRHEL(rhelCluster(), hosts.RHELOptions{ID: "hosts", Update: "playbook", PreCordon: "before", PostUpgrade: "after"})
		}},
		{"rhel-hooks", func() (plan.Plan, []string, error) {
			return hosts.PlanRHEL(workers, hosts.RHELOptions{ID: "hosts", Update: "playbook", PreCordon: "pre-cordon",
				PreUpgrade: "pre-upgrade", PreUncordon: "pre-uncordon", PostUpgrade: "post-upgrade"})
		}},
		{"vsphere", func() (plan.Plan, []string, error) {
			return hosts.PlanVSphereHardware(vsphereCluster(),
				hosts.VSphereHardwareOptions{ID: "hardware", ShutDown: "shut-down", PowerOn: "power-on", Template: true})
		}},
		{"vsphere-nodes", func() (plan.Plan, []string, error) {
			return hosts.PlanVSphereHardware(machines, hosts.VSphereHardwareOptions{ID: "hardware", Nodes: []string{"master-0", "worker-0"},
				ShutDown: "vm", Upgrade: "vm", Template: true})
		}},
	} {
		p, warnings, err := tt.build()
		checktest.OK(t, err)
		checktest.Equal(t, 0, len(warnings), "warnings")
		got := checktest.Get(plan.Encode(p))(t)
		file := filepath.Join("..", "plan", "testdata", "plans", tt.file+".json")
		if *update {
			checktest.OK(t, os.WriteFile(file, got, 0o666))
		}
		checktest.Same(t, string(checktest.Get(os.ReadFile(file))(t)), string(got))
	}
}

// All that speaks against a plan comes together.
func TestProblems(t *testing.T) {
	rhel := func(change func(c *plan.Cluster, o *hosts.RHELOptions)) func() ([]string, error) {
		return func() ([]string, error) {
			c, o := rhelCluster(), hosts.RHELOptions{ID: "c", Update: "u"}
			change(&c, &o)
			_, warnings, err := hosts.PlanRHEL(c, o)
			return warnings, err
		}
	}
	vsphere := func(change func(c *plan.Cluster, o *hosts.VSphereHardwareOptions)) func() ([]string, error) {
		return func() ([]string, error) {
			c, o := vsphereCluster(), hosts.VSphereHardwareOptions{ID: "c"}
			change(&c, &o)
			_, warnings, err := hosts.PlanVSphereHardware(c, o)
			return warnings, err
		}
	}
	for _, tt := range []struct {
		name           string
		build          func() ([]string, error)
		want, warnings []string
	}{
		{"RHEL", rhel(func(c *plan.Cluster, o *hosts.RHELOptions) {
			c.Nodes[4].Status.NodeInfo.OSImage = "Red Hat Enterprise Linux Server 7.9 (Maipo)"
			c.Nodes[5].Status.NodeInfo.OSImage = "Red Hat Enterprise Linux 8.4 (Ootpa)"
			mcptest.Condition(corev1.NodeReady, corev1.ConditionFalse)(&c.Nodes[5])
			o.Nodes, o.Update = []string{"r0", "r1", "w000", "gone", "r0"}, ""
		}), []string{"the action that updates a node is needed", "node r0 runs Red Hat Enterprise Linux 7.9: it is to be replaced",
			"node r1 runs Red Hat Enterprise Linux 8.4: 8.6 or later is needed", "node r1 is not available: ",
			`node w000 runs "", not Red Hat Enterprise Linux`, "node gone does not exist", "node r0 comes twice"}, nil},
		{"RHEL at 4.19", rhel(func(c *plan.Cluster, _ *hosts.RHELOptions) { c.Version.Status.History[0].Version = "4.19.1" }),
			[]string{"the cluster is at 4.19.1: OpenShift 4.19 and later do not support compute nodes that run Red Hat Enterprise Linux, replace them"}, nil},
		{"RHEL without nodes", rhel(func(c *plan.Cluster, _ *hosts.RHELOptions) { c.Nodes = c.Nodes[:4] }), []string{"no node runs Red Hat Enterprise Linux"}, nil},
		{"RHEL during an update", rhel(func(c *plan.Cluster, _ *hosts.RHELOptions) {
			c.Version.Status.History[0].State = configv1.PartialUpdate
		}),
			[]string{"the update of the cluster to 4.18.7 is not complete"}, nil},
		{"RHEL without a version", rhel(func(c *plan.Cluster, _ *hosts.RHELOptions) { c.Version = nil }), []string{"the cluster has no ClusterVersion"}, nil},
		{"vSphere", vsphere(func(c *plan.Cluster, _ *hosts.VSphereHardwareOptions) {
			c.Nodes[0].Spec.ProviderID, c.Nodes[1].Spec.ProviderID = "vsphere://x", "aws:///y"
			mcptest.Cordoned(&c.Nodes[0])
		}), []string{"node m1 is not on vSphere: its provider's ID is aws:///y"}, []string{"node m0 is cordoned already, and stays so"}},
		{"vSphere, an action for all and one for a part", vsphere(func(_ *plan.Cluster, o *hosts.VSphereHardwareOptions) {
			o.Action, o.PowerOn = "hardware", "power-on"
		}), []string{"action hardware shuts down, upgrades and powers on: other actions for that do not go with it"}, nil},
		{"vSphere without nodes", vsphere(func(c *plan.Cluster, _ *hosts.VSphereHardwareOptions) { c.Nodes = nil }), []string{"the cluster has no nodes"}, nil},
		{"vSphere, a budget that never allows it", vsphere(func(c *plan.Cluster, _ *hosts.VSphereHardwareOptions) {
			budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: "web"}}
			budget.Spec.Selector = &metav1.LabelSelector{}
			budget.Status = policyv1.PodDisruptionBudgetStatus{DesiredHealthy: 1, CurrentHealthy: 1, ExpectedPods: 1}
			c.Drains = mcp.DrainObjects{Pods: []*corev1.Pod{actiontest.Pod("web", "w000")}, Budgets: []*policyv1.PodDisruptionBudget{budget}}
		}), []string{"node w000: pod app/web blocks its drain (NeverAllows): "}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			warnings, err := tt.build()
			text := fmt.Sprint(err)
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is missing in:\n%v", want, err)
				}
			}
			if strings.Count(text, "\n")+1 != len(tt.want) || !slices.Equal(tt.warnings, warnings) {
				t.Errorf("%d problems and warnings %q are wanted:\n%v\n%q", len(tt.want), tt.warnings, err, warnings)
			}
		})
	}
}
