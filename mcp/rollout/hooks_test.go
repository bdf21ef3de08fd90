package rollout_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/simtest"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// hooked is a simulated update of two workers and a master whose rollout has
// hooks.
type hooked struct {
	*reconcile.Virtual
	cluster *simulation.Cluster
	ran     map[string][]string // by node: the hooks that ran
	lines   []string
	fail    func(hook rollout.Hook, node string) error
	wrong   []error
}

func newHooked(seed uint64, f reconcile.Faults) *hooked {
	clock := reconcile.NewClock(mcptest.Epoch)
	c, err := simulation.New(simulation.Options{Clock: clock, Release: machineConfig("4.20.3"),
		Pools:     []simulation.Pool{{Name: "worker", Nodes: 2}},
		Workloads: []simulation.Workload{{Name: "web", Replicas: 2}},
		Memory:    memory.Options{},
	})
	if err != nil {
		panic(err)
	}
	h := &hooked{cluster: c, ran: map[string][]string{}}
	f.Processes = []string{"rollout"}
	h.Virtual = reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: c, Clock: clock, Seed: seed, Faults: f}, c.Process(), h.rollout())
	clock.AfterFunc(5*time.Minute, func() {
		to := machineConfig("4.21.1")
		c.Expect(to)
		if _, err := c.Apply(context.Background(), to.Operators[0].Workloads[0], clusterapi.ApplyOptions{FieldManager: clusterapi.ManagerPayload}); err != nil {
			panic(err)
		}
	})
	return h
}

// rollout is one with hooks.
func (h *hooked) rollout() reconcile.Process {
	hook := func(name rollout.Hook) func(context.Context, string) error {
		return func(ctx context.Context, node string) error { return h.hook(ctx, name, node) }
	}
	r, err := rollout.New(rollout.Options{Mode: rollout.Drive, Observe: h.observe, Hooks: rollout.Hooks{
		PreCordon: hook(rollout.HookPreCordon), PreUpgrade: hook(rollout.HookPreUpgrade),
		PreUncordon: hook(rollout.HookPreUncordon), PostUpgrade: hook(rollout.HookPostUpgrade)}})
	if err != nil {
		panic(err)
	}
	return r.Process()
}

func (h *hooked) observe(e clusterapi.Event) {
	switch e.Type {
	case rollout.EventHookDone, rollout.EventHookFailed, rollout.EventNodeTargeted, rollout.EventDrained, rollout.EventNodeDone:
		text := strings.ReplaceAll(e.Message, "MachineConfig ", "")
		if at := strings.Index(text, "rendered-"); at >= 0 {
			text = text[:at] + "its configuration"
		}
		h.lines = append(h.lines, fmt.Sprintf("%-12s %s", e.Type, text))
	}
}

func (h *hooked) node(name string) mcp.NodeState {
	n, err := clusterapi.Get[corev1.Node](context.Background(), h.cluster, clusterapi.Key("", name))
	if err != nil {
		panic(err)
	}
	return mcp.NodeStateOf(n)
}

// hook checks its order, and that the node is as it should be then.
func (h *hooked) hook(ctx context.Context, name rollout.Hook, node string) error {
	order := []string{string(rollout.HookPreCordon), string(rollout.HookPreUpgrade), string(rollout.HookPreUncordon), string(rollout.HookPostUpgrade)}
	at := slices.Index(order, string(name))
	ran := h.ran[node]
	if last := len(ran) - 1; last >= 0 && ran[last] != order[at] && ran[last] != order[(at+3)%4] || last < 0 && at > 0 {
		h.wrong = append(h.wrong, fmt.Errorf("hook %s of node %s after %v", name, node, ran))
	}
	h.ran[node] = append(ran, string(name))
	s := h.node(node)
	if cordoned := name == rollout.HookPreUpgrade || name == rollout.HookPreUncordon; s.Unschedulable != cordoned {
		h.wrong = append(h.wrong, fmt.Errorf("hook %s of node %s: cordoned %v", name, node, s.Unschedulable))
	}
	if done := name == rollout.HookPostUpgrade; s.Done() != done {
		h.wrong = append(h.wrong, fmt.Errorf("hook %s of node %s: done %v", name, node, s.Done()))
	}
	if h.fail != nil {
		if err := h.fail(name, node); err != nil {
			return err
		}
	}
	return reconcile.Sleep(ctx, 30*time.Second)
}

// unfinished returns the nodes that are not updated, with all hooks run.
func (h *hooked) unfinished() []string {
	var left []string
	nodes, err := clusterapi.ReadAll[corev1.Node](context.Background(), h.cluster, clusterapi.ListOptions{})
	if err != nil {
		panic(err)
	}
	for _, n := range nodes {
		_, record := n.Annotations["clusterupdate.github.io/hooks"]
		if s := mcp.NodeStateOf(n); !s.Done() || s.Unschedulable || record || n.Status.NodeInfo.KubeletVersion != "v1.34.0" {
			left = append(left, n.Name)
		}
	}
	return left
}

func TestHooks(t *testing.T) {
	h := newHooked(1, reconcile.Faults{})
	defer func() { h.Close() }()
	checktest.OK(t, h.RunUntil(mcptest.Epoch.Add(3*time.Hour)))
	if left := h.unfinished(); len(left) > 0 || len(h.wrong) > 0 {
		t.Errorf("%v, %v", left, h.wrong)
	}
	var worker []string
	for _, l := range h.lines {
		if strings.Contains(l, "worker-") {
			worker = append(worker, l)
		}
	}
	want := []string{
		"NodeTargeted node worker-0 is to reach its configuration",
		"HookDone     node worker-0: hook PreCordon has run",
		"HookDone     node worker-0: hook PreUpgrade has run",
		"Drained      node worker-0 is drained",
		"HookDone     node worker-0: hook PreUncordon has run",
		"NodeDone     node worker-0 has reached its configuration",
		"HookDone     node worker-0: hook PostUpgrade has run",
		"NodeTargeted node worker-1 is to reach its configuration",
		"HookDone     node worker-1: hook PreCordon has run",
		"HookDone     node worker-1: hook PreUpgrade has run",
		"Drained      node worker-1 is drained",
		"HookDone     node worker-1: hook PreUncordon has run",
		"NodeDone     node worker-1 has reached its configuration",
		"HookDone     node worker-1: hook PostUpgrade has run",
	}
	checktest.Same(t, want, worker)
}

// A hook that fails halts the rollout: the node stays as it is, no other one is
// begun, and another rollout runs the hook again.
func TestHookFails(t *testing.T) {
	for _, failing := range []rollout.Hook{rollout.HookPreCordon, rollout.HookPreUpgrade, rollout.HookPreUncordon, rollout.HookPostUpgrade} {
		h := newHooked(1, reconcile.Faults{})
		tries := 0
		h.fail = func(hook rollout.Hook, node string) error {
			if hook == failing && strings.HasPrefix(node, "worker") {
				tries++
				return errors.New("the storage is not back")
			}
			return nil
		}
		checktest.OK(t, h.RunUntil(mcptest.Epoch.Add(3*time.Hour)))
		cordoned := failing == rollout.HookPreUpgrade || failing == rollout.HookPreUncordon
		first := h.node("worker-0")
		if tries != 1 || first.Unschedulable != cordoned || h.ran["worker-1"] != nil {
			t.Errorf("%s: %d tries, cordoned %v, hooks of the other node %v", failing, tries, first.Unschedulable, h.ran["worker-1"])
		}
		text := fmt.Sprintf("HookFailed   node worker-0: hook %s failed: the storage is not back", failing)
		if !slices.Contains(h.lines, text) {
			t.Errorf("%s: %q", failing, h.lines)
		}
		n, err := clusterapi.Get[corev1.Node](t.Context(), h.cluster, clusterapi.Key("", "worker-0"))
		if value := n.Annotations["clusterupdate.github.io/hooks"]; err != nil || !strings.Contains(value, `"failed":"`+string(failing)) || !strings.Contains(value, "the storage is not back") {
			t.Errorf("%s: %s, %v", failing, value, err)
		}
		h.fail = nil
		h.Crash("rollout")
		checktest.OK(t, h.RunUntil(mcptest.Epoch.Add(6*time.Hour)))
		if left := h.unfinished(); len(left) > 0 || len(h.wrong) > 0 {
			t.Errorf("%s: after it was mended: %v, %v", failing, left, h.wrong)
		}
		h.Close()
	}
}

// Hooks come in order, and all nodes are updated, whatever goes wrong with calls
// and the program.
func TestHooksSimulation(t *testing.T) {
	simtest.Test(t, 0.15, func(seed uint64, only map[string]bool) ([]string, error) {
		h := newHooked(seed, reconcile.Faults{Before: 0.03, After: 0.03, Conflict: 0.03, Late: 0.1, Double: 0.05, Crash: 0.01, Until: 2 * time.Hour, Only: only})
		defer h.Close()
		if err := h.RunUntil(mcptest.Epoch.Add(5 * time.Hour)); err != nil {
			return h.Faults(), err
		}
		if left := h.unfinished(); len(left) > 0 {
			return h.Faults(), fmt.Errorf("not done: %v", left)
		}
		return h.Faults(), errors.Join(h.wrong...)
	})
}

func TestHooksNeedDrive(t *testing.T) {
	hook := func(context.Context, string) error { return nil }
	if _, err := rollout.New(rollout.Options{Hooks: rollout.Hooks{PostUpgrade: hook}}); err == nil {
		t.Error("hooks are accepted in mode ReadOnly")
	}
	if _, err := rollout.New(rollout.Options{Mode: rollout.Drive, Hooks: rollout.Hooks{PostUpgrade: hook}}); err != nil {
		t.Error(err)
	}
}
