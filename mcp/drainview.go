package mcp

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/internal/disruption"
)

// DrainObjects are what drains are predicted from. Each object is given once; the
// order does not matter.
type DrainObjects struct {
	// Pods are those of all namespaces and nodes, and Budgets all of the cluster.
	Pods    []*corev1.Pod
	Budgets []*policyv1.PodDisruptionBudget
	// Nodes are where replacements may go. Nil: that is not predicted.
	Nodes []*corev1.Node
	// DaemonSets are those that exist. DaemonSetsErr is why there may be others;
	// nil if absent.
	DaemonSets    []types.NamespacedName
	DaemonSetsErr error
	// Scales are how many pods the controllers of pods want, by the UID of the
	// controller that the pods name. Optional: if those of all controllers of a
	// budget's pods are known, they show better than the budget's status whether it
	// can ever allow a disruption.
	Scales map[types.UID]WorkloadScale
	// Topology is the control plane's. Nodes of a cluster with
	// [TopologySingleReplica] are not drained.
	Topology string
	// Now is the time that the view is of; its zero value is before all times, so
	// that no termination is overdue.
	Now time.Time
}

// WorkloadScale is how many pods a workload wants.
type WorkloadScale struct {
	// Workload is what has the scale, such as the Deployment of a ReplicaSet: it
	// counts once. Empty: the controller itself.
	Workload types.UID
	Replicas int32
}

// DrainView is an index of a cluster's pods and budgets, made once and read by any
// number of predictions. It is safe for concurrent use, and refers to the objects
// that it was made of: do not change them while it is in use. The zero value is a
// cluster without pods.
type DrainView struct {
	index *drainIndex // nil: empty
}

type drainIndex struct {
	byNode        map[string][]*corev1.Pod // each by namespace and name
	byNamespace   map[string][]*corev1.Pod // likewise
	budgets       map[string]*budgetIndex  // by namespace
	daemonSets    map[types.NamespacedName]bool
	daemonSetsErr error
	scales        map[types.UID]WorkloadScale
	places        *places // nil: not predicted
	topology      string
	now           time.Time
}

// NewDrainView indexes objects: pods by node, budgets by namespace and by what they
// select. It reads each selector once.
func NewDrainView(o DrainObjects) DrainView {
	x := &drainIndex{
		byNode:        map[string][]*corev1.Pod{},
		byNamespace:   map[string][]*corev1.Pod{},
		budgets:       map[string]*budgetIndex{},
		daemonSets:    make(map[types.NamespacedName]bool, len(o.DaemonSets)),
		daemonSetsErr: o.DaemonSetsErr,
		scales:        o.Scales,
		topology:      o.Topology,
		now:           o.Now,
	}
	for _, b := range o.Budgets {
		in := x.budgets[b.Namespace]
		if in == nil {
			in = &budgetIndex{byLabel: map[label][]*drainBudget{}}
			x.budgets[b.Namespace] = in
		}
		in.add(b)
	}
	pods := slices.SortedFunc(slices.Values(o.Pods), func(a, b *corev1.Pod) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	for _, p := range pods {
		if p.Spec.NodeName != "" {
			x.byNode[p.Spec.NodeName] = append(x.byNode[p.Spec.NodeName], p)
		}
		if x.budgets[p.Namespace] != nil {
			x.byNamespace[p.Namespace] = append(x.byNamespace[p.Namespace], p)
		}
	}
	for _, key := range o.DaemonSets {
		x.daemonSets[key] = true
	}
	if o.Nodes != nil {
		x.places = newPlaces(o.Nodes, x.byNode)
	}
	return DrainView{x}
}

// Nodes returns the names of the nodes that have pods, sorted.
func (v DrainView) Nodes() []string {
	if v.index == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(v.index.byNode))
}

// hasDaemonSet reports whether a DaemonSet exists, as the drain asks.
func (x *drainIndex) hasDaemonSet(key types.NamespacedName) (bool, error) {
	if x.daemonSets[key] {
		return true, nil
	}
	return false, x.daemonSetsErr
}

// budgetsOf returns the budgets that select a pod, by name.
func (x *drainIndex) budgetsOf(p *corev1.Pod) []*drainBudget {
	in := x.budgets[p.Namespace]
	if in == nil {
		return nil
	}
	return in.of(p)
}

// budgetIndex finds the budgets of a namespace that select a pod.
type budgetIndex struct {
	byLabel map[label][]*drainBudget // those that want one of some labels
	others  []*drainBudget           // those that want none
}

type label struct{ key, value string }

type drainBudget struct {
	*policyv1.PodDisruptionBudget
	selector labels.Selector
}

// add files a budget under the labels of which its pods have one.
func (in *budgetIndex) add(budget *policyv1.PodDisruptionBudget) {
	b := &drainBudget{budget, disruption.Selector(budget)}
	requirements, selectable := b.selector.Requirements()
	if !selectable {
		return
	}
	for _, r := range requirements {
		switch r.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			for value := range r.Values() { // each once
				at := label{r.Key(), value}
				in.byLabel[at] = append(in.byLabel[at], b)
			}
			return
		}
	}
	in.others = append(in.others, b)
}

func (in *budgetIndex) of(p *corev1.Pod) []*drainBudget {
	var found []*drainBudget
	match := func(budgets []*drainBudget) {
		for _, b := range budgets {
			if b.selector.Matches(labels.Set(p.Labels)) {
				found = append(found, b)
			}
		}
	}
	match(in.others)
	for key, value := range p.Labels {
		match(in.byLabel[label{key, value}])
	}
	slices.SortFunc(found, func(a, b *drainBudget) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// selected returns the pods that a budget selects, by name.
func (x *drainIndex) selected(b *drainBudget) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, p := range x.byNamespace[b.Namespace] {
		if b.selector.Matches(labels.Set(p.Labels)) {
			pods = append(pods, p)
		}
	}
	return pods
}

// numbers returns how many pods of a budget are expected, must be healthy and are:
// by the scales of their controllers if all are known, else by its status.
func (x *drainIndex) numbers(b *drainBudget, pods []*corev1.Pod) (expected, desired, healthy int) {
	s := &b.Status
	if scale, ok := x.scaleOf(pods); ok {
		now, _ := disruption.Status(b.PodDisruptionBudget, pods, scale, x.now)
		s = &now
	}
	return int(s.ExpectedPods), int(s.DesiredHealthy), int(s.CurrentHealthy)
}

func (x *drainIndex) scaleOf(pods []*corev1.Pod) (sum int32, ok bool) {
	counted := map[types.UID]bool{}
	var total int64
	for _, p := range pods {
		owner := metav1.GetControllerOfNoCopy(p)
		if owner == nil {
			continue // counts nothing, as for the disruption controller
		}
		scale, known := x.scales[owner.UID]
		if !known {
			return 0, false
		}
		if scale.Workload == "" {
			scale.Workload = owner.UID
		}
		if !counted[scale.Workload] {
			counted[scale.Workload] = true
			total += int64(max(scale.Replicas, 0))
		}
	}
	return int32(min(total, 1<<31-1)), len(counted) > 0
}
