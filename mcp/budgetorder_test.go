package mcp_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
)

// budgetWorld has four workers of one zone and one of another: a is blocked, b takes
// two waves, c one, d none.
func budgetWorld() (mcp.Objects, mcp.DrainView) {
	objs := mcp.Objects{Pools: mcptest.Pools(mcptest.Pool("worker", "N", mcptest.AtMost(2)))}
	for i, name := range []string{"a", "b", "c", "d"} {
		objs.Nodes = append(objs.Nodes, mcptest.Worker(name, mcptest.Zone("z1"), mcptest.Age(10-i)))
	}
	objs.Nodes = append(objs.Nodes, mcptest.Worker("e", mcptest.Zone("z2"), mcptest.Age(20)))
	v := drainView(mcp.DrainObjects{
		Pods: []*corev1.Pod{
			drainedPod("db", "a", "db"), drainedPod("x0", "b", "x"), drainedPod("x1", "b", "x"), drainedPod("y0", "c", "y"),
		},
		Budgets: []*policyv1.PodDisruptionBudget{drainBudget("db", "db", 1, 1, 1), drainBudget("x", "x", 2, 1, 2)},
	})
	return objs, v
}

func TestOrderBudgets(t *testing.T) {
	objs, v := budgetWorld()
	asked := 0
	budgets := func() mcp.DrainView { asked++; return v }
	for _, c := range []struct {
		name  string
		order mcp.Order
		limit int
		want  string
	}{
		{"as otherwise", mcp.Order{}, 2, "a b"},
		{"by budgets", mcp.Order{Budgets: budgets}, 2, "d c"},
		{"all of the zone", mcp.Order{Budgets: budgets}, 4, "d c b a"},
		{"the next zone follows", mcp.Order{Budgets: budgets}, 5, "d c b a e"},
		{"a small window", mcp.Order{Budgets: budgets, BudgetWindow: 2}, 4, "b a c d"},
		{"the last stay last", mcp.Order{Budgets: budgets, Last: []string{"d"}}, 5, "c b a e d"},
		{"those of the window that go last take no place of it", mcp.Order{Budgets: budgets, BudgetWindow: 2, Last: []string{"a"}}, 3, "c b d"},
	} {
		mcptest.AtMost(c.limit)(&objs.Pools[0])
		asked = 0
		sel := mcp.NewState(objs, mcp.Options{Order: c.order}).Candidates("worker")
		if got := strings.Join(sel.Nodes, " "); got != c.want || sel.Capacity != c.limit {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if want := min(len(c.order.Last)+1, 1); c.order.Budgets != nil && asked != want {
			t.Errorf("%s: asked %d times", c.name, asked)
		}
	}
	// A node that is held goes first all the same.
	mcptest.State(mcp.StateDegraded)(&objs.Nodes[1])
	mcptest.Desired("M")(&objs.Nodes[1])
	mcptest.AtMost(2)(&objs.Pools[0])
	s := mcp.NewState(objs, mcp.Options{Order: mcp.Order{Budgets: budgets}})
	if sel := s.Candidates("worker"); !slices.Equal(sel.Nodes, []string{"b", "d"}) {
		t.Error(sel.Nodes)
	}
	if v := s.Explain("worker", "a"); v.Kind != "NoCapacity" {
		t.Errorf("%+v", v)
	}
}

// Budgets permute, and change nothing else.
func TestOrderBudgetsPermutes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objs := mcp.Objects{Pools: mcptest.Pools(mcptest.Pool("worker", "N"))}
		var o mcp.DrainObjects
		for i := range rapid.IntRange(1, 8).Draw(t, "nodes") {
			n := mcptest.Worker(fmt.Sprint("n", i), mcptest.Zone(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "zone")))
			objs.Nodes = append(objs.Nodes, n)
			for j := range rapid.IntRange(0, 3).Draw(t, "pods") {
				o.Pods = append(o.Pods, drainedPod(fmt.Sprint("p", i, j), n.Name, rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "app")))
			}
		}
		o.Budgets = []*policyv1.PodDisruptionBudget{drainBudget("x", "x", 9, 8, 9), drainBudget("y", "y", 9, 9, 9)}
		v := drainView(o)
		order := func(limit int, by mcp.Order) (mcp.Selection, []string) {
			mcptest.AtMost(limit)(&objs.Pools[0])
			sel := mcp.NewState(objs, mcp.Options{Order: by}).Candidates("worker")
			sorted := slices.Sorted(slices.Values(sel.Nodes))
			return sel, sorted
		}
		by := mcp.Order{Budgets: func() mcp.DrainView { return v }, BudgetWindow: rapid.IntRange(0, 4).Draw(t, "window")}
		limit := rapid.IntRange(1, 9).Draw(t, "limit")
		all, allSorted := order(9, by)
		_, plainSorted := order(9, mcp.Order{})
		same(t, "eligible", plainSorted, allSorted)
		some, _ := order(limit, by)
		plain, _ := order(limit, mcp.Order{})
		same(t, "capacity", plain.Capacity, some.Capacity)
		same(t, "a prefix", all.Nodes[:len(some.Nodes)], some.Nodes)
		same(t, "how many", len(plain.Nodes), len(some.Nodes))
	})
}

func BenchmarkOrderBudgets(b *testing.B) {
	v := mcp.NewDrainView(drainObjects(100))
	for _, n := range sizes {
		s := mcp.NewState(bigPool(n), mcp.Options{Order: mcp.Order{Budgets: func() mcp.DrainView { return v }}})
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if sel := s.Candidates("worker"); len(sel.Nodes) == 0 {
					b.Fatal(sel)
				}
			}
		})
	}
}
