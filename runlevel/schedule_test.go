package runlevel

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

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

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
