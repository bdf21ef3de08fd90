package rollout_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// virtually drives rollouts on a cluster in virtual time.
func virtually(t *testing.T, c *memory.Cluster, clock *reconcile.Clock, f reconcile.Faults, observe ...func(clusterapi.Event)) *reconcile.Virtual {
	var processes []reconcile.Process
	for i, o := range observe {
		p := newRollout(t, rollout.Options{Mode: rollout.Drive, Observe: o}).Process()
		p.Name = fmt.Sprint("rollout ", i)
		processes = append(processes, p)
	}
	v := reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: c, Clock: clock, Seed: 1, Faults: f}, processes...)
	t.Cleanup(v.Close)
	return v
}

func advance(t *testing.T, v *reconcile.Virtual, d time.Duration) {
	t.Helper()
	checktest.OK(t, v.RunUntil(v.Now().Add(d)))
}

// More blocked drains than there are workers do not hold up a free one.
func TestBlockedDrainsHoldUpNobody(t *testing.T) {
	clock := reconcile.NewClock(mcptest.Epoch)
	c := drainCluster(t, memory.Options{Clock: clock})
	asks := mcptest.Annotate(mcp.AnnotationDesiredDrain, "drain-N", mcp.AnnotationLastAppliedDrain, "uncordon-O")
	load(t, c, app("web-0", "w0"), budget(0))
	for i := 1; i < 8; i++ {
		n := mcptest.Worker(fmt.Sprint("w", i), mcptest.Desired("N"), mcptest.State(mcp.StateWorking), asks)
		load(t, c, &n, app(fmt.Sprint("web-", i), n.Name))
	}
	free := mcptest.Worker("x", mcptest.Desired("N"), mcptest.State(mcp.StateWorking), asks)
	load(t, c, &free, app("batch", "x", func(p *corev1.Pod) { p.Labels = nil }))
	var r recorder
	v := virtually(t, c, clock, reconcile.Faults{}, r.observe)
	advance(t, v, 30*time.Second)
	if s := nodeState(t, c, "x"); s.LastAppliedDrain != "drain-N" || !s.Unschedulable {
		t.Errorf("%+v", s)
	}
	for i := range 8 {
		if s := nodeState(t, c, fmt.Sprint("w", i)); s.LastAppliedDrain != "uncordon-O" || !s.Unschedulable {
			t.Errorf("%+v", s)
		}
	}
	if blocked := r.nodes(rollout.EventDrainBlocked, "worker"); len(blocked) != 8 {
		t.Error(blocked)
	}
}

// How long a drain has been failing is known after a crash too, and forgotten
// when it ends.
func TestFailingDrainSurvivesCrash(t *testing.T) {
	clock := reconcile.NewClock(mcptest.Epoch)
	c := drainCluster(t, memory.Options{Clock: clock})
	load(t, c, app("web-0", "w0"), budget(0))
	var r recorder
	v := virtually(t, c, clock, reconcile.Faults{}, r.observe)
	since := func() string {
		n := checktest.Get(clusterapi.Get[corev1.Node](t.Context(), c, clusterapi.Key("", "w0")))(t)
		return n.Annotations["clusterupdate.github.io/drain-since"]
	}
	advance(t, v, 20*time.Minute)
	if got, want := since(), `{"version":1,"since":"2026-01-01T00:00:05Z"}`; got != want {
		t.Errorf("since %s, want %s", got, want)
	}
	for range 3 {
		v.Crash("rollout 0")
		advance(t, v, 13*time.Minute)
	}
	at := slices.IndexFunc(r.all(), func(e told) bool { return e.Reason == rollout.ReasonDrainFailed })
	if at >= 0 {
		t.Errorf("failed too early: %+v", r.all()[at])
	}
	advance(t, v, 10*time.Minute)
	failed := r.texts(func(e told) bool { return e.Reason == rollout.ReasonDrainFailed })
	if len(failed) == 0 {
		t.Error("an hour passed, and the drain is not reported as failed")
	}
	if _, err := clusterapi.Modify(t.Context(), c, clusterapi.Key("app", "web-pdb"), clusterapi.ModifyOptions{Status: true},
		func(b *policyv1.PodDisruptionBudget) error { b.Status = budget(1).Status; return nil }); err != nil {
		t.Fatal(err)
	}
	advance(t, v, 7*time.Minute)
	if s := nodeState(t, c, "w0"); s.LastAppliedDrain != "drain-N" || since() != "" {
		t.Errorf("%+v, since %q", s, since())
	}
}

// Somebody uncordons a node whose drain has been failing for long: it is cordoned
// again and its drain counts as new, but not yet for the attempt that follows.
func TestUncordonedDrainCountsAsNew(t *testing.T) {
	for name, tt := range map[string]struct {
		after time.Duration // until it is uncordoned
		want  []string      // reasons of what is told from then on
	}{
		"soon":               {4 * time.Minute, []string{"", "", ""}},
		"after ten minutes":  {20 * time.Minute, []string{rollout.ReasonDrainThresholdExceeded, ""}},
		"after more than 1h": {68 * time.Minute, []string{rollout.ReasonDrainFailed, rollout.ReasonDrainThresholdExceeded, ""}},
	} {
		clock := reconcile.NewClock(mcptest.Epoch)
		c := drainCluster(t, memory.Options{Clock: clock})
		load(t, c, app("web-0", "w0"), budget(0))
		var r recorder
		v := virtually(t, c, clock, reconcile.Faults{}, r.observe)
		advance(t, v, tt.after)
		change1(t, c, "w0", func(n *corev1.Node) { n.Spec.Unschedulable = false })
		before := len(r.all())
		advance(t, v, 4*time.Minute)
		var got []string
		for _, e := range r.all()[before:] {
			if e.Type == rollout.EventDrainRetry {
				got = append(got, e.Reason)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A drain that ended is not remembered, also of a node that somebody uncordoned, which
// is drained again.
func TestEndedDrainIsForgotten(t *testing.T) {
	gvk, _ := clusterapi.KindOf[corev1.Pod]()
	clock := reconcile.NewClock(mcptest.Epoch)
	c := drainCluster(t, memory.Options{Clock: clock, GracefulPods: true})
	load(t, c, app("web-0", "w0"))
	var r recorder
	v := virtually(t, c, clock, reconcile.Faults{}, r.observe)
	advance(t, v, 20*time.Second)
	change1(t, c, "w0", func(n *corev1.Node) { n.Spec.Unschedulable = false })
	checktest.OK(t, c.Remove(gvk, clusterapi.Key("app", "web-0")))
	cursor := c.Follow()
	defer cursor.Close()
	advance(t, v, 10*time.Second)
	forgotten := false
	for change, ok := cursor.Next(); ok; change, ok = cursor.Next() {
		if change.New == nil || change.New.Name() != "w0" {
			continue
		}
		if n, err := clusterapi.As[corev1.Node](change.New); err == nil && !n.Spec.Unschedulable {
			_, since := n.Annotations["clusterupdate.github.io/drain-since"]
			forgotten = forgotten || !since
		}
	}
	if s := nodeState(t, c, "w0"); !forgotten || !s.Unschedulable || s.LastAppliedDrain != "drain-N" {
		t.Errorf("forgotten %v, %+v", forgotten, s)
	}
}

// Another rollout that takes over in the middle of a drain goes on with it: the
// node stays cordoned, and how long the drain has been failing is known.
func TestAnotherTakesOverDrain(t *testing.T) {
	clock := reconcile.NewClock(mcptest.Epoch)
	c := drainCluster(t, memory.Options{Clock: clock})
	load(t, c, app("web-0", "w0"), budget(0))
	var first, second recorder
	v := virtually(t, c, clock, reconcile.Faults{}, first.observe)
	advance(t, v, 20*time.Minute)
	v.Close()
	cursor := c.Follow()
	defer cursor.Close()
	advance(t, virtually(t, c, clock, reconcile.Faults{}, second.observe), 5*time.Minute)
	for change, ok := cursor.Next(); ok; change, ok = cursor.Next() {
		if change.New == nil || change.New.Name() != "w0" {
			continue
		}
		if n, err := clusterapi.As[corev1.Node](change.New); err == nil && !n.Spec.Unschedulable {
			t.Errorf("uncordoned: %v", n.Annotations)
		}
	}
	slow := func(e told) bool { return e.Reason == rollout.ReasonDrainThresholdExceeded }
	if len(first.texts(slow)) == 0 || len(second.texts(slow)) == 0 {
		t.Errorf("failing for long: the first told %v, the second %v", first.texts(slow), second.texts(slow))
	}
}

// A drain that a newer program began, in a form that is not known, is left
// alone, and the error says so.
func TestNewerDrainIsRefused(t *testing.T) {
	clock := reconcile.NewClock(mcptest.Epoch)
	c := drainCluster(t, memory.Options{Clock: clock})
	const newer = `{"version":2,"since":"2026-01-01T00:00:00Z"}`
	change1(t, c, "w0", mcptest.Annotate("clusterupdate.github.io/drain-since", newer))
	load(t, c, app("web-0", "w0"))
	var r recorder
	advance(t, virtually(t, c, clock, reconcile.Faults{}, r.observe), 5*time.Minute)
	told := r.texts(func(e told) bool { return e.Type == rollout.EventError && e.Node == "w0" })
	want := "node w0: annotation " + "clusterupdate.github.io/drain-since" + " has version 2; this program knows 1 to 1"
	if len(told) == 0 || !strings.Contains(told[0], want) {
		t.Errorf("told %q, want %q", told, want)
	}
	n := checktest.Get(clusterapi.Get[corev1.Node](t.Context(), c, clusterapi.Key("", "w0")))(t)
	if n.Annotations["clusterupdate.github.io/drain-since"] != newer || mcp.NodeStateOf(n).LastAppliedDrain == mcp.NodeStateOf(n).DesiredDrain {
		t.Errorf("%v", n.Annotations)
	}
	if _, err := clusterapi.Get[corev1.Pod](t.Context(), c, clusterapi.Key("app", "web-0")); err != nil {
		t.Errorf("the pod: %v", err)
	}
}

// A request that was withdrawn after it was read cordons nobody.
func TestWithdrawnRequestCordonsNobody(t *testing.T) {
	clock := reconcile.NewClock(mcptest.Epoch)
	var c *memory.Cluster
	withdrawn := false
	c = drainCluster(t, memory.Options{Clock: clock, Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
		err := do(ctx)
		if call.Verb == "Get" && call.Key.Name == "w0" && !withdrawn {
			withdrawn = true
			change1(t, c, "w0", mcptest.Annotate(mcp.AnnotationDesiredDrain, "uncordon-O", mcp.AnnotationDesiredConfig, "O", mcp.AnnotationState, mcp.StateDone))
		}
		return err
	}})
	change1(t, c, "worker", func(p *mcfgv1.MachineConfigPool) { p.Spec.Paused = true })
	cursor := c.Follow()
	defer cursor.Close()
	var r recorder
	advance(t, virtually(t, c, clock, reconcile.Faults{}, r.observe), 20*time.Minute)
	if !withdrawn {
		t.Error("nobody read the node")
	}
	for change, ok := cursor.Next(); ok; change, ok = cursor.Next() {
		if n, err := clusterapi.As[corev1.Node](change.New); err == nil && n.Spec.Unschedulable {
			t.Errorf("cordoned: %v", n.Annotations)
		}
	}
}

// A node is uncordoned and told so in one write, and since when it was drained
// is forgotten with it.
func TestUncordonIsOneWrite(t *testing.T) {
	clock := reconcile.NewClock(mcptest.Epoch)
	since := `{"version":1,"since":"2026-01-01T00:00:00Z"}`
	c := drainCluster(t, memory.Options{Clock: clock}, mcptest.Cordoned, mcptest.Annotate(mcp.AnnotationDesiredDrain, "uncordon-N", "clusterupdate.github.io/drain-since", since))
	cursor := c.Follow()
	defer cursor.Close()
	var r recorder
	advance(t, virtually(t, c, clock, reconcile.Faults{}, r.observe), time.Minute)
	writes := 0
	for change, ok := cursor.Next(); ok; change, ok = cursor.Next() {
		if change.New == nil || change.New.Name() != "w0" {
			continue
		}
		n, err := clusterapi.As[corev1.Node](change.New)
		if err != nil {
			continue
		}
		_, draining := n.Annotations["clusterupdate.github.io/drain-since"]
		if told := n.Annotations[mcp.AnnotationLastAppliedDrain] == "uncordon-N"; told == n.Spec.Unschedulable || told == draining {
			t.Errorf("uncordoned %v, told %v, draining %v", !n.Spec.Unschedulable, told, draining)
		}
		if !n.Spec.Unschedulable {
			writes++
		}
	}
	if s := nodeState(t, c, "w0"); writes == 0 || s.Unschedulable || s.LastAppliedDrain != "uncordon-N" {
		t.Errorf("%d writes, %+v", writes, s)
	}
}

// An evicted pod's going ends the wait for it at once, whenever it goes.
func TestPodsGoingEndsTheWait(t *testing.T) {
	gvk, _ := clusterapi.KindOf[corev1.Pod]()
	for _, after := range []time.Duration{12345 * time.Millisecond, 31*time.Second + 7*time.Millisecond, 71 * time.Second} {
		clock := reconcile.NewClock(mcptest.Epoch)
		c := drainCluster(t, memory.Options{Clock: clock, GracefulPods: true})
		load(t, c, app("web-0", "w0"))
		var r recorder
		v := virtually(t, c, clock, reconcile.Faults{}, r.observe)
		advance(t, v, after)
		if s := nodeState(t, c, "w0"); s.LastAppliedDrain != "uncordon-O" {
			t.Errorf("after %s, with the pod there: %+v", after, s)
		}
		checktest.OK(t, c.Remove(gvk, clusterapi.Key("app", "web-0")))
		advance(t, v, time.Millisecond)
		if s := nodeState(t, c, "w0"); s.LastAppliedDrain != "drain-N" {
			t.Errorf("after %s: %+v", after, s)
		}
	}
}
