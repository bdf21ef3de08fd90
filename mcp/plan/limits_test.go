package plan_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// alone is a world without nodes that do anything: a memory cluster and runners.
func alone(t testing.TB, objects ...any) *world {
	w := &world{clock: reconcile.NewClock(mcptest.Epoch)}
	c := memory.NewOpenShift(memory.Options{Clock: w.clock})
	for _, o := range append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "openshift-config"}}) {
		checktest.OK(t, c.Load(must(clusterapi.ToUnstructured(o))))
	}
	w.memory = c
	w.Virtual = reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: c, Clock: w.clock})
	return w
}

func TestLimits(t *testing.T) {
	long := strings.Repeat("x", 8<<10+1)
	manuals := func(size int) plan.Plan {
		p := custom("large")
		for i := 0; i < size; i += 50 << 10 {
			p.Steps = append(p.Steps, plan.Step{ID: fmt.Sprint("s", i), Kind: plan.Manual, Args: plan.Args{Text: strings.Repeat("x", 50<<10)}})
		}
		return p
	}
	limittest.Walk(t, []limittest.Case{
		{Limit: "size of a plan", Default: 921600, Bytes: 64 << 20, Run: func(t *testing.T) int64 {
			if _, err := plan.Decode(make([]byte, 921600+1)); !isSize(err, "plan") {
				t.Error(err)
			}
			if _, err := plan.New(plan.Options{Plan: manuals(1 << 20)}); !isSize(err, "plan") {
				t.Error(err)
			}
			return 0
		}},
		{Limit: "nodes in ranges", Default: 100_000, Bytes: 64 << 20, Run: func(t *testing.T) int64 {
			for nodes, passes := range map[string]bool{"w-{0-99998}": true, "w-{0-99999}": false, "w-{5,0-9999999999}": false} {
				_, err := plan.Decode(fmt.Appendf(nil, `{"version": 1, "id": "p", "kind": "Custom", "steps": [{"id": "a", "kind": "Gate",
					"args": {"action": "health", "nodes": ["x-{1-1}", %q]}}]}`, nodes))
				size := new(plan.LimitError)
				if passes && err != nil || !passes && (!errors.As(err, &size) || size.Max != 100_000) {
					t.Errorf("%s: %v", nodes, err)
				}
			}
			return 0
		}},
		{Limit: "steps that repeat", Default: 100_000, Bytes: 256 << 20, Run: func(t *testing.T) int64 {
			for nodes, passes := range map[string]bool{"w-{0-49999}": true, "w-{0-50000}": false} {
				_, err := plan.Decode(fmt.Appendf(nil, `{"version": 1, "id": "p", "kind": "Custom", "steps": [{"each": [%q], "steps": [
					{"id": "a-{node}", "kind": "Cordon", "args": {"node": "{node}"}}, {"id": "b-{node}", "kind": "Uncordon", "args": {"node": "{node}"}}]}]}`, nodes))
				size := new(plan.LimitError)
				if passes && err != nil || !passes && (!errors.As(err, &size) || size.Max != 100_000) {
					t.Errorf("%s: %v", nodes, err)
				}
			}
			return 0
		}},
		{Limit: "size of a record", Default: 921600, Bytes: 256 << 20, Run: func(t *testing.T) int64 {
			p := manuals(850 << 10)
			for i := range 20 { // what fails is recorded, and is cut
				s := hook(fmt.Sprint("h", i))
				s.OnFailure = "Continue"
				p.Steps = append([]plan.Step{s}, p.Steps...)
			}
			w := alone(t)
			defer w.Close()
			w.start("runner", plan.Options{Plan: p, Actions: hookIs(func(context.Context, plan.Call) (plan.Outcome, error) {
				return plan.Outcome{}, errors.New(strings.Repeat("x", 20<<10))
			})})
			checktest.OK(t, w.RunUntil(w.Now().Add(5*time.Minute)))
			last := w.events[len(w.events)-1]
			if last.Type != plan.EventError || !isSize(last.Err, "record") {
				t.Errorf("%s: %v", last.Type, last.Err)
			}
			return 0
		}},
		{Limit: "text of an event", Default: 8 << 10, Bytes: 64 << 20, Run: func(t *testing.T) int64 {
			w := alone(t)
			defer w.Close()
			w.start("runner", plan.Options{Plan: custom("p", hook("h")), Actions: hookIs(func(context.Context, plan.Call) (plan.Outcome, error) {
				return plan.Outcome{}, errors.New(long)
			})})
			checktest.OK(t, w.RunUntil(w.Now().Add(time.Minute)))
			cut := 0
			for _, e := range w.events {
				if e.Type == plan.EventStepFailed && len(e.Message) <= 8<<10 && strings.HasSuffix(e.Message, " more bytes)") {
					cut++
				}
			}
			if cut != 1 {
				t.Errorf("%d events were cut", cut)
			}
			return 0
		}},
		{Limit: "items of a report's list", Default: 100, Bytes: 256 << 20, Run: func(t *testing.T) int64 {
			p := custom("p")
			var objects []any
			for i := range 103 {
				n := mcptest.Worker(fmt.Sprint("w", i))
				objects = append(objects, &n)
				p.Steps = append(p.Steps, plan.Step{ID: fmt.Sprint("c", i), Kind: plan.Cordon, Args: plan.Args{Node: n.Name}})
			}
			p.Steps = append(p.Steps, manual("wait"))
			w := alone(t, objects...)
			defer w.Close()
			w.start("runner", plan.Options{Plan: p})
			checktest.OK(t, w.RunUntil(w.Now().Add(time.Minute)))
			w.Stop("runner")
			r := w.start("stopper", plan.Options{Plan: p, Claim: plan.TakeOver, Mode: plan.Hold})
			checktest.OK(t, w.RunUntil(w.Now().Add(time.Minute)))
			if got := r.Progress().Report; len(got.Left) != 100 || got.More != 3 {
				t.Errorf("%d items and %d more", len(got.Left), got.More)
			}
			return 0
		}},
	})
}

func isSize(err error, what string) bool {
	size := new(plan.LimitError)
	return errors.As(err, &size) && size.Where == what && size.Max == 900<<10
}
