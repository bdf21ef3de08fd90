// Package actiontest plays clusters whose nodes are acted on, in virtual time,
// and looks after each step whether what must hold does.
package actiontest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/mcp/internal/chaos"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
)

// World is a cluster in virtual time.
type World struct {
	*reconcile.Virtual
	Cluster *memory.Cluster
	Clock   *reconcile.Clock
	// CrashAt is the call of the cluster's API, counted from 1, at which the program
	// crashes, before it took effect or CrashAfter; 0: none.
	CrashAt    int
	CrashAfter bool
	// Calls counts them.
	Calls int
	// Lines are what happened, with the time since the beginning.
	Lines []string

	cursor   clusterapi.Cursor
	judge    *chaos.Judge
	errands  []errand
	finished map[string]string // by node: what is recorded of the action that was done
	wrong    []error
	own      bool // the world's own call is under way
	dead     bool // the program crashes
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
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "rs", Controller: new(true)}}
	p.Spec.NodeName = node
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return p
}

// New returns a world with objects, in which nothing happens yet.
func New(objs ...any) *World {
	w := &World{Clock: reconcile.NewClock(mcptest.Epoch), finished: map[string]string{}}
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
	w.judge = chaos.NewJudge(w.Clock.Now, w.Cluster)
	return w
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

func (w *World) look() error {
	for c, ok := w.cursor.Next(); ok; c, ok = w.cursor.Next() {
		if err := w.judge.Observe(c); err != nil {
			return err
		}
		if c.New == nil || c.New.Kind().Kind != "Node" {
			continue
		}
		n, err := clusterapi.As[corev1.Node](c.New)
		if err != nil {
			return err
		}
		for name, progress := range n.Annotations {
			if !strings.HasPrefix(name, clusterapi.AnnotationPrefix+"progress.") {
				continue
			}
			if old := w.finished[n.Name]; old != "" && old != progress {
				return fmt.Errorf("node %s was finished and is touched again: %s", n.Name, progress)
			}
			if strings.Contains(progress, `"done":`) {
				w.finished[n.Name] = progress
			}
		}
	}
	return errors.Join(w.wrong...)
}
