package clusterupdate_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/cvtest"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/signature"
)

// A canary plan updates a cluster through its Updater, and leaves it with the
// pools that it had, whatever faults befall the plan's runner.
func TestPlanUpdate(t *testing.T) {
	from, to := loadSample(t, sample.From(), sample.FromImage), loadSample(t, sample.To(), sample.ToImage)
	for seed := range seeds(6, 2) {
		clock := reconcile.NewClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
		cluster := checktest.Get(simulation.New(simulation.Options{
			Clock: clock, Release: payload.Release(from), ControlPlane: 3, Pools: []simulation.Pool{{Name: "worker", Nodes: 4}},
			ClusterVersion: simulation.ClusterVersion{Channel: sample.Channel},
		}))(t)
		cluster.Expect(payload.Release(to))
		updater := checktest.Get(clusterupdate.New(clusterupdate.Options{API: cluster, Payloads: sampleSource(), Graph: sampleGraph(t), Verifier: signature.Insecure(), Clock: clock}))(t)
		nodes := checktest.Get(rollout.New(rollout.Options{API: cluster, Mode: rollout.Drive, Clock: clock}))(t)
		faults := reconcile.Faults{}
		if seed > 0 {
			faults = reconcile.Faults{Before: 0.05, After: 0.05, Conflict: 0.05, Stale: 0.05, Late: 0.2, Crash: 0.01, Until: 2 * time.Hour, Processes: []string{"plan canary"}}
		}
		v := reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: cluster, Clock: clock, Seed: seed, Faults: faults}, cluster.Process(), nodes.Process(), updater.Process())
		defer v.Close()
		checktest.OK(t, v.RunUntil(v.Now().Add(10*time.Minute)))
		state := checktest.Get(plan.ReadCluster(t.Context(), cluster))(t)
		canary, _, err := plan.PlanCanary(state, plan.CanaryOptions{ID: "canary", Version: sample.ToVersion, Sizes: []int{1, 2}})
		if err != nil {
			t.Fatal(err)
		}
		canary.Steps = append([]plan.Step{{ID: "preflight", Kind: plan.CheckAll, Args: plan.Args{
			Action: "preflight", Parameters: map[string]string{"version": sample.ToVersion}, Checks: []plan.Check{{Kind: "ClusterIdle"}},
		}}}, canary.Steps...)
		checks := clusterupdate.PreflightOptions{Checks: preconditions.Operator()}
		runner := checktest.Get(plan.New(plan.Options{API: cluster, Plan: canary, Clock: clock, Actions: map[string]plan.Action{
			"preflight": clusterupdate.PlanChecks{Options: checks}, string(plan.UpdateCluster): clusterupdate.PlanUpdate{Checks: &checks},
		}}))(t)
		v.Add(runner.Process())
		if err := v.RunWhile(24*time.Hour, func() bool { return runner.Progress().State != plan.StateFinished }); err != nil {
			t.Fatalf("seed %d: %v: %+v", seed, err, runner.Progress())
		}
		if !updated(t, cluster, to.Release) {
			t.Errorf("seed %d: the plan has ended, and the cluster is not updated", seed)
		}
		pools, err := clusterapi.List[mcfgv1.MachineConfigPool](t.Context(), cluster, clusterapi.ListOptions{})
		if err != nil || len(pools) != 2 {
			t.Errorf("seed %d: pools %d, %v", seed, len(pools), err)
		}
	}
}

func TestPlanUpdateAnswers(t *testing.T) {
	to := func(version string, n int) configv1.Update {
		return configv1.Update{Version: version, Image: cvtest.ImageOf(cvtest.Repository, n)}
	}
	for _, tt := range []struct {
		name    string
		action  clusterupdate.PlanUpdate
		cv      *configv1.ClusterVersion
		version string
		image   string
		done    bool
		waits   string
		err     string
		asked   *configv1.Update
	}{
		{name: "offered", cv: cvtest.Requestable(), version: "4.20.4", done: true, asked: new(to("4.20.4", 4))},
		{name: "by image", cv: cvtest.Requestable(), version: "4.20.4", image: cvtest.ImageOf(cvtest.Repository, 4), done: true, asked: new(to("4.20.4", 4))},
		{name: "there already", cv: cvtest.Requestable(), version: "4.20.3", done: true},
		{name: "asked already", cv: cvtest.Requestable(cvtest.Desired(to("4.20.4", 4))), version: "4.20.4", done: true, asked: new(to("4.20.4", 4))},
		{name: "not offered yet", cv: cvtest.Requestable(), version: "4.20.5", waits: "the update is not one of the possible targets: 4.20.10, 4.20.4"},
		{name: "updates cannot be retrieved", cv: cvtest.Requestable(cvtest.WithoutUpdates, cvtest.WithCondition("RetrievedUpdates", "False")), version: "4.20.4", waits: "cannot refresh available updates"},
		{name: "updating", cv: cvtest.Requestable(cvtest.WithCondition("Progressing", "True")), version: "4.20.4", waits: "the cluster is already upgrading"},
		{name: "not recommended", cv: cvtest.Requestable(), version: "4.21.1", err: "not one of the recommended updates"},
		{name: "not recommended, allowed", action: clusterupdate.PlanUpdate{Allow: clusterversion.UpdateRequest{AllowNotRecommended: true, To: "9.9.9"}}, cv: cvtest.Requestable(), version: "4.21.1", done: true, asked: new(to("4.21.1", 21))},
		{name: "no version", cv: cvtest.Requestable(), version: "x", err: "must be a semantic version"},
		{name: "blocked", cv: cvtest.Requestable(), version: "4.20.4", action: clusterupdate.PlanUpdate{Checks: &clusterupdate.PreflightOptions{Checks: []preconditions.Check{blocking{}}}}, err: "it is Tuesday"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			api := clusterOf(t, memory.Options{}, tt.cv)
			out, err := tt.action.Do(t.Context(), plan.Call{API: api, Step: plan.Step{ID: "update", Kind: plan.UpdateCluster, Args: plan.Args{Version: tt.version, Image: tt.image}}})
			if tt.err != "" {
				if refused := (*clusterversion.RefusedError)(nil); !errors.As(err, &refused) || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("%v, want %s", err, tt.err)
				}
			} else if err != nil {
				t.Fatal(err)
			}
			if out.Done != tt.done || !strings.Contains(out.Text, tt.waits) || tt.waits == "" && out.Text != "" {
				t.Errorf("%+v", out)
			}
			got := storedVersion(t, api).Spec.DesiredUpdate
			if (got == nil) != (tt.asked == nil) || got != nil && (got.Version != tt.asked.Version || got.Image != tt.asked.Image) {
				t.Errorf("asked for %+v, want %+v", got, tt.asked)
			}
		})
	}
}

// An API that cannot be reached for a while is waited for.
func TestPlanActionsWithoutAPI(t *testing.T) {
	checks := clusterupdate.PreflightOptions{Checks: []preconditions.Check{}}
	for name, a := range map[string]plan.Action{
		"update": clusterupdate.PlanUpdate{}, "checked update": clusterupdate.PlanUpdate{Checks: &checks},
		"checks": clusterupdate.PlanChecks{To: configv1.Release{Version: "4.20.4"}, Options: checks},
	} {
		for verb, fault := range map[string]error{
			"Get":    &url.Error{Op: "Get", URL: "https://api.example:6443", Err: syscall.ECONNREFUSED},
			"Update": &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET},
		} {
			t.Run(name+" "+verb, func(t *testing.T) {
				faults := 1
				api := clusterOf(t, memory.Options{Intercept: func(ctx context.Context, c memory.Call, do func(context.Context) error) error {
					if c.Verb != verb || faults == 0 {
						return do(ctx)
					}
					faults--
					return fault
				}}, cvtest.Requestable())
				call := plan.Call{API: api, Step: plan.Step{ID: "update", Kind: plan.UpdateCluster, Args: plan.Args{Version: "4.20.4"}}}
				out, err := a.Do(t.Context(), call)
				if err == nil && !out.Done {
					if !strings.Contains(out.Text, fault.Error()) {
						t.Errorf("it waits: %s", out.Text)
					}
					out, err = a.Do(t.Context(), call)
				}
				if err != nil || !out.Done {
					t.Errorf("%+v, %v", out, err)
				}
			})
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

func TestPlanChecks(t *testing.T) {
	api := clusterOf(t, memory.Options{}, cvtest.Requestable())
	ask := func(checks ...preconditions.Check) plan.Outcome {
		t.Helper()
		a := clusterupdate.PlanChecks{Options: clusterupdate.PreflightOptions{Checks: checks}}
		named := checktest.Get(a.Do(t.Context(), plan.Call{API: api, Step: plan.Step{Kind: plan.Gate, Args: plan.Args{Parameters: map[string]string{"version": "4.20.4"}}}}))(t)
		a.To.Version = "4.20.4"
		own, err := a.Do(t.Context(), plan.Call{API: api, Step: plan.Step{Kind: plan.CheckAll}})
		if err != nil || own != named {
			t.Fatalf("%+v and %+v, %v", named, own, err)
		}
		return own
	}
	if out := ask(); !out.Done {
		t.Errorf("without checks: %+v", out)
	}
	if out := ask(blocking{}); out.Done || !strings.Contains(out.Text, "it is Tuesday") {
		t.Errorf("blocked: %+v", out)
	}
	if _, err := (clusterupdate.PlanChecks{}).Do(t.Context(), plan.Call{API: memory.NewOpenShift(memory.Options{}), Step: plan.Step{}}); err == nil {
		t.Error("no ClusterVersion, and no error")
	}
}
