package actiontest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/internal/action"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// uncordons plays an administrator who uncordons nodes in the first hours, whereupon
// pods return to those that are up.
func (w *World) uncordons(r *rand.Rand) {
	for i := range r.IntN(5) {
		at := w.Clock.Now().Add(time.Duration(r.IntN(90)) * time.Minute)
		w.errands = append(w.errands, errand{at, func() { w.uncordon(r, fmt.Sprint("back-", i)) }})
	}
}

// errand is what somebody does to the cluster at a time.
type errand struct {
	at time.Time
	do func()
}

// runErrands does what is due.
func (w *World) runErrands() {
	for i := range w.errands {
		e := &w.errands[i]
		if e.do != nil && !w.Clock.Now().Before(e.at) {
			e.do()
			e.do = nil
		}
	}
}

func (w *World) uncordon(r *rand.Rand, pod string) {
	w.alone(func() {
		nodes := must(clusterapi.List[corev1.Node](context.Background(), w.Cluster, clusterapi.ListOptions{}))
		n := nodes[r.IntN(len(nodes))]
		if !n.Spec.Unschedulable {
			return
		}
		must(clusterapi.Modify(context.Background(), w.Cluster, clusterapi.Key("", n.Name), clusterapi.ModifyOptions{},
			func(n *corev1.Node) error {
				n.Spec.Unschedulable = false
				return nil
			}))
		if ready, _ := action.Started(&n, ""); ready {
			if err := w.Cluster.Load(must(clusterapi.ToUnstructured(Pod(pod, n.Name)))); err != nil {
				panic(err)
			}
		}
	})
}

// guarded is an action that must find its node cordoned and without pods that a drain
// evicts, if its plan cordons and drains the node.
type guarded struct {
	action.Action
	w    *World
	plan plan.Plan
}

func (g guarded) Step(ctx context.Context, n *corev1.Node, progress string) (action.Step, error) {
	ready, _ := action.Started(n, "")
	for _, s := range g.plan.Steps {
		if s.Args.Node == n.Name && (s.Kind == plan.Cordon || s.Kind == plan.Drain) {
			g.w.judge.Act(n.Name, s.Kind == plan.Drain && ready)
		}
	}
	return g.Action.Step(ctx, n, progress)
}

// Needed implements [action.Checker] for actions that do.
func (g guarded) Needed(ctx context.Context, n *corev1.Node) (bool, error) {
	if c, ok := g.Action.(action.Checker); ok {
		return c.Needed(ctx, n)
	}
	return true, nil
}

func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}
