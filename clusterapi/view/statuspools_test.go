package view_test

import (
	"strings"
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/view"
)

// selecting is a pool with another selector than that of its role.
func selecting(name string, selector *metav1.LabelSelector) *mcfgv1.MachineConfigPool {
	p := configPool(name)
	p.Spec.NodeSelector = selector
	return p
}

func hasLabel(keys ...string) *metav1.LabelSelector {
	s := &metav1.LabelSelector{}
	for _, key := range keys {
		s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpExists})
	}
	return s
}

func TestPoolMembership(t *testing.T) {
	all := &metav1.LabelSelector{}
	role := func(name string) *mcfgv1.MachineConfigPool { return configPool(name) }
	for _, tt := range []struct {
		name  string
		pools []*mcfgv1.MachineConfigPool
		roles string // of the node
		want  string // its pool
	}{
		{"master before all", []*mcfgv1.MachineConfigPool{role("worker"), role("infra"), role("master")}, "worker infra master", "master"},
		{"custom before worker", []*mcfgv1.MachineConfigPool{role("worker"), role("infra"), role("master")}, "worker infra", "infra"},
		{"worker", []*mcfgv1.MachineConfigPool{role("worker"), role("infra"), role("master")}, "worker", "worker"},
		{"none", []*mcfgv1.MachineConfigPool{role("worker"), role("infra"), role("master")}, "edge", ""},
		{"the first custom one by name", []*mcfgv1.MachineConfigPool{role("worker"), role("zeta"), role("alpha"), role("beta")}, "worker zeta beta", "beta"},
		{"in any order", []*mcfgv1.MachineConfigPool{role("beta"), role("zeta"), role("worker")}, "worker zeta beta", "beta"},
		{"no selector selects nothing", []*mcfgv1.MachineConfigPool{selecting("master", nil), selecting("infra", nil), role("worker")}, "worker", "worker"},
		{"an empty one everything", []*mcfgv1.MachineConfigPool{role("master"), selecting("infra", all), role("worker")}, "worker", "infra"},
		{"an empty worker's the rest", []*mcfgv1.MachineConfigPool{role("master"), role("infra"), selecting("worker", all)}, "edge", "worker"},
		{"no worker", []*mcfgv1.MachineConfigPool{role("master"), role("infra")}, "worker", ""},
		{"no master", []*mcfgv1.MachineConfigPool{role("infra"), role("worker")}, "master worker", "worker"},
		{"no pools", nil, "master", ""},
		{"expressions", []*mcfgv1.MachineConfigPool{selecting("infra", hasLabel("role/worker", "role/infra")), role("worker")}, "worker infra", "infra"},
		{"all of them", []*mcfgv1.MachineConfigPool{selecting("infra", hasLabel("role/worker", "role/infra")), role("worker")}, "worker", "worker"},
	} {
		n := oldNode("n", "x")
		n.Labels = map[string]string{}
		for _, r := range strings.Fields(tt.roles) {
			n.Labels["role/"+r] = ""
		}
		o := withNodes(updating(), n)
		o.MachineConfigPools = tt.pools
		got := ""
		for i, p := range assess(t, o, 0).Pools {
			if p.Name != tt.pools[i].Name {
				t.Errorf("%s: pools changed their order", tt.name)
			}
			if len(p.Nodes) > 0 {
				got += p.Name
			}
		}
		if got != tt.want {
			t.Errorf("%s: the node is of %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestPoolCounts(t *testing.T) {
	o := withNodes(updating(),
		newNode("done", "worker"),
		nodeSays(newNode("done-down", "worker"), "Ready=False", after(0), ""),
		oldNode("pending", "worker"),
		changingNode("draining", "worker", "Working", "desiredDrain=drain-new", "lastAppliedDrain=uncordon-old"),
		changingNode("draining-degraded", "worker", "Degraded", "desiredDrain=drain-new", "lastAppliedDrain=uncordon-old"),
		changingNode("updating", "worker", "Working"),
		changingNode("rebooting", "worker", "Rebooting"),
		changingNode("updating-degraded", "worker", "Unreconcilable"),
		poolNode("pending-degraded", "worker", "currentConfig=old", "desiredConfig=old", "state=Degraded"),
		poolNode("done-degraded", "worker", "currentConfig=new", "desiredConfig=new", "state=Degraded"),
	)
	p := assess(t, o, time.Minute).Pools[1]
	p.Nodes = nil
	want := view.Pool{
		Name: "worker", Assessment: "Degraded", Completion: 30, Total: 10, Available: 6, Updated: 3, Outdated: 7,
		Progressing: 3, Draining: 2, Pending: 2, Degraded: 4,
	}
	if p.Name != want.Name || p.Assessment != want.Assessment || p.Completion != want.Completion {
		t.Errorf("%+v", p)
	}
	if p.Total != want.Total || p.Available != want.Available || p.Updated != want.Updated || p.Outdated != want.Outdated ||
		p.Progressing != want.Progressing || p.Draining != want.Draining || p.Pending != want.Pending || p.Degraded != want.Degraded || p.Excluded != 0 {
		t.Errorf("counts\n%+v, want\n%+v", p, want)
	}
	o.MachineConfigPools[1].Spec.Paused = true // nodes on their way go on
	p = assess(t, o, time.Minute).Pools[1]
	if p.Excluded != 2 || p.Pending != 0 || p.Outdated != 7 || p.Progressing != 3 {
		t.Errorf("paused: %+v", p)
	}
}

func TestPoolTable(t *testing.T) {
	drains := []string{"desiredDrain=drain-new", "lastAppliedDrain=uncordon-old"}
	for _, tt := range []struct {
		name   string
		paused bool
		nodes  []*corev1.Node
		want   string
	}{
		{"all pending", false, []*corev1.Node{oldNode("a", "worker"), oldNode("b", "worker")}, "Pending 0% (0/2) 2 Available, 0 Progressing, 0 Draining"},
		{"all done", false, []*corev1.Node{newNode("a", "worker"), newNode("b", "worker")}, "Completed 100% (2/2) 2 Available, 0 Progressing, 0 Draining"},
		{"some pending", false, []*corev1.Node{newNode("a", "worker"), oldNode("b", "worker")}, "Progressing 50% (1/2) 2 Available, 0 Progressing, 0 Draining"},
		{"draining", false, []*corev1.Node{changingNode("a", "worker", "Working", drains...), oldNode("b", "worker")}, "Progressing 0% (0/2) 1 Available, 1 Progressing, 1 Draining"},
		{"paused", true, []*corev1.Node{newNode("a", "worker"), oldNode("b", "worker"), oldNode("c", "worker")}, "Excluded 33% (1/3) 3 Available, 0 Progressing, 0 Draining, 2 Excluded"},
		{"paused and done", true, []*corev1.Node{newNode("a", "worker")}, "Completed 100% (1/1) 1 Available, 0 Progressing, 0 Draining"},
		{"degraded", false, []*corev1.Node{newNode("a", "worker"), changingNode("b", "worker", "Degraded")}, "Degraded 50% (1/2) 2 Available, 0 Progressing, 0 Draining, 1 Degraded"},
		{"paused and degraded", true, []*corev1.Node{oldNode("a", "worker"), changingNode("b", "worker", "Degraded")}, "Degraded 0% (0/2) 2 Available, 0 Progressing, 0 Draining, 1 Excluded, 1 Degraded"},
		{"pending and degraded", false, []*corev1.Node{oldNode("a", "worker"), poolNode("b", "worker", "currentConfig=old", "desiredConfig=old", "state=Degraded")}, "Pending 0% (0/2) 2 Available, 0 Progressing, 0 Draining, 1 Degraded"},
		{"done and degraded", false, []*corev1.Node{poolNode("b", "worker", "currentConfig=new", "desiredConfig=new", "state=Degraded")}, "Completed 100% (1/1) 1 Available, 0 Progressing, 0 Draining, 1 Degraded"},
		{"an eighth", false, append(numbered(7, func(n string) *corev1.Node { return oldNode(n, "worker") }), newNode("a", "worker")), "Progressing 12% (1/8) 8 Available, 0 Progressing, 0 Draining"},
		{"three eighths", false, append(numbered(5, func(n string) *corev1.Node { return oldNode(n, "worker") }), newNode("a", "worker"), newNode("b", "worker"), newNode("c", "worker")), "Progressing 38% (3/8) 8 Available, 0 Progressing, 0 Draining"},
	} {
		o := withNodes(updating(), tt.nodes...)
		o.MachineConfigPools[1].Spec.Paused = tt.paused
		lines := strings.Split(section(t, statusText(t, o, time.Minute, view.StatusText{}), "= Worker", "Worker Pool Nodes"), "\n")
		if got := strings.Join(strings.Fields(lines[3]), " "); got != "worker "+tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestPoolTableAlignment(t *testing.T) {
	o := withNodes(updating(), oldNode("a", "infrastructure"), newNode("b", "worker"))
	o.MachineConfigPools = []*mcfgv1.MachineConfigPool{configPool("worker"), configPool("infrastructure"), configPool("empty"), configPool("master")}
	same(t, "table", "= Worker Upgrade =\n\n"+
		"WORKER POOL      ASSESSMENT   COMPLETION   STATUS\n"+
		"worker           Completed    100% (1/1)   1 Available, 0 Progressing, 0 Draining\n"+
		"infrastructure   Pending      0% (0/1)     1 Available, 0 Progressing, 0 Draining\n"+
		"empty            Empty                     0 Total\n",
		section(t, statusText(t, o, time.Minute, view.StatusText{}), "= Worker", "\nWorker Pool Nodes"))
}

// A pool is paused, and nodes in it are outdated: that stalls the update.
func TestPausedPoolInsight(t *testing.T) {
	for _, pool := range []string{"worker", "master"} {
		o := withNodes(updating(), oldNode("a", pool))
		for _, p := range o.MachineConfigPools {
			p.Spec.Paused = true
		}
		s := assess(t, o, time.Minute)
		same(t, pool, "Message: Outdated nodes in a paused pool '"+pool+"' will not be updated\n"+
			"  Since:       -\n  Level:       Warning\n  Impact:      Update Stalled\n"+
			"  Reference:   https://docs.openshift.com/container-platform/latest/support/troubleshooting/troubleshooting-operator-issues.html#troubleshooting-disabling-autoreboot-mco_troubleshooting-operator-issues\n"+
			"  Resources:\n    machineconfigpools.machineconfiguration.openshift.io: "+pool+"\n"+
			"  Description: Pool is paused, which stops all changes to the nodes in the pool, including updates. The nodes will not be updated until the pool is unpaused by the administrator.\n",
			section(t, statusText(t, o, time.Minute, view.StatusText{Details: "health"}), "Message", ""))
		if len(s.Health) != 1 || s.Health[0].Scope != "WorkerPool" {
			t.Errorf("%+v", s.Health)
		}
	}
	o := withNodes(updating(), newNode("a", "worker"))
	o.MachineConfigPools[1].Spec.Paused = true
	if s := assess(t, o, time.Minute); len(s.Health) > 0 {
		t.Errorf("a paused pool that is done: %+v", s.Health)
	}
}
