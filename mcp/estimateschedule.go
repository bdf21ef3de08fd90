package mcp

import (
	"container/heap"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// drainWorkers is how many drains the machine-config controller works on at a time.
const drainWorkers = 5

// EstimateUpdate estimates how long an update takes, or what is left of one: the
// nodes of each pool are taken in their order, each as soon as MaxUnavailable lets
// it. It costs O(n log n).
//
// Times are spans, and each of the three ends is that of one schedule: with all times
// at their minimum, as expected, and at their maximum. An update that waits for
// something that nobody can time has no maximum, and says for what.
func EstimateUpdate(in EstimateInput) Estimate {
	e := estimator{steps: in.Steps.withDefaults(), node: in.Node}
	var out Estimate
	var begin Span
	if !in.ClusterVersionDone {
		begin = in.ClusterVersion.or(documentedClusterVersion)
		if in.ClusterVersion == (Span{}) {
			out.assume("the cluster-version operator takes %v to %v before the pools begin", begin.Min, begin.Max)
		}
	}
	var unbounded map[string]bool
	out.Unbounded, unbounded = blockers(in.Pools)
	end := begin
	plans := make([]*poolSchedule, len(in.Pools))
	for _, i := range afterMaster(in.Pools) {
		p := &in.Pools[i]
		from := begin
		if p.Name == PoolArbiter {
			if m := slices.IndexFunc(in.Pools, isActiveMaster); m >= 0 && plans[m] != nil {
				from = plans[m].end()
				unbounded[p.Name] = unbounded[p.Name] || unbounded[PoolMaster]
			}
		}
		if !p.Paused {
			plans[i] = schedule(&e, p, from)
		}
	}
	last := -1
	for i := range in.Pools {
		p := &in.Pools[i]
		if p.Paused {
			out.PerPool = append(out.PerPool, PoolEstimate{Pool: p.Name, Paused: true})
			out.assume("pool %s is paused: its %d nodes are not updated", p.Name, p.size())
			continue
		}
		plan := plans[i]
		plan.out.Unbounded = unbounded[p.Name]
		out.PerPool = append(out.PerPool, plan.out)
		if at := plan.end(); at.Expected > end.Expected {
			last = i
		}
		end = later(end, plan.end())
	}
	out.Min, out.Expected = end.Min, end.Expected
	if len(out.Unbounded) == 0 {
		out.Max = &end.Max
	} else {
		out.assume("what blocks nodes is done away with as soon as it is met")
	}
	if last >= 0 {
		out.Critical = criticalPath(in.Pools, plans, last, begin.Expected)
	} else if begin.Expected > 0 {
		out.Critical = []CriticalStep{{Done: begin.Expected}}
	}
	out.notes(in, plans)
	return out
}

func isActiveMaster(p EstimatePool) bool { return p.Name == PoolMaster && !p.Paused }

// afterMaster is the order in which pools are planned.
func afterMaster(pools []EstimatePool) []int {
	order := make([]int, 0, len(pools))
	for i := range pools {
		if pools[i].Name != PoolArbiter {
			order = append(order, i)
		}
	}
	for i := range pools {
		if pools[i].Name == PoolArbiter {
			order = append(order, i)
		}
	}
	return order
}

func later(a, b Span) Span {
	return Span{max(a.Min, b.Min), max(a.Expected, b.Expected), max(a.Max, b.Max)}
}

func (e *Estimate) assume(format string, args ...any) {
	e.Assumptions = append(e.Assumptions, fmt.Sprintf(format, args...))
}

// maxNames is the most bytes of the names of nodes in a warning.
const maxNames = 1 << 10

// notes says what was taken for granted about nodes.
func (e *Estimate) notes(in EstimateInput, plans []*poolSchedule) {
	slots, unpredicted, usual := 0, 0, 0
	var crowded []string // nodes whose pods have nowhere to go
	for i := range in.Pools {
		p := &in.Pools[i]
		if p.Paused {
			continue
		}
		slots += min(plans[i].out.Slots, p.size())
		for j := range p.size() {
			n := p.node(j)
			if p.drains(&n) && crowds(n.Drain) {
				crowded = append(crowded, n.Name)
			}
			if n.Drain == nil && n.Time == (Span{}) && in.Node == (Span{}) && !p.SameContent {
				unpredicted++
			}
			if n.Time == (Span{}) && in.Node == (Span{}) && !p.SameContent {
				usual++
			}
		}
	}
	if usual > 0 {
		e.assume("%d nodes take the usual times of their steps; none has been seen", usual)
		if in.Steps != (StepTimes{}) {
			e.Assumptions[len(e.Assumptions)-1] = fmt.Sprintf("%d nodes take the times of steps that were given", usual)
		}
	}
	if unpredicted > 0 {
		e.assume("the drains of %d nodes are not predicted: each takes one wave of evictions, and nothing blocks it", unpredicted)
	}
	e.assume("nobody else cordons nodes or changes pools meanwhile")
	if len(crowded) > 0 {
		e.Warnings = append(e.Warnings, fmt.Sprintf("the drains of %d nodes may not end: a budget lets their pods go one after the other, and what replaces those fits no other node: %s",
			len(crowded), bounded.Join(crowded, ", ", maxNames)))
	}
	if slots > drainWorkers {
		e.Warnings = append(e.Warnings, fmt.Sprintf("%d nodes are updated at a time, and the machine-config controller works on %d drains: some wait for others", slots, drainWorkers))
	}
}

// blockers are what the pools that are updated wait for without end.
func blockers(pools []EstimatePool) (all []Blocker, in map[string]bool) {
	in = map[string]bool{}
	add := func(b Blocker) {
		all = append(all, b)
		in[b.Pool] = true
	}
	for i := range pools {
		p := &pools[i]
		if p.Paused {
			continue
		}
		for _, b := range p.Stuck {
			b.Pool = p.Name
			add(b)
		}
		for j := range p.Nodes {
			n := &p.Nodes[j]
			switch {
			case n.Phase == PhaseFailed:
				add(Blocker{p.Name, n.Name, fmt.Sprintf("node %s failed", n.Name)})
			case p.drains(n):
				for _, pod := range n.Drain.Blocked() {
					add(Blocker{p.Name, n.Name, fmt.Sprintf("pod %s: %s: %s", pod.Pod, pod.Kind, pod.Text)})
				}
			}
		}
	}
	return all, in
}

// drains reports whether a node is still to be drained, and it is predicted how.
func (p *EstimatePool) drains(n *EstimateNode) bool {
	return n.Drain != nil && stepAt(n.Phase) < stepApply && !p.SameContent
}

// crowds reports whether pods that go after others of their budget wait for
// replacements that fit no other node, as far as that can be told.
func crowds(d *Drain) bool {
	waits := map[string]bool{} // by budget
	for _, p := range d.Pods {
		if p.Verdict == DrainEvictsAfter {
			for _, b := range p.Budgets {
				waits[p.Pod.Namespace+"/"+b] = true
			}
		}
	}
	for _, p := range d.Pods {
		if slices.ContainsFunc(p.Notes, func(n DrainNote) bool { return n.Kind == DrainNowhereToGo }) &&
			slices.ContainsFunc(p.Budgets, func(b string) bool { return waits[p.Pod.Namespace+"/"+b] }) {
			return true
		}
	}
	return false
}

// node returns the i-th node, one that is not listed too.
func (p *EstimatePool) node(i int) EstimateNode {
	if i < len(p.Nodes) {
		return p.Nodes[i]
	}
	return EstimateNode{}
}

// poolSchedule is when the nodes of a pool are updated.
type poolSchedule struct {
	out  PoolEstimate
	prev []int // by node: whose slot it took, as expected; -1: none's
}

func (s *poolSchedule) end() Span { return s.out.End }

// schedule plans a pool from a time on, three times.
func schedule(e *estimator, p *EstimatePool, from Span) *poolSchedule {
	n := p.size()
	s := &poolSchedule{prev: make([]int, n)}
	slots := max(p.MaxUnavailable, 1)
	for _, b := range p.Stuck {
		if b.Node != "" {
			slots--
		}
	}
	s.out = PoolEstimate{Pool: p.Name, Slots: max(slots, 1), Begin: from, End: from, Nodes: make([]NodeTimes, n)}
	times := make([]Span, n)
	for i := range n {
		node := p.node(i)
		times[i] = e.of(p, &node)
		s.out.Nodes[i].Node = node.Name
	}
	for _, f := range []func(*Span) *time.Duration{
		func(s *Span) *time.Duration { return &s.Min },
		func(s *Span) *time.Duration { return &s.Max },
		func(s *Span) *time.Duration { return &s.Expected }, // last: prev is as expected
	} {
		s.run(p, times, *f(&from), *f(&e.steps.Target), f)
		for i := range s.out.Nodes {
			*f(&s.out.End) = max(*f(&s.out.End), *f(&s.out.Nodes[i].Done))
		}
	}
	return s
}

// run plans once, with one end of all spans.
func (s *poolSchedule) run(p *EstimatePool, times []Span, from, target time.Duration, end func(*Span) *time.Duration) {
	var busy []slot
	for i := range times {
		s.prev[i] = -1
		if node := p.node(i); stepAt(node.Phase) >= 0 {
			done := *end(&times[i])
			*end(&s.out.Nodes[i].Start), *end(&s.out.Nodes[i].Done) = 0, done
			busy = append(busy, slot{max(done, from), i})
		}
	}
	slices.SortFunc(busy, slot.compare)
	if over := len(busy) - s.out.Slots; over > 0 {
		busy = busy[over:] // the first to be done leave no unit to others
	}
	free := slots(busy)
	for len(free) < s.out.Slots {
		free = append(free, slot{from, -1})
	}
	heap.Init(&free)
	for i := range times {
		if node := p.node(i); stepAt(node.Phase) >= 0 {
			continue
		}
		next := &free[0]
		start := next.at + target
		done := start + *end(&times[i])
		*end(&s.out.Nodes[i].Start), *end(&s.out.Nodes[i].Done) = start, done
		s.prev[i] = next.node
		*next = slot{done, i}
		heap.Fix(&free, 0)
	}
}

// slot is a unit of MaxUnavailable that a node gives back at a time.
type slot struct {
	at   time.Duration
	node int // -1: none has had it
}

func (a slot) compare(b slot) int {
	if a.at != b.at {
		return int(min(max(a.at-b.at, -1), 1))
	}
	return a.node - b.node
}

// slots is a heap.
type slots []slot

func (s slots) Len() int           { return len(s) }
func (s slots) Less(i, j int) bool { return s[i].compare(s[j]) < 0 }
func (s slots) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *slots) Push(v any)        { *s = append(*s, v.(slot)) }
func (s *slots) Pop() any          { panic("slots are never taken away") }

// criticalPath goes back from the node that is done last.
func criticalPath(pools []EstimatePool, plans []*poolSchedule, last int, begin time.Duration) []CriticalStep {
	var steps []CriticalStep
	for i := last; i >= 0; {
		s := plans[i]
		at := -1
		for j, n := range s.out.Nodes {
			if at < 0 || n.Done.Expected > s.out.Nodes[at].Done.Expected {
				at = j
			}
		}
		inFlight := false
		for ; at >= 0; at = s.prev[at] {
			n := s.out.Nodes[at]
			steps = append(steps, CriticalStep{pools[i].Name, n.Node, n.Start.Expected, n.Done.Expected})
			inFlight = n.Start.Expected < s.out.Begin.Expected
		}
		if inFlight {
			begin = 0 // it did not wait for anything
			break
		}
		i = -1
		if pools[last].Name == PoolArbiter && s == plans[last] {
			i = slices.IndexFunc(pools, isActiveMaster)
		}
	}
	if begin > 0 {
		steps = append(steps, CriticalStep{Done: begin})
	}
	slices.Reverse(steps)
	return steps
}

// String tells the estimate in a few lines.
func (e Estimate) String() string {
	var b strings.Builder
	upTo := "without end"
	if e.Max != nil {
		upTo = e.Max.String()
	}
	fmt.Fprintf(&b, "%v (%v to %s)\n", e.Expected, e.Min, upTo)
	for _, p := range e.PerPool {
		switch {
		case p.Paused:
			fmt.Fprintf(&b, "pool %s: paused\n", p.Pool)
		case p.Unbounded:
			fmt.Fprintf(&b, "pool %s: %d at a time, %v to %v if nothing blocks it\n", p.Pool, p.Slots, p.Begin.Expected, p.End.Expected)
		default:
			fmt.Fprintf(&b, "pool %s: %d at a time, %v to %v\n", p.Pool, p.Slots, p.Begin.Expected, p.End.Expected)
		}
	}
	for _, x := range e.Unbounded {
		fmt.Fprintf(&b, "blocked: pool %s, node %s: %s\n", x.Pool, x.Node, x.Text)
	}
	for _, w := range e.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	for _, a := range e.Assumptions {
		fmt.Fprintf(&b, "assumed: %s\n", a)
	}
	return b.String()
}
