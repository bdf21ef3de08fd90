package plan_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		checktest.OK(t, os.MkdirAll(filepath.Dir(file), 0o777))
		checktest.OK(t, os.WriteFile(file, []byte(got), 0o666))
	}
	want := checktest.Get(os.ReadFile(file))(t)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-update writes it anew):\n%s", file, diff)
	}
}

// resting is a pool that is updated.
func resting(name string, changes ...func(*mcfgv1.MachineConfigPool)) mcfgv1.MachineConfigPool {
	return mcptest.Pool(name, "O", append([]func(*mcfgv1.MachineConfigPool){func(p *mcfgv1.MachineConfigPool) {
		p.Status.Configuration.Name, p.Status.ObservedGeneration = "O", 1
		p.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{{Type: mcfgv1.MachineConfigPoolUpdated, Status: corev1.ConditionTrue}}
	}}, changes...)...)
}

func degraded(p *mcfgv1.MachineConfigPool) {
	p.Status.Conditions = append(p.Status.Conditions, mcfgv1.MachineConfigPoolCondition{Type: mcfgv1.MachineConfigPoolDegraded, Status: corev1.ConditionTrue})
}

// clusterOf has three masters and so many workers, on 4.20.3.
func clusterOf(workers int) plan.Cluster { return clusterAt(version0, "v1.33.2", workers) }

// clusterAt is such a cluster on another version, with kubelets of another version.
func clusterAt(version, kubelets string, workers int) plan.Cluster {
	c := plan.Cluster{Pools: []mcfgv1.MachineConfigPool{resting("master"), resting("worker")}, Version: &configv1.ClusterVersion{}}
	for i := range 3 {
		c.Nodes = append(c.Nodes, mcptest.Master(fmt.Sprint("m", i), kubelet(kubelets)))
	}
	for i := range workers {
		c.Nodes = append(c.Nodes, mcptest.Worker(fmt.Sprintf("w%03d", i), kubelet(kubelets)))
	}
	c.Version.Status.Desired.Version = version
	c.Version.Status.History = []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: version}}
	return c
}

func kubelet(v string) mcptest.Change {
	return func(n *corev1.Node) { n.Status.NodeInfo.KubeletVersion = v }
}

func osImage(text string) mcptest.Change {
	return func(n *corev1.Node) { n.Status.NodeInfo.OSImage = text }
}

// examplePlans is one plan of each builder.
func examplePlans(t testing.TB) map[string]plan.Plan {
	out := map[string]plan.Plan{}
	add := func(name string, p plan.Plan, _ []string, err error) {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[name] = p
	}
	start := mcptest.Epoch.Add(22 * time.Hour)
	p, w, err := plan.PlanCanary(clusterOf(50), plan.CanaryOptions{ID: "june", Version: version1, Window: 2 * time.Hour, NodeTime: 10 * time.Minute, MaxUnavailable: 2, SparePercent: 8,
		Starts: []time.Time{start, start.Add(24 * time.Hour), start.Add(48 * time.Hour)}})
	add("canary", p, w, err)

	infra := clusterOf(2)
	infra.Pools = append(infra.Pools, resting("infra"))
	for i := range 3 {
		infra.Nodes = append(infra.Nodes, mcptest.Node(fmt.Sprint("i", i), "infra", "O"))
	}
	p, w, err = plan.PlanCanary(infra, plan.CanaryOptions{ID: "infra", Pool: "infra", Gate: "approval", KeepPools: true,
		Groups: []plan.Group{{Pool: "infra-canary", Nodes: []string{"i1"}, MaxUnavailable: new(intstr.FromString("50%"))}}})
	add("canary-of-infra", p, w, err)

	p, w, err = plan.PlanWindows(clusterOf(20), plan.WindowsOptions{ID: "nights", Version: version1, NodeTime: 10 * time.Minute,
		Windows: []plan.Window{{Start: start, Duration: 4 * time.Hour}, {Start: start.Add(24 * time.Hour), Duration: 4 * time.Hour}}})
	add("windows", p, w, err)

	p, w, err = plan.PlanControlPlaneOnly(clusterOf(3), plan.ControlPlaneOnlyOptions{ID: "eus", Versions: []string{version1, version2}, Operators: true, Hooks: []string{"storage"}, Check: "preconditions"})
	add("control-plane-only", p, w, err)

	out["rhel"] = hostPlan(t, "rhel")
	out["vsphere"] = hostPlan(t, "vsphere")
	return out
}

// hostPlan is a plan that a builder of module mcp/hosts has made.
func hostPlan(t testing.TB, name string) plan.Plan {
	t.Helper()
	text := checktest.Get(os.ReadFile(filepath.Join("testdata", "plans", name+".json")))(t)
	return checktest.Get(plan.Decode(text))(t)
}

// What the builders make, as JSON and for people.
func TestGoldenPlans(t *testing.T) {
	for name, p := range examplePlans(t) {
		text := checktest.Get(plan.Encode(p))(t)
		golden(t, "plans/"+name+".json", string(text))
		var b bytes.Buffer
		checktest.OK(t, plan.WriteText(&b, p))
		golden(t, "plans/"+name+".txt", b.String())
	}
}

func groupSizes(p plan.Plan) (names []string, sizes []int) {
	for _, s := range p.Steps {
		if s.Kind == plan.LabelNodes && strings.HasPrefix(s.ID, "label-") {
			names, sizes = append(names, s.Args.Pool), append(sizes, len(s.Args.Nodes))
		}
	}
	return names, sizes
}

// canaryOf plans a canary of n nodes, without an update of the cluster.
func canaryOf(n, spare, limit int, window, nodeTime time.Duration) (plan.Plan, []string, error) {
	return plan.PlanCanary(clusterOf(n),
		plan.CanaryOptions{ID: "c", SparePercent: spare, MaxUnavailable: limit, Window: window, NodeTime: nodeTime})
}

func TestCanarySizes(t *testing.T) {
	hour, minute := time.Hour, time.Minute
	for _, tt := range []struct {
		n, spare, limit  int
		window, nodeTime time.Duration
		want             []int
		warnings         int
		err              bool
	}{
		{100, 10, 1, 4 * hour, 8 * minute, []int{10, 30, 30, 30}, 0, false}, // the documented example
		{50, 8, 2, 2 * hour, 10 * minute, []int{4, 24, 22}, 0, false},
		{10, 0, 1, hour, 10 * minute, []int{1, 6, 3}, 1, false},
		{10, 5, 1, hour, 10 * minute, []int{1, 6, 3}, 1, false}, // no whole node
		{100, 50, 1, hour, 10 * minute, []int{6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 4}, 0, false},
		{100, 29, 4, 2 * hour, 8 * minute, []int{29, 60, 11}, 0, false},
		{1, 100, 1, hour, hour, []int{1}, 0, false},
		{3, 100, 5, hour, hour, []int{3}, 0, false},
		{5, 10, 1, hour, 61 * minute, nil, 0, true},
		{5, 10, 1, 0, minute, nil, 0, true},
	} {
		p, warnings, err := canaryOf(tt.n, tt.spare, tt.limit, tt.window, tt.nodeTime)
		_, got := groupSizes(p)
		if diff := cmp.Diff(tt.want, got); diff != "" || len(warnings) != tt.warnings || (err != nil) != tt.err {
			t.Errorf("%+v: %s, warnings %q, error %v", tt, diff, warnings, err)
		}
	}
}

// The groups have all nodes, in the order in which they are updated, and none is
// larger than a window has room for.
func TestCanarySizesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, spare, limit := rapid.IntRange(1, 500).Draw(t, "n"), rapid.IntRange(0, 100).Draw(t, "spare"), rapid.IntRange(1, 20).Draw(t, "limit")
		node := time.Duration(rapid.IntRange(1, 60).Draw(t, "node")) * time.Minute
		window := node + time.Duration(rapid.IntRange(0, 600).Draw(t, "window"))*time.Minute
		p, _, err := canaryOf(n, spare, limit, window, node)
		checktest.OK(t, err)
		_, sizes := groupSizes(p)
		room, total := int(window/node)*limit, 0
		for i, size := range sizes {
			total += size
			if size < 1 || size > room {
				t.Errorf("group %d has %d nodes, a window has room for %d", i, size, room)
			}
			if i > 0 && i < len(sizes)-1 && size != room {
				t.Errorf("group %d has %d nodes of %d", i, size, room)
			}
		}
		if total != n || sizes[0] > max(1, spare*n/100) {
			t.Errorf("%d nodes in %v, spare %d%%", n, sizes, spare)
		}
	})
}

func TestPlanCanary(t *testing.T) {
	c := clusterOf(100)
	// Zones and ages decide who goes first.
	c.Nodes[100].Labels[mcp.LabelZone] = "z"
	c.Nodes[3+50].CreationTimestamp = metav1.NewTime(mcptest.Epoch.Add(-time.Hour))
	p, warnings, err := plan.PlanCanary(c, plan.CanaryOptions{ID: "c", Version: version1, Window: 4 * time.Hour, NodeTime: 8 * time.Minute, SparePercent: 10})
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v %q", err, warnings)
	}
	names, sizes := groupSizes(p)
	checktest.Same(t, []string{"workerpool-canary", "workerpool-a", "workerpool-b", "workerpool-c"}, names)
	checktest.Same(t, []int{10, 30, 30, 30}, sizes)
	i := slices.IndexFunc(p.Steps, func(s plan.Step) bool { return s.Kind == plan.LabelNodes })
	if got := p.Steps[i].Args.Nodes[:3]; !slices.Equal(got, []string{c.Nodes[100].Name, "w050", "w000"}) {
		t.Errorf("the canary begins with %q", got)
	}
	pause := p.Steps[slices.IndexFunc(p.Steps, func(s plan.Step) bool { return s.ID == "pause" })]
	checktest.Same(t, names[1:], pause.Args.Pools)

	// Nodes in no group stay in their pool, which is paused too and comes last.
	p, _, err = plan.PlanCanary(c, plan.CanaryOptions{ID: "c", Version: version1, Sizes: []int{1}, SparePercent: 1})
	checktest.OK(t, err)
	var order []string
	for _, s := range p.Steps {
		order = append(order, s.ID)
	}
	want := []string{"check", "create-workerpool-canary", "label-workerpool-canary", "same-content", "pause", "update-cluster", "wait-workerpool-canary", "gate-workerpool-canary",
		"unpause-worker", "wait-worker", "gate-worker", "return-workerpool-canary", "delete-workerpool-canary"}
	checktest.Same(t, want, order)

	// A window that the cluster's own update does not leave enough of.
	_, warnings, err = plan.PlanCanary(c, plan.CanaryOptions{ID: "c", Version: version1, Window: 2 * time.Hour, NodeTime: 8 * time.Minute, SparePercent: 10})
	if err != nil || !slices.Equal(warnings, []string{"the first window is too short: the cluster takes 1h0m0s and the canary 1h20m0s, together 2h20m0s of 2h0m0s"}) {
		t.Errorf("%v %q", err, warnings)
	}
}

// problemsOf returns what makes a plan of a changed cluster and changed options.
func problemsOf[O any](build func(plan.Cluster, O) (plan.Plan, []string, error), cluster func() plan.Cluster, o O) func(func(*plan.Cluster, *O)) func() ([]string, error) {
	return func(change func(*plan.Cluster, *O)) func() ([]string, error) {
		return func() ([]string, error) {
			c, o := cluster(), o
			change(&c, &o)
			_, warnings, err := build(c, o)
			return warnings, err
		}
	}
}

// What a recording lacks is not known: builders say so, and the DaemonSets of pods exist.
func TestReadRecordedCluster(t *testing.T) {
	lacks := []string{"DaemonSet", "MachineHealthCheck", "PodDisruptionBudget"}
	c := memory.NewOpenShift(memory.Options{Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
		if slices.Contains(lacks, call.GVK.Kind) {
			return fmt.Errorf("%s: %w", call.GVK.Kind, clusterapi.ErrNotCollected)
		}
		return do(ctx)
	}})
	of := clusterOf(2)
	checktest.OK(t, c.Load(checktest.Get(clusterapi.ToUnstructured(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "app"}}))(t)))
	for _, o := range []any{&of.Pools[1], &of.Nodes[3], &of.Nodes[4], pod("agent-1", "agent", func(p *corev1.Pod) { p.Spec.NodeName = "w000" })} {
		checktest.OK(t, c.Load(checktest.Get(clusterapi.ToUnstructured(o))(t)))
	}
	got := checktest.Get(plan.ReadCluster(t.Context(), c))(t)
	checktest.Same(t, lacks, got.Unknown)
	_, warnings, err := plan.PlanCanary(got, plan.CanaryOptions{ID: "c", Sizes: []int{1}, SparePercent: 50})
	checktest.OK(t, err)
	var want []string
	for _, kind := range lacks {
		want = append(want, fmt.Sprintf("not every %s of the cluster is recorded: the plan is made as if there were no others", kind))
	}
	checktest.Same(t, want, warnings)
	checktest.Equal(t, mcp.DrainStays, mcp.DrainPlan("w000", mcp.NewDrainView(got.Drains)).Pods[0].Verdict, "agent-1")
}

// All that speaks against a plan comes together.
func TestBuilderProblems(t *testing.T) {
	start := mcptest.Epoch
	three := func() plan.Cluster { return clusterOf(3) }
	canary := problemsOf(plan.PlanCanary, three, plan.CanaryOptions{ID: "c", Version: version1, Sizes: []int{1, 2}})
	windows := problemsOf(plan.PlanWindows, three, plan.WindowsOptions{ID: "c", Version: version1, NodeTime: time.Minute,
		Windows: []plan.Window{{Start: start, Duration: 2 * time.Hour}}})
	control := problemsOf(plan.PlanControlPlaneOnly, three, plan.ControlPlaneOnlyOptions{ID: "c", Versions: []string{version1, version2}})
	nodes := problemsOf(plan.PlanNodes, three, custom("c", plan.Step{ID: "cordon", Kind: plan.Cordon, Args: plan.Args{Node: "w000"}}))
	for _, tt := range []struct {
		name           string
		build          func() ([]string, error)
		want, warnings []string
	}{
		{"canary of a cluster at work", canary(func(c *plan.Cluster, o *plan.CanaryOptions) {
			c.Version.Status.History[0].State = configv1.PartialUpdate
			degraded(&c.Pools[1])
			mcptest.Cordoned(&c.Nodes[3])
			mcptest.Label(mcp.LabelNodeRolePrefix+"infra", "")(&c.Nodes[4])
			mcptest.Label(mcp.LabelNodeRolePrefix+"store", "")(&c.Nodes[4])
			c.Pools = append(c.Pools, resting("infra"), resting("store"))
			o.ID = "A"
		}), []string{`id "A": `, "node w001: node  belongs to 2 custom roles", "pool worker is degraded: ", "node w000 of pool worker is not available: node w000 is reporting Unschedulable",
			"the update of the cluster to 4.20.3 is not complete", "the groups have 3 nodes together, pool worker has 2"}, nil},
		{"canary of what is not there", canary(func(c *plan.Cluster, o *plan.CanaryOptions) { o.Pool, c.Version = "gpu", nil }),
			[]string{"pool gpu does not exist", "the cluster has no ClusterVersion", "the groups have 3 nodes together, pool gpu has 0"}, nil},
		{"canary of the control plane", canary(func(c *plan.Cluster, o *plan.CanaryOptions) { o.Pool = "master" }), []string{"pool master: the control plane has no canary"}, []string{"pool worker is not part of the plan: its nodes are updated with the cluster"}},
		{"canary at the version", canary(func(c *plan.Cluster, o *plan.CanaryOptions) { o.Version = version0 }), []string{"the cluster is at 4.20.3 already"}, nil},
		{"canary of an older version", canary(func(c *plan.Cluster, o *plan.CanaryOptions) { o.Version = "4.19.20" }), []string{"version 4.19.20 is older than the cluster's, which is 4.20.3"}, nil},
		{"canary of a version to roll back to", canary(func(c *plan.Cluster, o *plan.CanaryOptions) { o.Version = "4.20.2" }), nil,
			[]string{"version 4.20.2 is older than the cluster's, which is 4.20.3: only the version before that may be rolled back to"}},
		{"canary of part of a version", canary(func(c *plan.Cluster, o *plan.CanaryOptions) { o.Version = "4.21" }), []string{`version "4.21": `}, nil},
		{"canary that skips a version", canary(func(c *plan.Cluster, o *plan.CanaryOptions) {
			o.Version = version2
			kubelet("v1.32.9")(&c.Nodes[4])
		}), []string{"node w001 of pool worker has kubelet v1.32.9, which would be 3 minor versions behind at OpenShift 4.22; 2 are supported"},
			[]string{"an update from 4.20.3 to 4.22.4 skips minor versions"}},
		{"canary without an update of a cluster at work", canary(func(c *plan.Cluster, o *plan.CanaryOptions) {
			o.Version, c.Version.Status.History[0].State = "", configv1.PartialUpdate
		}), []string{"the update of the cluster to 4.20.3 is not complete"}, nil},
		{"canary of a paused pool", canary(func(c *plan.Cluster, o *plan.CanaryOptions) {
			c.Pools = append(c.Pools, resting("infra", mcptest.Paused))
			mcptest.Paused(&c.Pools[1])
			c.Pools[1].Spec.MaxUnavailable = &intstr.IntOrString{IntVal: -1}
		}), []string{"pool worker is paused", "pool worker: maxUnavailable: "}, []string{"pool infra is paused already, and stays so"}},
		{"canary with RHEL", canary(func(c *plan.Cluster, o *plan.CanaryOptions) {
			osImage("Red Hat Enterprise Linux 8.8 (Ootpa)")(&c.Nodes[3])
			osImage("Red Hat Enterprise Linux CoreOS 418.94")(&c.Nodes[4])
		}), []string{"node w000 runs Red Hat Enterprise Linux 8.8"}, nil},
		{"canary windows", canary(func(c *plan.Cluster, o *plan.CanaryOptions) {
			o.Sizes, o.Window, o.NodeTime, o.Starts = nil, time.Minute, time.Hour, []time.Time{start, start}
		}), []string{"the window of 1m0s is shorter than the 1h0m0s that a node takes", "window 2 opens before the one before it has closed"}, nil},
		{"canary with a window without start", canary(func(c *plan.Cluster, o *plan.CanaryOptions) { o.Window, o.Starts = time.Hour, []time.Time{{}, start} }), []string{"window 1 has no start"}, nil},
		{"canary with windows without end", canary(func(c *plan.Cluster, o *plan.CanaryOptions) { o.Starts = []time.Time{start} }),
			[]string{"there are 1 windows for 2 groups", "the length of the windows is needed, to know when they end"}, nil},
		{"canary groups", canary(func(c *plan.Cluster, o *plan.CanaryOptions) {
			o.Groups = []plan.Group{{Pool: "workerpool-A", Nodes: []string{"w000"}}, {Pool: "worker", Nodes: []string{"w000", "m0", "gone"}}, {Pool: "b", MaxUnavailable: &intstr.IntOrString{Type: intstr.String, StrVal: "x"}}}
		}), []string{`group "workerpool-A": `, `group "worker": a pool of this name exists`, `group "worker": node w000 is in group workerpool-A too`, `group "worker": node m0 belongs to pool "master", not worker`,
			`group "worker": node gone does not exist`, `group "b": maxUnavailable: `, `group "b": it has no nodes`}, nil},
		{"canary sizes", canary(func(c *plan.Cluster, o *plan.CanaryOptions) { o.Sizes = []int{0} }), []string{"size 0 of group 1 is not positive"}, nil},
		{"canary with sizes and short windows", canary(func(c *plan.Cluster, o *plan.CanaryOptions) { o.Window, o.NodeTime = time.Minute, time.Hour }),
			[]string{"the window of 1m0s is shorter than the 1h0m0s that a node takes"}, nil},
		{"canary without sizes", canary(func(c *plan.Cluster, o *plan.CanaryOptions) { o.Sizes = []int{} }), []string{"there are no groups"}, nil},
		{"canary of a label that is there", canary(func(c *plan.Cluster, o *plan.CanaryOptions) {
			mcptest.Label(mcp.LabelNodeRolePrefix+"workerpool-canary", "")(&c.Nodes[5])
		}), []string{`group "workerpool-canary": node w002 has the label of its nodes already`}, nil},
		{"windows, with a drain of the control plane that never ends", windows(func(c *plan.Cluster, o *plan.WindowsOptions) {
			c.Drains = mcp.DrainObjects{Pods: []*corev1.Pod{appPod("db", "db", "m0", "")}, Budgets: []*policyv1.PodDisruptionBudget{budgetOf("db", 1, 1)}}
		}), []string{"node m0: pod app/db blocks its drain (NeverAllows): "}, nil},
		{"canary without groups", canary(func(c *plan.Cluster, o *plan.CanaryOptions) { o.Groups = []plan.Group{} }), []string{"there are no groups"}, nil},
		{"canary numbers", canary(func(c *plan.Cluster, o *plan.CanaryOptions) { o.MaxUnavailable = -1 }), []string{"MaxUnavailable is negative: -1"}, nil},
		{"canary of a large pool by expressions", canary(func(c *plan.Cluster, o *plan.CanaryOptions) {
			o.Pool, o.Sizes = "infra", []int{1}
			c.Pools = append(c.Pools, resting("infra", func(p *mcfgv1.MachineConfigPool) {
				p.Spec.NodeSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "infra", Operator: metav1.LabelSelectorOpExists}}}
			}))
			mcptest.Label("infra", "")(&c.Nodes[3])
		}), []string{"pool infra does not select its nodes by labels alone"}, nil},
		{"a large canary", canary(func(c *plan.Cluster, o *plan.CanaryOptions) { o.Sizes = []int{3} }), nil, []string{"the canary has 3 nodes, the spare capacity is 0: if they are lost there is no way back"}},
		{"certificates", canary(func(c *plan.Cluster, o *plan.CanaryOptions) {
			c.Pools[1].Status.CertExpirys = []mcfgv1.CertExpiry{{Bundle: "KubeAPIServerServingCAData", Subject: "CN=x", Expiry: &metav1.Time{Time: mcptest.Epoch}}}
		}), nil, []string{"pool worker: while it is paused its nodes do not get new certificates; KubeAPIServerServingCAData (CN=x) expires at 2026-01-01T00:00:00Z: pause briefly"}},

		{"windows of the control plane", windows(func(c *plan.Cluster, o *plan.WindowsOptions) {
			o.Pools, o.Windows, o.NodeTime = []string{"master"}, nil, 0
		}),
			[]string{"pool master: an update of the cluster waits for it, so it cannot be paused", "the time of a node is needed", "there is no window"}, nil},
		{"windows that are wrong", windows(func(c *plan.Cluster, o *plan.WindowsOptions) {
			o.Windows = append(o.Windows, plan.Window{Start: start, Duration: time.Second}, plan.Window{Duration: time.Hour})
		}), []string{"window 2 of 1s is shorter than the 1m0s that a node takes", "window 2 opens before the one before it has closed", "window 3 opens before", "window 3 has no start"}, nil},
		{"windows that are too few", windows(func(c *plan.Cluster, o *plan.WindowsOptions) { o.NodeTime = 50 * time.Minute }), nil,
			[]string{"pool worker: 3 nodes, 1 at a time, take 3 times 50m0s; the windows have room for 1"}},
		{"a window that is short", windows(func(c *plan.Cluster, o *plan.WindowsOptions) { o.NodeTime = 3 * time.Hour }),
			[]string{"window 1 of 2h0m0s is shorter than the 3h0m0s that a node takes"}, nil},
		{"windows with RHEL", windows(func(c *plan.Cluster, o *plan.WindowsOptions) {
			osImage("Red Hat Enterprise Linux 8.8 (Ootpa)")(&c.Nodes[3])
		}),
			[]string{"node w000 runs Red Hat Enterprise Linux 8.8: OpenShift 4.19 and later do not support that, replace it first"}, nil},
		{"windows without the cluster", windows(func(c *plan.Cluster, o *plan.WindowsOptions) {
			o.Version = ""
			mcptest.Paused(&c.Pools[1])
		}), []string{"pool worker is paused: the plan would not unpause it"}, nil},

		{"control plane, odd", control(func(c *plan.Cluster, o *plan.ControlPlaneOnlyOptions) {
			c.Version.Status.History[0].Version, o.Versions = "4.21.1", []string{"4.22.1", "4.23.1"}
		}), []string{"the cluster is at 4.21.1: such an update begins at a minor version with extended update support"}, nil},
		{"control plane, too far", control(func(c *plan.Cluster, o *plan.ControlPlaneOnlyOptions) { o.Versions = []string{"4.22.1", "4.23.1"} }),
			[]string{"version 4.22.1 is not 4.21: ", "version 4.23.1 is not 4.22: "}, nil},
		{"control plane, in one step", control(func(c *plan.Cluster, o *plan.ControlPlaneOnlyOptions) { o.Versions = []string{"4.22.3", version2} }), []string{"version 4.22.3 is not 4.21: ", "version 4.22.4 is not 4.22: "}, nil},
		{"control plane, without recorded nodes", control(func(c *plan.Cluster, o *plan.ControlPlaneOnlyOptions) {
			c.Nodes, c.Unknown = nil, []string{"Node"}
		}), nil, []string{"not every Node of the cluster is recorded: the plan is made as if there were no others"}},
		{"nodes that are not recorded", nodes(func(c *plan.Cluster, _ *plan.Plan) { c.Nodes, c.Unknown = nil, []string{"Node"} }),
			[]string{"node w000 is not recorded"}, nil},
		{"canary with a limit that all nodes fit into", canary(func(_ *plan.Cluster, o *plan.CanaryOptions) {
			o.Sizes, o.MaxUnavailable, o.Window, o.NodeTime, o.SparePercent = nil, math.MaxInt, 3*time.Hour, time.Hour, 50
		}), nil, nil},
		{"canary without a recorded ClusterVersion", canary(func(c *plan.Cluster, _ *plan.CanaryOptions) {
			c.Version, c.Unknown = nil, []string{"ClusterVersion"}
		}), []string{"the ClusterVersion is not recorded"}, nil},
		{"control plane, compact", control(func(c *plan.Cluster, o *plan.ControlPlaneOnlyOptions) { c.Nodes = c.Nodes[:3] }),
			[]string{"the cluster is compact: no pool but those of the control plane has a node"}, nil},
		{"control plane to 5.2, with a kubelet that is behind", control(func(c *plan.Cluster, o *plan.ControlPlaneOnlyOptions) {
			*c, o.Versions = clusterAt("4.22.4", "v1.35.2", 3), []string{"5.0.3", "5.1.2", "5.2.0"}
			kubelet("v1.34.9")(&c.Nodes[4])
		}), []string{"node w001 of pool worker has kubelet v1.34.9, which would be 2 minor versions behind at OpenShift 5.0; 1 are supported"},
			[]string{"the Kubernetes version of OpenShift 5.1 is not known: 1.37 is assumed", "the Kubernetes version of OpenShift 5.2 is not known: 1.38 is assumed"}},
		{"control plane to 5.2, over 4.23", control(func(c *plan.Cluster, o *plan.ControlPlaneOnlyOptions) {
			*c, o.Versions = clusterAt("4.22.4", "v1.35.2", 3), []string{"4.23.1", "5.1.2", "5.2.0"}
		}), nil, nil},
		{"control plane to 5.2, in two hops", control(func(c *plan.Cluster, o *plan.ControlPlaneOnlyOptions) {
			*c, o.Versions = clusterAt("4.22.4", "v1.35.2", 3), []string{"5.0.3", "5.2.0"}
		}), []string{"from 4.22.4 3 versions are needed, of 5.0, 5.1, 5.2; there are 2"}, nil},
		{"control plane from 5.2 to 5.5", control(func(c *plan.Cluster, o *plan.ControlPlaneOnlyOptions) {
			*c, o.Versions = clusterAt("5.2.4", "v1.38.2", 3), []string{"5.3.3", "5.4.2", "5.5.0"}
			kubelet("v1.37.9")(&c.Nodes[4])
		}), []string{"node w001 of pool worker has kubelet v1.37.9, which would be 2 minor versions behind at OpenShift 5.3; 1 are supported"}, nil},
		{"control plane with RHEL to 4.18", control(func(c *plan.Cluster, o *plan.ControlPlaneOnlyOptions) {
			*c, o.Versions = clusterAt("4.16.4", "v1.29.2", 3), []string{"4.17.3", "4.18.2"}
			osImage("Red Hat Enterprise Linux 8.8 (Ootpa)")(&c.Nodes[4])
		}), nil, []string{"node w001 runs Red Hat Enterprise Linux 8.8: run its playbook when it becomes NotReady"}},
		{"control plane with RHEL to 4.20", control(func(c *plan.Cluster, o *plan.ControlPlaneOnlyOptions) {
			*c, o.Versions = clusterAt("4.18.4", "v1.31.2", 3), []string{"4.19.3", "4.20.2"}
			osImage("Red Hat Enterprise Linux 8.8 (Ootpa)")(&c.Nodes[4])
		}), []string{"node w001 runs Red Hat Enterprise Linux 8.8: OpenShift 4.19 and later do not support that, replace it first"}, nil},
		{"control plane, one image", control(func(c *plan.Cluster, o *plan.ControlPlaneOnlyOptions) { o.Images = []string{"i"} }), []string{"there are 1 images for 2 versions"}, nil},
		{"control plane, one version", control(func(c *plan.Cluster, o *plan.ControlPlaneOnlyOptions) { o.Versions = o.Versions[:1] }), []string{"from 4.20.3 2 versions are needed, of 4.21, 4.22; there are 1"}, nil},
		{"control plane, no versions", control(func(c *plan.Cluster, o *plan.ControlPlaneOnlyOptions) {
			o.Versions, o.Images = []string{"x", "5.1.0"}, []string{"i"}
		}),
			[]string{"there are 1 images for 2 versions", `version "x"`}, nil},
		{"control plane, channel", control(func(c *plan.Cluster, o *plan.ControlPlaneOnlyOptions) {
			c.Version.Status.Desired.Channels = []string{"stable-4.20", "eus-4.20"}
		}),
			[]string{"channel eus-4.22 is not offered: it takes 45 to 90 days from a release's general availability; there are stable-4.20, eus-4.20"}, nil},
		{"control plane, old kubelets", control(func(c *plan.Cluster, o *plan.ControlPlaneOnlyOptions) {
			kubelet("v1.32.9")(&c.Nodes[4])
			c.Pools = append(c.Pools, resting("infra", mcptest.Paused))
		}), []string{"node w001 of pool worker has kubelet v1.32.9, which would be 2 minor versions behind at OpenShift 4.21; 1 are supported"}, []string{"pool infra is paused already, and stays so"}},
		{"control plane alone", control(func(c *plan.Cluster, o *plan.ControlPlaneOnlyOptions) { c.Pools = c.Pools[:1] }),
			[]string{"there is no pool besides those of the control plane that could be paused"}, nil},

		{"nodes", nodes(func(c *plan.Cluster, p *plan.Plan) {
			mcptest.Cordoned(&c.Nodes[3])
			mcptest.Condition(corev1.NodeReady, corev1.ConditionFalse)(&c.Nodes[4])
			p.Steps = append(p.Steps, plan.Step{ID: "drain", Kind: plan.Drain, Args: plan.Args{Node: "w001"}},
				plan.Step{ID: "gone", Kind: plan.Cordon, Args: plan.Args{Node: "gone"}})
		}), []string{"node w001 is not available: ", "node gone does not exist"}, []string{"node w000 is cordoned already, and stays so"}},
		{"nodes at work", nodes(func(c *plan.Cluster, p *plan.Plan) {
			mcptest.State(mcp.StateWorking)(&c.Nodes[3])
			mcptest.Cordoned(&c.Nodes[4])
			mcptest.Annotate(mcp.AnnotationDesiredDrain, "drain-N", mcp.AnnotationState, mcp.StateWorking)(&c.Nodes[4])
			p.Steps = append(p.Steps, plan.Step{ID: "drain", Kind: plan.Drain, Args: plan.Args{Node: "w001"}})
		}), []string{"node w000 is being updated: Preparing", "node w001 is being updated: Draining"}, nil},
		{"nodes of which the daemon has failed", nodes(func(c *plan.Cluster, _ *plan.Plan) {
			mcptest.State(mcp.StateDegraded)(&c.Nodes[3])
		}), nil, nil},
		{"nodes, a step without an action", nodes(func(_ *plan.Cluster, p *plan.Plan) { p.Steps = append(p.Steps, plan.Step{ID: "hook", Kind: plan.Hook}) }),
			[]string{"steps[1] (hook): args.action is missing"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			warnings, err := tt.build()
			text := fmt.Sprint(err)
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is missing in:\n%v", want, err)
				}
			}
			if err != nil && strings.Count(text, "\n")+1 != len(tt.want) || err == nil && len(tt.want) > 0 {
				t.Errorf("%d problems are wanted:\n%v", len(tt.want), err)
			}
			if tt.warnings != nil && !slices.Equal(tt.warnings, warnings) && len(tt.warnings)+len(warnings) > 0 {
				t.Errorf("warnings %q", warnings)
			}
		})
	}
}

// budgetOf is a budget in namespace app of the pods with a label kind.
func budgetOf(kind string, minAvailable, healthy int32) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: kind}}
	b.Spec.MinAvailable = new(intstr.FromInt32(minAvailable))
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"kind": kind}}
	b.Status = policyv1.PodDisruptionBudgetStatus{DesiredHealthy: minAvailable, CurrentHealthy: healthy, ExpectedPods: healthy,
		DisruptionsAllowed: max(healthy-minAvailable, 0)}
	return b
}

// appPod is a pod of a Deployment's kind on a node, which chooses nodes by a label if there
// is one.
func appPod(name, kind, node, label string) *corev1.Pod {
	return pod(name, "", func(p *corev1.Pod) {
		p.Labels = map[string]string{"kind": kind}
		p.Spec.NodeName = node
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: kind, UID: "rs", Controller: new(true)}}
		if label != "" {
			p.Spec.NodeSelector = map[string]string{label: ""}
		}
	})
}

// Drains that never end are refused, others that pods block are warned of.
func TestDrainsAreJudged(t *testing.T) {
	never := mcp.DrainObjects{Pods: []*corev1.Pod{appPod("db", "db", "w001", ""), pod("web", "")}, Budgets: []*policyv1.PodDisruptionBudget{budgetOf("db", 1, 1)}}
	two := never
	two.Budgets = append(slices.Clone(two.Budgets), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: "all"},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}}})
	ill := never
	ill.Budgets = []*policyv1.PodDisruptionBudget{budgetOf("db", 1, 1)}
	ill.Budgets[0].Status = policyv1.PodDisruptionBudgetStatus{DesiredHealthy: 2, CurrentHealthy: 1, ExpectedPods: 3}
	crowd := never // of pods that are ill, before the one that never leaves
	others := budgetOf("ill", 1, 1)
	others.Status = ill.Budgets[0].Status
	crowd.Pods, crowd.Budgets = slices.Clone(never.Pods), append(slices.Clone(never.Budgets), others)
	for i := range 21 {
		crowd.Pods = append(crowd.Pods, appPod(fmt.Sprint("a", i), "ill", "w001", ""))
	}
	start := []plan.Window{{Start: mcptest.Epoch, Duration: 24 * time.Hour}}
	for name, build := range map[string]func(plan.Cluster) ([]string, error){
		"canary": func(c plan.Cluster) ([]string, error) {
			_, warnings, err := plan.PlanCanary(c, plan.CanaryOptions{ID: "c", Version: version1, Sizes: []int{1}})
			return warnings, err
		},
		"windows": func(c plan.Cluster) ([]string, error) {
			_, warnings, err := plan.PlanWindows(c, plan.WindowsOptions{ID: "c", Version: version1, NodeTime: time.Minute, Windows: start})
			return warnings, err
		},
		"control plane only": func(c plan.Cluster) ([]string, error) {
			_, warnings, err := plan.PlanControlPlaneOnly(c, plan.ControlPlaneOnlyOptions{ID: "c", Versions: []string{version1, version2}})
			return warnings, err
		},
		"nodes": func(c plan.Cluster) ([]string, error) {
			_, warnings, err := plan.PlanNodes(c, custom("c", plan.Step{ID: "drain", Kind: plan.Drain, Args: plan.Args{Node: "w001"}}))
			return warnings, err
		},
	} {
		for _, tt := range []struct {
			objects       mcp.DrainObjects
			refused, warn string
		}{
			{never, "node w001: pod app/db blocks its drain (NeverAllows): ", ""},
			{two, "node w001: pod app/db blocks its drain (TwoBudgets): ", ""},
			{crowd, "node w001: pod app/db blocks its drain (NeverAllows): ", "1 more pods block drains"},
			{ill, "", "node w001: pod app/db blocks its drain (Unhealthy): "},
		} {
			c := clusterOf(3)
			c.Drains = tt.objects
			warnings, err := build(c)
			if tt.refused == "" {
				checktest.OK(t, err)
			} else {
				checktest.ErrorHas(t, tt.refused, err)
			}
			if all := strings.Join(warnings, "\n"); !strings.Contains(all, tt.warn) {
				t.Errorf("%s: %q", name, warnings)
			}
		}
	}
}

// A canary of a custom pool takes the label by which routers, storage and logging choose their
// nodes.
func TestCanaryMovesLabels(t *testing.T) {
	const infra = mcp.LabelNodeRolePrefix + "infra"
	router, spare := appPod("router-1", "router", "i0", infra), appPod("router-2", "router", "i1", infra)
	agent := appPod("agent-1", "agent", "i0", infra)
	agent.OwnerReferences[0].Kind = "DaemonSet"
	affine := appPod("log-1", "log", "i0", "")
	affine.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: infra, Operator: corev1.NodeSelectorOpExists}}}}}}}
	tainted := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "infra", Effect: corev1.TaintEffectNoSchedule}}
	}
	daemonSets := []types.NamespacedName{{Namespace: "app", Name: "agent"}}
	const loses = "the groups' nodes lose label node-role.kubernetes.io/infra, by which "
	for _, tt := range []struct {
		name     string
		sizes    []int
		objects  mcp.DrainObjects
		others   mcptest.Change // of the infra nodes that stay
		refused  []string
		warnings []string
	}{
		{name: "other pods", sizes: []int{1}, objects: mcp.DrainObjects{Pods: []*corev1.Pod{appPod("web", "web", "i0", "")}}},
		{name: "a router, and nodes are left", sizes: []int{1}, objects: mcp.DrainObjects{Pods: []*corev1.Pod{router, spare}},
			warnings: []string{loses + "ReplicaSet app/router choose nodes: until they return, 1 nodes have it"}},
		{name: "a router, and no node is left", sizes: []int{1, 1}, objects: mcp.DrainObjects{Pods: []*corev1.Pod{router, spare}},
			refused: []string{loses + "ReplicaSet app/router choose nodes, and no node keeps it: leave some nodes out of the groups"}},
		{name: "a router with a budget, and no node is left", sizes: []int{1, 1}, objects: mcp.DrainObjects{Pods: []*corev1.Pod{router, spare}, Budgets: []*policyv1.PodDisruptionBudget{budgetOf("router", 1, 2)}},
			refused: []string{loses, "node i0: what replaces pod app/router-1 fits no node once labels have moved, so budget router holds up its drain", "node i1: what replaces pod app/router-2 fits no node"}},
		{name: "by affinity", sizes: []int{1, 1}, objects: mcp.DrainObjects{Pods: []*corev1.Pod{affine}}, refused: []string{loses + "ReplicaSet app/log choose nodes, and no node keeps it"}},
		{name: "a DaemonSet, and nodes are left", sizes: []int{1}, objects: mcp.DrainObjects{Pods: []*corev1.Pod{agent}, DaemonSets: daemonSets},
			warnings: []string{loses + "DaemonSet app/agent choose nodes: until they return, 1 nodes have it"}},
		{name: "a DaemonSet, and no node is left", sizes: []int{1, 1}, objects: mcp.DrainObjects{Pods: []*corev1.Pod{agent}, DaemonSets: daemonSets},
			refused: []string{loses + "DaemonSet app/agent choose nodes, and no node keeps it"}},
		{name: "a taint keeps routers off what is left", sizes: []int{1}, objects: mcp.DrainObjects{Pods: []*corev1.Pod{router}}, others: tainted,
			warnings: []string{loses + "ReplicaSet app/router choose nodes: until they return, 1 nodes have it"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := clusterOf(2)
			c.Pools = append(c.Pools, resting("infra"))
			for i := range 2 {
				n := mcptest.Node(fmt.Sprint("i", i), "infra", "O")
				if i > 0 && tt.others != nil {
					tt.others(&n)
				}
				c.Nodes = append(c.Nodes, n)
			}
			c.Drains = tt.objects
			_, warnings, err := plan.PlanCanary(c, plan.CanaryOptions{ID: "c", Pool: "infra", Sizes: tt.sizes, SparePercent: 50})
			for _, want := range tt.refused {
				checktest.ErrorHas(t, want, err)
			}
			if tt.refused == nil {
				checktest.OK(t, err)
				checktest.Same(t, tt.warnings, warnings)
			}
		})
	}
}
