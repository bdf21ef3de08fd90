package preflight_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/cvtest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/internal/updatetest"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/preflight"
)

// counted is a check that counts its runs and says what it sees.
type counted struct {
	runs   *int
	seen   *preconditions.Input
	blocks bool
}

func (counted) Name() string                          { return "Counted" }
func (counted) Applies(preconditions.Transition) bool { return true }
func (c counted) Run(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	*c.runs++
	*c.seen = *in
	if c.blocks {
		return []preconditions.Finding{{Severity: preconditions.Blocking, Reason: "No", Message: "not today"}}, nil
	}
	return nil, nil
}

// A request is written where all checks allow it, and no other.
func TestSubmit(t *testing.T) {
	at := func(version string, n int) func(*configv1.ClusterVersion) {
		return cvtest.Desired(configv1.Update{Version: version, Image: cvtest.ImageOf(cvtest.Repository, n)})
	}
	for _, tt := range []struct {
		name    string
		cv      *configv1.ClusterVersion
		request clusterversion.Request
		blocks  bool
		policy  preconditions.Policy
		runs    int
		target  string // that the check saw
		kind    preconditions.Kind
		refused string
		written string
	}{
		{name: "allowed", cv: cvtest.Requestable(), request: clusterversion.UpdateRequest{To: "4.20.4"}, runs: 1, target: "4.20.4", kind: preconditions.Patch, written: "4.20.4"},
		{name: "blocked", cv: cvtest.Requestable(), request: clusterversion.UpdateRequest{To: "4.20.4"}, blocks: true, runs: 1, target: "4.20.4", kind: preconditions.Patch,
			refused: `Precondition "Counted" failed because of "No": not today`},
		{name: "forced", cv: cvtest.Requestable(), request: clusterversion.UpdateRequest{To: "4.20.4", Force: true}, blocks: true, runs: 1, target: "4.20.4", kind: preconditions.Patch, written: "4.20.4"},
		{name: "bypassed", cv: cvtest.Requestable(), request: clusterversion.UpdateRequest{To: "4.20.4"}, blocks: true, runs: 1, target: "4.20.4", kind: preconditions.Patch, written: "4.20.4",
			policy: preconditions.Policy{Bypasses: []preconditions.Bypass{{Check: "Counted", By: "ann", Why: "known", Image: cvtest.ImageOf(cvtest.Repository, 4)}}}},
		{name: "bypassed for another image", cv: cvtest.Requestable(), request: clusterversion.UpdateRequest{To: "4.20.4"}, blocks: true, runs: 1, target: "4.20.4", kind: preconditions.Patch, refused: "not today",
			policy: preconditions.Policy{Bypasses: []preconditions.Bypass{{Check: "Counted", By: "ann", Why: "known", Image: cvtest.ImageOf(cvtest.Repository, 10)}}}},
		{name: "to an image", cv: cvtest.Requestable(), request: clusterversion.UpdateRequest{ToImage: cvtest.ImageOf(cvtest.Repository, 10)}, runs: 1, target: "4.20.10", kind: preconditions.Patch, written: "4.20.10"},
		{name: "to several architectures", cv: cvtest.Requestable(), request: clusterversion.UpdateRequest{ToMultiArch: true}, runs: 1, target: "4.20.3", kind: preconditions.Multi, written: "4.20.3"},
		{name: "rollback", cv: cvtest.Requestable(), request: clusterversion.RollbackRequest{}, blocks: true, runs: 1, target: "4.20.2", kind: preconditions.Rollback, refused: "not today"},
		{name: "a preflight", cv: cvtest.Requestable(), request: clusterversion.PreflightRequest{To: "4.20.4"}, blocks: true, written: "4.20.4"},
		{name: "withdrawn", cv: cvtest.Requestable(at("4.20.4", 4)), request: clusterversion.UpdateRequest{Clear: true}, blocks: true},
		{name: "a channel", cv: cvtest.Requestable(), request: clusterversion.ChannelRequest{Name: "fast-4.20"}, blocks: true},
		{name: "refused before", cv: cvtest.Requestable(), request: clusterversion.UpdateRequest{To: "4.99.0"}, refused: "not one of the possible targets"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			api := clusterOf(t, memory.Options{}, tt.cv)
			before := storedVersion(t, api)
			var seen preconditions.Input
			runs := 0
			_, report, err := preflight.Submit(t.Context(), api, tt.request, preflight.Options{
				Checks: []preconditions.Check{counted{&runs, &seen, tt.blocks}}, Policy: tt.policy,
			})
			checktest.FailIf(t, runs != tt.runs || (report != nil) != (tt.runs > 0), "%d runs, report %v", runs, report)
			if tt.target != "" && (seen.Target.String() != tt.target || seen.Kind != tt.kind || seen.Now.IsZero()) {
				t.Errorf("the check saw %s, %s at %s", seen.Target, seen.Kind, seen.Now)
			}
			after := storedVersion(t, api)
			if tt.refused != "" {
				refused := new(clusterversion.RefusedError)
				if !errors.As(err, &refused) || !strings.Contains(err.Error(), tt.refused) || tt.runs > 0 && refused.Reason != clusterversion.RefusedPreconditions {
					t.Errorf("error %v", err)
				}
				if after.ResourceVersion != before.ResourceVersion {
					t.Error("something was written")
				}
				return
			}
			checktest.OK(t, err)
			if got := after.Spec.DesiredUpdate; tt.written != "" && (got == nil || got.Version != tt.written) {
				t.Errorf("written %+v", got)
			}
		})
	}
}

// After a conflict it is decided again; another target is checked, the same is not.
func TestSubmitConflict(t *testing.T) {
	for _, tt := range []struct {
		name  string
		other func(*configv1.ClusterVersion)
		runs  int
	}{
		{"same target", func(cv *configv1.ClusterVersion) { cv.Status.Conditions[0].Message = "x" }, 1},
		{"a newer one is offered", func(cv *configv1.ClusterVersion) {
			cv.Status.AvailableUpdates = append(cv.Status.AvailableUpdates, configv1.Release{Version: "4.20.11", Image: cvtest.ImageOf(cvtest.Repository, 11)})
		}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var api *memory.Cluster
			raced := false
			api = clusterOf(t, memory.Options{Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
				if call.Verb == "Update" && !raced {
					raced = true
					if _, err := clusterapi.Modify(ctx, api, clusterapi.Key("", "version"), clusterapi.ModifyOptions{Status: true}, func(cv *configv1.ClusterVersion) error {
						tt.other(cv)
						return nil
					}); err != nil {
						return err
					}
				}
				return do(ctx)
			}}, cvtest.Requestable())
			var seen preconditions.Input
			runs := 0
			if _, _, err := preflight.Submit(t.Context(), api, clusterversion.UpdateRequest{ToLatest: true},
				preflight.Options{Checks: []preconditions.Check{counted{&runs, &seen, false}}}); err != nil {
				t.Fatal(err)
			}
			if got := storedVersion(t, api).Spec.DesiredUpdate.Version; runs != tt.runs || got != seen.Target.String() {
				t.Errorf("%d runs, the last for %s, written %s", runs, seen.Target, got)
			}
		})
	}
}

// Run completes the release and loads payloads.
func TestRun(t *testing.T) {
	cv := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	cv.Spec.ClusterID = "8d4c5c1a-8e0e-4bd9-9d5d-8d2a4c9f7f01"
	cv.Status.Desired = configv1.Release{Version: sample.FromVersion, Image: sample.FromImage}
	cv.Status.AvailableUpdates = []configv1.Release{{Version: sample.ToVersion, Image: sample.ToImage}}
	cluster := clusterOf(t, memory.Options{}, cv)
	payloads := manifest.PayloadSourceFunc(func(_ context.Context, r configv1.Release) (fs.FS, error) { return sample.Payload(r.Image) })
	var seen preconditions.Input
	runs := 0
	end := semver.MustParse("4.22.0")
	o := preflight.Options{Checks: []preconditions.Check{counted{&runs, &seen, false}}, Payloads: payloads, Plan: preconditions.ControlPlaneOnly, PlanTarget: end}
	for _, target := range []configv1.Release{{Version: sample.ToVersion}, {Image: sample.ToImage}} {
		checktest.Get(preflight.Run(t.Context(), cluster, target, o))(t)
		if seen.TargetImage != sample.ToImage || seen.Target.String() != sample.ToVersion || seen.TargetPayload == nil || seen.CurrentPayload == nil ||
			seen.Plan != preconditions.ControlPlaneOnly || seen.PlanTarget != end || seen.TargetPayload.Release.Version != sample.ToVersion || seen.CurrentPayload.Release.Version != sample.FromVersion {
			t.Errorf("%+v: the checks saw %+v", target, seen.Transition)
		}
	}
	o.Payloads = nil
	if _, err := preflight.Run(t.Context(), cluster, configv1.Release{Version: "9.9.9"}, o); err != nil || seen.TargetImage != "" || seen.TargetPayload != nil {
		t.Errorf("an unknown release: %v, %+v", err, seen.Transition)
	}
	_, digest, _ := strings.Cut(sample.ToImage, "@")
	mirrored := configv1.Release{Image: "mirror.local/release@" + digest}
	if _, err := preflight.Run(t.Context(), cluster, mirrored, o); err != nil || seen.TargetImage != mirrored.Image || seen.Target.String() != sample.ToVersion {
		t.Errorf("a mirrored release: %v, %+v", err, seen.Transition)
	}
	o.Payloads = manifest.PayloadSourceFunc(func(context.Context, configv1.Release) (fs.FS, error) { return nil, errors.New("away") })
	runs = 0
	if _, err := preflight.Run(t.Context(), cluster, configv1.Release{Version: sample.ToVersion}, o); err == nil || !strings.Contains(err.Error(), "the payload of "+sample.ToImage+": away") || runs > 0 {
		t.Errorf("no payload: %v", err)
	}
	if _, err := preflight.Run(t.Context(), memory.NewOpenShift(memory.Options{}), configv1.Release{}, o); err == nil || !strings.Contains(err.Error(), "reading the ClusterVersion") {
		t.Errorf("no ClusterVersion: %v", err)
	}
}

// A cluster whose control plane is hosted elsewhere is refused.
func TestHosted(t *testing.T) {
	api := clusterOf(t, memory.Options{}, cvtest.Requestable())
	hosted := &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	hosted.Status.ControlPlaneTopology = configv1.ExternalTopologyMode
	checktest.OK(t, api.Load(checktest.Get(clusterapi.ToUnstructured(hosted))(t)))
	_, err := preflight.Run(t.Context(), api, configv1.Release{Version: "4.20.4"}, preflight.Options{})
	checktest.ErrorIs(t, clusterversion.ErrHostedControlPlane, err)
	_, _, err = preflight.Submit(t.Context(), api, clusterversion.UpdateRequest{To: "4.20.4"}, preflight.Options{})
	checktest.ErrorHas(t, clusterversion.ErrHostedControlPlane.Error(), err)
}

// clusterOf returns a cluster that has cv alone.
func clusterOf(t testing.TB, o memory.Options, cv *configv1.ClusterVersion) *memory.Cluster {
	t.Helper()
	api := memory.NewOpenShift(o)
	checktest.OK(t, api.Load(checktest.Get(clusterapi.ToUnstructured(cv))(t)))
	return api
}

// storedVersion reads the ClusterVersion.
func storedVersion(t testing.TB, api clusterapi.Reader) *configv1.ClusterVersion {
	t.Helper()
	return checktest.Get(clusterversion.Get(t.Context(), api))(t)
}

func TestPrecheck(t *testing.T) {
	report := &preconditions.Report{Results: []preconditions.Result{
		{Check: "Good", State: preconditions.Passed, Findings: []preconditions.Finding{{Severity: preconditions.Info, Reason: "I", Message: "i"}}},
		{Check: "Bad", State: preconditions.Failed, Findings: []preconditions.Finding{
			{Severity: preconditions.Blocking, Reason: "B", Message: "b"}, {Severity: preconditions.Warning, Reason: "W", Message: "w"}, {Severity: preconditions.Info, Reason: "I", Message: "i"},
		}},
		{Check: "Dark", State: preconditions.Unknown, Err: errors.New("no answer")},
		{Check: "Other", State: preconditions.NotApplicable},
	}}
	condition := func(check, status, reason, message string) view.PrecheckCondition {
		return view.PrecheckCondition{AcceptanceName: check, Condition: view.Condition{Type: "preconditions/" + check, Status: status, Reason: reason, Message: message}}
	}
	want := []view.PrecheckCondition{
		condition("Good", "True", "AsExpected", ""), condition("Bad", "False", "B", "b"), condition("Bad", "False", "W", "w"), condition("Dark", "Unknown", "Unknown", "no answer"),
	}
	checktest.Same(t, want, preflight.Precheck(report).Conditions)
	if got := preflight.Precheck(nil); len(got.Conditions) != 0 || got.Err != nil {
		t.Errorf("of nothing: %+v", got)
	}
}

// Preconditions are among the causes for concern of oc adm upgrade recommend.
func ExamplePrecheck() {
	report := &preconditions.Report{Results: []preconditions.Result{{Check: "EtcdBackup", State: preconditions.Failed, Findings: []preconditions.Finding{
		{Severity: preconditions.Warning, Reason: "NoBackup", Message: "the newest backup is 9 days old"},
	}}}}
	cv := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	cv.Spec.Channel = "stable-4.20"
	cv.Status.Desired.Version = "4.20.3"
	cv.Status.AvailableUpdates = []configv1.Release{{Version: "4.20.4", Image: "registry.example/release@sha256:4"}}
	cv.Status.Conditions = []configv1.ClusterOperatorStatusCondition{{Type: "Failing", Status: "False"}, {Type: "Progressing", Status: "False"}}
	r, err := view.AssessRecommend(view.RecommendInput{ClusterVersion: cv, Prechecks: []view.Precheck{preflight.Precheck(report)}})
	if err != nil {
		log.Fatal(err)
	}
	if err := r.WriteText(os.Stdout, os.Stderr, view.RecommendText{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// The following conditions found cause for concern in updating this cluster to later releases: preconditions/EtcdBackup
	//
	// preconditions/EtcdBackup=False:
	//
	//   Reason: NoBackup
	//   Message: the newest backup is 9 days old
	//
	// Upstream update service is unset, so the cluster will use an appropriate default.
	// Channel: stable-4.20
	//
	// Updates to 4.20:
	//   VERSION     ISSUES
	//   4.20.4      no known issues relevant to this cluster
}

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
		{name: "a misspelt parameter", api: api, to: own, args: plan.Args{Parameters: map[string]string{"verison": "4.20.5"}},
			err: `parameter "verison" has no meaning`},
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
			checktest.FailIf(t, out.Done != tt.done || !strings.Contains(out.Text, tt.text), "%+v", out)
		})
	}
}
