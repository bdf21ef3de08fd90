package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/internal/chaos"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// services are what runs on real clusters, as far as drains see it: routers on nodes of a role, and
// storage of which each zone has one pod with its disks.
func services(routers string) []simulation.Workload {
	one := intstr.FromInt32(1)
	all := []simulation.Workload{
		{Namespace: "openshift-ingress", Name: "router-default", Replicas: 2, MaxUnavailable: &one,
			NodeSelector: map[string]string{mcp.LabelNodeRolePrefix + routers: ""}},
		{Namespace: "openshift-dns", Name: "dns-default", DaemonSet: true},
	}
	for _, zone := range []string{"zone-a", "zone-b", "zone-c"} {
		all = append(all, simulation.Workload{Namespace: "openshift-storage", Name: "osd-" + zone, Replicas: 1,
			MaxUnavailable: &one, NodeSelector: map[string]string{mcp.LabelZone: zone, mcp.LabelNodeRolePrefix + "worker": ""}})
	}
	return all
}

// watch judges each change of a world while a plan runs: no budget is passed, besides what the judge
// of the chaos seeds knows.
func (w *world) watch(t *testing.T) {
	judge := chaos.NewJudge(w.Now, w.cluster)
	cursor := w.cluster.Follow()
	t.Cleanup(cursor.Close)
	w.look = func() {
		for c, ok := cursor.Next(); ok; c, ok = cursor.Next() {
			checktest.OK(t, judge.Observe(c))
			if c.New == nil || c.New.Kind().Kind != "PodDisruptionBudget" {
				continue
			}
			b := checktest.Get(clusterapi.As[policyv1.PodDisruptionBudget](c.New))(t)
			if s := b.Status; s.CurrentHealthy < s.DesiredHealthy {
				t.Errorf("budget %s: %d pods are healthy, and %d have to be", b.Name, s.CurrentHealthy, s.DesiredHealthy)
			}
		}
	}
}

// The example of the documentation: 100 compute nodes, a tenth of them spare, windows of four hours,
// eight minutes a node. Each group is done in its window.
func TestTranscriptDocumentedCanary(t *testing.T) {
	w := quiet(t, worldOptions{pools: []simulation.Pool{{Nodes: 100}}, workloads: services("worker"),
		timing: simulation.Timing{Reboot: 5 * time.Minute}})
	w.watch(t)
	first := w.Now().Add(7 * time.Hour)
	o := plan.CanaryOptions{ID: "documented", Version: version1, Window: 4 * time.Hour, NodeTime: 8 * time.Minute,
		SparePercent: 10}
	for day := range 4 {
		o.Starts = append(o.Starts, first.Add(time.Duration(day)*24*time.Hour))
	}
	p, warnings, err := plan.PlanCanary(w.state(), o)
	checktest.OK(t, err)
	w.brief = true
	transcript(t, "canary-documented", w, p, warnings, plan.Options{}, plan.StateFinished)
	checktest.OK(t, atRest(w.cluster, version1))
}

// A control plane goes over two minor versions under routers, storage and budgets, and infra nodes with
// the routers get a canary of their own.
func TestDocumentedExamples(t *testing.T) {
	pools := []simulation.Pool{{Nodes: 6}, {Name: "infra", Nodes: 3}}
	only := func(atOnce bool) func(plan.Cluster) (plan.Plan, []string, error) {
		return func(c plan.Cluster) (plan.Plan, []string, error) {
			return plan.PlanControlPlaneOnly(c, plan.ControlPlaneOnlyOptions{ID: "eus",
				Versions: []string{version1, version2}, AtOnce: atOnce})
		}
	}
	canary := func(pool string, sizes ...int) func(plan.Cluster) (plan.Plan, []string, error) {
		return func(c plan.Cluster) (plan.Plan, []string, error) {
			return plan.PlanCanary(c, plan.CanaryOptions{ID: "canary", Version: version1, Pool: pool, Sizes: sizes})
		}
	}
	for _, tt := range []struct {
		name  string
		build func(plan.Cluster) (plan.Plan, []string, error)
		to    string
	}{
		{"control plane only", only(false), version2},
		{"control plane only, all pools at once", only(true), version2},
		{"canary of compute nodes", canary("worker", 1, 2), version1},
		{"canary of infra", canary("infra", 1), version1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := quiet(t, worldOptions{pools: pools, workloads: services("infra")})
			w.watch(t)
			p, _, err := tt.build(w.state())
			checktest.OK(t, err)
			r := w.start("runner", plan.Options{Plan: p})
			checktest.OK(t, w.ends(r, 24*time.Hour, plan.StateFinished, plan.StateFailed))
			checktest.Equal(t, plan.StateFinished, r.Progress().State, "%q", w.last(3))
			checktest.OK(t, w.RunUntil(w.Now().Add(2*time.Hour))) // pools that the plan leaves alone
			checktest.OK(t, atRest(w.cluster, tt.to))
		})
	}
}

// A canary is refused: it takes the label by which routers choose nodes from all nodes that have it,
// a database may never be evicted, and the cluster has the release already.
func TestTranscriptCanaryRefused(t *testing.T) {
	one := intstr.FromInt32(1)
	w := quiet(t, worldOptions{pools: []simulation.Pool{{Nodes: 2}, {Name: "infra", Nodes: 2}},
		workloads: append(services("infra"), simulation.Workload{Namespace: "shop", Name: "db", Replicas: 1,
			MinAvailable: &one, NodeSelector: map[string]string{mcp.LabelNodeRolePrefix + "infra": ""}})})
	_, warnings, err := plan.PlanCanary(w.state(), plan.CanaryOptions{ID: "canary", Version: version0,
		Pool: "infra", Sizes: []int{1, 1}})
	var b strings.Builder
	for _, text := range warnings {
		fmt.Fprintf(&b, "warning: %s\n", text)
	}
	fmt.Fprintf(&b, "refused:\n%v\n", err)
	golden(t, "transcripts/canary-refused.txt", b.String())
}
