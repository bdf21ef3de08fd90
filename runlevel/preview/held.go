package preview

import (
	"slices"

	"github.com/clusterupdate/clusterupdate/manifest"
)

// held fills in HeldBy: which refused changes the others wait behind. A task that
// fails stops those after it in its node, and the nodes behind that.
func held(p *Preview, tasks []*manifest.Task) {
	refused := make(map[int]Object)      // by the index of the task that is refused
	behind := make(map[int]map[int]bool) // of a task: indices of the refused ones before it
	for i := range p.Changes {
		if c := &p.Changes[i]; c.Action == Fail {
			refused[c.refused] = c.Object
		}
	}
	if len(refused) == 0 {
		return
	}
	graph := manifest.UpdateGraph(tasks)
	ends := make([]map[int]bool, len(graph.Nodes)) // indices of the refused objects in and before a node
	for _, i := range inOrder(graph) {
		node := &graph.Nodes[i]
		now := make(map[int]bool)
		for _, before := range node.In {
			for index := range ends[before] {
				now[index] = true
			}
		}
		for _, t := range node.Tasks {
			behind[t.Index] = now
			if _, ok := refused[t.Index]; ok {
				now = with(now, t.Index)
			}
		}
		ends[i] = now
	}
	for i := range p.Changes {
		c := &p.Changes[i]
		if signs[c.Action] != "" {
			c.HeldBy = heldBy(c, behind, refused)
		}
	}
}

// heldBy are the refused objects that a change waits behind, in their order.
func heldBy(c *Change, behind map[int]map[int]bool, refused map[int]Object) []Object {
	var all []int
	for _, t := range c.Tasks {
		for index := range behind[t.Index] {
			if refused[index] != c.Object {
				all = append(all, index)
			}
		}
	}
	slices.Sort(all)
	var out []Object
	for _, index := range slices.Compact(all) {
		out = append(out, refused[index])
	}
	return out
}

// with is a set with one more member; the set stays as it is.
func with(set map[int]bool, member int) map[int]bool {
	out := map[int]bool{member: true}
	for m := range set {
		out[m] = true
	}
	return out
}

// inOrder are the indices of the nodes, each after those that lead to it.
func inOrder(g *manifest.Graph) []int {
	waits := make([]int, len(g.Nodes))
	var order []int
	for i := range g.Nodes {
		waits[i] = len(g.Nodes[i].In)
		if waits[i] == 0 {
			order = append(order, i)
		}
	}
	for at := 0; at < len(order); at++ {
		for _, next := range g.Nodes[order[at]].Out {
			waits[next]--
			if waits[next] == 0 {
				order = append(order, next)
			}
		}
	}
	return order
}
