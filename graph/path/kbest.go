package path

import (
	"cmp"
	"container/heap"
	"slices"
)

// Paths finds the k best paths without loops, the best first, by an order: by
// [Safest] unless another is given. There may be fewer. Errors are those of
// [Network.ShortestPath], or report an order that does not exist; k below 1 finds
// none. It costs about k times a search where the edges that the policy allows form
// no cycle, and times the number of nodes on a path where they do.
func (n *Network) Paths(from, to string, k int, order Order, p Policy) ([]*Path, error) {
	s, start, err := n.search(from, to, order, p)
	if err != nil || k < 1 {
		return nil, err
	}
	if start == s.to {
		return []*Path{n.path(start, nil)}, nil
	}
	var paths []*Path
	for _, edges := range s.kBest(start, k) {
		paths = append(paths, n.path(start, edges))
	}
	if len(paths) == 0 {
		return nil, s.noPath(start)
	}
	return paths, nil
}

// prefix is the beginning of paths: a tree of beginnings, from the leaves up.
type prefix struct {
	parent   *prefix
	edge     int32 // the last one; -1 at the root
	depth    int32
	progress progress
	// How good the best path with this beginning is.
	total         weight
	totalSwitches int32
	// siblings are the worse choices at the parent, the best of them first.
	siblings []*prefix
}

// kBest expands the best beginning there is, again and again. As it is known
// exactly how good the best path of a beginning is, each step is on a path that
// is among the k best. Without cycles what remains from a node is the same on
// any path; with cycles it is measured again without the nodes behind.
func (s *search) kBest(from int32, k int) [][]int32 {
	var all *remaining
	if s.n.acyclic {
		all = s.measure(nil)
	}
	root := &prefix{edge: -1, progress: s.start(from)}
	waiting := &queue[*prefix]{less: (*prefix).less}
	at := root
	var paths [][]int32
	for len(paths) < k {
		if at.progress.node == s.to {
			paths = append(paths, at.edges())
			at = nil
		} else {
			choices := s.choices(at, all)
			at = nil
			if len(choices) > 0 {
				// The best choice is as good as its parent was, so it is next.
				at = choices[0]
				pushFirst(waiting, choices[1:])
			}
		}
		if at == nil {
			if waiting.Len() == 0 {
				break
			}
			at = heap.Pop(waiting).(*prefix)
			pushFirst(waiting, at.siblings)
		}
	}
	return paths
}

// choices are the ways to continue from a beginning, the best first.
func (s *search) choices(p *prefix, r *remaining) []*prefix {
	if r == nil {
		behind := make([]bool, len(s.n.versions))
		for b := p; b != nil; b = b.parent {
			behind[b.progress.node] = true
		}
		r = s.measure(behind)
	}
	var choices []*prefix
	for i := s.n.first[p.progress.node]; i < s.n.first[p.progress.node+1]; i++ {
		e := &s.n.edges[i]
		if r.weights[e.to] == unreachable || !s.allows(e) {
			continue
		}
		c := &prefix{parent: p, edge: i, depth: p.depth + 1, progress: s.follow(p.progress, e)}
		c.total, c.totalSwitches = r.total(c.progress)
		choices = append(choices, c)
	}
	// Edges come with the greatest target first, which decides between equals.
	slices.SortStableFunc(choices, (*prefix).compare)
	return choices
}

func (p *prefix) compare(o *prefix) int {
	return cmp.Or(p.total.compare(o.total), cmp.Compare(p.totalSwitches, o.totalSwitches))
}

// edges lists the edges of a beginning from the start.
func (p *prefix) edges() []int32 {
	edges := make([]int32, p.depth)
	for b := p; b.parent != nil; b = b.parent {
		edges[b.depth-1] = b.edge
	}
	return edges
}

// pushFirst adds the first of some siblings to the queue, which waits for the rest.
func pushFirst(waiting *queue[*prefix], siblings []*prefix) {
	if len(siblings) > 0 {
		siblings[0].siblings = siblings[1:]
		heap.Push(waiting, siblings[0])
	}
}

// less orders the beginnings in the queue, the best first. Of siblings only the
// best is in it.
func (p *prefix) less(b *prefix) bool {
	a := p
	if c := a.compare(b); c != 0 {
		return c < 0
	}
	// The greater version where they part. No beginning in the queue is part
	// of another.
	for a.depth > b.depth {
		a = a.parent
	}
	for b.depth > a.depth {
		b = b.parent
	}
	for a.parent != b.parent {
		a, b = a.parent, b.parent
	}
	return a.progress.node > b.progress.node
}
