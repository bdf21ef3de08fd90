package plan

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/internal/placement"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// view is what drains are predicted from when the cluster's nodes are as given.
func (b *builder) view(nodes []corev1.Node) mcp.DrainView {
	o := b.c.Drains
	if len(o.Pods) == 0 {
		return mcp.DrainView{}
	}
	o.Nodes = make([]*corev1.Node, len(nodes))
	for i := range nodes {
		o.Nodes[i] = &nodes[i]
		if topology := nodes[i].Annotations[mcp.AnnotationControlPlaneTopology]; topology != "" {
			o.Topology = topology
		}
	}
	return mcp.NewDrainView(o)
}

// drained are the names of the nodes that a plan drains: those of its pools, and if it
// updates the cluster those of all other pools that are not paused.
func (b *builder) drained(version string, pools ...string) []string {
	pools = slices.Clone(pools)
	for _, name := range b.poolNames() {
		if version != "" && !b.pools[name].Spec.Paused && !slices.Contains(pools, name) {
			pools = append(pools, name)
		}
	}
	var out []string
	for _, pool := range pools {
		out = append(out, namesOf(b.nodes[pool])...)
	}
	return out
}

// mostNamed is how many pods of one kind of finding a builder names.
const mostNamed = 20

// drains refuses drains that never end, since no budget will ever allow an eviction, and
// warns of pods that block drains otherwise.
func (b *builder) drains(view mcp.DrainView, nodes []string) {
	named := map[bool]int{} // by whether they never end
	more := 0
	for _, node := range nodes {
		for _, p := range mcp.DrainPlan(node, view).Blocked() {
			never := p.Kind == mcp.DrainNeverAllows || p.Kind == mcp.DrainTwoBudgets
			named[never]++
			if named[never] > mostNamed {
				more++
				continue
			}
			report := b.warn
			if never {
				report = b.add
			}
			report("node %s: pod %s blocks its drain (%s): %s; %s", node, p.Pod, p.Kind, p.Text, p.Fix)
		}
	}
	if more > 0 {
		b.warn("%d more pods block drains", more)
	}
}

// validateMoves predicts what the new labels of nodes do to pods: what chooses its nodes by a
// label that goes finds no place on the nodes of the groups, while these are updated and
// until they have returned.
func (x *canary) validateMoves(groups []Group) {
	after := x.movedNodes(groups)
	view := x.b.view(after)
	x.b.drains(view, x.b.drained(x.o.Version, x.o.Pool))
	left := map[string]int{} // by label, nodes that keep it
	for _, n := range after {
		for label := range n.Labels {
			left[label]++
		}
	}
	moved := map[string]bool{}
	for _, g := range groups {
		for _, n := range g.Nodes {
			moved[n] = true
		}
	}
	users := map[string][]string{} // by label, what chooses its nodes by it
	for _, p := range x.b.c.Drains.Pods {
		for label := range x.source {
			if moved[p.Spec.NodeName] && choosesBy(p, label) {
				users[label] = append(users[label], userOf(p))
			}
		}
	}
	for _, label := range slices.Sorted(maps.Keys(users)) {
		all := users[label]
		slices.Sort(all)
		all = slices.Compact(all)
		text := fmt.Sprintf("the groups' nodes lose label %s, by which %s choose nodes", label, someOf(all))
		if left[label] == 0 {
			x.b.add("%s, and no node keeps it: leave some nodes out of the groups", text)
		} else {
			x.b.warn("%s: until they return, %d nodes have it", text, left[label])
		}
	}
	x.lostPlaces(view, moved)
}

// lostPlaces refuses moves after which what replaces a pod of a budget fits no node any more:
// the budget would hold up the drain for as long as the nodes are away.
func (x *canary) lostPlaces(after mcp.DrainView, moved map[string]bool) {
	if len(x.source) == 0 {
		return
	}
	before := x.b.view(x.b.c.Nodes)
	for _, node := range namesOf(x.b.nodes[x.o.Pool]) {
		if !moved[node] {
			continue
		}
		had := map[string]bool{}
		for _, p := range mcp.DrainPlan(node, before).Pods {
			had[p.Pod.String()] = !hasNowhereToGo(p)
		}
		for _, p := range mcp.DrainPlan(node, after).Pods {
			if !hasNowhereToGo(p) || !had[p.Pod.String()] {
				continue
			}
			if len(p.Budgets) > 0 {
				x.b.add("node %s: what replaces pod %s fits no node once labels have moved, so budget %s holds up its drain",
					node, p.Pod, p.Budgets[0])
			} else {
				x.b.warn("node %s: what replaces pod %s fits no node once labels have moved", node, p.Pod)
			}
		}
	}
}

func hasNowhereToGo(p mcp.PodDrain) bool {
	return slices.ContainsFunc(p.Notes, func(n mcp.DrainNote) bool { return n.Kind == mcp.DrainNowhereToGo })
}

// movedNodes are the cluster's nodes with the labels that they get.
func (x *canary) movedNodes(groups []Group) []corev1.Node {
	after := slices.Clone(x.b.c.Nodes)
	at := make(map[string]int, len(after))
	for i := range after {
		at[after[i].Name] = i
	}
	for _, g := range groups {
		move := x.labels(g, true)
		for _, name := range g.Nodes {
			i, there := at[name]
			if !there {
				continue
			}
			after[i].Labels = move.relabel(after[i].Labels)
		}
	}
	return after
}

// choosesBy reports whether a pod chooses its nodes by a label: by its node selector or a
// required node affinity.
func choosesBy(p *corev1.Pod, label string) bool {
	if _, selects := p.Spec.NodeSelector[label]; selects {
		return true
	}
	terms, _ := placement.Affinity(&p.Spec)
	return slices.ContainsFunc(terms, func(t corev1.NodeSelectorTerm) bool {
		return slices.ContainsFunc(t.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool { return r.Key == label })
	})
}

// userOf names what a pod belongs to. The pods of a DaemonSet leave nodes as soon as these
// lose the label, others when they are drained.
func userOf(p *corev1.Pod) string {
	if c := metav1.GetControllerOfNoCopy(p); c != nil {
		return fmt.Sprintf("%s %s/%s", c.Kind, p.Namespace, c.Name)
	}
	return fmt.Sprintf("pod %s/%s", p.Namespace, p.Name)
}

// someOf lists the first of some names.
func someOf(names []string) string {
	const most = 3
	text := ""
	for i, n := range names[:min(len(names), most)] {
		if i > 0 {
			text += ", "
		}
		text += n
	}
	if len(names) > most {
		text += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return text
}
