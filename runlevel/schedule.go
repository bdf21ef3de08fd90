package runlevel

import (
	"slices"

	"github.com/clusterupdate/clusterupdate/manifest"
)

// schedule decides which node of a graph may run next. It is a state machine
// without goroutines, clock or input and output, which a [Pass] drives.
//
// A node is ready when all its inputs are done. A failed node blocks its
// descendants forever; independent nodes continue. Each node is handed out at most
// once. A schedule is not safe for concurrent use.
type schedule struct {
	graph   *manifest.Graph
	missing []int   // inputs that are not done, by node
	starts  []int   // successors of node i: outs[starts[i]:starts[i+1]]
	outs    []int   // successors of all nodes
	status  []uint8 // by node
	ready   []int   // ascending
	running int
	errs    map[int]error
}

const (
	waiting uint8 = iota
	running
	done
	failed
)

// newSchedule returns the schedule of a graph, which must not change while it
// is in use. The inputs (In) of the nodes count, Out is not looked at; an
// input out of range panics, as an index does: see [manifest.Graph.Validate].
func newSchedule(g *manifest.Graph) *schedule {
	n := len(g.Nodes)
	s := &schedule{
		graph:   g,
		missing: make([]int, n),
		starts:  make([]int, n+1),
		status:  make([]uint8, n),
	}
	for i := range g.Nodes {
		s.missing[i] = len(g.Nodes[i].In)
		for _, in := range g.Nodes[i].In {
			s.starts[in+1]++
		}
	}
	for i := range n {
		s.starts[i+1] += s.starts[i]
	}
	s.outs = make([]int, s.starts[n])
	fill := make([]int, n)
	for i := range g.Nodes {
		for _, in := range g.Nodes[i].In {
			s.outs[s.starts[in]+fill[in]] = i
			fill[in]++
		}
	}
	for i, m := range s.missing {
		if m == 0 {
			s.ready = append(s.ready, i)
		}
	}
	return s
}

// Next hands out the ready node with the lowest index; ok is false when none
// is ready. The node counts as running until Done or Fail. A node without
// tasks is handed out too: it is done at once.
func (s *schedule) Next() (node int, ok bool) {
	if len(s.ready) == 0 {
		return 0, false
	}
	node = s.ready[0]
	s.ready = s.ready[1:]
	s.status[node] = running
	s.running++
	return node, true
}

// Done reports that a node has finished, and makes ready what waited for it alone.
func (s *schedule) Done(node int) {
	s.finish(node, done)
	for _, out := range s.outs[s.starts[node]:s.starts[node+1]] {
		s.missing[out]--
		if s.missing[out] == 0 {
			at, _ := slices.BinarySearch(s.ready, out)
			s.ready = slices.Insert(s.ready, at, out)
		}
	}
}

// Fail reports that a node has failed with err, which must not be nil.
func (s *schedule) Fail(node int, err error) {
	s.finish(node, failed)
	if s.errs == nil {
		s.errs = make(map[int]error)
	}
	s.errs[node] = err
}

func (s *schedule) finish(node int, status uint8) {
	s.status[node] = status
	s.running--
}

// Running returns how many nodes are handed out and have not finished.
func (s *schedule) Running() int { return s.running }

// Finished reports that nothing runs and nothing is ready: the run is over,
// though nodes behind failed ones have not run.
func (s *schedule) Finished() bool { return s.running == 0 && len(s.ready) == 0 }

// Errors returns the errors of failed nodes in the order of the nodes'
// indices, whatever the order in time.
func (s *schedule) Errors() []error {
	var errs []error
	for i, status := range s.status {
		if status == failed {
			errs = append(errs, s.errs[i])
		}
	}
	return errs
}

// Incomplete counts the nodes that are not done, those without tasks
// included, and returns the first task of the first one (by index) that has
// tasks. Where all such nodes are without tasks, nothing is incomplete: it
// returns 0 and nil.
func (s *schedule) Incomplete() (nodes int, first *manifest.Task) {
	for i, status := range s.status {
		if status == done {
			continue
		}
		nodes++
		if tasks := s.graph.Nodes[i].Tasks; first == nil && len(tasks) > 0 {
			first = tasks[0]
		}
	}
	if first == nil {
		return 0, nil
	}
	return nodes, first
}

// Result returns the errors of the run: the failed nodes' errors; only if there are
// none and tasks have not run, one [*incompleteError], followed by ctxErr, the
// error or the cause of the context that stopped the run, unless that is nil.
// [Result].Failure leaves out these two.
func (s *schedule) Result(ctxErr error) []error {
	if errs := s.Errors(); len(errs) > 0 {
		return errs
	}
	nodes, first := s.Incomplete()
	if first == nil {
		return nil
	}
	errs := []error{&incompleteError{Nodes: nodes, First: first}}
	switch {
	case ctxErr == nil:
	case isBareContextError(ctxErr):
		errs = append(errs, ctxErr)
	default:
		errs = append(errs, &interruption{ctxErr})
	}
	return errs
}
