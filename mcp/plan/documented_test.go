package plan_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/simtest"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/internal/chaos"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// services are what runs on real clusters, as far as drains see it: routers on nodes of a role, no
// two on one node, and storage of which each zone has a pod with a volume.
func services(routers string) []simulation.Workload {
	all := []simulation.Workload{
		{Namespace: "openshift-ingress", Name: "router-default", Replicas: 2, Apart: true, MaxUnavailable: new(intstr.FromInt32(1)),
			NodeSelector: map[string]string{mcp.LabelNodeRolePrefix + routers: ""}},
		{Namespace: "openshift-dns", Name: "dns-default", DaemonSet: true},
	}
	for _, zone := range []string{"zone-a", "zone-b", "zone-c"} {
		all = append(all, simulation.Workload{Namespace: "openshift-storage", Name: "osd-" + zone, Replicas: 1,
			MaxUnavailable: new(intstr.FromInt32(1)), VolumeZone: zone})
	}
	return all
}

// watch judges each change of a world while a plan runs: no budget is passed, besides what the judge
// of the chaos seeds knows.
func (w *world) watch() {
	judge := chaos.NewJudge(w.Now, w.cluster)
	cursor := w.cluster.Follow()
	w.look = func() error {
		for c, ok := cursor.Next(); ok; c, ok = cursor.Next() {
			if err := judge.Observe(c); err != nil {
				return err
			}
			if c.New == nil || c.New.Kind().Kind != "PodDisruptionBudget" {
				continue
			}
			b := must(clusterapi.As[policyv1.PodDisruptionBudget](c.New))
			if s := b.Status; s.CurrentHealthy < s.DesiredHealthy {
				return fmt.Errorf("budget %s: %d pods are healthy, and %d have to be", b.Name, s.CurrentHealthy, s.DesiredHealthy)
			}
		}
		return nil
	}
}

// The example of the documentation: 100 compute nodes, a tenth of them spare, windows of four hours,
// eight minutes a node. Each group is done in its window.
func TestTranscriptDocumentedCanary(t *testing.T) {
	w := quiet(t, worldOptions{pools: []simulation.Pool{{Nodes: 100}}, workloads: services("worker"),
		timing: simulation.Timing{Reboot: 5 * time.Minute}})
	w.watch()
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

// example is one of the documentation, which a test plays on a small cluster.
type example struct {
	name  string
	build func(plan.Cluster) (plan.Plan, []string, error)
	to    string // the release in the end
}

func examples() []example {
	only := func(atOnce bool) func(plan.Cluster) (plan.Plan, []string, error) {
		return func(c plan.Cluster) (plan.Plan, []string, error) {
			return plan.PlanControlPlaneOnly(c, plan.ControlPlaneOnlyOptions{ID: "example",
				Versions: []string{version1, version2}, AtOnce: atOnce})
		}
	}
	canary := func(pool string, sizes ...int) func(plan.Cluster) (plan.Plan, []string, error) {
		return func(c plan.Cluster) (plan.Plan, []string, error) {
			return plan.PlanCanary(c, plan.CanaryOptions{ID: "example", Version: version1, Pool: pool, Sizes: sizes})
		}
	}
	return []example{
		{"control plane only", only(false), version2},
		{"control plane only, all pools at once", only(true), version2},
		{"canary of compute nodes", canary("worker", 1, 2), version1},
		{"canary of infra", canary("infra", 1), version1},
	}
}

// play plays an example on a cluster with routers on infra nodes. Its runner crashes at a call, before
// or after that took effect, unless at is zero. It returns the fields that plans change, and how
// many calls there were.
func (e example) play(at int, after bool) (end map[string]string, calls int, err error) {
	w := newWorld(worldOptions{seed: 1, workloads: services("infra"),
		pools: []simulation.Pool{{Nodes: 4}, {Name: "infra", Nodes: 3}}})
	defer w.Close()
	if err := w.RunUntil(w.Now().Add(5 * time.Minute)); err != nil {
		return nil, 0, err
	}
	w.watch()
	p, _, err := e.build(w.state())
	if err != nil {
		return nil, 0, err
	}
	r := w.startCrashing("runner", plan.Options{Plan: p, Actions: actions}, crashing{calls: &calls, at: at, after: after})
	err = w.ends(r, 24*time.Hour, plan.StateFinished, plan.StateFailed)
	if err == nil {
		err = w.RunUntil(w.Now().Add(2 * time.Hour)) // pools that the plan leaves alone
	}
	if err == nil {
		err = atRest(w.cluster, e.to)
	}
	return fields(w.cluster), calls, err
}

// A control plane goes over two minor versions, and compute and infra nodes get a canary, on a cluster
// with routers, storage and budgets. Wherever the runner is killed, the end is the same.
func TestDocumentedExamples(t *testing.T) {
	type result struct {
		end   map[string]string
		calls int
		err   error
	}
	var undisturbed []func() result
	for _, e := range examples() {
		undisturbed = append(undisturbed, sync.OnceValue(func() (r result) {
			r.end, r.calls, r.err = e.play(0, false)
			return r
		}))
	}
	simtest.Test(t, 0.1, func(seed uint64, _ map[string]bool) ([]string, error) {
		i, round := int(seed)%len(undisturbed), int(seed)/len(undisturbed)
		want := undisturbed[i]()
		if want.err != nil {
			return nil, want.err
		}
		at := 1 + round*97%want.calls // each call once, in as many rounds
		after := (at+round/want.calls)%2 == 0
		end, _, err := examples()[i].play(at, after)
		if err == nil && !cmp.Equal(want.end, end) {
			err = errors.New(cmp.Diff(want.end, end))
		}
		if err != nil {
			return nil, fmt.Errorf("%s, killed at call %d, after its effect %v: %w", examples()[i].name, at, after, err)
		}
		return nil, nil
	})
}

// A canary is refused: it takes the label by which routers choose nodes from all nodes that have it,
// a database may never be evicted, and the cluster has the release already.
func TestTranscriptCanaryRefused(t *testing.T) {
	w := quiet(t, worldOptions{pools: []simulation.Pool{{Nodes: 2}, {Name: "infra", Nodes: 2}},
		workloads: append(services("infra"), simulation.Workload{Namespace: "shop", Name: "db", Replicas: 1,
			MinAvailable: new(intstr.FromInt32(1)), NodeSelector: map[string]string{mcp.LabelNodeRolePrefix + "infra": ""}})})
	_, warnings, err := plan.PlanCanary(w.state(), plan.CanaryOptions{ID: "canary", Version: version0,
		Pool: "infra", Sizes: []int{1, 1}})
	var b strings.Builder
	for _, text := range warnings {
		fmt.Fprintf(&b, "warning: %s\n", text)
	}
	fmt.Fprintf(&b, "refused:\n%v\n", err)
	golden(t, "transcripts/canary-refused.txt", b.String())
}
