package mcp

import (
	"slices"
	"time"
)

// EstimateView is what an estimate of a running update uses beside the objects. The
// zero value is nothing.
type EstimateView struct {
	// Drains predicts the drains; nil: they are not predicted.
	Drains *DrainView
	// History tells since when nodes are in their phases, as of Now; nil: it is taken
	// that they have just begun.
	History *History
	Now     time.Time
}

// EstimatePool describes what is left to do in a pool, for [EstimateUpdate]: its
// nodes that are on their way, and those that wait in the order in which they will be
// taken. A node on its way to what the pool no longer wants is both: it finishes that
// first. A pool that does not exist is empty. It costs O(n log n), and a prediction
// for each node that is still to be drained.
func (s *State) EstimatePool(pool string, v EstimateView) EstimatePool {
	out := EstimatePool{Name: pool, MaxUnavailable: 1}
	p := s.pools[pool]
	if p == nil {
		return out
	}
	out.Paused = p.pool.Spec.Paused
	if limit, _, err := MaxUnavailable(p.pool, p.n.total); err != nil {
		out.Stuck = append(out.Stuck, Blocker{Pool: pool, Text: err.Error()})
	} else {
		out.MaxUnavailable = limit
	}
	switch b, _ := s.block(p); b.Kind {
	case BlockNone, BlockPaused, BlockArbiterWaits: // the last ends by itself
	default:
		out.Stuck = append(out.Stuck, Blocker{Pool: pool, Text: b.Text})
	}
	add := func(n *nodeRecord, phase Phase) {
		e := EstimateNode{Name: n.state.Name, Phase: phase}
		if phase != "" && v.History != nil {
			if since, ok := v.History.Since(e.Name); ok {
				e.In = max(v.Now.Sub(since), 0)
			}
		}
		if v.Drains != nil && stepAt(phase) < stepApply {
			d := DrainPlan(e.Name, *v.Drains)
			e.Drain = &d
		}
		out.Nodes = append(out.Nodes, e)
	}
	var again []*nodeRecord // on their way to an earlier target
	for _, n := range sortedValues(p.nodes) {
		switch phase, stuck := s.Phase(n.state.Name); {
		case n.state.Deleting, n.class.eligible, n.class.ready:
		case n.class.candidate && stepAt(phase) >= 0 && phase != PhaseJoining:
			add(n, phase)
			again = append(again, n)
		case n.class.candidate:
			out.Stuck = append(out.Stuck, Blocker{pool, n.state.Name, n.state.NotReadyText()})
		case phase == PhaseFailed:
			out.Stuck = append(out.Stuck, Blocker{pool, n.state.Name, "node " + n.state.Name + ": " + phase.In(stuck) + ": " + n.state.Reason})
		case phase == PhaseDone:
			out.Stuck = append(out.Stuck, Blocker{pool, n.state.Name, n.state.NotReadyText()})
		default:
			add(n, phase)
		}
	}
	for _, n := range s.inOrder(p) {
		add(n, "")
	}
	for _, n := range again { // with other pods by then, which nobody knows
		out.Nodes = append(out.Nodes, EstimateNode{Name: n.state.Name})
	}
	return out
}

// inOrder are the nodes that wait and can be taken, in the order in which they are.
func (s *State) inOrder(p *poolRecord) []*nodeRecord {
	var first, last []*nodeRecord
	var operator *nodeRecord
	first = slices.AppendSeq(first, p.held.All())
	for n := range p.eligible.All() {
		switch {
		case p.name == PoolMaster && n.state.Name == s.operatorNode():
			operator = n
		case s.last[n.state.Name]:
			last = append(last, n)
		default:
			first = append(first, n)
		}
	}
	first = append(first, last...)
	if operator != nil {
		first = append(first, operator)
	}
	return first
}
