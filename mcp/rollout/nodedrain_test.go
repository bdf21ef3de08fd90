package rollout_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// A drain of its own evicts as a rollout does, at the same times, and writes
// nothing to the node.
func TestNodeDrain(t *testing.T) {
	clock := reconcile.NewClock(mcptest.Epoch)
	c := memory.NewOpenShift(memory.Options{Clock: clock})
	w0 := mcptest.Worker("w0", mcptest.Cordoned)
	load(t, c, &w0, app("web-0", "w0"), app("free", "w0", func(p *corev1.Pod) { p.Labels = nil }), budget(0))
	before, err := clusterapi.Get[corev1.Node](t.Context(), c, clusterapi.Key("", "w0"))
	if err != nil {
		t.Fatal(err)
	}
	var r recorder
	d, err := rollout.NewNodeDrain(c, "w0", mcptest.Epoch, rollout.Delays{}, r.observe)
	if err != nil {
		t.Fatal(err)
	}
	now := mcptest.Epoch
	var failed []time.Duration
	for now.Sub(mcptest.Epoch) < 30*time.Minute {
		before := len(r.texts(func(e told) bool { return e.Type == rollout.EventDrainRetry }))
		drained, at, err := d.Step(t.Context(), now)
		if err != nil || drained || !at.After(now) {
			t.Fatalf("after %s: drained %v, next %s, %v", now.Sub(mcptest.Epoch), drained, at, err)
		}
		if len(r.texts(func(e told) bool { return e.Type == rollout.EventDrainRetry })) > before {
			failed = append(failed, now.Sub(mcptest.Epoch))
		}
		now = at
	}
	// Attempts of 90 s with a minute between, and after 10 minutes with five.
	want := []time.Duration{90 * time.Second, 4 * time.Minute, 390 * time.Second, 9 * time.Minute, 690 * time.Second, 18 * time.Minute, 1470 * time.Second}
	if diff := cmp.Diff(want, failed); diff != "" {
		t.Error(diff)
	}
	if blocked := r.texts(func(e told) bool { return e.Type == rollout.EventDrainBlocked }); len(blocked) == 0 {
		t.Error("nobody is told of the budget")
	}
	if _, err := clusterapi.Get[corev1.Pod](t.Context(), c, clusterapi.Key("app", "free")); err == nil {
		t.Error("the pod without a budget is still there")
	}
	if _, err := clusterapi.Modify(t.Context(), c, clusterapi.Key("app", "web-pdb"), clusterapi.ModifyOptions{Status: true},
		func(b *policyv1.PodDisruptionBudget) error { b.Status = budget(1).Status; return nil }); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		drained, at, err := d.Step(t.Context(), now)
		if err != nil {
			t.Fatal(err)
		}
		if now = at; drained {
			after, err := clusterapi.Get[corev1.Node](t.Context(), c, clusterapi.Key("", "w0"))
			if diff := cmp.Diff(before, after); err != nil || diff != "" {
				t.Error(err, diff)
			}
			return
		}
	}
	t.Error("not drained")
}

func TestNodeDrainOptions(t *testing.T) {
	if _, err := rollout.NewNodeDrain(nil, "w0", mcptest.Epoch, rollout.Delays{DrainRetry: -1}, nil); err == nil {
		t.Error("a negative delay is accepted")
	}
}

// A clock that is set back, in an attempt or between two, delays a drain by no more
// than a wait between two attempts.
func TestNodeDrainClockSetBack(t *testing.T) {
	for _, at := range []time.Duration{time.Minute, 2 * time.Minute, 12 * time.Minute} {
		for _, back := range []time.Duration{time.Minute, 20 * time.Minute, 24 * time.Hour} {
			c := memory.NewOpenShift(memory.Options{Clock: reconcile.NewClock(mcptest.Epoch)})
			w0 := mcptest.Worker("w0", mcptest.Cordoned)
			load(t, c, &w0, app("web-0", "w0"), budget(0))
			d, err := rollout.NewNodeDrain(c, "w0", mcptest.Epoch, rollout.Delays{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for elapsed := time.Duration(0); elapsed < 40*time.Minute; {
				now := mcptest.Epoch.Add(elapsed)
				if elapsed >= at {
					now = now.Add(-back)
				}
				drained, next, err := d.Step(t.Context(), now)
				wait := next.Sub(now)
				if err != nil || drained || wait <= 0 || wait > 5*time.Minute {
					t.Fatalf("set back by %s after %s: %s later next in %s, %v", back, at, elapsed, wait, err)
				}
				elapsed += wait
			}
		}
	}
}
