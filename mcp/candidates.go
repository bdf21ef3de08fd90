package mcp

import (
	"fmt"
	"slices"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Selection is the decision which nodes of a pool to target now.
type Selection struct {
	Pool   string
	Target Target
	// Nodes are the nodes to target, in this order.
	Nodes []string
	// Zones are the zones of Nodes, one each; "" if a node has none.
	Zones []string
	// Capacity is how many nodes could be targeted now.
	Capacity int
	// MaxUnavailable is what the pool allows; 0 if that is not known.
	MaxUnavailable int
	// Candidates counts the nodes that are ready to be targeted, whether or
	// not there is capacity for them.
	Candidates int
	// Held counts those of them that go first since they may go down in any case.
	Held int
	// Deferred is the node that runs the machine-config operator, if it is
	// kept for last.
	Deferred string
	// Boots are nodes that booted into a custom pool: they get its labels, not
	// a target.
	Boots []Boot
	// Block describes what keeps the whole pool from being updated; its zero value
	// is that nothing does.
	Block Block
	// Warnings are about settings that are accepted but dangerous.
	Warnings []string
	// Err is why there is no decision: an invalid selector or maxUnavailable,
	// a failed image build, a missing arbiter pool.
	Err error
}

// Boot is a node that gets the labels of the pool that it booted into.
type Boot struct {
	Node   string
	Pool   string
	Labels map[string]string
}

// BlockKind describes what keeps a whole pool from being updated.
type BlockKind string

// The kinds of a [Block].
const (
	BlockNone                  BlockKind = ""
	BlockNoPool                BlockKind = "NoPool"
	BlockInvalidSelector       BlockKind = "InvalidSelector"
	BlockUnconfigured          BlockKind = "Unconfigured"
	BlockSelectingAll          BlockKind = "SelectingAll"
	BlockDeleted               BlockKind = "Deleted"
	BlockPaused                BlockKind = "Paused"
	BlockBuildNotReady         BlockKind = "BuildNotReady"
	BlockArbiterWaits          BlockKind = "ArbiterWaits"
	BlockArbiterMissing        BlockKind = "ArbiterMissing"
	BlockInvalidMaxUnavailable BlockKind = "InvalidMaxUnavailable"
)

// Block is what keeps a whole pool from being updated.
type Block struct {
	Kind BlockKind
	Text string
}

// Snapshot is a cluster at one moment, for decisions that are made once.
type Snapshot struct {
	Objects
	Options Options
	Now     metav1.Time // for transition times of conditions
}

// Candidates decides which nodes of a pool to target now. To decide again and
// again as objects change, use a [State].
func Candidates(in Snapshot, pool string) Selection {
	return NewState(in.Objects, in.Options).Candidates(pool)
}

// Candidates decides which nodes of a pool to target now. It costs
// O((k + d) log n) for k nodes selected and d passed over.
func (s *State) Candidates(pool string) Selection {
	sel := Selection{Pool: pool}
	p := s.pools[pool]
	sel.Block, sel.Err = s.block(p)
	if sel.Block.Kind != BlockNone {
		return sel
	}
	sel.Target = p.goal.Target()
	sel.Candidates = p.eligible.Len() + p.held.Len()
	sel.Held = p.held.Len()
	sel.Capacity, sel.MaxUnavailable, sel.Warnings, sel.Err = s.capacity(p)
	if sel.Err != nil {
		sel.Block = Block{Kind: BlockInvalidMaxUnavailable, Text: sel.Err.Error()}
		return sel
	}
	if sel.Capacity > 0 {
		s.choose(p, &sel)
	}
	return sel
}

// block describes what keeps the pool from being updated, in the order in which a
// sync finds it out.
func (s *State) block(p *poolRecord) (Block, error) {
	if p == nil {
		return Block{BlockNoPool, "there is no such pool"}, nil
	}
	if err := s.selectorError(p.name); err != nil {
		return Block{BlockInvalidSelector, err.Error()}, err
	}
	switch {
	case p.goal.Config == "":
		return Block{BlockUnconfigured, "the pool has no rendered configuration yet"}, nil
	case SelectsAll(p.pool.Spec.NodeSelector):
		return Block{BlockSelectingAll, TextSelectingAll}, nil
	case p.pool.DeletionTimestamp != nil:
		return Block{BlockDeleted, "the pool is being deleted"}, nil
	case p.pool.Spec.Paused:
		return Block{BlockPaused, "the pool is paused"}, nil
	}
	if p.goal.Layered {
		if ok, text, err := p.build.ready(); !ok {
			return Block{BlockBuildNotReady, text}, err
		}
	}
	if p.name == PoolArbiter {
		if text := s.arbiterWaits(); text != "" {
			return Block{BlockArbiterWaits, text}, nil
		}
	}
	if p.name == PoolMaster && s.topology == TopologyHighlyAvailableArbiter && s.pools[PoolArbiter] == nil {
		err := fmt.Errorf("arbiter pool %q not found in HighlyAvailableArbiterMode; cluster may be misconfigured", PoolArbiter)
		return Block{BlockArbiterMissing, err.Error()}, err
	}
	return Block{}, nil
}

func (s *State) selectorError(pool string) error {
	for _, issue := range s.issues {
		if issue.Pool == pool {
			return issue.Err
		}
	}
	return nil
}

// arbiterWaits explains why the arbiter must not be updated now; "" if it may. The
// arbiter goes after the masters, and never while one of them is down.
func (s *State) arbiterWaits() string {
	m := s.pools[PoolMaster]
	switch {
	case m == nil:
		return "there is no pool master"
	case s.topology != TopologyHighlyAvailableArbiter:
		return "the control plane topology is not " + TopologyHighlyAvailableArbiter
	case m.n.unavailable > 0:
		return fmt.Sprintf("%d nodes of pool master are unavailable", m.n.unavailable)
	case !s.o.Compat && m.n.mcdFailing > 0:
		return fmt.Sprintf("%d nodes of pool master are failing", m.n.mcdFailing)
	case m.pool.Spec.Paused:
		return ""
	}
	// The arbiter is looked at only right after a master sync that went all
	// the way.
	if b, _ := s.block(m); b.Kind != BlockNone {
		return "pool master cannot be updated: " + b.Text
	}
	_, limit, _, err := s.capacity(m)
	if err != nil {
		return "pool master cannot be updated: " + err.Error()
	}
	waiting := m.n.candidates
	if s.o.Compat {
		waiting = m.eligible.Len() + m.held.Len()
		if s.free(m, limit) == 0 {
			waiting = 0 // as the controller's list of candidates is then empty
		}
	}
	if waiting > 0 {
		return fmt.Sprintf("%d nodes of pool master are to be updated first", waiting)
	}
	return ""
}

// capacity returns how many nodes may be targeted now, never less than 0.
func (s *State) capacity(p *poolRecord) (capacity, limit int, warnings []string, err error) {
	if s.o.Compat {
		limit, err = maxUnavailable(p.pool, p.n.total)
	} else {
		limit, warnings, err = MaxUnavailable(p.pool, p.n.total)
	}
	if err != nil {
		return 0, 0, nil, err
	}
	if p.name == PoolMaster && s.arbiterDown() {
		return 0, limit, warnings, nil
	}
	return s.free(p, limit), limit, warnings, nil
}

// free is what is left of maxUnavailable, never less than 0. A node that is
// unavailable and failing counts once, except under Compat.
func (s *State) free(p *poolRecord, limit int) int {
	taken := p.n.unavailable + p.n.failingOnly
	if s.o.Compat {
		taken = p.n.unavailable + p.n.failing
	}
	if taken >= limit {
		return 0
	}
	return limit - taken
}

// arbiterDown reports that a master must not go down as well.
func (s *State) arbiterDown() bool {
	a := s.pools[PoolArbiter]
	return s.topology == TopologyHighlyAvailableArbiter && a != nil && a.n.unavailable > 0
}

// choose picks nodes in order. The controller's filters come before its cut,
// so a node that they pass over frees its place for the next.
func (s *State) choose(p *poolRecord, sel *Selection) {
	if p.name == PoolMaster && sel.Candidates > 1 {
		if n := s.nodes[s.operatorNode()]; n != nil && n.pool == p && n.class.eligible && !n.class.held {
			sel.Deferred = n.state.Name
		}
	}
	for n := range p.boots.All() {
		if n.state.Name != sel.Deferred {
			boot := s.bootPool(n.state)
			sel.Boots = append(sel.Boots, Boot{
				Node: n.state.Name, Pool: boot.name, Labels: selectorLabels(boot.pool.Spec.NodeSelector),
			})
		}
	}
	take := func(n *nodeRecord) {
		sel.Nodes = append(sel.Nodes, n.state.Name)
		sel.Zones = append(sel.Zones, n.state.Zone)
	}
	for n := range p.held.All() {
		if len(sel.Nodes) == sel.Capacity {
			return
		}
		if !n.class.boot {
			take(n)
		}
	}
	left := sel.Capacity - p.held.Len()
	if left <= 0 {
		return
	}
	var last []*nodeRecord
	for n := range s.inTurn(p, sel.Deferred) {
		switch {
		case left == 0:
			return
		case s.last[n.state.Name]:
			last = append(last, n)
		default:
			take(n)
			left--
		}
	}
	for _, n := range last[:min(left, len(last))] {
		take(n)
	}
}

// selectorLabels are the labels that make a node match a selector, as far as they
// can be derived from it.
func selectorLabels(s *metav1.LabelSelector) map[string]string {
	if s == nil {
		return nil
	}
	out := map[string]string{}
	for k, v := range s.MatchLabels {
		out[k] = v
	}
	for _, e := range s.MatchExpressions {
		switch {
		case e.Operator == metav1.LabelSelectorOpIn && len(e.Values) == 1:
			out[e.Key] = e.Values[0]
		case e.Operator == metav1.LabelSelectorOpExists:
			out[e.Key] = ""
		}
	}
	return out
}

// TaintChange is a node whose taint UpdateInProgress is to be set or removed.
type TaintChange struct {
	Node string
	Add  bool
}

// Taints returns, by name of node, where the taint UpdateInProgress is not as
// it should be: on every node that waits for its target. It costs
// O(changes). A pool that is not being updated keeps its taints.
func (s *State) Taints(pool string) []TaintChange {
	p := s.pools[pool]
	if !s.rolls(p) {
		return nil
	}
	var changes []TaintChange
	for n := range p.taints.All() {
		changes = append(changes, TaintChange{Node: n.state.Name, Add: !n.state.UpdateTaint})
	}
	return changes
}

// Topology returns, by name, the nodes of a pool whose annotation of the
// control plane topology is not the cluster's, and the cluster's.
func (s *State) Topology(pool string) (nodes []string, topology string) {
	p := s.pools[pool]
	if !s.rolls(p) {
		return nil, s.topology
	}
	for n := range p.topology.All() {
		nodes = append(nodes, n.state.Name)
	}
	return nodes, s.topology
}

// rolls reports that a sync of the pool gets as far as its nodes.
func (s *State) rolls(p *poolRecord) bool {
	if b, _ := s.block(p); b.Kind != BlockNone {
		return false
	}
	_, _, _, err := s.capacity(p)
	return err == nil
}

// StaleBuild returns the MachineOSConfig of a pool if its annotation names a
// build that is gone or was made for another config, so that it has to go.
func (s *State) StaleBuild(pool string) *mcfgv1.MachineOSConfig {
	if p := s.pools[pool]; p != nil && p.build.stale {
		return p.build.config
	}
	return nil
}

// holderNames are the names of the nodes that take capacity, sorted.
func (p *poolRecord) holderNames() []string {
	names := make([]string, 0, p.holders.Len())
	for n := range p.holders.All() {
		names = append(names, n.state.Name)
	}
	return slices.Clip(names)
}
