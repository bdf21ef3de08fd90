package mcp

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// VerdictKind says what a decision made of one node.
type VerdictKind string

// The kinds of a [Verdict]; the first that holds, in this order.
const (
	// VerdictNotInPool: the node does not exist or another pool, or none,
	// counts it.
	VerdictNotInPool VerdictKind = "NotInPool"
	// VerdictPoolBlocked: nothing of the pool is updated now.
	VerdictPoolBlocked VerdictKind = "PoolBlocked"
	// VerdictDeleting: the node is being deleted.
	VerdictDeleting VerdictKind = "Deleting"
	// VerdictUpToDate: the node has what the pool wants.
	VerdictUpToDate VerdictKind = "UpToDate"
	// VerdictFailing: the node fails on its way there and takes capacity.
	VerdictFailing VerdictKind = "Failing"
	// VerdictInProgress: the node is on its way.
	VerdictInProgress VerdictKind = "InProgress"
	// VerdictNotReady: the node is to be updated but not fit for it.
	VerdictNotReady VerdictKind = "NotReady"
	// VerdictDeferredOperatorNode: the node runs the machine-config operator
	// and goes last.
	VerdictDeferredOperatorNode VerdictKind = "DeferredOperatorNode"
	// VerdictCustomPoolBoot: the node booted into a custom pool and gets its
	// labels first.
	VerdictCustomPoolBoot VerdictKind = "CustomPoolBoot"
	// VerdictNoCapacity: others go first.
	VerdictNoCapacity VerdictKind = "NoCapacity"
	// VerdictSelected: the node is to be targeted now.
	VerdictSelected VerdictKind = "Selected"
)

// HintStuckFailing marks a node that failed, is cordoned, and so is not given a
// corrected config until somebody uncordons it.
const HintStuckFailing = "StuckFailing"

// Verdict is what a decision made of one node, and why.
type Verdict struct {
	Kind VerdictKind
	// Block says which, for VerdictPoolBlocked.
	Block Block
	// Text is the reason in words.
	Text string
	// Hint is HintStuckFailing or empty.
	Hint string
	// Holders names the nodes that have the capacity, for VerdictNoCapacity:
	// those that take it, those that are held, those that are selected.
	Holders []string
}

// Explain says what the present decision for a pool makes of a node.
func (s *State) Explain(pool, node string) Verdict {
	sel := s.Candidates(pool)
	return s.explain(&sel, s.nodes[node], node, nil)
}

// Explanations explains every node that the pool counts, by name.
func (s *State) Explanations(pool string) iter.Seq2[string, Verdict] {
	return func(yield func(string, Verdict) bool) {
		p := s.pools[pool]
		if p == nil {
			return
		}
		sel := s.Candidates(pool)
		holders := s.capacityHolders(p, &sel)
		for _, name := range slices.Sorted(maps.Keys(p.nodes)) {
			if !yield(name, s.explain(&sel, p.nodes[name], name, holders)) {
				return
			}
		}
	}
}

// explain walks down the table of verdicts. holders may be nil: then they are
// looked up if the verdict names them.
func (s *State) explain(sel *Selection, n *nodeRecord, node string, holders []string) Verdict {
	p := s.pools[sel.Pool]
	if p == nil || n == nil || n.pool != p {
		return Verdict{Kind: VerdictNotInPool, Block: sel.Block, Text: s.whyNotInPool(sel.Pool, n, node)}
	}
	c, st := &n.class, &n.state
	boot := slices.IndexFunc(sel.Boots, func(b Boot) bool { return b.Node == node })
	switch {
	case sel.Block.Kind != BlockNone:
		return Verdict{Kind: VerdictPoolBlocked, Block: sel.Block, Text: sel.Block.Text}
	case st.Deleting && !s.o.Compat:
		return Verdict{Kind: VerdictDeleting, Text: fmt.Sprintf("node %s is being deleted", node)}
	case !c.candidate && st.Done():
		return Verdict{Kind: VerdictUpToDate, Text: fmt.Sprintf("node %s has %s", node, p.goal.Target())}
	case !c.candidate && c.mcdFailing:
		return Verdict{Kind: VerdictFailing, Text: fmt.Sprintf("node %s is %s and takes a unit of capacity: %s", node, st.State, st.Reason)}
	case !c.candidate:
		phase, stuck := PhaseOf(*st)
		return Verdict{Kind: VerdictInProgress, Text: fmt.Sprintf("node %s is on its way to %s: %s", node, p.goal.Target(), phase.in(stuck))}
	case !c.eligible:
		v := Verdict{Kind: VerdictNotReady, Text: st.NotReadyText()}
		if c.mcdFailing && st.Unschedulable {
			v.Hint = HintStuckFailing
			v.Text += "; it is " + st.State + " and cordoned, so a corrected config does not reach it: uncordon it"
		}
		return v
	case node == sel.Deferred:
		return Verdict{Kind: VerdictDeferredOperatorNode, Text: fmt.Sprintf(textDeferring, node)}
	case boot >= 0:
		return Verdict{Kind: VerdictCustomPoolBoot, Text: fmt.Sprintf("node %s booted into pool %s and gets its labels first", node, sel.Boots[boot].Pool)}
	case !slices.Contains(sel.Nodes, node):
		if holders == nil {
			holders = s.capacityHolders(p, sel)
		}
		text := fmt.Sprintf("maxUnavailable is %d", sel.MaxUnavailable)
		if len(holders) > 0 {
			text += ", taken by " + strings.Join(holders, ", ")
		}
		return Verdict{Kind: VerdictNoCapacity, Text: text, Holders: holders}
	}
	return Verdict{Kind: VerdictSelected, Text: fmt.Sprintf("node %s is next for %s", node, sel.Target)}
}

const textDeferring = "Deferring update of machine config operator node %s"

// capacityHolders names who has the capacity of a pool.
func (s *State) capacityHolders(p *poolRecord, sel *Selection) []string {
	holders := p.holderNames()
	for n := range p.held.All() {
		holders = append(holders, n.state.Name)
	}
	for _, name := range sel.Nodes {
		if !slices.Contains(holders, name) {
			holders = append(holders, name)
		}
	}
	if p.name == PoolMaster && s.arbiterDown() {
		for n := range s.pools[PoolArbiter].holders.All() {
			if n.class.unavailable {
				holders = append(holders, n.state.Name)
			}
		}
	}
	return holders
}

func (s *State) whyNotInPool(pool string, n *nodeRecord, node string) string {
	switch {
	case n == nil:
		return fmt.Sprintf("there is no node %s", node)
	case s.pools[pool] == nil:
		return fmt.Sprintf("there is no pool %s", pool)
	}
	_, a, _ := s.Node(node)
	if a.Err != nil {
		return a.Err.Error()
	}
	for _, m := range s.membership.Explain(n.labels) {
		if m.Pool == pool {
			return m.Why
		}
	}
	return ""
}
