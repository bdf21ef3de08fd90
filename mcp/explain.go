package mcp

import (
	"fmt"
	"iter"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// The kinds of a [Verdict].
const (
	verdictNotInPool            = "NotInPool"
	verdictPoolBlocked          = "PoolBlocked"
	verdictDeleting             = "Deleting"
	verdictUpToDate             = "UpToDate"
	verdictFailing              = "Failing"
	verdictInProgress           = "InProgress"
	verdictNotReady             = "NotReady"
	verdictDeferredOperatorNode = "DeferredOperatorNode"
	verdictCustomPoolBoot       = "CustomPoolBoot"
	verdictNoCapacity           = "NoCapacity"
	verdictSelected             = "Selected"
)

// hintStuckFailing marks a node that failed, is cordoned, and so is not given a
// corrected config until somebody uncordons it.
const hintStuckFailing = "StuckFailing"

// Verdict is what a decision made of one node, and why.
type Verdict struct {
	// Kind is the first of the following that holds:
	//
	//	NotInPool             the node does not exist, or another pool, or none,
	//	                      counts it
	//	PoolBlocked           nothing of the pool is updated now; of a pool that is
	//	                      blocked because of its selector, all nodes have it
	//	Deleting              the node is being deleted
	//	UpToDate              the node has what the pool wants
	//	Failing               the node fails on its way there and takes capacity
	//	InProgress            the node is on its way
	//	NotReady              the node is to be updated but not fit for it
	//	DeferredOperatorNode  the node runs the machine-config operator and goes last
	//	CustomPoolBoot        the node booted into a custom pool and gets its labels
	//	                      first
	//	NoCapacity            others go first
	//	Selected              the node is to be targeted now
	Kind string
	// Block determines which, for PoolBlocked.
	Block Block
	// Text is the reason in words.
	Text string
	// Hint is StuckFailing or empty.
	Hint string
	// Holders names the nodes that have the capacity, for NoCapacity:
	// those that take it, those that are held, those that are selected. It may
	// be shared with other verdicts: do not change it.
	Holders []string
}

// Explain describes what the present decision for a pool makes of a node.
func (s *State) Explain(pool, node string) Verdict {
	return s.newExplainer(pool).explain(node)
}

// Explanations explains every node that the pool counts, by name.
func (s *State) Explanations(pool string) iter.Seq2[string, Verdict] {
	return func(yield func(string, Verdict) bool) {
		e := s.newExplainer(pool)
		for _, name := range s.Nodes(pool) {
			if !yield(name, e.explain(name)) {
				return
			}
		}
	}
}

// explainer explains nodes by one decision.
type explainer struct {
	s        *State
	sel      Selection
	pool     *poolRecord // nil if absent
	selected sets.Set[string]
	boots    map[string]string // node → pool that it booted into
	full     Verdict           // the same for all nodes that have to wait; made when first needed
}

func (s *State) newExplainer(pool string) *explainer {
	e := &explainer{s: s, sel: s.Candidates(pool), pool: s.pools[pool], boots: map[string]string{}}
	e.selected = sets.New(e.sel.Nodes...)
	for _, b := range e.sel.Boots {
		e.boots[b.Node] = b.Pool
	}
	return e
}

// explain walks down the table of verdicts.
func (e *explainer) explain(node string) Verdict {
	n, p := e.s.nodes[node], e.pool
	blocked := Verdict{Kind: verdictPoolBlocked, Block: e.sel.Block, Text: e.sel.Block.Text}
	if p == nil || n == nil || n.pool != p {
		if k := e.sel.Block.Kind; n != nil && (k == BlockSelectingAll || k == BlockInvalidSelector) {
			return blocked // why no node is in it
		}
		return Verdict{Kind: verdictNotInPool, Block: e.sel.Block, Text: e.s.whyNotInPool(e.sel.Pool, n, node)}
	}
	c, st := &n.class, &n.state
	switch {
	case e.sel.Block.Kind != BlockNone:
		return blocked
	case st.Deleting && !e.s.o.Compat:
		return Verdict{Kind: verdictDeleting, Text: fmt.Sprintf("node %s is being deleted", node)}
	case !c.candidate && st.Done():
		return Verdict{Kind: verdictUpToDate, Text: fmt.Sprintf("node %s has %s", node, p.goal.Target())}
	case !c.candidate && c.mcdFailing:
		return Verdict{Kind: verdictFailing, Text: fmt.Sprintf("node %s is %s and takes a unit of capacity: %s", node, st.State, st.Reason)}
	case !c.candidate:
		phase, stuck := e.s.Phase(node)
		return Verdict{Kind: verdictInProgress, Text: fmt.Sprintf("node %s is on its way to %s: %s", node, p.goal.Target(), phase.In(stuck))}
	case !c.eligible:
		v := Verdict{Kind: verdictNotReady, Text: st.NotReadyText()}
		if c.mcdFailing && st.Unschedulable {
			v.Hint = hintStuckFailing
			v.Text += "; it is " + st.State + " and cordoned, so a corrected config does not reach it: uncordon it"
		}
		return v
	case node == e.sel.Deferred:
		return Verdict{Kind: verdictDeferredOperatorNode, Text: fmt.Sprintf(TextDeferring, node)}
	case e.boots[node] != "":
		return Verdict{Kind: verdictCustomPoolBoot, Text: fmt.Sprintf("node %s booted into pool %s and gets its labels first", node, e.boots[node])}
	case !e.selected.Has(node):
		return e.noCapacity()
	}
	return Verdict{Kind: verdictSelected, Text: fmt.Sprintf("node %s is next for %s", node, e.sel.Target)}
}

func (e *explainer) noCapacity() Verdict {
	if e.full.Kind == "" {
		holders := e.s.capacityHolders(e.pool, &e.sel)
		text := fmt.Sprintf("maxUnavailable is %d", e.sel.MaxUnavailable)
		if len(holders) > 0 {
			text += ", taken by " + strings.Join(holders, ", ")
		}
		e.full = Verdict{Kind: verdictNoCapacity, Text: text, Holders: holders}
	}
	return e.full
}

// capacityHolders names who has the capacity of a pool.
func (s *State) capacityHolders(p *poolRecord, sel *Selection) []string {
	holders := p.holderNames()
	for n := range p.held.All() {
		holders = append(holders, n.state.Name)
	}
	known := sets.New(holders...)
	for _, name := range sel.Nodes {
		if !known.Has(name) {
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
