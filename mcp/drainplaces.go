package mcp

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/clusterupdate/clusterupdate/internal/placement"
)

// places are the nodes that a replacement of an evicted pod may go to.
type places struct {
	nodes []place // by name

	mu    sync.Mutex
	first map[string]int // what a pod asks for → the first node that fits, len(nodes) if none does
}

// place is a node that takes new pods.
type place struct {
	*corev1.Node
	free map[corev1.ResourceName]int64 // nil: the node does not say what it has
}

func newPlaces(nodes []*corev1.Node, pods map[string][]*corev1.Pod) *places {
	s := &places{first: map[string]int{}}
	for _, n := range nodes {
		if state := NodeStateOf(n); state.Windows || state.Deleting || !state.Ready() {
			continue
		}
		p := place{Node: n}
		if len(n.Status.Allocatable) > 0 {
			p.free = make(map[corev1.ResourceName]int64, len(n.Status.Allocatable))
			for r, q := range n.Status.Allocatable {
				p.free[r] = units(r, q)
			}
			for _, pod := range pods[n.Name] {
				if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
					continue
				}
				for _, a := range requests(pod) {
					if free, ok := p.free[a.resource]; ok {
						p.free[a.resource] = max(free-a.units, -math.MaxInt64/2)
					}
				}
			}
		}
		s.nodes = append(s.nodes, p)
	}
	slices.SortFunc(s.nodes, func(a, b place) int { return strings.Compare(a.Name, b.Name) })
	return s
}

// firstFor returns the first node that takes such a pod as long as nothing else moves;
// len(s.nodes) if none does.
func (s *places) firstFor(w *wants, key string) int {
	s.mu.Lock()
	at, known := s.first[key]
	s.mu.Unlock()
	if known {
		return at
	}
	for at < len(s.nodes) && !w.fit(&s.nodes[at], nil) {
		at++
	}
	s.mu.Lock()
	s.first[key] = at
	s.mu.Unlock()
	return at
}

// placing finds places for pods that leave at the same time, one by one.
type placing struct {
	places  *places
	without map[string]bool // nodes that are left out
	taken   map[int]amounts // by index of the node
	last    int             // most pods fit most nodes, the one that took the last pod too
	from    map[string]int  // what a pod asks for → no node before this one fits any more
}

func newPlacing(s *places, without map[string]bool) *placing {
	return &placing{places: s, without: without, taken: map[int]amounts{}, from: map[string]int{}}
}

// put finds a node for what replaces a pod, and reports whether there is one.
func (s *placing) put(w *wants) bool {
	if s.last < len(s.places.nodes) && s.takes(s.last, w) {
		return true
	}
	key := w.key()
	at, known := s.from[key]
	if !known {
		at = s.places.firstFor(w, key)
	}
	for at < len(s.places.nodes) && !s.takes(at, w) {
		at++
	}
	s.from[key] = at
	if at == len(s.places.nodes) {
		return false
	}
	s.last = at
	return true
}

// takes puts a pod on a node if it fits.
func (s *placing) takes(at int, w *wants) bool {
	n := &s.places.nodes[at]
	taken := s.taken[at]
	if s.without[n.Name] || !w.fit(n, taken) {
		return false
	}
	for _, a := range w.requests {
		of := taken.of(a.resource)
		*of = add(*of, a.units)
	}
	s.taken[at] = taken
	return true
}

// wants is what a pod asks of its node.
type wants struct {
	pod      *corev1.Pod
	terms    []corev1.NodeSelectorTerm // one of them must hold, if affine
	affine   bool
	requests amounts
}

func newWants(p *corev1.Pod) *wants {
	w := &wants{pod: p, requests: requests(p)}
	w.terms, w.affine = placement.Affinity(&p.Spec)
	return w
}

// key is the same for pods that fit the same nodes.
func (w *wants) key() string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(w.pod.Spec.NodeSelector)) {
		b.WriteString(strconv.Quote(k) + strconv.Quote(w.pod.Spec.NodeSelector[k]))
	}
	if w.affine {
		b.WriteString("|affinity")
		for _, t := range w.terms {
			fmt.Fprintf(&b, "|%q%q", t.MatchExpressions, t.MatchFields)
		}
	}
	for _, t := range w.pod.Spec.Tolerations {
		fmt.Fprintf(&b, "|%q%q%q%q", t.Key, t.Operator, t.Value, t.Effect)
	}
	for _, a := range w.requests {
		b.WriteString("|" + strconv.Quote(string(a.resource)) + strconv.FormatInt(a.units, 10))
	}
	return b.String()
}

// ask is how much a pod asks for of a resource.
func (w *wants) ask(r corev1.ResourceName) int64 {
	for _, a := range w.requests {
		if a.resource == r {
			return a.units
		}
	}
	return 0
}

// choosy reports whether a pod takes some nodes only, whatever room these have.
func (w *wants) choosy() bool { return w.affine || len(w.pod.Spec.NodeSelector) > 0 }

// fit reports whether a node takes such a pod beside what was placed there already.
func (w *wants) fit(n *place, taken amounts) bool {
	if !placement.Selects(&w.pod.Spec, n.Node) {
		return false
	}
	for i := range n.Spec.Taints {
		taint := &n.Spec.Taints[i]
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !placement.Tolerates(&w.pod.Spec, taint) {
			return false
		}
	}
	if n.free == nil {
		return true
	}
	for _, a := range w.requests {
		free, known := n.free[a.resource]
		for _, t := range taken {
			if t.resource == a.resource {
				free -= t.units
			}
		}
		if a.units > 0 && free < a.units && (known || !everyNodeHas(a.resource)) {
			return false
		}
	}
	return true
}

// everyNodeHas reports whether a node has a resource even if its status does not list
// it.
func everyNodeHas(r corev1.ResourceName) bool {
	switch r {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods:
		return true
	}
	return false
}

// amounts are how much of each resource; few, so a slice is faster than a map.
type amounts []amount

type amount struct {
	resource corev1.ResourceName
	units    int64
}

// of returns the amount of a resource, to be changed.
func (a *amounts) of(r corev1.ResourceName) *int64 {
	for i := range *a {
		if (*a)[i].resource == r {
			return &(*a)[i].units
		}
	}
	*a = append(*a, amount{resource: r})
	return &(*a)[len(*a)-1].units
}

func (a *amounts) add(list corev1.ResourceList) {
	for r, q := range list {
		of := a.of(r)
		*of = add(*of, units(r, q))
	}
}

// requests is what the scheduler reserves for a pod, by name of resource.
func requests(p *corev1.Pod) amounts {
	running := make(amounts, 0, 4)
	var starting amounts
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		sidecar := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		for r, q := range c.Resources.Requests {
			now, most := add(*running.of(r), units(r, q)), starting.of(r)
			*most = max(*most, now)
			if sidecar { // it stays beside all that follow
				*running.of(r) = now
			}
		}
	}
	for i := range p.Spec.Containers {
		running.add(p.Spec.Containers[i].Resources.Requests)
	}
	for _, s := range starting {
		of := running.of(s.resource)
		*of = max(*of, s.units)
	}
	if p.Spec.Resources != nil { // what the pod asks for as a whole goes before
		for r, q := range p.Spec.Resources.Requests {
			*running.of(r) = units(r, q)
		}
	}
	running.add(p.Spec.Overhead)
	*running.of(corev1.ResourcePods) = 1
	slices.SortFunc(running, func(a, b amount) int { return strings.Compare(string(a.resource), string(b.resource)) })
	return running
}

// units is a quantity in thousandths of a CPU, or in ones of anything else; what is
// negative counts as nothing, and what is beyond any machine as very much.
func units(r corev1.ResourceName, q resource.Quantity) int64 {
	switch f := q.AsApproximateFloat64(); {
	case f <= 0:
		return 0
	case f >= 1<<50:
		return math.MaxInt64 / 4
	case r == corev1.ResourceCPU:
		return q.MilliValue()
	}
	return q.Value()
}

func add(a, b int64) int64 { return min(a, math.MaxInt64/2) + min(b, math.MaxInt64/2) }
