package plan_test

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

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/simtest"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/internal/chaos"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// simulated is a plan that is run, by one runner or two, while calls fail,
// processes crash, nodes break and pods refuse to leave. In half of the seeds
// somebody stops it.
type simulated struct {
	*world
	rand     *rand.Rand
	cursor   clusterapi.Cursor
	plan     plan.Plan
	to       string // the release in the end
	before   map[string]string
	runners  []*plan.Runner
	stopped  plan.Mode
	resumed  int
	admin    *chaos.Administrator
	judge    *chaos.Judge
	paused   map[string]bool // pools
	mayPause map[string]bool // pools that the plan names
	steps    map[string]string
	acts     int
	fault    error
}

// faultsFor is how long faults go on.
const faultsFor = 3 * time.Hour

func simulate(seed uint64, runners int, f reconcile.Faults) *simulated {
	r := rand.New(rand.NewPCG(seed, 7))
	one, two := intstr.FromInt32(1), intstr.FromInt32(2)
	web := simulation.Workload{Name: "web", Replicas: 3, MaxUnavailable: &one}
	faults := map[string]*simulation.Fault{}
	hour := time.Hour
	switch seed % 6 {
	case 1:
		faults["worker-1"] = &simulation.Fault{Kind: simulation.FaultNodeVanishes}
	case 2:
		faults["worker-2"] = &simulation.Fault{Kind: simulation.FaultNodeStaysNotReady, For: hour / 2}
	case 3:
		faults["worker-0"] = &simulation.Fault{Kind: simulation.FaultNodeReturnsOld, For: hour / 2}
	case 4:
		web.Fault = &simulation.Fault{Kind: simulation.FaultPodStays, For: hour}
	}
	for i := range runners {
		f.Processes = append(f.Processes, fmt.Sprint("runner ", i))
	}
	f.Processes = append(f.Processes, "stopper", "again 1", "again 2", "again 3")
	s := &simulated{rand: r, paused: map[string]bool{"kept": true},
		steps: map[string]string{}, mayPause: map[string]bool{}}
	s.world = newWorld(worldOptions{seed: seed, random: seed%2 == 0, check: seed%10 == 1, calls: f, faults: faults,
		pools:     []simulation.Pool{{Nodes: 5, MaxUnavailable: &two}, {Name: "infra", Nodes: 2}, {Name: "kept", Nodes: 1, Paused: true}},
		workloads: []simulation.Workload{web, {Name: "agent", DaemonSet: true}}})
	if err := s.RunUntil(s.Now().Add(5 * time.Minute)); err != nil {
		panic(err)
	}
	s.cursor = s.cluster.Follow()
	s.judge = chaos.NewJudge(s.Now, s.cluster)
	s.admin = &chaos.Administrator{Cluster: s.cluster, Clock: s.clock, Judge: s.judge,
		Pools: map[string]int{"worker": 2, "infra": 1}, Moves: []string{"worker", "infra"}, For: faultsFor, Only: f.Only}
	s.build(seed)
	for _, step := range s.plan.Steps {
		for _, p := range append(step.Args.Pools, step.Args.Pool) {
			s.mayPause[p] = step.Kind == plan.SetPaused || s.mayPause[p]
		}
	}
	s.before = fields(s.cluster)
	for i := range runners {
		s.run(fmt.Sprint("runner ", i), plan.Options{Plan: s.plan})
	}
	if seed%2 == 1 {
		s.clock.AfterFunc(time.Duration(1+r.IntN(90))*time.Minute, s.stop)
	}
	// Who unpauses a pool that waits ends a control plane's way over several minor versions.
	s.admin.Pauses = s.to != version2
	if seed%3 != 0 {
		s.admin.Start(rand.New(rand.NewPCG(seed, 8)))
	}
	return s
}

// build makes the plan of a seed.
func (s *simulated) build(seed uint64) {
	s.to = version1
	var err error
	switch c := s.state(); seed / 2 % 5 {
	case 0:
		s.plan, _, err = plan.PlanCanary(c, plan.CanaryOptions{ID: "simulated", Version: version1, Sizes: []int{1, 2, 2}, MaxUnavailable: 1 + int(seed%2)})
	case 1:
		s.plan, _, err = plan.PlanCanary(c, plan.CanaryOptions{ID: "simulated", Version: version1, Pool: "infra", Sizes: []int{1}})
	case 2:
		s.to = version2
		s.plan, _, err = plan.PlanControlPlaneOnly(c, plan.ControlPlaneOnlyOptions{ID: "simulated",
			Versions: []string{version1, version2}, Channel: "eus-4.22", AtOnce: seed%4 > 1})
	case 3:
		s.to = version0
		s.plan = s.hosts()
	default:
		at := s.Now().Add(10 * time.Minute)
		var windows []plan.Window
		for i := range 8 {
			windows = append(windows, plan.Window{Start: at.Add(time.Duration(i) * 70 * time.Minute), Duration: time.Hour})
		}
		s.plan, _, err = plan.PlanWindows(c, plan.WindowsOptions{ID: "simulated", Version: version1, Pools: []string{"infra", "worker"}, Windows: windows, NodeTime: 10 * time.Minute, ClusterTime: 20 * time.Minute})
	}
	if err != nil {
		panic(err)
	}
}

// hosts is a plan that does something to one node after another.
func (s *simulated) hosts() plan.Plan {
	p := plan.Plan{Version: plan.Format, ID: "simulated", Kind: "Custom"}
	for _, node := range []string{"worker-0", "infra-0", "worker-1", "worker-2"} {
		args := plan.Args{Node: node}
		p.Steps = append(p.Steps, plan.Step{ID: "cordon-" + node, Kind: plan.Cordon, Args: args},
			plan.Step{ID: "drain-" + node, Kind: plan.Drain, Args: args},
			plan.Step{ID: "hook-" + node, Kind: plan.Hook, Args: plan.Args{Node: node, Action: "hook"}},
			plan.Step{ID: "uncordon-" + node, Kind: plan.Uncordon, Args: args})
	}
	return p
}

func (s *simulated) actions() map[string]plan.Action {
	return map[string]plan.Action{"UpdateCluster": plan.ActionFunc(updateCluster), "hook": plan.ActionFunc(s.act)}
}

// act is done to a node in several calls.
func (s *simulated) act(_ context.Context, c plan.Call) (plan.Outcome, error) {
	s.judge.Act(c.Step.Args.Node, true)
	s.acts++
	return plan.Outcome{Done: s.acts%4 == 0, After: time.Minute}, nil
}

func (s *simulated) run(name string, o plan.Options) {
	o.Actions = s.actions()
	s.runners = append(s.runners, s.start(name, o))
}

// stop stops the plan, whatever it is at.
func (s *simulated) stop() {
	if s.ended() {
		return
	}
	s.stopped = []plan.Mode{plan.Hold, plan.Freeze, plan.RestoreWithReboots}[s.rand.IntN(3)]
	for i := range len(s.runners) {
		s.Stop(fmt.Sprint("runner ", i))
	}
	claim := []plan.Claim{plan.TakeOver, ""}[s.rand.IntN(2)]
	s.run("stopper", plan.Options{Plan: s.plan, Claim: claim, Mode: s.stopped})
}

// state of the plan, as its runners know it.
func (s *simulated) states() (out []plan.State) {
	for _, r := range s.runners {
		out = append(out, r.Progress().State)
	}
	return out
}

func (s *simulated) ended() bool {
	states := s.states()
	return slices.Contains(states, plan.StateFinished) || slices.Contains(states, plan.StateRestored)
}

// resume starts another runner when the plan has failed or was stopped.
func (s *simulated) resume() {
	last := s.runners[len(s.runners)-1].Progress().State
	if s.resumed == 3 || last != plan.StateFailed && last != plan.StateHeld && last != plan.StateFrozen {
		return
	}
	s.resumed++
	name := fmt.Sprint("again ", s.resumed)
	s.clock.AfterFunc(30*time.Minute, func() {
		if s.stopped != "" {
			s.Stop("stopper") // which would stop the plan again after a crash
		}
		s.run(name, plan.Options{Plan: s.plan, Mode: plan.Resume})
	})
	s.runners = append(s.runners, must(plan.New(plan.Options{Plan: s.plan, Actions: s.actions()}))) // stands for the pause
}

func (s *simulated) wrong(format string, args ...any) {
	if s.fault == nil {
		s.fault = fmt.Errorf("after %s: %w", s.Now().Sub(mcptest.Epoch), fmt.Errorf(format, args...))
	}
}

// look checks each change of the cluster.
func (s *simulated) look() {
	for c, ok := s.cursor.Next(); ok; c, ok = s.cursor.Next() {
		if err := s.judge.Observe(c); err != nil {
			s.wrong("%w", err)
		}
		switch c.Object().Kind().Kind {
		case "MachineConfigPool":
			if c.New == nil {
				s.judgeDeletion(c.Old)
				continue
			}
			p := must(clusterapi.As[mcfgv1.MachineConfigPool](c.New))
			if p.Spec.Paused && !s.paused[p.Name] && !s.mayPause[p.Name] && c.Old != nil && !s.admin.Touched("pool "+p.Name) {
				s.wrong("pool %s was paused", p.Name)
			}
			s.paused[p.Name] = p.Spec.Paused
			if p.Name == "kept" && !p.Spec.Paused {
				s.wrong("pool %s was unpaused, and the plan did not pause it", p.Name)
			}
		case "Node":
			if c.New != nil {
				s.judgeNode(must(clusterapi.As[corev1.Node](c.New)))
			}
		case "ConfigMap":
			s.judgeRecord(must(clusterapi.As[corev1.ConfigMap](c.Object())))
		}
	}
}

// judgeDeletion: no pool is deleted while it has nodes, nor one that was there
// before.
func (s *simulated) judgeDeletion(old *clusterapi.Object) {
	if s.before["pool "+old.Name()] != "" {
		s.wrong("pool %s was deleted", old.Name())
	}
	nodes := must(clusterapi.ReadAll[corev1.Node](s.context(), s.cluster, clusterapi.ListOptions{}))
	for _, n := range nodes {
		if _, ok := n.Labels[mcp.LabelNodeRolePrefix+old.Name()]; ok {
			s.wrong("pool %s was deleted with node %s", old.Name(), n.Name)
		}
	}
}

// judgeNode: no node is ever in two custom pools.
func (s *simulated) judgeNode(n *corev1.Node) {
	if roles := chaos.PoolOf(n); strings.Contains(roles, "+") {
		s.wrong("node %s has the roles %s", n.Name, roles)
	}
}

// judgeRecord: what is done stays done, and steps are taken in order.
func (s *simulated) judgeRecord(c *corev1.ConfigMap) {
	if c.Name != "rollout-"+s.plan.ID {
		return
	}
	var progress plan.Progress
	if err := json.Unmarshal([]byte(c.Data["progress"]), &progress); err != nil {
		s.wrong("%s", err)
	}
	open := ""
	for _, step := range s.plan.Steps {
		is := progress.Steps[step.ID].State
		was := s.steps[step.ID]
		over := func(st string) bool {
			return st == "Done" || st == "Skipped" || st == "Failed" && step.OnFailure == "Continue"
		}
		reopened := step.Kind == plan.SetPaused && progress.State != plan.StateRunning ||
			s.steps[step.ID+" reopened"] != "" || step.Kind == plan.Drain // of a node that somebody uncordoned before its hook was done
		if over(was) && is != was {
			if !reopened {
				s.wrong("step %s was %s and is %s", step.ID, was, is)
			}
			s.steps[step.ID+" reopened"] = was
		}
		if open != "" && is != "" && is != was && is != "Pending" {
			s.wrong("step %s is %s, and %s before it is not over", step.ID, is, open)
		}
		if open == "" && !over(is) {
			open = step.ID
		}
		s.steps[step.ID] = is
	}
}

func (s *simulated) play() error {
	defer s.cursor.Close()
	for end := mcptest.Epoch.Add(40 * time.Hour); !s.ended(); {
		at, ok := s.Next()
		if !ok || at.After(end) {
			return fmt.Errorf("the plan does not end: %s\n%s", s.states(), strings.Join(s.last(15), "\n"))
		}
		if _, err := s.Step(); err != nil {
			return err
		}
		s.look()
		s.resume()
		if s.fault != nil {
			return fmt.Errorf("%w\n%s", s.fault, strings.Join(s.last(15), "\n"))
		}
	}
	if err := s.atEnd(); err != nil {
		return fmt.Errorf("stopped: %s, %s: %w\n%s", s.stopped, s.states(), err, strings.Join(s.last(15), "\n"))
	}
	return s.cluster.CheckShared()
}

// atEnd says what is not as it should be.
func (s *simulated) atEnd() error {
	if s.Now().Before(mcptest.Epoch.Add(faultsFor)) { // the administrator works on
		if err := s.RunUntil(mcptest.Epoch.Add(faultsFor)); err != nil {
			return err
		}
	}
	// Nodes that are in flight end their update, each after an hour where a pod
	// stays for so long.
	for range 5 {
		if err := s.RunUntil(s.Now().Add(2 * time.Hour)); err != nil {
			return err
		}
		if !s.cordoned() {
			break
		}
	}
	if _, _, err := plan.Load(s.context(), s.cluster, "", s.plan.ID); err != nil {
		return err
	}
	now := fields(s.cluster)
	for name := range s.before { // a node may have vanished
		if strings.HasPrefix(name, "node ") && now[name] == "" {
			delete(s.before, name)
		}
	}
	for name := range now {
		// A restore leaves a pool whose nodes cannot go, as they are cordoned or their pool is paused.
		left := "Left MachineConfigPool/" + strings.TrimPrefix(name, "pool ") + " was created: node "
		held := s.admin.Touched("pool worker") || s.admin.Touched("pool infra") || s.admin.Cordoned()
		if s.admin.Touched(name) || held && strings.Contains(strings.Join(s.log, "\n"), left) {
			delete(s.before, name)
			delete(now, name)
		}
	}
	if slices.Contains(s.states(), plan.StateFinished) {
		s.before["channel"] = now["channel"]
		if err := s.updated(); err != nil {
			return err
		}
	}
	if diff := cmp.Diff(s.before, now); diff != "" {
		return errors.New(diff)
	}
	return s.fault
}

// cordoned reports whether a node is unschedulable that was not.
func (s *simulated) cordoned() bool {
	now := fields(s.cluster)
	for name, was := range s.before {
		if strings.HasPrefix(was, "unschedulable false") && strings.HasPrefix(now[name], "unschedulable true") {
			return true
		}
	}
	return false
}

// updated says which pool has not reached the release; one stays paused.
func (s *simulated) updated() error {
	err := atRest(s.cluster, s.to)
	if err == nil {
		return errors.New("pool kept is at rest")
	}
	var wrong []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if (strings.HasPrefix(line, "pool ") || strings.HasPrefix(line, "node ")) && !strings.HasPrefix(line, "pool kept") && !strings.HasPrefix(line, "node kept-") {
			wrong = append(wrong, line)
		}
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "\n"))
	}
	return nil
}

var planFaults = reconcile.Faults{
	Before: 0.15, After: 0.15, Conflict: 0.05, Slow: 0.01, Stale: 0.05, Late: 0.1, Double: 0.05, Merge: 0.05,
	Crash: 0.01, Outage: 0.2, ClockBack: 0.1, Until: faultsFor,
}

func play(seed uint64, runners int, only map[string]bool) ([]string, error) {
	f := planFaults
	f.Only = only
	s := simulate(seed, runners, f)
	defer s.Close()
	err := s.play()
	return append(s.Faults(), s.admin.Changes()...), err
}

// Whatever goes wrong, and whatever an administrator does, a plan comes to its end, in order and without touching
// what is not its own; and what a stop restores is as it was.
func TestSimulation(t *testing.T) {
	simtest.Test(t, 0.04, func(seed uint64, only map[string]bool) ([]string, error) { return play(seed, 1, only) })
}

// Two runners at once come to the same end.
func TestSimulationOfTwo(t *testing.T) {
	simtest.Test(t, 0.02, func(seed uint64, only map[string]bool) ([]string, error) { return play(seed, 2, only) })
}

// The same seed makes the same run.
func TestSimulationIsDeterministic(t *testing.T) {
	run := func() []string {
		s := simulate(4, 2, planFaults)
		defer s.Close()
		checktest.OK(t, s.play())
		return append(s.log, s.Faults()...)
	}
	checktest.Same(t, run(), run())
}
