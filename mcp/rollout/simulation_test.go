package rollout_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/internal/simtest"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/internal/chaos"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// machineConfig is a release whose one operator is the machine-config operator.
func machineConfig(version string) simulation.Release {
	labels, one := map[string]string{"app": "machine-config"}, int32(1)
	u, err := clusterapi.ToUnstructured(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-machine-config", Name: "machine-config"},
		Spec: appsv1.DeploymentSpec{Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "operator", Image: "registry.example/mco:" + version,
					Env: []corev1.EnvVar{{Name: "RELEASE_VERSION", Value: version}}}}}}},
	})
	if err != nil {
		panic(err)
	}
	return simulation.Release{Version: version, Operators: []simulation.Operator{{Name: "machine-config", Workloads: []*unstructured.Unstructured{u}}}}
}

// simulated is an update of the nodes of a cluster in virtual time.
type simulated struct {
	*reconcile.Virtual
	cluster *simulation.Cluster
	cursor  clusterapi.Cursor
	clock   *reconcile.Clock
	admin   *chaos.Administrator
	judge   *chaos.Judge
	told    map[string]int
	log     []string
}

// simulate prepares a cluster of 3 masters, 4 workers and 2 infra nodes, whose
// nodes are to be updated by so many rollouts.
func simulate(seed uint64, rollouts int, f reconcile.Faults) *simulated {
	one, two := intstr.FromInt32(1), intstr.FromInt32(2)
	clock := reconcile.NewClock(mcptest.Epoch)
	c, err := simulation.New(simulation.Options{Clock: clock, Release: machineConfig("4.20.3"),
		Pools:     []simulation.Pool{{Nodes: 4, MaxUnavailable: &two}, {Name: "infra", Nodes: 2}},
		Workloads: []simulation.Workload{{Name: "web", Replicas: 4, MaxUnavailable: &one}, {Name: "agent", DaemonSet: true}},
		Memory:    memory.Options{CheckShared: seed%10 == 1},
	})
	if err != nil {
		panic(err)
	}
	judge := chaos.NewJudge(clock.Now, c)
	s := &simulated{cluster: c, cursor: c.Follow(), clock: clock, told: map[string]int{}, judge: judge,
		admin: &chaos.Administrator{Cluster: c, Clock: clock, Judge: judge, Pools: map[string]int{"worker": 2, "infra": 1},
			Moves: []string{"worker", "infra"}, Pauses: true, For: time.Hour, Only: f.Only}}
	processes := []reconcile.Process{c.Process()}
	for i := range rollouts {
		r, err := rollout.New(rollout.Options{Mode: rollout.Drive, OrderByBudgets: seed%4 == 1, Observe: func(e clusterapi.Event) {
			if e.Type == rollout.EventNodeTargeted {
				s.told[e.Message]++
			}
			data, err := json.Marshal(e)
			s.log = append(s.log, fmt.Sprint(i, " ", string(data), err))
		}})
		if err != nil {
			panic(err)
		}
		p := r.Process()
		p.Name = fmt.Sprint("rollout ", i)
		f.Processes = append(f.Processes, p.Name)
		processes = append(processes, p)
	}
	o := reconcile.VirtualOptions{Cluster: c, Clock: clock, Seed: seed, Faults: f, Latency: reconcile.Latency{Watch: 500 * time.Millisecond}}
	if seed%2 == 0 {
		o.Order = reconcile.Random
	}
	s.Virtual = reconcile.NewVirtual(o, processes...)
	clock.AfterFunc(10*time.Minute, func() {
		to := machineConfig("4.21.1")
		c.Expect(to)
		if _, err := c.Apply(context.Background(), to.Operators[0].Workloads[0], clusterapi.ApplyOptions{FieldManager: clusterapi.ManagerPayload}); err != nil {
			panic(err)
		}
	})
	if seed%3 != 0 {
		s.admin.Start(rand.New(rand.NewPCG(seed, 7)))
	}
	return s
}

// faults are the faults and the changes by an administrator that took place.
func (s *simulated) faults() []string { return append(s.Faults(), s.admin.Changes()...) }

// look checks what must hold after each step.
func (s *simulated) look() error {
	for c, ok := s.cursor.Next(); ok; c, ok = s.cursor.Next() {
		if err := s.judge.Observe(c); err != nil {
			return err
		}
		if c.New == nil || c.New.Kind().Kind != "Node" {
			continue
		}
		n, err := clusterapi.As[corev1.Node](c.New)
		if err != nil {
			return err
		}
		state := mcp.NodeStateOf(n)
		over := state.Done() && state.LastAppliedDrain == state.DesiredDrain
		if over && state.Unschedulable && !s.admin.Touched("node "+n.Name) {
			return fmt.Errorf("node %s is done and cordoned", n.Name)
		}
	}
	return nil
}

func (s *simulated) run(until time.Duration) error {
	defer s.cursor.Close()
	for end := mcptest.Epoch.Add(until); ; {
		at, ok := s.Next()
		if !ok || at.After(end) {
			return s.cluster.CheckShared()
		}
		if _, err := s.Step(); err != nil {
			return err
		}
		if err := s.look(); err != nil {
			return fmt.Errorf("after %s: %w", s.Now().Sub(mcptest.Epoch), err)
		}
	}
}

// atEnd says what is not as it should be.
func (s *simulated) atEnd() error {
	ctx := context.Background()
	pools, err := clusterapi.ReadAll[mcfgv1.MachineConfigPool](ctx, s.cluster, clusterapi.ListOptions{})
	nodes, err2 := clusterapi.ReadAll[corev1.Node](ctx, s.cluster, clusterapi.ListOptions{})
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	var wrong []string
	config := map[string]string{}
	for _, p := range pools {
		config[p.Name] = p.Spec.Configuration.Name
		if mcptest.ConditionOf(p.Status, mcfgv1.MachineConfigPoolUpdated).Status != corev1.ConditionTrue || p.Status.Configuration.Name != config[p.Name] {
			wrong = append(wrong, fmt.Sprintf("pool %s: %s", p.Name, mcptest.Brief(p.Status)))
		}
	}
	for _, n := range nodes {
		state := mcp.NodeStateOf(n)
		pool := chaos.PoolOf(n)
		_, since := n.Annotations["clusterupdate.github.io/drain-since"]
		if !state.Done() || state.CurrentConfig != config[pool] || state.Unschedulable || state.UpdateTaint || since || n.Status.NodeInfo.KubeletVersion != "v1.34.0" {
			wrong = append(wrong, fmt.Sprintf("node %s, kubelet %s: %+v", n.Name, n.Status.NodeInfo.KubeletVersion, state))
		}
	}
	if len(pools) != 3 {
		wrong = append(wrong, fmt.Sprintf("%d pools", len(pools)))
	}
	for text, n := range s.told {
		if n > 1 && !s.admin.Touched("node "+strings.Fields(text)[1]) {
			wrong = append(wrong, fmt.Sprintf("told %d times: %s", n, text))
		}
	}
	if slices.Sort(wrong); len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "\n"))
	}
	return nil
}

// Whatever goes wrong, and whatever an administrator does to nodes and pools, all pools are
// updated in the end, and on the way there are never more nodes unavailable than allowed.
func TestSimulation(t *testing.T) {
	simtest.Test(t, 0.25, func(seed uint64, only map[string]bool) ([]string, error) {
		s := simulate(seed, 1, reconcile.Faults{
			Before: 0.03, After: 0.03, Conflict: 0.03, Slow: 0.01, Stale: 0.05, Late: 0.1, Double: 0.05, Merge: 0.05,
			Crash: 0.01, Outage: 0.2, ClockBack: 0.1, Until: time.Hour, Only: only,
		})
		defer s.Close()
		if err := s.run(3 * time.Hour); err != nil {
			return s.faults(), err
		}
		return s.faults(), s.atEnd()
	})
}

// The same seed makes the same run.
func TestSimulationIsDeterministic(t *testing.T) {
	run := func(seed uint64) []string {
		s := simulate(seed, 1, reconcile.Faults{Before: 0.05, After: 0.05, Stale: 0.1, Late: 0.1, Crash: 0.02, Until: time.Hour})
		defer s.Close()
		checktest.OK(t, s.run(2*time.Hour))
		return slices.Concat(s.log, s.faults())
	}
	for _, seed := range []uint64{1, 2} {
		if diff := cmp.Diff(run(seed), run(seed)); diff != "" {
			t.Errorf("seed %d:\n%s", seed, diff)
		}
	}
}

// Two rollouts at once come to the same end.
func TestSimulationOfTwo(t *testing.T) {
	simtest.Test(t, 0.1, func(seed uint64, only map[string]bool) ([]string, error) {
		s := simulate(seed, 2, reconcile.Faults{
			Before: 0.02, After: 0.02, Conflict: 0.02, Stale: 0.05, Late: 0.1, Crash: 0.01, Until: time.Hour, Only: only,
		})
		defer s.Close()
		if err := s.run(3 * time.Hour); err != nil {
			return s.faults(), err
		}
		s.told = nil // by each
		return s.faults(), s.atEnd()
	})
}
