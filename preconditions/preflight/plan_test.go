package preflight_test

import (
	"context"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/cvtest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/internal/updatetest"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/preflight"
)

// A canary plan that checks first updates a cluster through its Updater, and leaves it
// with the pools that it had, whatever faults befall the plan's runner.
func TestActionOfPlan(t *testing.T) {
	seeds := uint64(6)
	if israce.Enabled {
		seeds = 2
	}
	for seed := range seeds {
		faults := reconcile.Faults{}
		if seed > 0 {
			faults = reconcile.Faults{Before: 0.05, After: 0.05, Conflict: 0.05, Stale: 0.05, Late: 0.2, Crash: 0.01, Until: 2 * time.Hour, Processes: []string{"plan canary"}}
		}
		cluster := updatetest.New(t, simulation.Options{Pools: []simulation.Pool{{Nodes: 4}}}, reconcile.VirtualOptions{Seed: seed, Faults: faults})
		v := cluster.Virtual
		cluster.Advance(t, 10*time.Minute)
		state := checktest.Get(plan.ReadCluster(t.Context(), cluster))(t)
		canary, _, err := plan.PlanCanary(state, plan.CanaryOptions{ID: "canary", Version: sample.ToVersion, Sizes: []int{1, 2}})
		checktest.OK(t, err)
		canary.Steps = append([]plan.Step{{ID: "preflight", Kind: plan.CheckAll, Args: plan.Args{
			Action: "preflight", Parameters: map[string]string{"version": sample.ToVersion}, Checks: []plan.Check{{Kind: "ClusterIdle"}},
		}}}, canary.Steps...)
		checks := preflight.Action(configv1.Release{}, preflight.Options{Checks: preconditions.Operator()})
		runner := checktest.Get(plan.New(plan.Options{API: cluster, Plan: canary, Clock: v.Clock(), Actions: map[string]plan.Action{
			"preflight": checks,
		}}))(t)
		v.Add(runner.Process())
		if err := v.RunWhile(24*time.Hour, func() bool { return runner.Progress().State != plan.StateFinished }); err != nil {
			t.Fatalf("seed %d: %v: %+v", seed, err, runner.Progress())
		}
		cv := storedVersion(t, cluster)
		if h := cv.Status.History; h[0].State != configv1.CompletedUpdate || h[0].Version != sample.ToVersion {
			t.Errorf("seed %d: the plan has ended, and the cluster is not updated", seed)
		}
		pools, err := clusterapi.List[mcfgv1.MachineConfigPool](t.Context(), cluster, clusterapi.ListOptions{})
		if err != nil || len(pools) != 2 {
			t.Errorf("seed %d: pools %d, %v", seed, len(pools), err)
		}
	}
}

// blocking is a check that never passes.
type blocking struct{}

func (blocking) Name() string { return "Tuesdays" }

func (blocking) Applies(preconditions.Transition) bool { return true }

func (blocking) Run(context.Context, *preconditions.Input) ([]preconditions.Finding, error) {
	return []preconditions.Finding{{Severity: preconditions.Blocking, Reason: "Tuesday", Message: "it is Tuesday"}}, nil
}

func TestAction(t *testing.T) {
	away := &url.Error{Op: "Get", URL: "https://api.example:6443", Err: syscall.ECONNREFUSED}
	unreachable := memory.NewOpenShift(memory.Options{Intercept: func(context.Context, memory.Call, func(context.Context) error) error { return away }})
	api := clusterOf(t, memory.Options{}, cvtest.Requestable())
	own := configv1.Release{Version: "4.20.4"}
	named := plan.Args{Parameters: map[string]string{"version": "4.20.4"}}
	for _, tt := range []struct {
		name   string
		api    clusterapi.ClusterAPI
		to     configv1.Release
		args   plan.Args
		checks []preconditions.Check
		done   bool
		text   string
		err    string
	}{
		{name: "without checks", api: api, to: own, done: true},
		{name: "a release that the step names", api: api, args: named, done: true},
		{name: "blocked", api: api, to: own, checks: []preconditions.Check{blocking{}}, text: "it is Tuesday"},
		{name: "not reached", api: unreachable, to: own, text: "connection refused"},
		{name: "no ClusterVersion", api: memory.NewOpenShift(memory.Options{}), err: "reading the ClusterVersion"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			checks := append([]preconditions.Check{}, tt.checks...)
			action := preflight.Action(tt.to, preflight.Options{Checks: checks})
			out, err := action.Do(t.Context(), plan.Call{API: tt.api, Step: plan.Step{Kind: plan.Gate, Args: tt.args}})
			if tt.err != "" {
				checktest.ErrorHas(t, tt.err, err)
				return
			}
			checktest.OK(t, err)
			if out.Done != tt.done || !strings.Contains(out.Text, tt.text) {
				t.Errorf("%+v", out)
			}
		})
	}
}
