package mcp

import (
	"cmp"
	"iter"
	"slices"
)

// inTurn are the nodes of a pool that may be targeted and are not held, in the order
// in which they are. deferred is left out.
func (s *State) inTurn(p *poolRecord, deferred string) iter.Seq[*nodeRecord] {
	return func(yield func(*nodeRecord) bool) {
		window := s.budgetWindow()
		var first []*nodeRecord // of the zone that comes first, to be put in another order
		flush := func() bool {
			window = 0
			s.byBudgets(first)
			for _, n := range first {
				if !yield(n) {
					return false
				}
			}
			return true
		}
		for n := range p.eligible.All() {
			if n.state.Name == deferred || n.class.boot {
				continue
			}
			if window > 0 {
				sameZone := len(first) == 0 || n.state.HasZone == first[0].state.HasZone && n.state.Zone == first[0].state.Zone
				if sameZone && len(first) < window {
					// Nodes that go last in any case are not predicted.
					if !s.last[n.state.Name] {
						first = append(first, n)
						continue
					}
				} else if !flush() {
					return
				}
			}
			if !yield(n) {
				return
			}
		}
		if window > 0 {
			flush()
		}
	}
}

func (s *State) budgetWindow() int {
	switch {
	case s.o.Order.Budgets == nil:
		return 0
	case s.o.Order.BudgetWindow > 0:
		return s.o.Order.BudgetWindow
	}
	return 50
}

// byBudgets sorts nodes by what budgets make of their drains, each alone.
func (s *State) byBudgets(nodes []*nodeRecord) {
	if len(nodes) < 2 {
		return
	}
	view := s.o.Order.Budgets()
	drains := make(map[*nodeRecord]drainCost, len(nodes))
	for _, n := range nodes {
		drains[n] = costOf(DrainPlan(n.state.Name, view))
	}
	slices.SortStableFunc(nodes, func(a, b *nodeRecord) int { return drains[a].compare(drains[b]) })
}

// drainCost is how easily a node is drained.
type drainCost struct{ blocked, waves int }

func costOf(d Drain) drainCost {
	c := drainCost{waves: len(d.Waves)}
	if !d.Succeeds() {
		c.blocked = 1
	}
	return c
}

func (a drainCost) compare(b drainCost) int {
	return cmp.Or(cmp.Compare(a.blocked, b.blocked), cmp.Compare(a.waves, b.waves))
}
