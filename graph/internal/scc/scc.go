// Package scc finds the strongly connected components of a graph.
package scc

// Components numbers the nodes of a graph so that those which lead to each other have
// the same number, after Tarjan. in are the predecessors of each node, or the
// successors. It does not recurse, since a graph may be deep.
func Components(in [][]int32) []int32 {
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
