package plan_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// custom is a plan of steps.
func custom(id string, steps ...plan.Step) plan.Plan {
	return plan.Plan{Version: plan.Format, ID: id, Kind: "Custom", Steps: steps}
}

func pause(id string, paused bool, pools ...string) plan.Step {
	return plan.Step{ID: id, Kind: plan.SetPaused, Args: plan.Args{Pools: pools, Paused: &paused}}
}

func manual(id string) plan.Step {
	return plan.Step{ID: id, Kind: plan.Manual, Args: plan.Args{Text: "look"}}
}

func hook(id string) plan.Step {
	return plan.Step{ID: id, Kind: plan.Hook, Args: plan.Args{Action: "hook"}}
}

func hookIs(f plan.ActionFunc) map[string]plan.Action { return map[string]plan.Action{"hook": f} }

// pass lets time go by.
func (w *world) pass(t *testing.T, d time.Duration) {
	t.Helper()
	checktest.OK(t, w.RunUntil(w.Now().Add(d)))
}

func (w *world) pool(name string) *mcfgv1.MachineConfigPool {
	return must(clusterapi.Get[mcfgv1.MachineConfigPool](w.context(), w.cluster, clusterapi.Key("", name)))
}

func (w *world) changePool(name string, change func(*mcfgv1.MachineConfigPool)) {
	must(clusterapi.Modify(w.context(), w.cluster, clusterapi.Key("", name), clusterapi.ModifyOptions{}, func(p *mcfgv1.MachineConfigPool) error {
		change(p)
		return nil
	}))
}

// addConfig adds a MachineConfig, for which workers reboot.
func (w *world) addConfig(name string) {
	c := &mcfgv1.MachineConfig{}
	c.Name, c.Labels = name, map[string]string{mcp.LabelRole: "worker"}
	c.Spec.KernelArguments = []string{"audit=1"}
	must(clusterapi.Create(w.context(), w.cluster, c, clusterapi.CreateOptions{}))
}

func (w *world) confirm(t *testing.T, id, step string) {
	t.Helper()
	checktest.OK(t, plan.Confirm(w.context(), w.cluster, "", id, step))
}

// has reports whether an event of a type has a text, or an error.
func (w *world) has(typ clusterapi.EventType, text string, target error) bool {
	return slices.ContainsFunc(w.events, func(e clusterapi.Event) bool {
		return e.Type == typ && strings.Contains(e.Message, text) && (target == nil || errors.Is(e.Err, target))
	})
}

// Another runner waits until the first one has been silent for two minutes.
func TestTakeOver(t *testing.T) {
	w := quiet(t, worldOptions{pools: []simulation.Pool{{Nodes: 1}}})
	p := custom("p", pause("pause", true, "worker"), manual("wait"), pause("unpause", false, "worker"))
	first := w.start("first", plan.Options{Plan: p, Holder: "first"})
	w.pass(t, time.Minute)
	second := w.start("second", plan.Options{Plan: p, Holder: "second"})
	w.pass(t, 10*time.Minute)
	if got := first.Progress().Holder; got != "first" || !w.has(plan.EventHeld, "first has plan p", nil) {
		t.Fatalf("%s has the plan\n%q", got, w.log)
	}
	w.Stop("first")
	gone := w.Now()
	checktest.OK(t, w.RunWhile(5*time.Minute, func() bool { return second.Progress().Holder != "second" }))
	if after := w.Now().Sub(gone); after < 90*time.Second || after > 3*time.Minute {
		t.Errorf("it is taken over after %s", after)
	}

	// A third one takes it at once, and the second acts no more.
	third := w.start("third", plan.Options{Plan: p, Holder: "third", Claim: plan.TakeOver})
	w.pass(t, time.Second)
	if got := third.Progress().Holder; got != "third" {
		t.Fatalf("%q has the plan", got)
	}
	w.pass(t, time.Minute)
	w.confirm(t, "p", "wait")
	w.pass(t, time.Minute)
	if third.Progress().State != plan.StateFinished || w.pool("worker").Spec.Paused {
		t.Errorf("%s: %q", third.Progress().State, w.last(10))
	}
	if !w.has(plan.EventHeld, "third has plan p", nil) {
		t.Errorf("the second one was not told:\n%q", w.log)
	}
}

// What the plan did not do it does not undo.
func TestWhatWasSoBefore(t *testing.T) {
	w := quiet(t, worldOptions{pools: []simulation.Pool{{Nodes: 2}, {Name: "kept", Nodes: 1, Paused: true}}})
	modifyNode(w, "worker-0", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	before := fields(w.cluster)
	r := w.start("runner", plan.Options{Plan: custom("p",
		plan.Step{ID: "cordon", Kind: plan.Cordon, Args: plan.Args{Node: "worker-0"}}, pause("pause", true, "kept"),
		pause("unpause", false, "kept"), plan.Step{ID: "uncordon", Kind: plan.Uncordon, Args: plan.Args{Node: "worker-0"}})})
	checktest.OK(t, w.ends(r, time.Minute, plan.StateFinished))
	checktest.Same(t, before, fields(w.cluster))
	for id, s := range r.Progress().Steps {
		if s.State != "Skipped" {
			t.Errorf("step %s is %s", id, s.State)
		}
	}
}

// What is written ahead: the record has what fields were, objects have marks.
func TestRecordAndMarks(t *testing.T) {
	w := quiet(t, worldOptions{pools: []simulation.Pool{{Nodes: 1}}})
	w.start("runner", plan.Options{Plan: custom("p", pause("pause", true, "worker"), pause("unpause", false, "worker"), pause("again", true, "worker"),
		plan.Step{ID: "label", Kind: plan.LabelNodes, Args: plan.Args{Pool: "worker", Nodes: []string{"worker-0"}, Add: map[string]string{"a/b": "c"}}}, manual("wait"))})
	w.pass(t, time.Minute)
	_, progress, err := plan.Load(w.context(), w.cluster, "", "p")
	checktest.OK(t, err)
	got := map[string]map[string]map[string]any{}
	for id, s := range progress.Steps {
		got[id] = s.Before
	}
	want := map[string]map[string]map[string]any{"pause": {"MachineConfigPool/worker": {"/spec/paused": false}}, "unpause": {"MachineConfigPool/worker": {"/spec/paused": true}},
		"again": {"MachineConfigPool/worker": {"/spec/paused": false}}, "label": nil, "wait": nil}
	checktest.Same(t, want, got)
	n := must(clusterapi.Get[corev1.Node](w.context(), w.cluster, clusterapi.Key("", "worker-0")))
	for _, a := range []map[string]string{w.pool("worker").Annotations, n.Annotations} {
		if a["clusterupdate.github.io/plan"] != "p" {
			t.Error(a)
		}
	}
	checktest.Same(t, `{"version":1,"step":0,"fields":{"/spec/paused":{"before":false,"set":true,"step":0}}}`, w.pool("worker").Annotations["clusterupdate.github.io/before"])
	checktest.Same(t, `{"version":1,"step":0,"fields":{"/metadata/labels/a~1b":{"before":null,"set":"c","step":3}}}`, n.Annotations["clusterupdate.github.io/before"])
}

func TestFailures(t *testing.T) {
	timeout := func(s plan.Step, d time.Duration, f string) plan.Step {
		s.Timeout, s.OnFailure = metav1.Duration{Duration: d}, f
		return s
	}
	never := hookIs(func(context.Context, plan.Call) (plan.Outcome, error) { return plan.Outcome{Text: "never"}, nil })
	for _, tt := range []struct {
		name    string
		steps   []plan.Step
		actions map[string]plan.Action
		prepare func(*world)
		state   plan.State
		text    string
		err     error
	}{
		{name: "a check", steps: []plan.Step{{ID: "a", Kind: plan.CheckAll, Args: plan.Args{Checks: []plan.Check{
			{Kind: "ClusterAt", Version: version1}, {Kind: "PoolsPaused", Pools: []string{"worker"}}, {Kind: "NodesReady", Nodes: []string{"gone"}},
			{Kind: "KubeletsAtLeast", Nodes: []string{"worker-0"}, Version: "v1.40.0"}}}}},
			state: plan.StateFailed, text: "plan p, step a: ClusterAt: the cluster's newest update is to 4.20.3, not 4.21.1; PoolsPaused: pool worker is not paused; NodesReady: node gone does not exist; KubeletsAtLeast: node worker-0 has kubelet v1.33.0; v1.40.0 is needed"},
		{name: "needs", steps: []plan.Step{{ID: "a", Kind: plan.SetChannel, Args: plan.Args{Channel: "c"}, Needs: []plan.Check{{Kind: "PoolsPaused", Pools: []string{"worker"}}}}},
			state: plan.StateFailed, text: "it needs PoolsPaused: pool worker is not paused"},
		{name: "needs of a person", steps: []plan.Step{{ID: "a", Kind: plan.Manual, Args: plan.Args{Text: "look"}, Needs: []plan.Check{{Kind: "PoolsPaused", Pools: []string{"worker"}}}}},
			state: plan.StateFailed, text: "it needs PoolsPaused: pool worker is not paused"},
		{name: "done besides", steps: []plan.Step{timeout(plan.Step{ID: "a", Kind: plan.SetChannel, Args: plan.Args{Channel: "c"}, Done: plan.Check{Kind: "PoolsPaused", Pools: []string{"worker"}}}, time.Minute, "")},
			state: plan.StateFailed, text: "pool worker is not paused", err: plan.ErrTimeout},
		{name: "a timeout", steps: []plan.Step{timeout(hook("a"), time.Minute, "Stop")}, actions: never, state: plan.StateFailed, text: "the step's timeout has passed: 1m0s", err: plan.ErrTimeout},
		{name: "a timeout that does not matter", steps: []plan.Step{timeout(hook("a"), time.Minute, "Continue"), pause("b", true, "worker")}, actions: never, state: plan.StateFinished, text: "the plan goes on"},
		{name: "a hook", steps: []plan.Step{hook("a")}, state: plan.StateFailed, text: "no disk",
			actions: hookIs(func(context.Context, plan.Call) (plan.Outcome, error) { return plan.Outcome{}, errors.New("no disk") })},
		{name: "a hook that panics", steps: []plan.Step{hook("a")}, state: plan.StateFailed, text: "panic: out of order",
			actions: hookIs(func(context.Context, plan.Call) (plan.Outcome, error) { panic("out of order") })},
		{name: "a hook that may pass", steps: []plan.Step{hook("a")}, state: plan.StateFinished,
			actions: hookIs(func(_ context.Context, c plan.Call) (plan.Outcome, error) {
				if c.Times < 4 {
					return plan.Outcome{}, apierrors.NewInternalError(errors.New("busy"))
				}
				return plan.Outcome{Done: true}, nil
			})},
		{name: "a window that has closed", steps: []plan.Step{{ID: "a", Kind: plan.Gate, Args: plan.Args{Action: "window", Parameters: map[string]string{"until": "2025-01-01T00:00:00Z"}}}},
			state: plan.StateFailed, text: "the window has closed at 2025-01-01T00:00:00Z"},
		{name: "a pool that is not there", steps: []plan.Step{pause("a", true, "worker", "gone")}, state: plan.StateFailed, text: "MachineConfigPool/gone does not exist"},
		{name: "a pool that is there", steps: []plan.Step{{ID: "a", Kind: plan.CreatePool, Args: plan.Args{Pool: "infra", Roles: []string{"worker", "infra"}}}},
			prepare: func(w *world) {
				p := mcptest.Pool("infra", "N")
				must(clusterapi.Create(w.context(), w.cluster, &p, clusterapi.CreateOptions{}))
			}, state: plan.StateFailed, text: "pool infra exists and was not created by plan p", err: plan.ErrPlanConflict},
		{name: "somebody else's pool", steps: []plan.Step{{ID: "a", Kind: plan.DeletePool, Args: plan.Args{Pool: "worker"}}}, state: plan.StateFailed, text: "pool worker was not created by plan p"},
		{name: "a node of two pools", steps: []plan.Step{{ID: "a", Kind: plan.CreatePool, Args: plan.Args{Pool: "x", Roles: []string{"worker", "x"}}}, {ID: "c", Kind: plan.CreatePool, Args: plan.Args{Pool: "y", Roles: []string{"worker", "y"}}},
			{ID: "b", Kind: plan.LabelNodes, Args: plan.Args{Pool: "x", Nodes: []string{"worker-0"}, Add: map[string]string{mcp.LabelNodeRolePrefix + "x": "", mcp.LabelNodeRolePrefix + "y": ""}}}},
			state: plan.StateFailed, text: "belongs to 2 custom roles", err: mcp.ErrPoolConflict},
		{name: "an object that is refused", steps: []plan.Step{{ID: "a", Kind: plan.ApplyObject, Args: plan.Args{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Unknown", "metadata": map[string]any{"name": "x"}}}}},
			state: plan.StateFailed, text: "Unknown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := quiet(t, worldOptions{pools: []simulation.Pool{{Nodes: 2}}})
			if tt.prepare != nil {
				tt.prepare(w)
			}
			o := plan.Options{Plan: custom("p", tt.steps...), Actions: tt.actions}
			r := w.start("runner", o)
			checktest.OK(t, w.ends(r, 3*time.Hour, plan.StateFailed, plan.StateFinished))
			if got := r.Progress(); got.State != tt.state || got.Holder != "" {
				t.Errorf("the plan is %s, held by %q", got.State, got.Holder)
			}
			if tt.text != "" && !w.has(plan.EventStepFailed, tt.text, tt.err) {
				t.Errorf("%q, %v is missing in\n%s", tt.text, tt.err, strings.Join(w.log, "\n"))
			}
		})
	}
}

// A stalled wait says since when nothing has moved, and where.
func TestStalled(t *testing.T) {
	w := quiet(t, worldOptions{pools: []simulation.Pool{{Nodes: 2}}})
	start := w.Now()
	w.clock.AfterFunc(30*time.Minute, func() {
		modifyNode(w, "worker-0", func(n *corev1.Node) { n.Annotations[mcp.AnnotationDesiredConfig] = "missing" })
	})
	w.changePool("worker", func(p *mcfgv1.MachineConfigPool) { p.Spec.Paused = true })
	r := w.start("runner", plan.Options{Plan: custom("p", plan.Step{ID: "a", Kind: plan.WaitPools, Args: plan.Args{Pools: []string{"worker"}}, Done: plan.Check{Kind: "PoolsUnpaused", Pools: []string{"worker"}}})})
	checktest.OK(t, w.ends(r, 3*time.Hour, plan.StateFailed))
	i := slices.IndexFunc(w.events, func(e clusterapi.Event) bool { return e.Type == plan.EventStepFailed })
	stalled := new(plan.StalledError)
	if !errors.As(w.events[i].Err, &stalled) || stalled.Node != "worker-0" || stalled.Since.Sub(start) < 30*time.Minute || w.Now().Sub(stalled.Since) < time.Hour {
		t.Errorf("%+v\n%s", stalled, strings.Join(w.log, "\n"))
	}
}

// Two plans do not change one object; when the first has finished the second may.
func TestPlanConflict(t *testing.T) {
	w := quiet(t, worldOptions{pools: []simulation.Pool{{Nodes: 1}}})
	first := w.start("first", plan.Options{Plan: custom("first", pause("pause", true, "worker"), manual("wait"), pause("unpause", false, "worker"))})
	w.pass(t, time.Minute)
	second := w.start("second", plan.Options{Plan: custom("second", pause("pause", true, "worker"))})
	checktest.OK(t, w.ends(second, time.Minute, plan.StateFailed))
	if !w.has(plan.EventStepFailed, "plan first", plan.ErrPlanConflict) {
		t.Errorf("%q", w.log)
	}
	w.confirm(t, "first", "wait")
	checktest.OK(t, w.ends(first, time.Minute, plan.StateFinished))
	again := w.start("again", plan.Options{Plan: custom("second", pause("pause", true, "worker")), Mode: plan.Resume})
	checktest.OK(t, w.ends(again, time.Minute, plan.StateFinished))
	if got := again.Progress().Steps["pause"]; got.State != "Done" || got.Attempts != 1 || !w.pool("worker").Spec.Paused {
		t.Errorf("%+v", got)
	}
}

// A plan is run as it was started, and by those who know its format alone.
func TestPlanChanged(t *testing.T) {
	w := quiet(t, worldOptions{pools: []simulation.Pool{{Nodes: 1}}})
	p := custom("p", manual("wait"))
	w.start("runner", plan.Options{Plan: p})
	w.pass(t, time.Minute)
	w.Stop("runner")
	w.start("other", plan.Options{Plan: custom("p", manual("other")), Claim: plan.TakeOver})
	w.pass(t, time.Minute)
	if !w.has(plan.EventError, "plan p: the plan is not the one that was started", plan.ErrPlanChanged) {
		t.Errorf("%q", w.log)
	}
	key := clusterapi.Key("openshift-config", "rollout-p")
	edit := func(change func(*corev1.ConfigMap)) {
		must(clusterapi.Modify(w.context(), w.cluster, key, clusterapi.ModifyOptions{}, func(c *corev1.ConfigMap) error {
			change(c)
			return nil
		}))
	}
	edit(func(c *corev1.ConfigMap) { c.Data["plan"] = strings.Replace(c.Data["plan"], "look", "jump", 1) })
	if _, _, err := plan.Load(w.context(), w.cluster, "", "p"); !errors.Is(err, plan.ErrPlanChanged) {
		t.Errorf("an edited plan: %v", err)
	}
	edit(func(c *corev1.ConfigMap) { c.Data["progress"] = `{"version": 3, "steps": []}` })
	if _, _, err := plan.Load(w.context(), w.cluster, "", "p"); err == nil || !strings.Contains(err.Error(), "key progress: the record has format version 3; this program reads versions up to 2") {
		t.Errorf("a newer record: %v", err)
	}
	w.log, w.events = nil, nil
	w.start("newer", plan.Options{Plan: p, Claim: plan.TakeOver})
	w.pass(t, time.Minute)
	if !w.has(plan.EventError, "the record has format version 3", nil) {
		t.Errorf("%q", w.log)
	}
	if _, _, err := plan.Load(w.context(), w.cluster, "", "none"); !apierrors.IsNotFound(err) {
		t.Errorf("no record: %v", err)
	}
}

// A mark of a newer format is refused by name.
func TestNewerMark(t *testing.T) {
	w := quiet(t, worldOptions{pools: []simulation.Pool{{Nodes: 1}}})
	w.changePool("worker", func(p *mcfgv1.MachineConfigPool) {
		p.Annotations = map[string]string{"clusterupdate.github.io/plan": "p", "clusterupdate.github.io/before": `{"version": 2}`}
	})
	r := w.start("runner", plan.Options{Plan: custom("p", pause("pause", true, "worker"))})
	checktest.OK(t, w.ends(r, time.Minute, plan.StateFailed))
	if !w.has(plan.EventStepFailed, "annotation clusterupdate.github.io/before has format version 2; this program reads versions up to 1", nil) {
		t.Errorf("%q", w.log)
	}
}

// Hold leaves all as it is and says what that is; Freeze pauses again what was
// unpaused too early. Both go on when they are resumed.
func TestHoldAndFreeze(t *testing.T) {
	for _, mode := range []plan.Mode{plan.Hold, plan.Freeze} {
		t.Run(string(mode), func(t *testing.T) {
			w := quiet(t, worldOptions{pools: []simulation.Pool{{Nodes: 4}}})
			p, _, err := plan.PlanControlPlaneOnly(w.state(), plan.ControlPlaneOnlyOptions{ID: "p", Versions: []string{version1, version2}})
			checktest.OK(t, err)
			r := w.start("runner", plan.Options{Plan: p})
			if err := w.RunWhile(6*time.Hour, func() bool { return r.Progress().Steps["wait-worker"].State != "Running" }); err != nil {
				t.Fatal(err)
			}
			w.pass(t, 6*time.Minute)
			w.Stop("runner")
			stopper := w.start("stopper", plan.Options{Plan: p, Claim: plan.TakeOver, Mode: mode})
			checktest.OK(t, w.ends(stopper, time.Minute, plan.StateHeld, plan.StateFrozen))
			var left []string
			for _, i := range stopper.Progress().Report.Left {
				left = append(left, i.Object+i.Field+" "+i.Text)
			}
			want := []string{`ClusterVersion/version/spec/channel is "eus-4.22", was absent`}
			if mode == plan.Freeze {
				want = append([]string{"MachineConfigPool/worker/spec/paused is true, was false"}, want...)
				slices.Sort(left)
				slices.Sort(want)
			}
			checktest.Same(t, want, left)
			if w.pool("worker").Spec.Paused != (mode == plan.Freeze) {
				t.Errorf("paused: %v", w.pool("worker").Spec.Paused)
			}
			idle := w.start("idle", plan.Options{Plan: p}) // not without Resume
			w.pass(t, time.Hour)
			if got := idle.Progress().State; got != stateAfter(mode) {
				t.Errorf("the plan is %s", got)
			}
			again := w.start("again", plan.Options{Plan: p, Mode: plan.Resume})
			checktest.OK(t, w.ends(again, 3*time.Hour, plan.StateFinished))
			checktest.Good(t, atRest(w.cluster, version2))
		})
	}
}

func stateAfter(m plan.Mode) plan.State {
	if m == plan.Freeze {
		return plan.StateFrozen
	}
	return plan.StateHeld
}

// Restore leaves alone what somebody has changed since.
func TestRestoreConflict(t *testing.T) {
	w := quiet(t, worldOptions{pools: []simulation.Pool{{Nodes: 1}}})
	p := custom("p", plan.Step{ID: "limit", Kind: plan.SetMaxUnavailable, Args: plan.Args{Pools: []string{"worker"}, MaxUnavailable: new(intstr.FromInt32(2))}}, pause("pause", true, "worker"), manual("wait"))
	w.start("runner", plan.Options{Plan: p})
	w.pass(t, time.Minute)
	w.Stop("runner")
	w.changePool("worker", func(p *mcfgv1.MachineConfigPool) { p.Spec.MaxUnavailable = new(intstr.FromInt32(3)) })
	r := w.start("stopper", plan.Options{Plan: custom("p"), Claim: plan.TakeOver, Mode: plan.Restore}) // by its ID alone
	checktest.OK(t, w.ends(r, time.Minute, plan.StateRestored))
	want := &plan.Report{
		Restored:  []plan.Item{{Object: "MachineConfigPool/worker", Field: "/spec/paused", Text: "is false again, not true"}},
		Conflicts: []plan.Item{{Object: "MachineConfigPool/worker", Field: "/spec/maxUnavailable", Text: "was absent, the plan made it 2, and somebody made it 3"}},
	}
	checktest.Same(t, want, r.Progress().Report)
	pool := w.pool("worker")
	if pool.Spec.Paused || pool.Spec.MaxUnavailable.IntValue() != 3 || pool.Annotations["clusterupdate.github.io/plan"] != "" {
		t.Errorf("%+v %v", pool.Spec, pool.Annotations)
	}
	// There is nothing to stop under another name.
	w.start("typo", plan.Options{Plan: custom("q"), Mode: plan.Restore})
	w.pass(t, time.Minute)
	if !w.has(plan.EventError, "plan q: there is no record to stop", nil) {
		t.Errorf("%q", w.log)
	}
}

// A report counts what it has no room for once, however often a stop looks.
func TestReportIsBounded(t *testing.T) {
	w := alone(t)
	defer w.Close()
	p := custom("p")
	apply := func(kind string, count int) {
		for i := range count {
			name := fmt.Sprintf("%s-%d", strings.ToLower(kind), i)
			object := map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name, "namespace": "openshift-config"}}
			if kind == "MachineConfig" {
				object["apiVersion"], object["metadata"] = mcfgv1.GroupVersion.String(), map[string]any{"name": name}
			}
			p.Steps = append(p.Steps, plan.Step{ID: name, Kind: plan.ApplyObject, Args: plan.Args{Object: object}})
		}
	}
	apply("MachineConfig", 103)
	apply("ConfigMap", 60) // more than one look puts back
	p.Steps = append(p.Steps, manual("wait"))
	w.start("runner", plan.Options{Plan: p})
	w.pass(t, time.Hour)
	w.Stop("runner")
	r := w.start("stopper", plan.Options{Plan: p, Claim: plan.TakeOver, Mode: plan.Restore})
	checktest.OK(t, w.ends(r, time.Minute, plan.StateRestored))
	report := r.Progress().Report
	checktest.Same(t, []int{60, 100, 3}, []int{len(report.Restored), len(report.Left), report.More})
}

// Without leave to reboot, Restore leaves the fields that would make nodes reboot,
// and no other ones.
func TestRestoreWithoutReboots(t *testing.T) {
	limit := plan.Step{ID: "limit", Kind: plan.SetMaxUnavailable, Args: plan.Args{Pools: []string{"worker"}, MaxUnavailable: new(intstr.FromInt32(2))}}
	cordon := plan.Step{ID: "cordon", Kind: plan.Cordon, Args: plan.Args{Node: "worker-0"}}
	label := plan.Step{ID: "label", Kind: plan.LabelNodes, Args: plan.Args{Pool: "worker", Nodes: []string{"worker-0"}, Add: map[string]string{"a": "b"}}}
	for _, tt := range []struct {
		name   string
		paused bool // the pool is, before the plan
		steps  []plan.Step
		left   []plan.Item
	}{
		{"a pool's limit", false, []plan.Step{limit, pause("pause", true, "worker")}, []plan.Item{{Object: "MachineConfigPool/worker", Field: "/spec/paused",
			Text: "is true, was false: a configuration is pending, for which nodes drain and reboot"}}},
		{"a node that stays where it is", true, []plan.Step{label, cordon}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := quiet(t, worldOptions{pools: []simulation.Pool{{Nodes: 1, Paused: tt.paused}}})
			before := fields(w.cluster)
			p := custom("p", append(tt.steps, manual("wait"))...)
			if tt.paused {
				w.addConfig("50-worker-audit")
			}
			w.start("runner", plan.Options{Plan: p})
			w.pass(t, 5*time.Minute)
			if !tt.paused {
				w.addConfig("50-worker-audit")
				w.pass(t, time.Minute)
			}
			w.Stop("runner")
			r := w.start("stopper", plan.Options{Plan: p, Claim: plan.TakeOver, Mode: plan.Restore})
			checktest.OK(t, w.ends(r, time.Minute, plan.StateRestored))
			checktest.Same(t, tt.left, r.Progress().Report.Left)
			if got := w.pool("worker"); got.Spec.Paused != (tt.paused || len(tt.left) > 0) || got.Spec.MaxUnavailable != nil {
				t.Errorf("%+v", got.Spec)
			}
			r = w.start("again", plan.Options{Plan: p, Mode: plan.RestoreWithReboots})
			checktest.OK(t, w.ends(r, time.Minute, plan.StateRestored))
			w.pass(t, time.Hour)
			if diff := diffFields(before, fields(w.cluster)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A window that closes while the plan is not run stays closed, also for pools that
// were about to be unpaused.
func TestWindowClosesUnseen(t *testing.T) {
	a, b := resting("a"), resting("b")
	w := alone(t, &a, &b)
	defer w.Close()
	paused := func(name string) bool {
		return must(clusterapi.Get[mcfgv1.MachineConfigPool](w.context(), w.memory, clusterapi.Key("", name))).Spec.Paused
	}
	until := metav1.NewTime(w.Now().Add(10 * time.Minute))
	unpause := pause("unpause", false, "a", "b")
	unpause.Args.Until = &until
	p := custom("p", pause("pause", true, "a", "b"), manual("go"), unpause, pause("again", true, "a", "b"), manual("wait"))
	first := w.start("first", plan.Options{Plan: p})
	w.pass(t, time.Minute)
	checktest.OK(t, plan.Confirm(w.context(), w.memory, "", "p", "go"))
	if err := w.RunWhile(time.Minute, func() bool { return paused("a") }); err != nil || !paused("b") {
		t.Fatalf("%v, b is paused: %v", err, paused("b"))
	}
	if got := first.Progress().Steps["unpause"].State; got != "Running" {
		t.Fatal(got)
	}
	w.Stop("first")
	w.pass(t, 10*time.Minute)
	second := w.start("second", plan.Options{Plan: p, Claim: plan.TakeOver})
	checktest.OK(t, w.RunWhile(time.Minute, func() bool {
		if !paused("b") {
			t.Fatal("b is unpaused after its window")
		}
		return second.Progress().Steps["wait"].State != "Running"
	}))
	if got := second.Progress().Steps["unpause"].State; got != "Skipped" || !paused("a") {
		t.Errorf("the step is %s, a is paused: %v", got, paused("a"))
	}
}

// A pool that is never rendered, and one whose configuration a node keeps, are not
// waited for without end.
func TestStalledPools(t *testing.T) {
	worker := resting("worker", mcptest.Paused)
	keeps := mcptest.Worker("w0")
	keeps.Annotations[mcp.AnnotationCurrentConfig] = "rendered-b-0"
	w := alone(t, &worker, &keeps)
	defer w.Close()
	create := plan.Step{ID: "create", Kind: plan.CreatePool, Args: plan.Args{Pool: "b", Roles: []string{"worker", "b"}}}
	r := w.start("runner", plan.Options{Plan: custom("p", create, plan.Step{ID: "delete", Kind: plan.DeletePool, Args: plan.Args{Pool: "b"}})})
	for _, want := range []string{"plan p, step create: nothing has changed in pool b since ", "plan p, step delete: nothing has changed in pool worker since "} {
		w.events = nil
		w.pass(t, 59*time.Minute)
		if got := r.Progress().State; got != plan.StateRunning {
			t.Fatalf("the plan is %s: %q", got, w.log)
		}
		w.pass(t, 5*time.Minute)
		if got := r.Progress().State; got != plan.StateFailed || !w.has(plan.EventStepFailed, want, nil) {
			t.Fatalf("the plan is %s: %q", got, w.log)
		}
		must(clusterapi.Modify(w.context(), w.memory, clusterapi.Key("", "b"), clusterapi.ModifyOptions{}, func(p *mcfgv1.MachineConfigPool) error {
			p.Spec.Configuration.Name = "rendered-b-0"
			return nil
		}))
		r = w.start("again "+want, plan.Options{Plan: custom("p", create, plan.Step{ID: "delete", Kind: plan.DeletePool, Args: plan.Args{Pool: "b"}}), Mode: plan.Resume})
	}
}

// What a caller does with a plan after it was given to a runner does not matter, nor
// of which Go types an object's values are.
func TestPlanOfItsOwn(t *testing.T) {
	worker := resting("worker")
	w := alone(t, &worker)
	defer w.Close()
	p := custom("p", plan.Step{ID: "a", Kind: plan.ApplyObject, Args: plan.Args{Object: map[string]any{"apiVersion": mcfgv1.GroupVersion.String(), "kind": "MachineConfigPool",
		"metadata": map[string]any{"name": "worker", "labels": map[string]string{"a": "b"}}, "spec": map[string]any{"maxUnavailable": 2}}}},
		plan.Step{ID: "b", Kind: plan.ApplyObject, Args: plan.Args{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "notes", "namespace": "openshift-config"}, "data": map[string]string{"c": "d"}}}})
	r := w.start("runner", plan.Options{Plan: p})
	p.Steps[0].Args.Object["spec"] = map[string]any{"maxUnavailable": 3}
	w.pass(t, time.Minute)
	got := must(clusterapi.Get[mcfgv1.MachineConfigPool](w.context(), w.memory, clusterapi.Key("", "worker")))
	notes := must(clusterapi.Get[corev1.ConfigMap](w.context(), w.memory, clusterapi.Key("openshift-config", "notes")))
	if r.Progress().State != plan.StateFinished || got.Spec.MaxUnavailable.IntValue() != 2 || got.Labels["a"] != "b" || notes.Data["c"] != "d" {
		t.Errorf("the plan is %s, %+v, %v, %v", r.Progress().State, got.Spec, got.Labels, notes.Data)
	}
}

// Live, a plan runs until it has ended; another runner is told that it is held.
func TestRun(t *testing.T) {
	for name, goWrong := range map[string]func(){"well": func() {}, "observers panic": func() { panic("out of paper") }, "observers end": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := memory.NewOpenShift(memory.Options{})
				worker := resting("worker")
				for _, o := range []any{&worker, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "openshift-config"}}} {
					checktest.OK(t, c.Load(must(clusterapi.ToUnstructured(o))))
				}
				p := custom("p", pause("pause", true, "worker"), hook("hook"), pause("unpause", false, "worker"))
				called := 0
				o := plan.Options{API: c, Plan: p, Observe: func(clusterapi.Event) { goWrong() }, Actions: hookIs(func(context.Context, plan.Call) (plan.Outcome, error) {
					called++
					return plan.Outcome{Done: called > 12}, nil
				})}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- must(plan.New(o)).Run(ctx) }()
				time.Sleep(15 * time.Second)
				if err := must(plan.New(o)).Run(t.Context()); !errors.Is(err, plan.ErrPlanHeld) {
					t.Errorf("the second runner: %v", err)
				}
				cancel()
				if err := <-ended; !errors.Is(err, context.Canceled) {
					t.Errorf("cancelled: %v", err)
				}
				_, progress, err := plan.Load(t.Context(), c, "", "p")
				if err != nil || progress.Holder != "" || progress.State != plan.StateRunning {
					t.Errorf("%v: %s is held by %q", err, progress.State, progress.Holder)
				}
				began := time.Now()
				checktest.Good(t, must(plan.New(o)).Run(t.Context()))
				if d := time.Since(began); d > 2*time.Minute {
					t.Errorf("a clean end was waited for: %s", d)
				}
				if err := must(plan.New(o)).Run(t.Context()); err != nil {
					t.Errorf("a plan that has finished: %v", err)
				}
				o.Plan = custom("q", hook("hook"))
				o.Actions = hookIs(func(context.Context, plan.Call) (plan.Outcome, error) { return plan.Outcome{}, errors.New("no") })
				err = must(plan.New(o)).Run(t.Context())
				if step := new(plan.StepError); !errors.As(err, &step) || step.Step != "hook" {
					t.Errorf("a step that fails: %v", err)
				}
				if err := must(plan.New(o)).Run(t.Context()); !errors.Is(err, plan.ErrPlanStopped) || !strings.Contains(err.Error(), "step hook: no") {
					t.Errorf("a plan that has failed: %v", err)
				}
			})
		})
	}
}

func TestNewErrors(t *testing.T) {
	_, err := plan.New(plan.Options{Plan: custom("P", hook("hook"), plan.Step{ID: "u", Kind: plan.UpdateOperators, Args: plan.Args{Version: version1}}), Poll: -1})
	for _, want := range []string{`id "P"`, `step hook names action "hook", which Actions lacks`, `step u names action "UpdateOperators", which Actions lacks`, "Poll is negative"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
	for want, parameters := range map[string]map[string]string{
		"step g: parameter from: ":                                      {"from": "noon"},
		`step g: parameter "form" has no meaning for the action window`: {"form": "2026-01-01T00:00:00Z"},
		"step g: parameter until is not after from":                     {"from": "2026-01-01T00:00:00Z", "until": "2026-01-01T00:00:00Z"},
		`step g: parameter "a" has no meaning for the action window`:    {"a": "", "b": ""},
	} {
		gate := plan.Step{ID: "g", Kind: plan.Gate, Args: plan.Args{Action: "window", Parameters: parameters}}
		checktest.ErrorHas(t, want, checktest.Err(plan.New(plan.Options{Plan: custom("p", gate)})))
		own := map[string]plan.Action{"window": plan.ActionFunc(nil)}
		checktest.OK(t, checktest.Err(plan.New(plan.Options{Plan: custom("p", gate), Actions: own})))
	}
	checktest.ErrorHas(t, `Mode "Jump" is not known`, checktest.Err(plan.New(plan.Options{Plan: custom("p"), Mode: "Jump"})))
	checktest.ErrorHas(t, `Claim "Beg" is not known`, checktest.Err(plan.New(plan.Options{Plan: custom("p"), Claim: "Beg"})))
	if err := must(plan.New(plan.Options{Plan: custom("p")})).Run(t.Context()); err == nil {
		t.Error("it runs without API")
	}
}

// away is an API that cannot be reached for a while.
type away struct {
	clusterapi.ClusterAPI
	until time.Time
}

func (a away) err() error {
	if time.Now().Before(a.until) {
		return &url.Error{Op: "Get", URL: "https://api.example:6443", Err: syscall.ECONNREFUSED}
	}
	return nil
}

func (a away) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	if err := a.err(); err != nil {
		return nil, err
	}
	return a.ClusterAPI.Get(ctx, gvk, key)
}

// A plan outlasts a time in which the API cannot be reached.
func TestRunWithoutAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.NewOpenShift(memory.Options{})
		worker := resting("worker")
		for _, o := range []any{&worker, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "openshift-config"}}} {
			checktest.OK(t, c.Load(must(clusterapi.ToUnstructured(o))))
		}
		o := plan.Options{API: away{c, time.Now().Add(5 * time.Minute)}, Plan: custom("p", pause("pause", true, "worker"))}
		checktest.Good(t, must(plan.New(o)).Run(t.Context()))
	})
}

func TestConfirmErrors(t *testing.T) {
	w := quiet(t, worldOptions{pools: []simulation.Pool{{Nodes: 1}}})
	if err := plan.Confirm(w.context(), w.cluster, "", "p", "wait"); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	w.start("runner", plan.Options{Plan: custom("p", manual("wait"), plan.Step{ID: "gate", Kind: plan.Gate, Args: plan.Args{Action: "approval"}})})
	w.pass(t, time.Minute)
	if err := plan.Confirm(w.context(), w.cluster, "", "p", "jump"); err == nil || !strings.Contains(err.Error(), `plan p has no step "jump"`) {
		t.Error(err)
	}
	w.confirm(t, "p", "gate")
	w.confirm(t, "p", "wait")
	w.confirm(t, "p", "wait")
	w.pass(t, time.Minute)
	if !w.has(plan.EventPlanDone, "Finished", nil) {
		t.Errorf("%q", w.log)
	}
}

func TestUninstall(t *testing.T) {
	w := quiet(t, worldOptions{pools: []simulation.Pool{{Nodes: 1}}})
	object := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "notes", "namespace": "default"}, "data": map[string]any{"a": "b"}}
	w.start("runner", plan.Options{Plan: custom("p", pause("pause", true, "worker"), plan.Step{ID: "cordon", Kind: plan.Cordon, Args: plan.Args{Node: "worker-0"}},
		plan.Step{ID: "apply", Kind: plan.ApplyObject, Args: plan.Args{Object: object}}, manual("wait"))})
	w.start("other", plan.Options{Plan: custom("a", manual("wait"))})
	w.pass(t, time.Minute)
	if ids, err := plan.List(w.context(), w.cluster, ""); err != nil || !slices.Equal(ids, []string{"a", "p"}) {
		t.Errorf("%q %v", ids, err)
	}
	w.Stop("runner")
	w.Stop("other")
	checktest.OK(t, plan.Uninstall(w.context(), w.cluster, ""))
	if ids, err := plan.List(w.context(), w.cluster, ""); err != nil || len(ids) > 0 {
		t.Errorf("%q %v", ids, err)
	}
	for name, f := range fields(w.cluster) {
		if strings.Contains(f, `"before"`) || strings.Contains(f, "version\":1") {
			t.Errorf("%s: %s", name, f)
		}
	}
	notes := must(clusterapi.Get[corev1.ConfigMap](w.context(), w.cluster, clusterapi.Key("default", "notes")))
	if len(notes.Annotations) > 0 || !w.pool("worker").Spec.Paused {
		t.Errorf("%v, paused %v", notes.Annotations, w.pool("worker").Spec.Paused)
	}
}

func TestEventJSON(t *testing.T) {
	e := clusterapi.Event{Type: plan.EventStepFailed, Time: mcptest.Epoch, Subject: "plan/p", Message: "no",
		Err:  &plan.StepError{Plan: "p", Step: "s", Err: plan.ErrTimeout},
		Data: &plan.EventData{Step: "s", Kind: plan.SetPaused, Pool: "worker", Node: "n", State: plan.StateFailed, Attempt: 2, Holder: "h", Warning: true}}
	got := string(must(json.Marshal(e)))
	want := `{"time":"2026-01-01T00:00:00Z","type":"StepFailed","subject":"plan/p","message":"no",` +
		`"error":"plan p, step s: the step's timeout has passed","data":{"step":"s","kind":"SetPaused","pool":"worker","node":"n",` +
		`"state":"Failed","attempt":2,"holder":"h","warning":true}}`
	checktest.Same(t, want, got)
}

// refusing is an API that does not let a record be written.
type refusing struct{ clusterapi.ClusterAPI }

func (r refusing) Update(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	if obj.GetKind() == "ConfigMap" {
		return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, obj.GetName(), errors.New("no"))
	}
	return r.ClusterAPI.Update(ctx, obj, o)
}

// Without its record a plan changes nothing, and tries again.
func TestRecordRefused(t *testing.T) {
	w := quiet(t, worldOptions{pools: []simulation.Pool{{Nodes: 1}}})
	p := must(plan.New(plan.Options{Plan: custom("p", pause("pause", true, "worker")), Observe: w.observe("")})).Process()
	inner := p.New
	p.New = func(api clusterapi.ClusterAPI) []reconcile.Reconciler { return inner(refusing{api}) }
	w.Add(p)
	w.pass(t, 10*time.Minute)
	if w.pool("worker").Spec.Paused || w.has(plan.EventPlanDone, "", nil) {
		t.Errorf("%q", w.log)
	}
	w.Stop(p.Name)
	r := w.start("another", plan.Options{Plan: custom("p", pause("pause", true, "worker")), Claim: plan.TakeOver})
	checktest.Good(t, w.ends(r, time.Minute, plan.StateFinished))
}
