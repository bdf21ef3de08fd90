package clusterupdate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/remedy"
)

// marking is a hook that marks an object before an update and takes the mark
// off after it. All that it knows is in the cluster.
type marking struct {
	before, after func(now time.Time) (clusterversion.HookWait, error) // what it says instead, if anything
}

const marked = "test.example/marked-for"

var markKey = clusterapi.Key("toy", "marks")

func (h *marking) Name() string { return "marks" }

func (h *marking) BeforeApply(ctx context.Context, r clusterversion.HookRequest) (clusterversion.HookWait, error) {
	if h.before != nil {
		if wait, err := h.before(r.Now); err != nil || wait != (clusterversion.HookWait{}) {
			return wait, err
		}
	}
	return clusterversion.HookWait{}, mark(ctx, r.API, r.ClusterVersion.Status.History[0].Version)
}

func (h *marking) AfterComplete(ctx context.Context, r clusterversion.HookRequest) (clusterversion.HookWait, error) {
	if h.after != nil {
		if wait, err := h.after(r.Now); err != nil || wait != (clusterversion.HookWait{}) {
			return wait, err
		}
	}
	return clusterversion.HookWait{}, mark(ctx, r.API, "")
}

func mark(ctx context.Context, api clusterapi.ClusterAPI, version string) error {
	_, err := clusterapi.Modify(ctx, api, markKey, clusterapi.ModifyOptions{}, func(cm *corev1.ConfigMap) error {
		if delete(cm.Annotations, marked); version != "" {
			cm.Annotations = map[string]string{marked: version}
		}
		return nil
	})
	return err
}

// hookedCluster is a cluster whose Updater has hooks. It notes what is applied of a new
// release that the hooks have not prepared.
type hookedCluster struct {
	*testCluster
	unprepared func(version string) string // why; empty: it is prepared
	faults     []string
}

// newHookedCluster returns a cluster at the first release that is asked for update, with a
// hook that marks it.
func newHookedCluster(t *testing.T, releases []*toyRelease, update *configv1.Update) *hookedCluster {
	t.Helper()
	c := &hookedCluster{testCluster: newTestCluster(t, releases[0].payload, releases[1].payload, func(cv *configv1.ClusterVersion) {
		cv.Spec.DesiredUpdate = update
	})}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: markKey.Namespace, Name: markKey.Name}}
	checktest.Get(clusterapi.Create(t.Context(), c.Cluster, cm, clusterapi.CreateOptions{}))(t)
	c.unprepared = func(version string) string {
		if mark := c.markOf(); mark != version {
			return fmt.Sprintf("the mark is for %q", mark)
		}
		return ""
	}
	c.onCall(func(call memory.Call) {
		if call.Verb != "Apply" {
			return
		}
		version := call.Object.GetAnnotations()[annotationRelease]
		if version == "" || version == "1.0.0" || !c.partial() {
			return
		}
		if why := c.unprepared(version); why != "" {
			c.faults = append(c.faults, fmt.Sprintf("%s %s of %s was applied: %s", call.GVK.Kind, call.Key.Name, version, why))
		}
	})
	return c
}

func (c *hookedCluster) markOf() string {
	u, err := c.Get(c.ctx(), configMapKind, markKey)
	if err != nil {
		return err.Error()
	}
	return u.GetAnnotations()[marked]
}

func (c *hookedCluster) partial() bool {
	cv, err := clusterapi.Read[configv1.ClusterVersion](c.ctx(), c.Cluster, clusterapi.Key("", "version"))
	return err == nil && cv.Status.History[0].State == configv1.PartialUpdate
}

// play starts an Updater with a hook.
func (c *hookedCluster) play(
	t *testing.T, releases []*toyRelease, h clusterversion.Hook, seed uint64, faults reconcile.Faults,
) (*reconcile.Virtual, *[]clusterapi.Event) {
	t.Helper()
	var events []clusterapi.Event
	o := toyOptions(t, releases)
	o.Hooks = []clusterversion.Hook{h}
	o.Observe = func(e clusterapi.Event) {
		if strings.HasPrefix(string(e.Type), "Hook") || e.Type == clusterupdate.EventCompleted {
			events = append(events, e)
		}
	}
	return virtually(t, c.testCluster, o, reconcile.VirtualOptions{Seed: seed, Faults: faults}).Virtual, &events
}

// playMarks starts an Updater that marks a new cluster.
func playMarks(
	t *testing.T, releases []*toyRelease, h *marking, seed uint64, faults reconcile.Faults,
) (*hookedCluster, *reconcile.Virtual, *[]clusterapi.Event) {
	t.Helper()
	c := newHookedCluster(t, releases, &configv1.Update{Version: "1.0.1"})
	v, events := c.play(t, releases, h, seed, faults)
	return c, v, events
}

// follow is the history and the mark of a run, each time they change.
func (c *hookedCluster) follow(t *testing.T, v *reconcile.Virtual, until func() bool) []string {
	t.Helper()
	return changes(t, v, until, func() string { return fmt.Sprintf("%s, marked for %q", historyOf(c.version(t)), c.markOf()) })
}

// changes runs until something holds, and returns the states until then, each once.
func changes(t *testing.T, v *reconcile.Virtual, until func() bool, state func() string) (out []string) {
	t.Helper()
	err := v.RunWhile(6*time.Hour, func() bool {
		if now := state(); len(out) == 0 || out[len(out)-1] != now {
			out = append(out, now)
		}
		return !until()
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(out, "\n"))
	}
	return out
}

// TestHooks: what hooks do comes before the first manifest and after the last,
// they are asked until they are done, and the status says why it waits.
func TestHooks(t *testing.T) {
	releases := toyReleases(t)
	// It waits for 2 minutes, fails for 3, and is done; so before, so after.
	since := func() func(time.Time) (clusterversion.HookWait, error) {
		var began time.Time
		return func(now time.Time) (clusterversion.HookWait, error) {
			if began.IsZero() {
				began = now
			}
			switch d := now.Sub(began); {
			case d < 2*time.Minute:
				return clusterversion.HookWait{After: 30 * time.Second, Reason: "two are left"}, nil
			case d < 5*time.Minute:
				return clusterversion.HookWait{}, errors.New("no route")
			}
			return clusterversion.HookWait{}, nil
		}
	}
	after := since()
	h := &marking{before: since(), after: func(now time.Time) (clusterversion.HookWait, error) {
		if now.Sub(toyStart) < 5*time.Minute { // the cluster is at rest
			return clusterversion.HookWait{}, nil
		}
		return after(now)
	}}
	c, v, events := playMarks(t, releases, h, 1, reconcile.Faults{})
	var said []string
	last := map[configv1.ClusterStatusConditionType]string{}
	c.follow(t, v, func() bool {
		cv := c.version(t)
		for _, typ := range []configv1.ClusterStatusConditionType{configv1.OperatorProgressing, clusterversion.ConditionFailing} {
			if text := condition(cv, typ); strings.Contains(text, "hook marks") && last[typ] != text {
				last[typ] = text
				said = append(said, text)
			} else if typ == clusterversion.ConditionFailing && text == "False :" {
				last[typ] = ""
			}
		}
		return len(*events) == 8
	})
	want := []string{
		"True : Working towards 1.0.1, waiting on hook marks: two are left",
		"True : Working towards 1.0.1, hook marks failed: no route",
		"True UpdateHookFailed: hook marks failed: no route",
		"False : Cluster version is 1.0.1, waiting on hook marks: two are left",
		"False : Cluster version is 1.0.1, hook marks failed: no route",
		"True UpdateHookFailed: hook marks failed: no route",
	}
	checktest.SameIn(t, "conditions", want, said)
	var told []string
	for _, e := range *events {
		told = append(told, string(e.Type)+" "+e.Message)
	}
	if diff := cmp.Diff([]string{
		"HookDone hook marks is done", // the cluster is at rest
		"HookWaiting waiting on hook marks: two are left", "HookFailed hook marks failed: no route", "HookDone hook marks is done",
		"Completed Done applying 1.0.1",
		"HookWaiting waiting on hook marks: two are left", "HookFailed hook marks failed: no route", "HookDone hook marks is done",
	}, told); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if mark := c.markOf(); mark != "" {
		t.Errorf("in the end it is marked for %q", mark)
	}
	for _, fault := range c.faults {
		t.Error(fault)
	}
}

// TestHooksCrash: the process crashes at each call around the hook, or the call
// fails after it took effect: the mark comes before the first manifest, and goes
// after the last, all the same.
func TestHooksCrash(t *testing.T) {
	releases := toyReleases(t)
	var names []string
	for n := range 8 {
		for _, call := range []string{"Get ConfigMap toy/marks", "Update ConfigMap toy/marks", "UpdateStatus ClusterVersion version",
			"Apply ConfigMap toy/first", "Apply ConfigMap toy/last"} {
			for _, what := range []string{"crash", "fails after"} {
				names = append(names, fmt.Sprintf("updater %s #%d: %s", call, n+1, what))
			}
		}
	}
	struck := 0
	for _, name := range names {
		c, v, _ := playMarks(t, releases, &marking{}, 1, reconcile.Faults{Crash: 1, After: 1, Only: map[string]bool{name: true}, Until: 6 * time.Hour})
		got := c.follow(t, v, func() bool { return historyOf(c.version(t)) == "1.0.1 Completed, 1.0.0 Completed" && c.markOf() == "" })
		if diff := cmp.Diff([]string{
			`1.0.0 Completed, marked for ""`, `1.0.1 Partial, 1.0.0 Completed, marked for ""`, `1.0.1 Partial, 1.0.0 Completed, marked for "1.0.1"`,
			`1.0.1 Completed, 1.0.0 Completed, marked for "1.0.1"`, `1.0.1 Completed, 1.0.0 Completed, marked for ""`,
		}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for _, fault := range c.faults {
			t.Errorf("%s: %s", name, fault)
		}
		struck += len(v.Faults())
	}
	if struck < 20 {
		t.Errorf("%d faults took place", struck)
	}
}

// TestHooksWayOut: another release is asked for while a hook waits, and while
// the first one is being applied; a mark that was left behind by another process
// is taken off.
func TestHooksWayOut(t *testing.T) {
	releases := toyReleases(t)
	for name, begun := range map[string]func(*hookedCluster) bool{
		"while the hook waits": func(c *hookedCluster) bool { return c.partial() },
		"in mid-update":        func(c *hookedCluster) bool { return c.markOf() == "1.0.1" },
	} {
		t.Run(name, func(t *testing.T) {
			h := &marking{before: func(now time.Time) (wait clusterversion.HookWait, err error) {
				if now.Sub(toyStart) < 10*time.Minute {
					wait.Reason = "it is too early"
				}
				return wait, nil
			}}
			c, v, _ := playMarks(t, releases, h, 1, reconcile.Faults{})
			c.hold["beta"] = true
			if err := mark(t.Context(), c.Cluster, "0.9"); err != nil { // left behind
				t.Fatal(err)
			}
			c.follow(t, v, func() bool { return begun(c) })
			c.request(t, configv1.Update{Version: "1.0.2"})
			c.mu.Lock()
			c.next, c.hold["beta"] = releases[2].payload.Operators(), false
			c.mu.Unlock()
			got := c.follow(t, v, func() bool { return strings.HasPrefix(historyOf(c.version(t)), "1.0.2 Completed") && c.markOf() == "" })
			want := `1.0.2 Partial, 1.0.1 Partial, 1.0.0 Completed, marked for "1.0.2"`
			if !slices.Contains(got, want) {
				t.Errorf("it was never %s:\n%s", want, strings.Join(got, "\n"))
			}
			for _, fault := range c.faults {
				t.Error(fault)
			}
		})
	}
}

// TestHooksPanic: a panic in a hook is a failure of it, and Sync is not done
// before the hooks are.
func TestHooksPanic(t *testing.T) {
	releases := toyReleases(t)
	broken := true
	h := &marking{after: func(time.Time) (clusterversion.HookWait, error) {
		if broken {
			panic("no map")
		}
		return clusterversion.HookWait{}, nil
	}}
	c := newHookedCluster(t, releases, nil)
	synctest.Test(t, func(t *testing.T) {
		o := toyOptions(t, releases)
		o.API, o.Hooks = c.Cluster, []clusterversion.Hook{h}
		u := checktest.Get(clusterupdate.New(o))(t)
		for _, done := range []bool{false, true} {
			var r clusterupdate.Result
			for range 5 {
				r = checktest.Get(u.Sync(t.Context()))(t)
				time.Sleep(r.After)
			}
			if caught := new(clusterapi.PanicError); r.Done != done || !done && !errors.As(r.Failure, &caught) {
				t.Errorf("done is %t, failure is %v", r.Done, r.Failure)
			}
			broken = false
		}
	})
}

func TestNewRefusesHooks(t *testing.T) {
	for want, hooks := range map[string][]clusterversion.Hook{
		"hook 2 is nil": {&marking{}, nil}, `two hooks are called "marks"`: {&marking{}, &marking{}},
	} {
		_, err := clusterupdate.New(clusterupdate.Options{API: memory.New(memory.Options{}), Payloads: sampleSource(), Hooks: hooks})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %s", err, want)
		}
	}
}

// hangingHook does not answer before its context ends.
type hangingHook struct{ marking }

func (h *hangingHook) BeforeApply(ctx context.Context, _ clusterversion.HookRequest) (clusterversion.HookWait, error) {
	<-ctx.Done()
	return clusterversion.HookWait{}, ctx.Err()
}

// TestHookHangs: while a hook does not answer, decisions go on, and after a
// minute the status says that it did not; what it holds up is not applied.
func TestHookHangs(t *testing.T) {
	releases := toyReleases(t)
	synctest.Test(t, func(t *testing.T) {
		c := newHookedCluster(t, releases, &configv1.Update{Version: "1.0.1"})
		o := toyOptions(t, releases)
		o.API, o.Hooks = c.Cluster, []clusterversion.Hook{&hangingHook{}}
		u := checktest.Get(clusterupdate.New(o))(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- u.Run(ctx) }()
		time.Sleep(30 * time.Second)
		modify(t, c.Cluster, false, func(cv *configv1.ClusterVersion) { cv.Spec.Channel = "another" })
		time.Sleep(time.Second)
		if cv := c.version(t); cv.Status.ObservedGeneration != cv.Generation {
			t.Error("the change of the specification was not seen")
		}
		if !slices.ContainsFunc(u.Explain().Actions, func(a clusterupdate.Action) bool {
			return a.Reason == "hook marks is asked before anything is applied"
		}) {
			t.Errorf("the plan does not name the hook: %+v", u.Explain().Actions)
		}
		time.Sleep(30 * time.Second)
		cv := c.version(t)
		const want = "True UpdateHookFailed: hook marks failed: the job has not ended within 1m0s: context deadline exceeded"
		if got := condition(cv, clusterversion.ConditionFailing); got != want || historyOf(cv) != "1.0.1 Partial, 1.0.0 Completed" {
			t.Errorf("Failing is %s, history %s", got, historyOf(cv))
		}
		cancel()
		checktest.Good(t, <-ended)
		if len(c.faults) > 0 {
			t.Error(c.faults)
		}
	})
}

// moody is a check that blocks for a while, and notes what it is asked about.
type moody struct {
	blocks func(run int) bool
	asked  *[]string
}

func (moody) Name() string                          { return "Moody" }
func (moody) Applies(preconditions.Transition) bool { return true }

func (m moody) Run(_ context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	if in.TargetPayload == nil || in.CurrentPayload == nil {
		return nil, errors.New("a payload is missing")
	}
	*m.asked = append(*m.asked, fmt.Sprintf("%s %s to %s", in.Kind, in.Current, in.Target))
	if m.blocks(len(*m.asked)) {
		return []preconditions.Finding{{Severity: preconditions.Blocking, Reason: "Mood", Message: "not now"}}, nil
	}
	return nil, nil
}

// TestChecksRunAgain: where a hook holds up the first manifest for more than 10
// minutes, the checks run once more, and nothing is applied while they block.
func TestChecksRunAgain(t *testing.T) {
	releases := toyReleases(t)
	for _, tt := range []struct {
		name   string
		holds  time.Duration
		blocks func(run int) bool
		force  bool
		asked  int
		said   []string
	}{
		{name: "at once", asked: 1},
		{name: "for 9 minutes", holds: 9 * time.Minute, asked: 1},
		{name: "for 11 minutes", holds: 11 * time.Minute, asked: 2},
		{name: "and they block for a while", holds: 11 * time.Minute, blocks: func(run int) bool { return run > 1 && run < 5 }, asked: 5, said: []string{
			`True : Working towards 1.0.1, the checks block what is to be applied: Precondition "Moody" failed because of "Mood": not now`}},
		{name: "and it is forced", holds: 11 * time.Minute, force: true, blocks: func(int) bool { return true }, asked: 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newHookedCluster(t, releases, &configv1.Update{Version: "1.0.1", Image: releases[1].payload.Release.Image, Force: tt.force})
			var began time.Time
			h := &marking{before: func(now time.Time) (clusterversion.HookWait, error) {
				if began.IsZero() {
					began = now
				}
				if now.Sub(began) < tt.holds {
					return clusterversion.HookWait{Reason: "holding"}, nil
				}
				return clusterversion.HookWait{}, nil
			}}
			if tt.blocks == nil {
				tt.blocks = func(int) bool { return false }
			}
			var asked, blocked []string
			o := toyOptions(t, releases)
			o.Hooks, o.Checks = []clusterversion.Hook{h}, []preconditions.Check{moody{tt.blocks, &asked}}
			o.Observe = func(e clusterapi.Event) {
				if e.Type == clusterupdate.EventPreconditionBlock {
					blocked = append(blocked, e.Message)
				}
			}
			v := virtually(t, c.testCluster, o, reconcile.VirtualOptions{Seed: 1}).Virtual
			var said []string
			c.follow(t, v, func() bool {
				if text := condition(c.version(t), configv1.OperatorProgressing); strings.Contains(text, "checks block") && !slices.Contains(said, text) {
					said = append(said, text)
				}
				return historyOf(c.version(t)) == "1.0.1 Completed, 1.0.0 Completed"
			})
			checktest.SameIn(t, "conditions", tt.said, said)
			if len(blocked) != len(said) {
				t.Errorf("events %q", blocked)
			}
			if len(asked) != tt.asked {
				t.Errorf("asked %d times: %q", len(asked), asked)
			}
			for _, a := range asked {
				if a != "Patch 1.0.0 to 1.0.1" {
					t.Errorf("asked about %s", a)
				}
			}
			for _, fault := range c.faults {
				t.Error(fault)
			}
		})
	}
}

// The pause of a MachineHealthCheck, and the mark of the one that paused it.
const (
	annotationPaused    = "cluster.x-k8s.io/paused"
	annotationPausedFor = clusterapi.AnnotationPrefix + "paused-for"
)

// healthChecks tells the pause and the mark of each.
func (c *hookedCluster) healthChecks() map[string]string {
	all, err := clusterapi.List[machinev1beta1.MachineHealthCheck](c.ctx(), c.Cluster, clusterapi.ListOptions{})
	if err != nil {
		return map[string]string{"error": err.Error()}
	}
	out := map[string]string{}
	for _, m := range all {
		text := ""
		if pause, ok := m.Annotations[annotationPaused]; ok {
			text = fmt.Sprintf("paused %q", pause)
		}
		if mark, ok := m.Annotations[annotationPausedFor]; ok {
			text += " for " + mark
		}
		out[m.Name] = text
	}
	return out
}

func healthCheck(name string, condition corev1.NodeConditionType, annotations map[string]string) *machinev1beta1.MachineHealthCheck {
	m := &machinev1beta1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-machine-api", Name: name, Annotations: annotations}}
	m.Spec.UnhealthyConditions = []machinev1beta1.UnhealthyCondition{{Type: condition, Status: "False", Timeout: metav1.Duration{Duration: time.Minute}}}
	return m
}

// setPool brings a pool to be updated or not.
func (c *hookedCluster) setPool(t testing.TB, name string, updated bool) {
	t.Helper()
	checktest.Get(clusterapi.Modify(c.ctx(), c.Cluster, clusterapi.Key("", name), clusterapi.ModifyOptions{Status: true}, func(p *mcfgv1.MachineConfigPool) error {
		status := map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}
		p.Status.ObservedGeneration = p.Generation
		p.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{
			{Type: mcfgv1.MachineConfigPoolUpdated, Status: status[updated]}, {Type: mcfgv1.MachineConfigPoolUpdating, Status: status[!updated]},
		}
		return nil
	}))(t)
}

// guard makes a cluster with two nodes, two pools and MachineHealthChecks, and an
// Updater that pauses these.
func guard(t *testing.T, releases []*toyRelease, h remedy.HealthChecks, seed uint64, faults reconcile.Faults) (*hookedCluster, *reconcile.Virtual) {
	t.Helper()
	c := newHookedCluster(t, releases, &configv1.Update{Version: "1.0.1"})
	c.unprepared = func(string) string {
		if c.healthChecks()["active"] == "" {
			return "a MachineHealthCheck is active"
		}
		return ""
	}
	for _, o := range []any{
		healthCheck("active", corev1.NodeReady, nil),
		healthCheck("others", corev1.NodeReady, map[string]string{annotationPaused: "theirs"}),
		healthCheck("termination", "Terminating", nil),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "b"}},
		&mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "master"}}, &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "worker"}},
	} {
		u := checktest.Get(clusterapi.ToUnstructured(o))(t)
		checktest.OK(t, c.Load(u))
	}
	c.setPool(t, "master", true)
	c.setPool(t, "worker", true)
	v, _ := c.play(t, releases, h, seed, faults)
	return c, v
}

const updatedHistory = "1.0.1 Completed, 1.0.0 Completed"

// until runs until something holds, and tells what happened to the checks meanwhile.
func (c *hookedCluster) until(t *testing.T, v *reconcile.Virtual, holds func() bool) []string {
	t.Helper()
	return changes(t, v, holds, func() string { return fmt.Sprintf("%s: %v", historyOf(c.version(t)), c.healthChecks()) })
}

func (c *hookedCluster) resumed() bool {
	return cmp.Equal(c.healthChecks(), map[string]string{"active": "", "others": `paused "theirs"`, "termination": ""})
}

// TestPauseMachineHealthChecks: they are paused before the first manifest, and resumed
// when the last pool is updated.
func TestPauseMachineHealthChecks(t *testing.T) {
	releases := toyReleases(t)
	image := releases[1].payload.Release.Image
	c, v := guard(t, releases, remedy.HealthChecks{}, 1, reconcile.Faults{})
	updating := false
	seen := c.until(t, v, func() bool {
		if history := historyOf(c.version(t)); !updating && history != "1.0.0 Completed" {
			updating = true
			c.setPool(t, "worker", false)
			// One that is made meanwhile is paused too.
			checktest.Get(clusterapi.Create(t.Context(), c.Cluster, healthCheck("later", corev1.NodeReady, nil), clusterapi.CreateOptions{}))(t)
		}
		return historyOf(c.version(t)) == updatedHistory
	})
	checktest.OK(t, v.RunUntil(v.Now().Add(30*time.Minute)))
	want := map[string]string{"active": `paused "" for ` + image, "later": `paused "" for ` + image, "others": `paused "theirs"`, "termination": ""}
	if diff := cmp.Diff(want, c.healthChecks()); diff != "" {
		t.Errorf("while the workers are updated: %s\n%s", diff, strings.Join(seen, "\n"))
	}
	text := condition(c.version(t), configv1.OperatorProgressing)
	if !strings.HasSuffix(text, "waiting on hook MachineHealthChecks: active, later stay paused until these are updated: machine config pools worker (updating)") {
		t.Errorf("Progressing is %s", text)
	}
	c.setPool(t, "worker", true)
	checktest.OK(t, v.RunUntil(v.Now().Add(10*time.Minute)))
	if diff := cmp.Diff(map[string]string{"active": "", "later": "", "others": `paused "theirs"`, "termination": ""}, c.healthChecks()); diff != "" {
		t.Errorf("in the end: %s", diff)
	}
	for _, fault := range c.faults {
		t.Error(fault)
	}
}

// TestPauseMachineHealthChecksSeeds: whatever goes wrong, nothing is applied while a
// check may act, and all that were paused are resumed.
func TestPauseMachineHealthChecksSeeds(t *testing.T) {
	releases := toyReleases(t)
	seeds := uint64(20)
	if israce.Enabled {
		seeds = 4
	}
	for seed := range seeds {
		c, v := guard(t, releases, remedy.HealthChecks{ResumeAfterControlPlane: seed%2 == 0}, seed,
			reconcile.Faults{Crash: .01, After: .05, Before: .05, Conflict: .05, Until: time.Hour})
		c.until(t, v, func() bool { return historyOf(c.version(t)) == updatedHistory && c.resumed() })
		if len(c.faults) > 0 {
			t.Errorf("seed %d: %q", seed, c.faults)
		}
	}
}
