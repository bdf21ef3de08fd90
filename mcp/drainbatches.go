package mcp

import (
	"slices"

	"github.com/clusterupdate/clusterupdate/internal/disruption"
)

// DrainBatch are nodes that are drained together, in the order given to
// [BatchDrains]. The next batch begins when its nodes are done.
type DrainBatch struct {
	Nodes []string
	// Waves is how many waves of evictions the batch takes.
	Waves int
	// Blocked says that the drains of its nodes are blocked: they take as long as
	// that lasts.
	Blocked bool
}

// BatchDrains groups nodes so that no drain waits for a budget that another one of
// its batch uses up, at most atOnce in a batch; less than 1 means 1. Nodes whose
// drains are blocked come last, so that they hold up nobody. It is the order of the
// nodes, beside that of their pool, in which an update is over soonest within the
// budgets, found greedily: each node goes into the first batch that it fits, those
// with the most waves first, since a batch takes as long as its slowest node.
func BatchDrains(nodes []string, atOnce int, v DrainView) []DrainBatch {
	plan := newDrainPlanner(v)
	all := make([]batchNode, 0, len(nodes))
	position := make(map[string]int, len(nodes))
	for _, name := range nodes {
		if _, twice := position[name]; twice {
			continue
		}
		position[name] = len(position)
		all = append(all, newBatchNode(&plan, name))
	}
	slices.SortStableFunc(all, func(a, b batchNode) int {
		return drainCost{a.blocked, -a.waves}.compare(drainCost{b.blocked, -b.waves})
	})
	var batches []batch
	open := 0                      // batches before it are full
	room := map[*drainBudget]int{} // likewise, of a budget
	for _, n := range all {
		at := open
		for b := range n.takes {
			at = max(at, room[b])
		}
		for at < len(batches) && !batches[at].fits(n, max(atOnce, 1)) {
			at++
		}
		if at == len(batches) {
			batches = append(batches, batch{taken: map[*drainBudget]int{}, blocked: n.blocked})
		}
		batches[at].add(n)
		for b := range n.takes {
			for room[b] < len(batches) && batches[room[b]].taken[b] >= atOnceOf(b) {
				room[b]++
			}
		}
		for open < len(batches) && len(batches[open].nodes) == max(atOnce, 1) {
			open++
		}
	}
	out := make([]DrainBatch, len(batches))
	for i, b := range batches {
		slices.SortFunc(b.nodes, func(x, y string) int { return position[x] - position[y] })
		out[i] = DrainBatch{Nodes: b.nodes, Waves: b.waves, Blocked: b.blocked > 0}
	}
	return out
}

// batchNode is a node with what its drain takes from each budget.
type batchNode struct {
	name           string
	blocked, waves int
	takes          map[*drainBudget]int
}

func newBatchNode(plan *drainPlanner, name string) batchNode {
	n := batchNode{name: name, takes: map[*drainBudget]int{}}
	clear(plan.queues) // each node counts for itself
	for _, p := range plan.judge(name) {
		switch p.Verdict {
		case DrainBlocked:
			n.blocked = 1
		case DrainEvicts:
			n.waves = max(n.waves, 1)
		}
	}
	for b, q := range plan.queues {
		n.takes[b] = len(q)
		n.waves = max(n.waves, (len(q)+atOnceOf(b)-1)/atOnceOf(b))
	}
	return n
}

// atOnceOf is how many pods of a budget go in one wave.
func atOnceOf(b *drainBudget) int { return max(disruption.AtOnce(b.PodDisruptionBudget), 1) }

// batch is a batch in the making.
type batch struct {
	nodes          []string
	taken          map[*drainBudget]int
	blocked, waves int
}

// fits says that a node makes no drain of the batch longer, nor is made longer.
func (b *batch) fits(n batchNode, atOnce int) bool {
	if len(b.nodes) >= atOnce || b.blocked != n.blocked {
		return false
	}
	for budget, k := range n.takes {
		if have := b.taken[budget]; have > 0 && have+k > atOnceOf(budget) {
			return false
		}
	}
	return true
}

func (b *batch) add(n batchNode) {
	b.nodes = append(b.nodes, n.name)
	b.waves = max(b.waves, n.waves)
	for budget, k := range n.takes {
		b.taken[budget] += k
	}
}
