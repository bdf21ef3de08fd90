// Package actiontest plays clusters whose nodes are acted on, in virtual time,
// and looks after each step whether what must hold does.
package actiontest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
	"github.com/clusterupdate/clusterupdate/mcp/rollout/nodeaction"
)

// World is a cluster in virtual time.
type World struct {
	*reconcile.Virtual
	Cluster *memory.Cluster
	Clock   *reconcile.Clock
	// Parallel is how many compute nodes may be out of service at a time.
	Parallel int
	// ID is that of the run.
	ID string
	// FailHook returns the error of a hook; nil: none fails.
	FailHook func(hook rollout.Hook, node string) error
	// CrashAt is the call of the cluster's API, counted from 1, at which the program
	// crashes, before it took effect or CrashAfter; 0: none.
	CrashAt    int
	CrashAfter bool
	// Calls counts them.
	Calls int
	// Lines are what happened, with the time since the beginning.
	Lines []string
	// Last is the last failure that was told, nil once all is done.
	Last error
	// Done: all nodes are finished.
	Done bool

	cursor   clusterapi.Cursor
	down     map[string]bool
	finished map[string]string
	hooks    map[string][]rollout.Hook
	wrong    []error
	own      bool      // the world's own call is under way
	dead     bool      // the program crashes
	failed   time.Time // when Last was told
}

// Node returns a Ready node of a role.
func Node(name, role string, changes ...mcptest.Change) *corev1.Node {
	n := mcptest.Node(name, role, "O", changes...)
	n.Status.NodeInfo.BootID = name + "-boot-1"
	n.Status.NodeInfo.KubeletVersion = "v1.30.7"
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}
	return &n
}

// Pod returns a pod of a ReplicaSet that runs on a node.
func Pod(name, node string) *corev1.Pod {
	p := &corev1.Pod{}
	p.Namespace, p.Name = "app", name
	p.Labels = map[string]string{"app": "web"}
	yes := true
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "rs", Controller: &yes}}
	p.Spec.NodeName = node
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return p
}

// New returns a world with objects, in which nothing happens yet.
func New(id string, objs ...any) *World {
	w := &World{ID: id, Clock: reconcile.NewClock(mcptest.Epoch), Parallel: 1,
		down: map[string]bool{}, finished: map[string]string{}, hooks: map[string][]rollout.Hook{}}
	w.Cluster = memory.NewOpenShift(memory.Options{Clock: w.Clock, Intercept: w.intercept})
	for _, o := range objs {
		u, err := clusterapi.ToUnstructured(o)
		if err == nil {
			err = w.Cluster.Load(u)
		}
		if err != nil {
			panic(err)
		}
	}
	w.cursor = w.Cluster.Follow()
	return w
}

// Start begins a run, whose ID, hooks and observer are the world's. Called again
// it stops the run and begins another one of the same ID.
func (w *World) Start(seed uint64, f reconcile.Faults, o nodeaction.Options) {
	o.ID, o.Observe = w.ID, w.observe
	o.Hooks = w.Hooks()
	r, err := nodeaction.New(o)
	if err != nil {
		panic(err)
	}
	order := reconcile.InOrder
	if seed%2 == 1 {
		order = reconcile.Random
	}
	if w.Virtual != nil {
		w.Virtual.Close()
	}
	w.Last, w.Done = nil, false
	w.Virtual = reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: w.Cluster, Clock: w.Clock, Seed: seed, Order: order, Faults: f}, r.Process())
}

// Say adds a line.
func (w *World) Say(format string, a ...any) {
	line := fmt.Sprintf("%8s  %s", w.Clock.Now().Sub(mcptest.Epoch).Truncate(time.Second), fmt.Sprintf(format, a...))
	w.Lines = append(w.Lines, line)
}

var errCrash = errors.New("the program crashes")

func (w *World) intercept(ctx context.Context, _ memory.Call, do func(context.Context) error) error {
	if w.own || w.Virtual == nil {
		return do(ctx)
	}
	if w.dead {
		return errCrash
	}
	w.Calls++
	if w.Calls != w.CrashAt {
		return do(ctx)
	}
	w.dead = true
	if w.CrashAfter {
		_ = do(ctx)
	}
	return errCrash
}

// alone makes a call of the world's own.
func (w *World) alone(call func()) {
	defer func(was bool) { w.own = was }(w.own)
	w.own = true
	call()
}

func (w *World) observe(e clusterapi.Event) {
	w.Say("%-11s %s", e.Type, e.Message)
	switch e.Type {
	case nodeaction.EventFailed:
		w.Last, w.failed = e.Err, w.Clock.Now()
	case nodeaction.EventDone:
		w.Done = true
	}
}

// Hooks are hooks that check their order and what they find.
func (w *World) Hooks() rollout.Hooks {
	hook := func(name rollout.Hook) func(context.Context, string) error {
		return func(ctx context.Context, node string) error { return w.hook(ctx, name, node) }
	}
	return rollout.Hooks{PreCordon: hook(rollout.HookPreCordon), PreUpgrade: hook(rollout.HookPreUpgrade),
		PreUncordon: hook(rollout.HookPreUncordon), PostUpgrade: hook(rollout.HookPostUpgrade)}
}

var hookOrder = []rollout.Hook{rollout.HookPreCordon, rollout.HookPreUpgrade, rollout.HookPreUncordon, rollout.HookPostUpgrade}

func (w *World) hook(ctx context.Context, name rollout.Hook, node string) error {
	w.Say("hook %s of node %s", name, node)
	ran := w.hooks[node]
	if at := slices.Index(hookOrder, name); len(ran) > 0 && ran[len(ran)-1] != name && (at == 0 || ran[len(ran)-1] != hookOrder[at-1]) || len(ran) == 0 && at > 0 {
		w.wrong = append(w.wrong, fmt.Errorf("hook %s of node %s came after %v", name, node, ran))
	}
	w.hooks[node] = append(ran, name)
	if w.finished[node] != "" {
		w.wrong = append(w.wrong, fmt.Errorf("hook %s of node %s, which is finished", name, node))
	}
	if w.FailHook != nil {
		return w.FailHook(name, node)
	}
	return reconcile.Sleep(ctx, 5*time.Second)
}

// Ran are the hooks that ran for a node.
func (w *World) Ran(node string) []rollout.Hook { return w.hooks[node] }

// SetNode changes the status of a node, as its kubelet and the node controller do.
func (w *World) SetNode(name string, ready bool, boot, kubelet string) {
	w.alone(func() {
		_, err := clusterapi.Modify(context.Background(), w.Cluster, clusterapi.Key("", name), clusterapi.ModifyOptions{Status: true}, func(n *corev1.Node) error {
			is := corev1.ConditionUnknown
			if ready {
				is = corev1.ConditionTrue
				n.Status.NodeInfo.BootID = boot
				if kubelet != "" {
					n.Status.NodeInfo.KubeletVersion = kubelet
				}
			}
			mcptest.Condition(corev1.NodeReady, is)(n)
			return nil
		})
		if err != nil {
			panic(err)
		}
	})
}

// NodeOf returns a node.
func (w *World) NodeOf(name string) (n *corev1.Node) {
	w.alone(func() {
		var err error
		n, err = clusterapi.Get[corev1.Node](context.Background(), w.Cluster, clusterapi.Key("", name))
		if err != nil {
			panic(err)
		}
	})
	return n
}

// Wrong reports something that must not be.
func (w *World) Wrong(err error) { w.wrong = append(w.wrong, err) }

// Play lets time pass until the run is done, or a minute after it has halted, or a
// limit is over, and
// returns what must not have been.
func (w *World) Play(limit time.Duration) error {
	end := w.Now().Add(limit)
	for !w.Done {
		at, ok := w.Next()
		if w.Last != nil && at.After(w.failed.Add(time.Minute)) {
			break
		}
		if !ok || at.After(end) {
			break
		}
		if _, err := w.Step(); err != nil {
			return err
		}
		if w.dead {
			w.dead = false
			w.Crash("node action " + w.ID)
		}
		if err := w.look(); err != nil {
			return fmt.Errorf("after %s: %w", w.Now().Sub(mcptest.Epoch), err)
		}
	}
	return w.look()
}

func (w *World) look() error {
	for c, ok := w.cursor.Next(); ok; c, ok = w.cursor.Next() {
		if c.New == nil || c.New.Kind().Kind != "Node" {
			continue
		}
		n, err := clusterapi.As[corev1.Node](c.New)
		if err != nil {
			return err
		}
		record := n.Annotations[nodeaction.Annotation(w.ID)]
		if old := w.finished[n.Name]; old != "" && (old != record || n.Spec.Unschedulable) {
			return fmt.Errorf("node %s was finished and is touched again: %s, unschedulable %v", n.Name, record, n.Spec.Unschedulable)
		}
		if strings.Contains(record, `"phase":"Done"`) {
			w.finished[n.Name] = record
		}
		ready, _ := nodeaction.Started(n, "")
		delete(w.down, n.Name)
		if !ready || n.Spec.Unschedulable {
			w.down[n.Name] = true
		}
		control, compute := 0, 0
		for name := range w.down {
			if strings.HasPrefix(name, "m") {
				control++
			} else {
				compute++
			}
		}
		if control > 1 || compute > w.Parallel || control > 0 && compute > 0 {
			return fmt.Errorf("out of service at a time: %v", slices.Sorted(maps.Keys(w.down)))
		}
	}
	return errors.Join(w.wrong...)
}
