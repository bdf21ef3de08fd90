package runlevel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
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

func drain(s *runlevel.Schedule) []int {
	var out []int
	for {
		n, ok := s.Next()
		if !ok {
			return out
		}
		out = append(out, n)
	}
}

func TestScheduleHandsOutLowestReadyIndex(t *testing.T) {
	// 4 → 0 → 1, 3 → 2
	s := runlevel.NewSchedule(graphOf(t, [][]int{{4}, {0}, {3}, nil, nil}))
	if diff := cmp.Diff([]int{3, 4}, drain(s)); diff != "" {
		t.Fatal(diff)
	}
	s.Done(4)
	s.Done(3)
	if diff := cmp.Diff([]int{0, 2}, drain(s)); diff != "" {
		t.Fatal(diff)
	}
	if s.Running() != 2 || s.Finished() {
		t.Fatalf("running %d, finished %v", s.Running(), s.Finished())
	}
	s.Done(2)
	s.Done(0)
	if diff := cmp.Diff([]int{1}, drain(s)); diff != "" {
		t.Fatal(diff)
	}
	s.Done(1)
	if !s.Finished() || s.Result(nil) != nil {
		t.Fatalf("not finished: %v", s.Result(nil))
	}
}

// Whatever else is ready, a node of a lower index that becomes ready comes next.
func TestScheduleHandsOutWhatBecomesReady(t *testing.T) {
	for n := 2; n < 40; n++ {
		in := make([][]int, n+1)
		in[0], in[1] = []int{2}, []int{2} // 2 → 0, 2 → 1; all others are ready
		s := runlevel.NewSchedule(graphOf(t, in))
		first, _ := s.Next()
		s.Done(first)
		want := []int{0, 1}
		for i := 3; i <= n; i++ {
			want = append(want, i)
		}
		if diff := cmp.Diff(want, drain(s)); first != 2 || diff != "" {
			t.Fatalf("%d nodes, %d first: %s", n, first, diff)
		}
	}
}

func TestScheduleErrorsComeInIndexOrder(t *testing.T) {
	// A, B, C side by side, then D
	errA, errC := errors.New("a"), errors.New("c")
	s := runlevel.NewSchedule(graphOf(t, [][]int{nil, nil, nil, {0, 1, 2}}))
	drain(s)
	s.Fail(2, errC)
	s.Done(1)
	s.Fail(0, errA)
	if n, ok := s.Next(); ok {
		t.Fatalf("node %d runs behind failed ones", n)
	}
	if !s.Finished() {
		t.Fatal("not finished")
	}
	got := s.Result(context.Canceled)
	if len(got) != 2 || got[0] != errA || got[1] != errC {
		t.Fatalf("errors %v", got)
	}
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
			s := runlevel.NewSchedule(graphOf(t, c.in, c.empty...))
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

func TestScheduleRefusesMisuse(t *testing.T) {
	for name, f := range map[string]func(*runlevel.Schedule){
		"done before next":   func(s *runlevel.Schedule) { s.Done(0) },
		"done twice":         func(s *runlevel.Schedule) { s.Next(); s.Done(0); s.Done(0) },
		"fail without error": func(s *runlevel.Schedule) { s.Next(); s.Fail(0, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Fatal("accepted")
				}
			}()
			f(runlevel.NewSchedule(graphOf(t, [][]int{nil})))
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
		s := runlevel.NewSchedule(g)
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
