package graphdata

import "slices"

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
	component := components(b.in)
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

// components numbers the nodes so that those which lead to each other have the
// same number, after Tarjan. It does not recurse, since a graph may be deep.
func components(in [][]int32) []int32 {
	n := len(in)
	component, index, low := make([]int32, n), make([]int32, n), make([]int32, n)
	type frame struct {
		node int32
		next int // of its predecessors
	}
	var stack []int32 // nodes without a component yet
	var count, number int32
	for root := range n {
		if index[root] > 0 {
			continue
		}
		for calls := []frame{{int32(root), 0}}; len(calls) > 0; {
			f := &calls[len(calls)-1]
			v := f.node
			if f.next == 0 {
				count++
				index[v], low[v] = count, count
				stack = append(stack, v)
			}
			if f.next < len(in[v]) {
				w := in[v][f.next]
				f.next++
				if index[w] == 0 {
					calls = append(calls, frame{w, 0})
				} else if component[w] == 0 {
					low[v] = min(low[v], index[w])
				}
				continue
			}
			calls = calls[:len(calls)-1]
			if len(calls) > 0 {
				parent := calls[len(calls)-1].node
				low[parent] = min(low[parent], low[v])
			}
			if low[v] < index[v] {
				continue
			}
			number++
			for {
				w := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				component[w] = number
				if w == v {
					break
				}
			}
		}
	}
	return component
}
