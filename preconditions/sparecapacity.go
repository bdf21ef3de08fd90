package preconditions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/mcp"
)

func spareCapacityCheck() Check {
	return documented{Rule{
		Name: "SpareCapacity", Severities: []Severity{Warning},
		Source: "Understanding OpenShift updates, Factors affecting update duration", Link: docsUnderstanding,
		Reads: []schema.GroupVersionKind{gvkOf[corev1.Node](), gvkOf[corev1.Pod](), gvkOf[mcfgv1.MachineConfigPool](),
			gvkOf[policyv1.PodDisruptionBudget](), gvkOf[configv1.Infrastructure]()},
	}, spareCapacity}
}

// spareCapacity places what replaces the pods of the nodes that are drained together on
// the other nodes, as a scheduler would: by node selectors, node affinity, taints and
// requests. Affinity between pods, topology spread and volumes are not modelled.
func spareCapacity(ctx context.Context, in *Input) ([]Finding, error) {
	pools, err := readPools(ctx, in)
	if pools == nil {
		return nil, err
	}
	size, sizeErr := clusterSize(ctx, in)
	if size.single() {
		return nil, size.notDrained()
	}
	objects, objectsErr := readDrainObjects(ctx, in)
	nodes, nodesErr := list[corev1.Node](ctx, in, clusterapi.ListOptions{})
	err = joinErrors(err, sizeErr, objectsErr)
	if objectsErr != nil || nodesErr != nil {
		return nil, err // what is not known changes the room either way
	}
	objects.Nodes = nodes
	view := mcp.NewDrainView(objects)
	var findings []Finding
	for _, p := range pools {
		limit, _, limitErr := mcp.MaxUnavailable(p.MachineConfigPool, len(p.nodes))
		if p.Spec.Paused || limitErr != nil || !p.known {
			continue
		}
		if f := noSpare(p, limit, objects.Pods, view); f != nil {
			findings = append(findings, *f)
		}
	}
	return findings, err
}

// readDrainObjects reads the pods and budgets that drains are predicted from.
func readDrainObjects(ctx context.Context, in *Input) (mcp.DrainObjects, error) {
	pods, podsErr := listPods(ctx, in)
	budgets, budgetsErr := list[policyv1.PodDisruptionBudget](ctx, in, clusterapi.ListOptions{})
	return mcp.DrainObjects{Pods: pods, Budgets: budgets, DaemonSets: daemonSetsOf(pods), Now: in.Now}, joinErrors(podsErr, budgetsErr)
}

// noSpare judges one pool: its nodes in the order of updates, and those that have the most
// pods, as many together as may be unavailable.
func noSpare(p *poolNodes, limit int, pods []*corev1.Pod, view mcp.DrainView) *Finding {
	order := updateOrder(p, pods)
	groups := slices.Collect(slices.Chunk(order, limit))
	if limit > 1 && len(order) > limit {
		groups = append(groups, fullest(order, pods)[:limit])
	}
	homeless := map[string][]string{} // pods by node
	for _, together := range groups {
		for _, d := range mcp.DrainPlans(together, view) {
			for _, pod := range d.Pods {
				name := pod.Pod.String()
				if nowhereToGo(pod) && !slices.Contains(homeless[d.Node], name) {
					homeless[d.Node] = append(homeless[d.Node], name)
				}
			}
		}
	}
	if len(homeless) == 0 {
		return nil
	}
	var objects []Object
	for node, names := range homeless {
		slices.Sort(names)
		objects = append(objects, Object{GVK: nodeKind, Name: node, Note: "pods " + strings.Join(names, ", ")})
	}
	sortObjects(objects)
	f := newFinding(Warning, "NoSpareCapacity", fmt.Sprintf(
		"What replaces the pods of nodes of pool %s, of which %d may be drained together, does not all fit the other schedulable nodes, by node selectors, node affinity, taints and requests. "+
			"Affinity between pods, topology spread and volumes are not looked at, and may leave less room. The nodes", p.Name, limit),
		objects, "Add nodes, lower requests, or lower spec.maxUnavailable of the pool")
	f.Objects = append(f.Objects, poolObject(p.Name, "spec.maxUnavailable", strconv.Itoa(limit), ""))
	return &f
}

func nowhereToGo(p mcp.PodDrain) bool {
	return slices.ContainsFunc(p.Notes, func(n mcp.DrainNote) bool { return n.Kind == mcp.DrainNowhereToGo })
}

// fullest sorts nodes by the CPU that their pods request, the most first.
func fullest(nodes []string, pods []*corev1.Pod) []string {
	cpu := map[string]float64{}
	for _, p := range pods {
		for _, c := range p.Spec.Containers {
			cpu[p.Spec.NodeName] += c.Resources.Requests.Cpu().AsApproximateFloat64()
		}
	}
	sorted := slices.Clone(nodes)
	slices.SortStableFunc(sorted, func(a, b string) int { return cmp.Compare(cpu[b], cpu[a]) })
	return sorted
}
