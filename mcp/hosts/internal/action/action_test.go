package action_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
	"github.com/clusterupdate/clusterupdate/mcp/hosts"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/internal/action"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/internal/actiontest"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
	"github.com/clusterupdate/clusterupdate/mcp/plan"

	corev1 "k8s.io/api/core/v1"
)

const annotation = "clusterupdate.github.io/progress.patch"

// patch is an action of two steps.
type patch struct {
	step func(ctx context.Context, progress string) (action.Step, error) // nil: as below
	done map[string]int
}

func newPatch() *patch { return &patch{done: map[string]int{}} }

func (p *patch) Name() string { return "patch" }

func (p *patch) Step(ctx context.Context, n *corev1.Node, progress string) (action.Step, error) {
	if p.step != nil {
		if step, err := p.step(ctx, progress); err != nil || step != (action.Step{}) {
			return step, err
		}
	}
	if progress == "" {
		return action.Step{Progress: "begun", After: time.Minute, Waiting: "a minute to pass"}, nil
	}
	p.done[n.Name]++
	return action.Step{Done: true}, nil
}

func newWorld() *actiontest.World {
	return actiontest.New(actiontest.Node("w0", "worker"), actiontest.Node("w1", "worker"))
}

// planOf does the action to nodes, one by one.
func planOf(id string, nodes ...string) plan.Options {
	p := plan.Plan{Version: plan.Format, ID: id, Kind: "Custom"}
	for i, node := range nodes {
		p.Steps = append(p.Steps, plan.Step{ID: fmt.Sprint("s", i), Kind: plan.Hook, Args: plan.Args{Node: node, Action: "update"}})
	}
	return plan.Options{Plan: p}
}

// callOf is a call for a step that does the action to node w0.
func callOf(api clusterapi.ClusterAPI, step string) plan.Call {
	return plan.Call{Plan: "x", API: api, Now: mcptest.Epoch, Times: 1, Step: plan.Step{ID: step, Args: plan.Args{Node: "w0"}}}
}

// Each step of a plan has the action done once.
func TestSteps(t *testing.T) {
	w, a := newWorld(), newPatch()
	p := action.New(a)
	for i, s := range []struct {
		step string
		done bool
		left string // the annotation in the end
		ends int    // how often the action has ended
	}{
		{"a", false, `"progress":"begun","begun":true`, 0},
		{"b", true, `"done":"plan x, step b of `, 1}, // it continues what was begun for another step
		{"b", true, `"done":"plan x, step b of `, 1}, // and does nothing twice for one
		{"a", false, `"progress":"begun","begun":true`, 1},
		{"a", true, `"done":"plan x, step a of `, 2},
	} {
		out, err := p.Do(t.Context(), callOf(w.Cluster, s.step))
		left := w.NodeOf("w0").Annotations[annotation]
		if err != nil || out.Done != s.done || !s.done && out.After != time.Minute || a.done["w0"] != s.ends || !strings.Contains(left, s.left) {
			t.Errorf("step %d: %+v, %v; %d times; %s", i+1, out, err, a.done["w0"], left)
		}
	}
	if w.NodeOf("w0").Spec.Unschedulable {
		t.Error("the node is cordoned")
	}
	if err := hosts.Confirm(t.Context(), w.Cluster, "patch", "w1"); err != nil || !action.Confirmed(w.NodeOf("w1"), "patch") {
		t.Error(err)
	}
	checktest.Good(t, hosts.Uninstall(t.Context(), w.Cluster))
	for _, name := range []string{"w0", "w1"} {
		for annotation := range w.NodeOf(name).Annotations {
			if strings.HasPrefix(annotation, clusterapi.AnnotationPrefix) {
				t.Errorf("node %s still has %s", name, annotation)
			}
		}
	}
}

// broken is a cluster whose updates fail, as if the connection is refused.
type broken struct {
	clusterapi.ClusterAPI
	fails int // so many more
}

func (b *broken) Update(ctx context.Context, u *unstructured.Unstructured, o clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	if b.fails--; b.fails >= 0 {
		return nil, errors.New("connection refused")
	}
	return b.ClusterAPI.Update(ctx, u, o)
}

// checked is a patch that is asked whether it is needed.
type checked struct {
	*patch
	needed func() bool
}

func (c checked) Needed(context.Context, *corev1.Node) (bool, error) { return c.needed(), nil }

// What is not recorded is not done, and is done again: also the last step, after
// which the action is not needed any more.
func TestStepNotRecorded(t *testing.T) {
	for _, tt := range []struct {
		name  string
		ends  int // at so many calls of the action
		fails int // at so many updates
	}{
		{"a step", 2, 1}, {"the last step", 1, 1}, {"the last step, twice", 1, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			api, steps := &broken{ClusterAPI: w.Cluster}, 0
			a := checked{newPatch(), func() bool { return steps == 0 }}
			a.step = func(context.Context, string) (action.Step, error) {
				if steps++; steps == 1 {
					api.fails = tt.fails
				}
				return action.Step{Done: steps >= tt.ends, Progress: "under way"}, nil
			}
			p := action.New(a)
			for c := callOf(api, "s"); c.Times < 10; c.Times++ {
				out, err := p.Do(t.Context(), c)
				if err != nil {
					t.Fatalf("call %d: %v", c.Times, err)
				}
				if out.Done {
					break
				}
			}
			if want := max(tt.ends, 1+tt.fails); steps != want {
				t.Errorf("%d steps, want %d", steps, want)
			}
			if got := w.NodeOf("w0").Annotations[annotation]; !strings.Contains(got, `"done":"plan x, step s of`) {
				t.Error(got)
			}
		})
	}
}

// A program that was slow does not write over the work of the one that took over.
func TestStepGoneOn(t *testing.T) {
	w := newWorld()
	a, other := newPatch(), newPatch()
	other.step = func(context.Context, string) (action.Step, error) { return action.Step{Done: true}, nil }
	call, slow := callOf(w.Cluster, "s"), true
	a.step = func(ctx context.Context, _ string) (action.Step, error) {
		if !slow {
			return action.Step{}, nil
		}
		slow = false
		if out, err := action.New(other).Do(ctx, call); err != nil || !out.Done {
			t.Errorf("%+v, %v", out, err)
		}
		return action.Step{Progress: "old"}, nil
	}
	p := action.New(a)
	out, err := p.Do(t.Context(), call)
	if err != nil || out.Done || out.After != time.Second {
		t.Errorf("%+v, %v", out, err)
	}
	if got := w.NodeOf("w0").Annotations[annotation]; !strings.Contains(got, `{"version":1,"done":`) {
		t.Error(got)
	}
	out, err = p.Do(t.Context(), call)
	if err != nil || !out.Done || a.done["w0"] != 0 {
		t.Errorf("%+v, %v, done %d times", out, err, a.done["w0"])
	}
}

// In a plan whose runner crashes anywhere, no action begins again on a node whose
// record has its begin.
func TestCrashes(t *testing.T) {
	actiontest.CrashAtEachCall(t, func() (*actiontest.World, func() error) {
		w, a, begun := newWorld(), newPatch(), false
		a.step = func(_ context.Context, progress string) (action.Step, error) {
			if begun && progress == "" {
				t.Error("the action begins again")
			}
			begun = progress != ""
			return action.Step{}, nil
		}
		return w, func() error { return w.Play(0, reconcile.Faults{}, time.Hour, a, planOf("x", "w0")) }
	})
}

// What errors of the action, and waiting, do to a plan.
func TestErrors(t *testing.T) {
	busy := errors.New("busy")
	for _, tt := range []struct {
		name string
		step func(ctx context.Context, now time.Duration) (action.Step, error)
		want string // "": the plan ends well
		at   time.Duration
	}{
		{"passes", func(_ context.Context, now time.Duration) (action.Step, error) {
			if now < 20*time.Minute {
				return action.Step{}, busy
			}
			return action.Step{}, nil
		}, "", 20 * time.Minute},
		{"lasts", func(context.Context, time.Duration) (action.Step, error) { return action.Step{}, busy }, "busy", 30 * time.Minute},
		{"permanent", func(context.Context, time.Duration) (action.Step, error) {
			return action.Step{}, fmt.Errorf("step: %w", hosts.Permanent(errors.New("refused")))
		}, "step: refused", 0},
		{"panics", func(context.Context, time.Duration) (action.Step, error) { panic("oh") }, "panic: oh", 0},
		{"hangs", func(ctx context.Context, now time.Duration) (action.Step, error) {
			if now == 0 {
				return action.Step{}, reconcile.Sleep(ctx, 24*time.Hour)
			}
			return action.Step{}, nil
		}, "", 10 * time.Minute},
		{"stalls", func(context.Context, time.Duration) (action.Step, error) {
			return action.Step{After: time.Minute, Waiting: "Godot"}, nil
		}, "nothing has moved for 1h0m0s; it waits for Godot", time.Hour},
		{"waits for a person", func(_ context.Context, now time.Duration) (action.Step, error) {
			if now < 4*time.Hour {
				return action.Step{After: time.Minute, Person: true}, nil
			}
			return action.Step{}, nil
		}, "", 4 * time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, a := newWorld(), newPatch()
			a.step = func(ctx context.Context, _ string) (action.Step, error) {
				return tt.step(ctx, w.Clock.Now().Sub(mcptest.Epoch))
			}
			err := w.Play(0, reconcile.Faults{}, 8*time.Hour, a, planOf("x", "w0", "w1"))
			said, took := strings.Join(w.Lines, "\n"), w.Now().Sub(mcptest.Epoch)
			if (err == nil) != (tt.want == "") || !strings.Contains(said, tt.want) || took < tt.at || took > tt.at+10*time.Minute {
				t.Errorf("it ends with %v after %s\n%s", err, took, said)
			}
			if done := a.done["w0"]; (done == 1) != (tt.want == "") || done != a.done["w1"] {
				t.Errorf("done %d and %d times", done, a.done["w1"])
			}
		})
	}
	w := newWorld()
	err := w.Play(0, reconcile.Faults{}, time.Hour, newPatch(), planOf("x", ""))
	if said := strings.Join(w.Lines, "\n"); err == nil || !strings.Contains(said, "step s0 names no node to do action patch to") {
		t.Errorf("%v\n%s", err, said)
	}
}

func TestParameters(t *testing.T) {
	a, c := newPatch(), callOf(newWorld().Cluster, "s")
	c.Step.Args.Parameters = map[string]string{"reboot": "no"}
	checktest.ErrorHas(t, "step s: action patch has no parameters", checktest.Err(action.New(a).Do(t.Context(), c)))
	checktest.Equal(t, 0, len(a.done), "nodes that were acted on")
}

// What a newer version has written stops the step before it does anything.
func TestNewer(t *testing.T) {
	w, a := actiontest.New(actiontest.Node("w0", "worker", mcptest.Annotate(annotation, `{"version":7}`))), newPatch()
	c := callOf(w.Cluster, "s")
	p := action.New(a)
	if out, err := p.Do(t.Context(), c); err != nil || out.Done || !strings.Contains(out.Text, "version 7") {
		t.Errorf("%+v, %v", out, err)
	}
	c.Now = c.Now.Add(30 * time.Minute)
	c.Times++
	if _, err := p.Do(t.Context(), c); !errors.Is(err, hosts.ErrVersion) || len(a.done) > 0 {
		t.Error(err)
	}
}

func TestLimits(t *testing.T) {
	limittest.Walk(t, []limittest.Case{
		{Limit: "progress of an action", Default: 4096, Bytes: 64 << 20, Run: func(t *testing.T) int64 {
			w, a, size := newWorld(), newPatch(), 4096
			a.step = func(context.Context, string) (action.Step, error) {
				return action.Step{Progress: strings.Repeat("x", size)}, nil
			}
			p, c := action.New(a), callOf(w.Cluster, "s")
			checktest.Good(t, checktest.Err(p.Do(t.Context(), c)))
			size++
			if _, err := p.Do(t.Context(), c); err == nil || !hosts.IsPermanent(err) {
				t.Errorf("the step does not fail: %v", err)
			}
			return 0
		}},
	})
}
