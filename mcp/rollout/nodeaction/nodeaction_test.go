package nodeaction_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
	"github.com/clusterupdate/clusterupdate/mcp/rollout/internal/actiontest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout/nodeaction"
)

// patch is an action of two steps.
type patch struct {
	disruption nodeaction.Disruption
	step       func(node, progress string) (nodeaction.Step, error) // nil: as below
	done       map[string]int
}

func newPatch(d nodeaction.Disruption) *patch { return &patch{disruption: d, done: map[string]int{}} }

func (p *patch) Name() string                                  { return "patch" }
func (p *patch) Disruption(*corev1.Node) nodeaction.Disruption { return p.disruption }
func (p *patch) Step(_ context.Context, n *corev1.Node, progress string) (nodeaction.Step, error) {
	if p.step != nil {
		if step, err := p.step(n.Name, progress); err != nil || step != (nodeaction.Step{}) {
			return step, err
		}
	}
	if progress == "" {
		return nodeaction.Step{Progress: "begun", After: time.Minute, Waiting: "a minute to pass"}, nil
	}
	p.done[n.Name]++
	return nodeaction.Step{Done: true}, nil
}

func workers(names ...string) []any {
	var objs []any
	for _, name := range names {
		role := "worker"
		if name[0] == 'm' {
			role = "master"
		}
		objs = append(objs, actiontest.Node(name, role))
	}
	return objs
}

func TestOptions(t *testing.T) {
	a := newPatch(nodeaction.None)
	for name, o := range map[string]nodeaction.Options{
		"no ID":     {Action: a, Nodes: []string{"w0"}},
		"bad ID":    {ID: "A/b", Action: a, Nodes: []string{"w0"}},
		"long ID":   {ID: strings.Repeat("a", 43), Action: a, Nodes: []string{"w0"}},
		"no action": {ID: "x", Nodes: []string{"w0"}},
		"no nodes":  {ID: "x", Action: a},
		"twice":     {ID: "x", Action: a, Nodes: []string{"w0", "w0"}},
		"negative":  {ID: "x", Action: a, Nodes: []string{"w0"}, Parallel: -1},
	} {
		if _, err := nodeaction.New(o); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	r, err := nodeaction.New(nodeaction.Options{ID: strings.Repeat("a", 42), Action: a, Nodes: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context()); err == nil {
		t.Error("no API")
	}
}

// A node that was cordoned before stays so; the others are put back.
func TestStaysCordoned(t *testing.T) {
	w := actiontest.New("x", actiontest.Node("w0", "worker", mcptest.Cordoned), actiontest.Node("w1", "worker"), actiontest.Pod("a", "w0"))
	a := newPatch(nodeaction.Drain)
	w.Parallel = 2 // the cordoned one is out of service all the time
	w.Start(0, reconcile.Faults{}, nodeaction.Options{Action: a, Nodes: []string{"w1", "w0"}})
	if err := w.RunUntil(mcptest.Epoch.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"w0": 1, "w1": 1}, a.done); diff != "" || !w.Done {
		t.Error(diff, w.Lines)
	}
	if !w.NodeOf("w0").Spec.Unschedulable || w.NodeOf("w1").Spec.Unschedulable {
		t.Error("the nodes are not as they were")
	}
}

// A budget that forbids evictions is waited for; nothing is forced.
func TestBlockedDrain(t *testing.T) {
	budget := &policyv1.PodDisruptionBudget{}
	budget.Namespace, budget.Name = "app", "web"
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	w := actiontest.New("x", actiontest.Node("w0", "worker"), actiontest.Pod("a", "w0"), budget)
	w.Start(0, reconcile.Faults{}, nodeaction.Options{Action: newPatch(nodeaction.Drain), Nodes: []string{"w0"}})
	if err := w.Play(90 * time.Minute); err != nil {
		t.Fatal(err)
	}
	if record, _, err := nodeaction.RecordOf(w.NodeOf("w0"), "x"); err != nil || record.Phase != "Draining" || w.Last != nil {
		t.Errorf("%+v, %v, %v", record, err, w.Last)
	}
	if text := strings.Join(w.Lines, "\n"); !strings.Contains(text, "pod app/a may not be evicted now") || !strings.Contains(text, "drain exceeded timeout: 1h0m0s. Will continue to retry.") {
		t.Error(text)
	}
	if _, err := clusterapi.Modify(t.Context(), w.Cluster, clusterapi.Key("app", "web"), clusterapi.ModifyOptions{Status: true},
		func(b *policyv1.PodDisruptionBudget) error {
			b.Status.DisruptionsAllowed, b.Status.ObservedGeneration = 1, b.Generation
			return nil
		}); err != nil {
		t.Fatal(err)
	}
	if err := w.Play(30 * time.Minute); err != nil || !w.Done {
		t.Error(err, w.Done)
	}
}

// Two runs share the control plane one by one, and neither takes a node that the
// other has begun.
func TestTwoRuns(t *testing.T) {
	record := `{"version":1,"action":"patch","phase":"Acting","since":"2026-01-01T00:00:00Z","attempt":1}`
	begun := actiontest.Node("w0", "worker", mcptest.Annotate(nodeaction.Annotation("zero"), record))
	w := actiontest.New("one", append(workers("m0", "m1"), begun)...)
	slow := newPatch(nodeaction.Cordon)
	var lines []string
	run := func(id string, a nodeaction.Action, nodes ...string) reconcile.Process {
		r, err := nodeaction.New(nodeaction.Options{ID: id, Action: a, Nodes: nodes, Observe: func(e clusterapi.Event) {
			if e.Type != nodeaction.EventPhase && e.Type != nodeaction.EventWaiting {
				lines = append(lines, fmt.Sprint(id, " ", e.Type, " ", e.Message))
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		return r.Process()
	}
	w.Virtual = reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: w.Cluster, Clock: w.Clock}, run("one", slow, "m0"))
	defer w.Close()
	w.Clock.AfterFunc(10*time.Second, func() { w.Add(run("two", newPatch(nodeaction.Cordon), "m1", "w0")) })
	if err := w.Play(time.Hour); err != nil { // looks that the control plane goes one by one
		t.Fatal(err)
	}
	want := []string{
		"one NodeStarted node m0 is begun",
		"two Blocked node m1 waits: m0 of the control plane is being acted on by run one",
		"one NodeDone node m0 is finished",
	}
	if diff := cmp.Diff(want, lines[:3]); diff != "" {
		t.Error(diff)
	}
	want = []string{
		"two NodeDone node m1 is finished",
		"two Blocked node w0 has been begun by run zero, which has not finished it",
	}
	if diff := cmp.Diff(want, lines[len(lines)-2:]); diff != "" {
		t.Error(diff)
	}
}

// Of two runs of the same ID the later one wins, and the other stops.
func TestTakenOver(t *testing.T) {
	w := actiontest.New("x", workers("w0", "w1")...)
	a := newPatch(nodeaction.Cordon)
	var stopped error
	var finished []string
	run := func(name string) reconcile.Process {
		r, err := nodeaction.New(nodeaction.Options{ID: "x", Action: a, Selector: labels.Everything(), Observe: func(e clusterapi.Event) {
			if e.Type == nodeaction.EventDone {
				finished = append(finished, name)
			}
			if e.Type == nodeaction.EventFailed {
				stopped = fmt.Errorf("%s: %w", name, e.Err)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		p := r.Process()
		p.Name = name
		return p
	}
	w.Virtual = reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: w.Cluster, Clock: w.Clock}, run("first"))
	defer w.Close()
	w.Clock.AfterFunc(10*time.Second, func() { w.Add(run("second")) })
	if err := w.Play(time.Hour); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(stopped, nodeaction.ErrTakenOver) || !strings.HasPrefix(stopped.Error(), "first: ") {
		t.Errorf("stopped: %v", stopped)
	}
	if diff := cmp.Diff([]string{"second"}, finished); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"w0", "w1"} {
		if record, _, err := nodeaction.RecordOf(w.NodeOf(name), "x"); err != nil || record.Phase != "Done" {
			t.Errorf("%s: %+v, %v", name, record, err)
		}
	}
}

// A node that goes while it is acted on, and one that there never was, are
// skipped.
func TestNodeGoes(t *testing.T) {
	w := actiontest.New("x", workers("w0", "w1")...)
	w.Start(0, reconcile.Faults{}, nodeaction.Options{Action: newPatch(nodeaction.Cordon), Nodes: []string{"w0", "nobody", "w1"}})
	w.Clock.AfterFunc(30*time.Second, func() {
		gvk, _ := clusterapi.KindOf[corev1.Node]()
		if err := w.Cluster.Delete(t.Context(), gvk, clusterapi.Key("", "w0"), clusterapi.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	if err := w.RunUntil(mcptest.Epoch.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(w.Lines, "\n")
	for _, want := range []string{"node nobody is not there", "node w0 is gone", "node w1 is finished", "all nodes are finished"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%s: %s", want, text)
		}
	}
}

// An error is tried again for a time; a permanent one, a panic that lasts, and
// progress that is too large halt the run.
func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		name string
		step func(now time.Duration) (nodeaction.Step, error)
		want string // "": it is finished
		at   time.Duration
	}{
		{"passes", func(now time.Duration) (nodeaction.Step, error) {
			if now < 20*time.Minute {
				return nodeaction.Step{}, errors.New("busy")
			}
			return nodeaction.Step{}, nil
		}, "", 0},
		{"lasts", func(time.Duration) (nodeaction.Step, error) { return nodeaction.Step{}, errors.New("busy") }, "busy", 30 * time.Minute},
		{"permanent", func(time.Duration) (nodeaction.Step, error) {
			return nodeaction.Step{}, fmt.Errorf("step: %w", nodeaction.Permanent(errors.New("refused")))
		}, "step: refused", 0},
		{"panics", func(time.Duration) (nodeaction.Step, error) { panic("oh") }, "panic: oh", 30 * time.Minute},
		{"too much", func(time.Duration) (nodeaction.Step, error) {
			return nodeaction.Step{Progress: strings.Repeat("x", 4096+1)}, nil
		}, "the action's progress has 4097 bytes; at most 4096 can be recorded", 0},
		{"stalls", func(time.Duration) (nodeaction.Step, error) {
			return nodeaction.Step{After: time.Minute, Waiting: "Godot"}, nil
		}, "nothing has moved for 1h0m0s; it waits for Godot", time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := actiontest.New("x", workers("w0", "w1")...)
			a := newPatch(nodeaction.Cordon)
			a.step = func(string, string) (nodeaction.Step, error) { return tt.step(w.Clock.Now().Sub(mcptest.Epoch)) }
			w.Start(0, reconcile.Faults{}, nodeaction.Options{Action: a, Nodes: []string{"w0", "w1"}})
			if err := w.Play(3 * time.Hour); err != nil {
				t.Fatal(err)
			}
			if tt.want == "" {
				if !w.Done {
					t.Error(w.Last)
				}
				return
			}
			failed, ok := errors.AsType[*nodeaction.FailedError](w.Last)
			if !ok || failed.Err.Error() != tt.want || w.Now().Sub(mcptest.Epoch) < tt.at {
				t.Errorf("it halts with %v, want %s", w.Last, tt.want)
			}
			if record, _, err := nodeaction.RecordOf(w.NodeOf("w0"), "x"); err != nil || record.Failed != tt.want {
				t.Errorf("%+v, %v", record, err)
			}
			if _, begun, _ := nodeaction.RecordOf(w.NodeOf("w1"), "x"); begun {
				t.Error("the next node was begun")
			}
		})
	}
}

// Run ends when all is done, and when it halts.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.NewOpenShift(memory.Options{})
		for _, o := range workers("m0", "w0") {
			u, err := clusterapi.ToUnstructured(o)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Load(u); err != nil {
				t.Fatal(err)
			}
		}
		a := newPatch(nodeaction.Drain)
		fails := errors.New("no")
		o := nodeaction.Options{ID: "x", API: c, Action: a, Selector: labels.Everything(), Observe: func(clusterapi.Event) { panic("observer") },
			Hooks: rollout.Hooks{PreUpgrade: func(_ context.Context, node string) error {
				if node == "w0" {
					return fails
				}
				return nil
			}}}
		run := func() error {
			r, err := nodeaction.New(o)
			if err != nil {
				t.Fatal(err)
			}
			return r.Run(t.Context())
		}
		err := run()
		failed, ok := errors.AsType[*nodeaction.FailedError](err)
		if !ok || failed.Node != "w0" || failed.Phase != "PreUpgrade" || !errors.Is(err, fails) || err.Error() != "node w0: hook PreUpgrade failed: no" {
			t.Errorf("%v", err)
		}
		fails = nil
		if err := run(); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(map[string]int{"m0": 1, "w0": 1}, a.done); diff != "" {
			t.Error(diff)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r, err := nodeaction.New(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := nodeaction.Uninstall(t.Context(), c, ""); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"m0", "w0"} {
			n, err := clusterapi.Get[corev1.Node](t.Context(), c, clusterapi.Key("", name))
			if err != nil {
				t.Fatal(err)
			}
			for annotation := range n.Annotations {
				if strings.HasPrefix(annotation, clusterapi.AnnotationPrefix) {
					t.Errorf("node %s still has %s", name, annotation)
				}
			}
		}
		if _, err := clusterapi.Get[corev1.ConfigMap](t.Context(), c, clusterapi.Key("openshift-config", "clusterupdate-node-actions")); err == nil {
			t.Error("the ConfigMap is still there")
		}
	})
}

// As an updater of nodes, under a rollout with hooks: the action takes the place
// of the daemons.
func TestUpdater(t *testing.T) {
	for _, disruption := range []nodeaction.Disruption{nodeaction.None, nodeaction.Drain} {
		pool := mcptest.Pool("worker", "N")
		w := actiontest.New("x", append(workers("w0", "w1"), mcptest.Topology("HighlyAvailable"), &pool, actiontest.Pod("a", "w0"))...)
		a := newPatch(disruption)
		broken := disruption == nodeaction.Drain
		a.step = func(node, _ string) (nodeaction.Step, error) {
			if broken && node == "w0" {
				return nodeaction.Step{}, nodeaction.Permanent(errors.New("the disk is full"))
			}
			return nodeaction.Step{}, nil
		}
		var hooks []string
		hook := func(name string) func(context.Context, string) error {
			return func(_ context.Context, node string) error { hooks = append(hooks, name+" "+node); return nil }
		}
		r, err := rollout.New(rollout.Options{Mode: rollout.Drive, NodeUpdater: nodeaction.Updater(w.Cluster, a),
			Hooks: rollout.Hooks{PreCordon: hook("PreCordon"), PreUpgrade: hook("PreUpgrade"), PreUncordon: hook("PreUncordon"), PostUpgrade: hook("PostUpgrade")}})
		if err != nil {
			t.Fatal(err)
		}
		w.Virtual = reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: w.Cluster, Clock: w.Clock}, r.Process())
		if err := w.Play(30 * time.Minute); err != nil {
			t.Fatal(err)
		}
		if broken {
			if s := mcp.NodeStateOf(w.NodeOf("w0")); !s.Degraded() || s.Reason != "the disk is full" || !s.Unschedulable {
				t.Errorf("%+v", s)
			}
			broken = false
			if err := w.Play(30 * time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"w0", "w1"} {
			n := w.NodeOf(name)
			if s := mcp.NodeStateOf(n); !s.Done() || s.CurrentConfig != "N" || s.Unschedulable || n.Annotations["clusterupdate.github.io/progress.patch"] != "" {
				t.Errorf("%s: %+v", name, s)
			}
		}
		if diff := cmp.Diff(map[string]int{"w0": 1, "w1": 1}, a.done); diff != "" {
			t.Error(diff)
		}
		want := []string{"PreCordon w0", "PreUpgrade w0", "PreUncordon w0", "PostUpgrade w0", "PreCordon w1", "PreUpgrade w1", "PreUncordon w1", "PostUpgrade w1"}
		if disruption == nodeaction.None {
			want = []string{"PreUncordon w0", "PostUpgrade w0", "PreUncordon w1", "PostUpgrade w1"}
		}
		if diff := cmp.Diff(want, hooks); diff != "" {
			t.Errorf("%s: %s", disruption, diff)
		}
		p, err := clusterapi.Get[mcfgv1.MachineConfigPool](t.Context(), w.Cluster, clusterapi.Key("", "worker"))
		if err != nil || mcptest.ConditionOf(p.Status, mcfgv1.MachineConfigPoolUpdated).Status != corev1.ConditionTrue {
			t.Errorf("%s, %v", mcptest.Brief(p.Status), err)
		}
		w.Close()
	}
}
