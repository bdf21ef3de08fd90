package graphdata

import (
	"slices"

	"github.com/clusterupdate/clusterupdate/graph/internal/scc"
)

// checkCycles finds where updates lead back. An update to a higher version never
// does by itself, so there is nothing to look for where all are.
func (b *builder) checkCycles() error {
	down := false
	for t := range b.in {
		n := len(b.in[t])
		down = down || n > 0 && b.in[t][n-1] >= int32(t)
	}
	if !down {
		return nil
	}
	component := scc.Components(b.in)
	for t := range b.in {
		at := slices.IndexFunc(b.in[t], func(f int32) bool { return f >= int32(t) && component[f] == component[t] })
		if at < 0 {
			continue
		}
		if !b.opts.DropCycles {
			e := &CycleError{Arch: b.nodes[t].build}
			for _, i := range cycle(b.in, b.in[t][at], int32(t), component) {
				e.Versions = append(e.Versions, b.nodes[i].version)
			}
			return e
		}
		b.in[t] = slices.DeleteFunc(b.in[t], func(f int32) bool {
			if f < int32(t) || component[f] != component[t] {
				return false
			}
			b.reasons.cycles[[2]string{b.nodes[f].version, b.nodes[t].version}] = true
			b.problem(b.nodes[f].version, "", ruleCycle, "the update to %s is left out: it closes a cycle", b.nodes[t].version)
			return true
		})
	}
	return nil
}

// cycle returns the nodes of the shortest way from the end of an edge within a
// component back to its beginning. in are the predecessors of each node.
func cycle(in [][]int32, from, to int32, component []int32) (nodes []int32) {
	next := map[int32]int32{from: from} // from each node towards from
	for queue := []int32{from}; len(queue) > 0; queue = queue[1:] {
		for _, f := range in[queue[0]] {
			if _, seen := next[f]; !seen && component[f] == component[from] {
				next[f] = queue[0]
				queue = append(queue, f)
			}
		}
	}
	for at := to; ; at = next[at] {
		nodes = append(nodes, at)
		if at == from {
			return nodes
		}
	}
}
