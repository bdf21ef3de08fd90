package path

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// Order determines which of two paths is the better one.
type Order string

// The orders. Where all of an order's terms are equal, the path with fewer
// switches of channel is better, then the one whose versions are greater,
// compared hop by hop from the start.
const (
	// Safest: fewest edges that are not recommended, fewest unknown ones,
	// fewest hops. The zero value is the same.
	Safest Order = "Safest"
	// Shortest: fewest hops, fewest edges that are not recommended, fewest
	// unknown ones.
	Shortest Order = "Shortest"
)

// weight is the length of a path: the terms of its order, lexicographically.
// Three counts share a number; a path has less than 2²¹ hops.
type weight struct {
	lead uint32 // a term before those of the order
	main uint64
}

const countBits = 21

var unreachable = weight{lead: math.MaxUint32, main: math.MaxUint64}

func (w weight) plus(o weight) weight { return weight{w.lead + o.lead, w.main + o.main} }

func (w weight) compare(o weight) int {
	return cmp.Or(cmp.Compare(w.lead, o.lead), cmp.Compare(w.main, o.main))
}

// search looks for paths to one target.
type search struct {
	n     *Network
	rules *rules
	order Order
	to    int32
	// only restricts the edges further, nil does not.
	only func(e *edge) bool
	// lead is a term before the order's, nil for none.
	lead func(e *edge) uint32
}

func (s *search) allows(e *edge) bool {
	return s.rules.allows(e) && (s.only == nil || s.only(e))
}

func (s *search) weigh(e *edge) weight {
	const first, second, third = 1 << (2 * countBits), 1 << countBits, 1
	hop, refused, doubt := uint64(third), uint64(first), uint64(second)
	if s.order == Shortest {
		hop, refused, doubt = first, second, third
	}
	w := weight{main: hop}
	switch s.n.guards[e.guard].judgement {
	case notRecommended:
		w.main += refused
	case unknown:
		w.main += doubt
	}
	if s.lead != nil {
		w.lead = s.lead(e)
	}
	return w
}

// remaining is what is left to the target from each node: the best weight, and
// among the paths of that weight the fewest switches of channel, by the channel
// that one comes from.
type remaining struct {
	weights  []weight
	switches []int32 // node × channel; nil with one channel
	channels int
}

// measure finds what remains from every node, nodes in blocked left out.
func (s *search) measure(blocked []bool) *remaining {
	r := &remaining{weights: slices.Repeat([]weight{unreachable}, len(s.n.versions)), channels: len(s.n.channels)}
	if r.channels > 1 {
		r.switches = make([]int32, len(s.n.versions)*r.channels)
	}
	r.weights[s.to] = weight{}
	if s.order == Shortest && s.lead == nil {
		s.byLayers(r, blocked)
	} else {
		s.byWeight(r, blocked)
	}
	return r
}

// byLayers is a breadth-first search: since hops count first, a node's weight
// is final when its layer is complete.
func (s *search) byLayers(r *remaining, blocked []bool) {
	layers := []int32{s.to} // the nearest nodes first
	for at := 0; at < len(layers); at++ {
		v := layers[at]
		s.countSwitches(r, v)
		for _, i := range s.n.into[s.n.firstIn[v]:s.n.firstIn[v+1]] {
			e := &s.n.edges[i]
			if blocked != nil && blocked[e.from] || !s.allows(e) {
				continue
			}
			w := r.weights[v].plus(s.weigh(e))
			known := r.weights[e.from]
			if known == unreachable {
				layers = append(layers, e.from)
			}
			if w.compare(known) < 0 {
				r.weights[e.from] = w
			}
		}
	}
}

// byWeight is Dijkstra's search.
func (s *search) byWeight(r *remaining, blocked []bool) {
	done := make([]bool, len(r.weights))
	next := &queue[nodeAt]{items: []nodeAt{{node: s.to}}, less: nodeAt.less}
	for next.Len() > 0 {
		v := heap.Pop(next).(nodeAt).node
		if done[v] {
			continue
		}
		done[v] = true
		s.countSwitches(r, v)
		for _, i := range s.n.into[s.n.firstIn[v]:s.n.firstIn[v+1]] {
			e := &s.n.edges[i]
			if done[e.from] || blocked != nil && blocked[e.from] || !s.allows(e) {
				continue
			}
			if w := r.weights[v].plus(s.weigh(e)); w.compare(r.weights[e.from]) < 0 {
				r.weights[e.from] = w
				heap.Push(next, nodeAt{w, e.from})
			}
		}
	}
}

// countSwitches fills in the switches of a node whose weight is final, as are
// those of all nodes that its best paths can go to next.
func (s *search) countSwitches(r *remaining, v int32) {
	if r.switches == nil || v == s.to {
		return
	}
	row := r.row(v)
	for c := range row {
		row[c] = math.MaxInt32
	}
	best := int32(math.MaxInt32)
	for i := s.n.first[v]; i < s.n.first[v+1]; i++ {
		e := &s.n.edges[i]
		next := r.weights[e.to]
		if next == unreachable || !s.allows(e) || next.plus(s.weigh(e)) != r.weights[v] {
			continue
		}
		ahead := r.row(e.to)
		for _, c := range s.n.sets.members[e.set] {
			row[c] = min(row[c], ahead[c])
			best = min(best, ahead[c])
		}
	}
	for c := range row {
		row[c] = min(row[c], best+1)
	}
}

func (r *remaining) row(v int32) []int32 {
	return r.switches[int(v)*r.channels : (int(v)+1)*r.channels]
}

// progress is a path so far: its last release and, by the channel of its last
// hop, how many switches it took at least.
type progress struct {
	node     int32
	weight   weight
	switches []int32 // nil with one channel
}

func (s *search) start(from int32) progress {
	p := progress{node: from}
	switch count := len(s.n.channels); {
	case count == 1:
	case s.n.present < 0:
		p.switches = make([]int32, count)
	default:
		p.switches = slices.Repeat([]int32{1}, count)
		p.switches[s.n.present] = 0
	}
	return p
}

// follow goes along an edge.
func (s *search) follow(p progress, e *edge) progress {
	next := progress{node: e.to, weight: p.weight.plus(s.weigh(e))}
	if p.switches == nil {
		return next
	}
	least := slices.Min(p.switches)
	next.switches = slices.Repeat([]int32{noWay}, len(p.switches))
	for _, c := range s.n.sets.members[e.set] {
		next.switches[c] = min(p.switches[c], least+1)
	}
	return next
}

// noWay stands for a channel that the last hop is not in. It leaves room to add
// to it.
const noWay = math.MaxInt32 / 2

// total is the weight and the switches of the best path that starts like p.
func (r *remaining) total(p progress) (weight, int32) {
	w := r.weights[p.node]
	if w == unreachable {
		return unreachable, 0
	}
	if p.switches == nil {
		return p.weight.plus(w), 0
	}
	row := r.row(p.node)
	best := int32(math.MaxInt32)
	for c := range row {
		best = min(best, p.switches[c]+row[c])
	}
	return p.weight.plus(w), best
}

// best returns the edges of the best path, given what remains; ok is false if
// absent. Since edges are sorted, the first that keeps the total leads to the
// greatest version.
func (s *search) best(from int32, r *remaining) (path []int32, ok bool) {
	p := s.start(from)
	w, switches := r.total(p)
	if w == unreachable {
		return nil, false
	}
	for p.node != s.to {
		for i := s.n.first[p.node]; i < s.n.first[p.node+1]; i++ {
			e := &s.n.edges[i]
			ahead := r.weights[e.to]
			if ahead == unreachable || !s.allows(e) || p.weight.plus(s.weigh(e)).plus(ahead) != w {
				continue
			}
			next := s.follow(p, e)
			if _, sw := r.total(next); sw == switches {
				p = next
				path = append(path, i)
				break
			}
		}
	}
	return path, true
}

// nodeAt is a node and what remains from it.
type nodeAt struct {
	weight weight
	node   int32
}

func (a nodeAt) less(b nodeAt) bool {
	return cmp.Or(a.weight.compare(b.weight), cmp.Compare(a.node, b.node)) < 0
}

// queue is a heap.
type queue[T any] struct {
	items []T
	less  func(a, b T) bool
}

func (q *queue[T]) Len() int           { return len(q.items) }
func (q *queue[T]) Less(i, j int) bool { return q.less(q.items[i], q.items[j]) }
func (q *queue[T]) Swap(i, j int)      { q.items[i], q.items[j] = q.items[j], q.items[i] }
func (q *queue[T]) Push(x any)         { q.items = append(q.items, x.(T)) }
func (q *queue[T]) Pop() any {
	last := q.items[len(q.items)-1]
	q.items = q.items[:len(q.items)-1]
	return last
}
