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
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/disruption"
	"github.com/clusterupdate/clusterupdate/mcp"
)

func spareCapacityCheck() Check {
	return documented{Rule{
		Name: "SpareCapacity", Severities: []Severity{Warning},
		Source: "Understanding OpenShift updates, Factors affecting update duration", Link: docsUnderstanding,
		Reads: []schema.GroupVersionKind{gvkOf[corev1.Node](), gvkOf[corev1.Pod](), gvkOf[mcfgv1.MachineConfigPool](), gvkOf[configv1.Infrastructure]()},
	}, spareCapacity}
}

// spareCapacity: the pods of the nodes that are drained together fit on the other
// nodes, by their sums. That they do does not mean that each finds a place.
func spareCapacity(ctx context.Context, in *Input) ([]Finding, error) {
	pools, err := readPools(ctx, in)
	if pools == nil {
		return nil, err
	}
	size, sizeErr := clusterSize(ctx, in)
	if size.single() {
		return nil, size.notDrained()
	}
	pods, podsErr := listPods(ctx, in)
	nodes, nodesErr := list[corev1.Node](ctx, in, clusterapi.ListOptions{})
	loads := nodeLoads(nodes, pods)
	var findings []Finding
	// Unknown pods or nodes change the sums either way.
	if podsErr == nil && nodesErr == nil {
		for _, p := range pools {
			limit, _, limitErr := mcp.MaxUnavailable(p.MachineConfigPool, len(p.nodes))
			if p.Spec.Paused || limitErr != nil || !p.known {
				continue
			}
			for _, r := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				if f := noSpare(p, r, limit, loads); f != nil {
					findings = append(findings, *f)
				}
			}
		}
	}
	return findings, joinErrors(err, sizeErr, podsErr)
}

// nodeLoad is what a node has and what its pods request.
type nodeLoad struct {
	*corev1.Node
	schedulable bool
	free        map[corev1.ResourceName]float64
	leaves      map[corev1.ResourceName]float64 // requested by pods that a drain evicts
}

// nodeLoads sums up the requests of the pods of each node, in the order of nodes.
func nodeLoads(nodes []*corev1.Node, pods []*corev1.Pod) []*nodeLoad {
	byName := make(map[string]*nodeLoad, len(nodes))
	out := make([]*nodeLoad, len(nodes))
	resources := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
	for i, n := range nodes {
		l := &nodeLoad{Node: n, schedulable: mcp.NodeStateOf(n).Ready(), free: map[corev1.ResourceName]float64{}, leaves: map[corev1.ResourceName]float64{}}
		for _, r := range resources {
			l.free[r] = amount(n.Status.Allocatable, r)
		}
		out[i], byName[n.Name] = l, l
	}
	// A DaemonSet that a pod belongs to exists: almost always, and this is a bound.
	exists := func(types.NamespacedName) (bool, error) { return true, nil }
	for _, p := range pods {
		l := byName[p.Spec.NodeName]
		if l == nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		stays, _ := disruption.Stays(p, exists)
		for _, r := range resources {
			request := podRequest(p, r)
			l.free[r] -= request
			if !stays {
				l.leaves[r] += request
			}
		}
	}
	return out
}

// noSpare judges one pool and one resource.
func noSpare(p *poolNodes, r corev1.ResourceName, limit int, loads []*nodeLoad) *Finding {
	in := make(map[string]bool, len(p.nodes))
	for _, n := range p.nodes {
		in[n.Name] = true
	}
	var candidates []*nodeLoad
	for _, l := range loads {
		if in[l.Name] && l.leaves[r] > 0 {
			candidates = append(candidates, l)
		}
	}
	slices.SortStableFunc(candidates, func(a, b *nodeLoad) int { return cmp.Compare(b.leaves[r], a.leaves[r]) })
	candidates = candidates[:min(limit, len(candidates))]
	if len(candidates) == 0 {
		return nil
	}
	drained := make(map[string]bool, len(candidates))
	var wanted, free float64
	var objects []Object
	for _, l := range candidates {
		drained[l.Name] = true
		wanted += l.leaves[r]
		objects = append(objects, nodeObject(l.Node, "", "", formatAmount(r, l.leaves[r])))
	}
	for _, l := range loads {
		if l.schedulable && !drained[l.Name] {
			free += max(0, l.free[r])
		}
	}
	if wanted <= free {
		return nil
	}
	sortObjects(objects)
	f := newFinding(Warning, "NoSpareCapacity", fmt.Sprintf(
		"The other nodes have not enough %s for the pods of the %d nodes of pool %s that may be drained together: these request %s, and %s is free. "+
			"This is a bound: affinity, taints and storage are not looked at, and may leave less. The nodes", r, len(candidates), p.Name, formatAmount(r, wanted), formatAmount(r, free)),
		objects, "Add nodes, lower requests, or lower spec.maxUnavailable of the pool")
	f.Objects = append(f.Objects, poolObject(p.Name, "spec.maxUnavailable", strconv.Itoa(limit), ""))
	return &f
}

// podRequest is what the scheduler reserves for a pod.
func podRequest(p *corev1.Pod, r corev1.ResourceName) float64 {
	if p.Spec.Resources != nil {
		if q, ok := p.Spec.Resources.Requests[r]; ok {
			return quantity(q) + amount(p.Spec.Overhead, r)
		}
	}
	var running, starting float64
	for _, c := range p.Spec.InitContainers {
		request := amount(c.Resources.Requests, r)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			running += request // a sidecar: it stays beside all that follow
			starting = max(starting, running)
		} else {
			starting = max(starting, running+request)
		}
	}
	for _, c := range p.Spec.Containers {
		running += amount(c.Resources.Requests, r)
	}
	return max(running, starting) + amount(p.Spec.Overhead, r)
}

func amount(l corev1.ResourceList, r corev1.ResourceName) float64 {
	q, ok := l[r]
	if !ok {
		return 0
	}
	return quantity(q)
}

// quantity is a float: a sum of what people write may be more than any integer.
func quantity(q resource.Quantity) float64 { return max(0, q.AsApproximateFloat64()) }

func formatAmount(r corev1.ResourceName, v float64) string {
	if r == corev1.ResourceMemory {
		return trimZeros(v/(1<<30)) + " GiB"
	}
	return trimZeros(v) + " CPUs"
}

func trimZeros(v float64) string {
	text := strconv.FormatFloat(v, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
