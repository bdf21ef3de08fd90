package mcp

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/internal/disruption"
)

// DrainBounds says how many nodes of a pool can be drained together: what raising
// its maxUnavailable, or unpausing it, would lead to.
type DrainBounds struct {
	// Blocked are the nodes whose drain is blocked, in the order given. Each takes
	// a unit of maxUnavailable for as long as that lasts.
	Blocked []string
	// Helps is the smallest maxUnavailable with which all other nodes are updated;
	// 0 where there are none.
	Helps int
	// Bears is the largest with which no drain waits for a budget that the drain
	// of another node uses up: the number of nodes where none ever does.
	Bears int
	// Budgets are those that keep Bears from being larger, by namespace and name.
	Budgets []types.NamespacedName
}

// BoundDrains predicts how many nodes can be drained together. They are updated in
// the order given, each as soon as maxUnavailable allows it. It costs little more
// than predicting each drain once.
func BoundDrains(nodes []string, v DrainView) DrainBounds {
	plan := newDrainPlanner(v)
	position := make(map[string]int, len(nodes))
	var out DrainBounds
	for _, node := range nodes {
		if _, twice := position[node]; twice {
			continue
		}
		position[node] = len(position)
		if slices.ContainsFunc(plan.judge(node), func(p *drainPod) bool { return p.Verdict == DrainBlocked }) {
			out.Blocked = append(out.Blocked, node)
		}
	}
	out.Bears = len(position)
	if len(out.Blocked) < len(position) {
		out.Helps = len(out.Blocked) + 1
	}
	for b, queue := range plan.queues {
		bears := bearable(queue, position, disruption.AtOnce(b.PodDisruptionBudget))
		if bears == 0 || bears > out.Bears {
			continue
		}
		if bears < out.Bears {
			out.Bears, out.Budgets = bears, nil
		}
		out.Budgets = append(out.Budgets, types.NamespacedName{Namespace: b.Namespace, Name: b.Name})
	}
	slices.SortFunc(out.Budgets, func(a, b types.NamespacedName) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return out
}

// bearable returns how many neighbours in the order of nodes can be drained together
// without more of the pods of a budget going than it allows; 0: any number. What
// waits on one node alone does so however many are drained.
func bearable(queue []*drainPod, position map[string]int, allowed int) int {
	at := make([]int, len(queue))
	for i, p := range queue {
		at[i] = position[p.pod.Spec.NodeName]
	}
	slices.Sort(at)
	shortest := 0
	for i, from := range at {
		// The first pod after from's node that, with all from there on, is too many.
		j := i + max(allowed, 1)
		for j < len(at) && at[j] == from {
			j++
		}
		if j < len(at) && (shortest == 0 || at[j]-from < shortest) {
			shortest = at[j] - from
		}
	}
	return shortest
}
