package rollout_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
)

// While a node is drained a scheduler that is late binds pods to it, an administrator
// uncordons it again and again, and a budget refuses for a while. The drain is complete
// only when the node is cordoned and none of the pods runs there that it had to evict.
func TestCompleteDrain(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		clock := reconcile.NewClock(mcptest.Epoch)
		c := drainCluster(t, memory.Options{Clock: clock})
		load(t, c, app("web-0", "w0"), budget(0))
		cursor := c.Follow()
		var cordoned time.Time // zero: it is schedulable
		pods := map[string]bool{"web-0": true}
		var complete []string
		look := func() {
			for change, ok := cursor.Next(); ok; change, ok = cursor.Next() {
				switch name := change.Object().Name(); change.Object().Kind().Kind {
				case "Pod":
					pods[name] = change.New != nil
				case "Node":
					n := mcp.NodeStateOf(checktest.Get(clusterapi.As[corev1.Node](change.New))(t))
					if !n.Unschedulable {
						cordoned = time.Time{}
					} else if cordoned.IsZero() {
						cordoned = clock.Now()
					}
					if n.LastAppliedDrain != "drain-N" || len(complete) > 0 {
						continue
					}
					complete = append(complete, fmt.Sprint("cordoned ", n.Unschedulable))
					for pod, runs := range pods {
						if runs {
							complete = append(complete, pod+" runs")
						}
					}
				}
			}
		}
		at := func(from, to int, f func()) {
			clock.AfterFunc(time.Duration(from+r.IntN(to-from))*time.Millisecond, func() {
				look()
				if len(complete) == 0 {
					f()
				}
			})
		}
		for i := range 20 {
			at(0, 90_000, func() {
				if cordoned.IsZero() || clock.Now().Sub(cordoned) < 2*time.Second {
					load(t, c, app(fmt.Sprint("late-", i), "w0", func(p *corev1.Pod) { p.Labels = nil }))
				}
			})
		}
		for range r.IntN(4) {
			at(5_000, 90_000, func() { change1(t, c, "w0", func(n *corev1.Node) { n.Spec.Unschedulable = false }) })
		}
		at(5_000, 60_000, func() {
			checktest.Get(clusterapi.Modify(t.Context(), c, clusterapi.Key("app", "web-pdb"), clusterapi.ModifyOptions{Status: true},
				func(b *policyv1.PodDisruptionBudget) error { b.Status = budget(1).Status; return nil }))(t)
		})
		v := virtually(t, c, clock, reconcile.Faults{}, func(clusterapi.Event) {})
		for clock.Now().Before(mcptest.Epoch.Add(20*time.Minute)) && len(complete) == 0 {
			if _, ok := v.Next(); !ok {
				break
			}
			checktest.Get(v.Step())(t)
			look()
		}
		checktest.SameIn(t, fmt.Sprint("seed ", seed), []string{"cordoned true"}, complete)
	}
}
