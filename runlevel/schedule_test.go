package runlevel

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/manifest"
)

// graphOf makes a graph of nodes with one task each, given each node's
// inputs; nodes listed in empty have none.
func graphOf(t testing.TB, in [][]int, empty ...int) *manifest.Graph {
	g := &manifest.Graph{Nodes: make([]manifest.Node, len(in))}
	for i, ins := range in {
		g.Nodes[i].In = ins
		for _, j := range ins {
			g.Nodes[j].Out = append(g.Nodes[j].Out, i)
		}
		if !slices.Contains(empty, i) {
			g.Nodes[i].Tasks = configMaps(t, fmt.Sprintf("n%d", i))
		}
	}
	return g
}

func TestScheduleIncomplete(t *testing.T) {
	for name, c := range map[string]struct {
		in    [][]int
		empty []int
		done  []int
		ctx   error
		want  []string
	}{
		"nothing run":           {in: [][]int{nil, {0}}, ctx: context.Canceled, want: []string{`2 incomplete task nodes, beginning with configmap "ns/n0" (1 of 1)`, "context canceled"}},
		"empty nodes count":     {in: [][]int{nil, {0}, {1}}, empty: []int{1}, done: []int{0}, ctx: context.DeadlineExceeded, want: []string{`2 incomplete task nodes, beginning with configmap "ns/n2" (1 of 1)`, "context deadline exceeded"}},
		"only empty nodes left": {in: [][]int{nil, {0}}, empty: []int{1}, done: []int{0}, ctx: context.Canceled},
		"all done":              {in: [][]int{nil}, done: []int{0}, ctx: context.Canceled},
		"cycle, no context":     {in: [][]int{{1}, {0}}, want: []string{`2 incomplete task nodes, beginning with configmap "ns/n0" (1 of 1)`}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSchedule(graphOf(t, c.in, c.empty...))
			for _, n := range c.done {
				if got, ok := s.Next(); !ok || got != n {
					t.Fatalf("next is %d, %v", got, ok)
				}
				s.Done(n)
			}
			var got []string
			for _, err := range s.Result(c.ctx) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

// Whatever the graph, the failures and the order in which nodes finish: the
// nodes that run are those all of whose ancestors succeeded, none before its
// inputs, each once, and errors come in index order.
func TestScheduleProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(0, 25).Draw(rt, "nodes")
		rank := rapid.Permutation(indices(n)).Draw(rt, "rank") // index order is not execution order
		in := make([][]int, n)
		for i := range n {
			for j := range n {
				if rank[j] < rank[i] && rapid.IntRange(0, 3).Draw(rt, "edge") == 0 {
					in[i] = append(in[i], j)
				}
			}
		}
		fails := make([]bool, n)
		for i := range n {
			fails[i] = rapid.IntRange(0, 4).Draw(rt, "fails") == 0
		}
		workers := rapid.IntRange(1, 5).Draw(rt, "workers")

		g := &manifest.Graph{Nodes: make([]manifest.Node, n)}
		for i := range n {
			g.Nodes[i].In = in[i]
		}
		s := newSchedule(g)
		ran := make(map[int]bool)
		succeeded := make(map[int]bool)
		var active []int
		for {
			for len(active) < workers {
				node, ok := s.Next()
				if !ok {
					break
				}
				if ran[node] {
					rt.Fatalf("node %d runs twice", node)
				}
				for _, j := range in[node] {
					if !succeeded[j] {
						rt.Fatalf("node %d runs before its input %d", node, j)
					}
				}
				for j := range node {
					if !ran[j] && !slices.ContainsFunc(in[j], func(k int) bool { return !succeeded[k] }) {
						rt.Fatalf("node %d runs before %d, which is ready", node, j)
					}
				}
				ran[node] = true
				active = append(active, node)
			}
			if len(active) == 0 {
				break
			}
			i := rapid.IntRange(0, len(active)-1).Draw(rt, "finishes")
			node := active[i]
			active = slices.Delete(active, i, i+1)
			if fails[node] {
				s.Fail(node, fmt.Errorf("%d", node))
			} else {
				s.Done(node)
				succeeded[node] = true
			}
		}
		if !s.Finished() {
			rt.Fatal("not finished")
		}
		var blocked func(int) bool
		blocked = func(i int) bool {
			return slices.ContainsFunc(in[i], func(j int) bool { return fails[j] || blocked(j) })
		}
		var want, got []string
		for i := range n {
			if ran[i] == blocked(i) {
				rt.Fatalf("node %d: ran %v, blocked %v", i, ran[i], blocked(i))
			}
			if ran[i] && fails[i] {
				want = append(want, fmt.Sprint(i))
			}
		}
		for _, err := range s.Errors() {
			got = append(got, err.Error())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatal(diff)
		}
	})
}

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
