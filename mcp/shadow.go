package mcp

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ShadowOptions are the options of a [Shadow].
type ShadowOptions struct {
	// Grace is how long the other controller may lag behind what is seen here, and
	// the other way round, since each sees the cluster a little later than it is;
	// 0: a minute. A negative one grants nothing, for recordings that are exact.
	Grace time.Duration
	// Skew is how much later than a node the object may be seen that was the reason
	// to target it, as where each kind has a watch of its own; 0: 10 s, negative:
	// nothing.
	Skew time.Duration
}

func graceOr(d, usual time.Duration) time.Duration {
	if d == 0 {
		return usual
	}
	return max(d, 0)
}

// The kinds of a [Difference].
const (
	// differenceNotSelected: a node was targeted that would have had to wait.
	differenceNotSelected = "NotSelected"
	// differenceTarget: a node was given something else than its pool's target.
	differenceTarget = "Target"
	// differenceIdle: a node was not targeted although it was its turn.
	differenceIdle = "Idle"
	// differenceStatus: counts or conditions of a pool are others.
	differenceStatus = "Status"
	// differenceTaint: a node has the taint UpdateInProgress and should not, or the
	// other way round.
	differenceTaint = "Taint"
)

// Difference is a decision that another controller took and that would have been
// another one here.
type Difference struct {
	// Kind is NotSelected, Target, Idle, Status or Taint.
	Kind string
	// Time is when it was taken, as far as that was seen.
	Time time.Time
	Pool string
	Node string // empty for a pool's status
	// Theirs and Ours say what each decided, and Verdict what is made of the node
	// here, and why. Verdict is empty for Status.
	Theirs, Ours string
	Verdict      Verdict
}

// Shadow follows a cluster whose nodes another controller updates, and compares each
// of its decisions with those of a [State]: which nodes it targets and to what, the
// status that it writes into pools, and its taints. It never writes. It is not safe
// for concurrent use.
//
// A decision is seen only by what it changes, and later than it was taken. So one
// agrees if it would have been taken here at some time up to Grace before it was seen,
// whatever else has changed in between, or up to Skew after it. Each unit of capacity
// explains one target. Nodes that stand at the same place of the order, of one zone
// and one age, may go in any order.
type Shadow struct {
	state       *State
	grace, skew time.Duration

	pools   map[string]*shadowPool
	claims  []*claim
	regular time.Time // of the check that is due anyhow
	next    time.Time // of the next check; zero: there is nothing to check
}

// shadowPool is what is remembered of a pool.
type shadowPool struct {
	sel      Selection
	turns    []turn       // the last one is now
	statuses []pastStatus // that would have been written here
	outdated time.Time    // when the status that is there is too old; zero: it is not
	unlike   disagreement // its status is another one
	idle     disagreement // nobody is targeted
	taints   map[TaintChange]*disagreement
}

// turn is which nodes might have been targeted.
type turn struct {
	target Target
	nodes  map[string]bool
	left   int       // how many of them
	until  time.Time // it was so until then
}

func (t *turn) equal(o *turn) bool {
	return t.target == o.target && t.left == o.left && maps.Equal(t.nodes, o.nodes)
}

// pastStatus is a status in words, and until when it would have been written.
type pastStatus struct {
	text  string
	until time.Time // zero: still
}

// disagreement is something that differs, since when, and whether it was told.
type disagreement struct {
	since time.Time // zero: nothing differs
	what  string
	told  bool
}

// claim is a node that was targeted, until it is known whether that agrees.
type claim struct {
	diff   Difference
	target Target
	before NodeState
	until  time.Time
}

// NewShadow compares with the decisions of s, by its options: with Compat, to find
// where the other controller or this package is at fault; without, to see also where
// this one does better. s belongs to the shadow from now on: what changes goes through
// [Shadow.Apply].
func NewShadow(s *State, o ShadowOptions, now time.Time) *Shadow {
	h := &Shadow{state: s, pools: map[string]*shadowPool{}, grace: graceOr(o.Grace, time.Minute), skew: graceOr(o.Skew, 10*time.Second)}
	h.look(now)
	h.plan(now)
	return h
}

// State returns the state that decisions are compared with. Do not change it.
func (h *Shadow) State() *State { return h.state }

// Apply takes in a change, as [State.Apply] does, at the time when it was seen.
// Changes must come in the order in which they happened to each object, and times must
// not go back.
func (h *Shadow) Apply(now time.Time, c Change) (changed []string, found []Difference) {
	var made *claim
	if n, ok := c.Object.(*corev1.Node); ok && !c.Deleted {
		made = h.claimOf(now, NodeStateOf(n))
	}
	changed = h.state.Apply(c)
	if made != nil {
		h.claims = append(h.claims, made)
	}
	h.look(now)
	return changed, h.settle(now)
}

// Check says what has come out by now although nothing changed. Call it at
// [Shadow.Next].
func (h *Shadow) Check(now time.Time) []Difference {
	h.regular = time.Time{}
	h.look(now)
	found := h.settle(now)
	for _, name := range h.state.Pools() {
		p := h.pools[name]
		if d, ok := h.idle(now, name, p); ok {
			found = append(found, d)
		}
		if d, ok := h.unlike(now, name, p); ok {
			found = append(found, d)
		}
		found = append(found, h.wrongTaints(now, name, p)...)
	}
	h.plan(now)
	return found
}

// Next returns when to call Check; zero: when something has changed.
func (h *Shadow) Next() time.Time { return h.next }

// claimOf looks at a node that is about to change: whether it was targeted.
func (h *Shadow) claimOf(now time.Time, n NodeState) *claim {
	old, assign, known := h.state.Node(n.Name)
	target := Target{Config: n.DesiredConfig, Image: n.DesiredImage}
	// The first target of a node is not the controller's: its daemon reads it from
	// what the node was installed with.
	if !known || !old.Managed() || target == (Target{Config: old.DesiredConfig, Image: old.DesiredImage}) {
		return nil
	}
	c := &claim{target: target, before: old, until: now.Add(h.skew)}
	c.diff = Difference{Kind: differenceNotSelected, Time: now, Pool: assign.Primary, Node: n.Name,
		Theirs: "targeted to " + target.String(), Verdict: h.state.Explain(assign.Primary, n.Name)}
	if goal := h.state.Goal(assign.Primary).Target(); assign.Primary != "" && goal != target {
		c.diff.Kind, c.diff.Ours = differenceTarget, "its pool's target is "+goal.String()
	} else {
		c.diff.Ours = string(c.diff.Verdict.Kind) + ": " + c.diff.Verdict.Text
	}
	return c
}

// settle decides about claims, and returns those that did not turn out to agree in
// time.
func (h *Shadow) settle(now time.Time) (found []Difference) {
	h.claims = slices.DeleteFunc(h.claims, func(c *claim) bool {
		switch {
		case h.agrees(c, now):
			return true
		case now.Before(c.until):
			return false
		}
		found = append(found, c.diff)
		return true
	})
	h.plan(now)
	return found
}

// agrees says that a node might have been targeted here at some time not long before
// it was, or might be now if it had not been. It uses up the capacity that it took.
func (h *Shadow) agrees(c *claim, now time.Time) bool {
	n := h.state.nodes[c.before.Name]
	if n == nil || n.pool == nil {
		return false
	}
	p, agrees := h.pools[n.pool.name], false
	for _, t := range p.turns {
		agrees = agrees || t.target == c.target && t.left > 0 && t.nodes[c.before.Name] && !c.diff.Time.After(t.until.Add(h.grace))
	}
	if !agrees {
		h.state.pretend(n, c.before, func() {
			t, _ := h.turnOf(n.pool.name)
			agrees = t.target == c.target && t.nodes[c.before.Name]
		})
	}
	if agrees {
		for i := range p.turns[:len(p.turns)-1] { // the last has it already
			t := &p.turns[i]
			t.left--
			delete(t.nodes, c.before.Name)
		}
	}
	return agrees
}

// pretend calls f with a node as it was before.
func (s *State) pretend(n *nodeRecord, before NodeState, f func()) {
	now := n.state
	put := func(state NodeState) {
		s.leave(n)
		n.state = state
		s.join(n)
	}
	put(before)
	f()
	put(now)
}

// turnOf returns which nodes may be targeted in a pool, with those that stand at the
// same place of the order as the last of them.
func (h *Shadow) turnOf(pool string) (turn, Selection) {
	s := h.state
	sel := s.Candidates(pool)
	t := turn{target: sel.Target, nodes: make(map[string]bool, len(sel.Nodes)), left: len(sel.Nodes)}
	for _, name := range sel.Nodes {
		t.nodes[name] = true
	}
	if t.left == 0 {
		return t, sel
	}
	last := s.nodes[sel.Nodes[t.left-1]].state
	last.Name = ""
	for n := range s.pools[pool].eligible.All() {
		at := n.state
		at.Name = ""
		order := CompareNodes(at, last)
		if order > 0 {
			break
		}
		if order == 0 && n.state.Name != sel.Deferred && !n.class.boot {
			t.nodes[n.state.Name] = true
		}
	}
	return t, sel
}

// look works out again what would be decided here.
func (h *Shadow) look(now time.Time) {
	for name := range h.pools {
		if h.state.pools[name] == nil {
			delete(h.pools, name)
		}
	}
	for name := range h.state.pools {
		p := h.pools[name]
		if p == nil {
			p = &shadowPool{taints: map[TaintChange]*disagreement{}}
			h.pools[name] = p
		}
		var t turn
		t, p.sel = h.turnOf(name)
		p.remember(t, now, h.grace)
		h.compareStatus(now, name, p)
	}
}

// remember adds what is decided now to what was, and forgets what is too old.
func (p *shadowPool) remember(t turn, now time.Time, grace time.Duration) {
	if last := len(p.turns) - 1; last >= 0 {
		p.turns[last].until = now
		if p.turns[last].equal(&t) {
			return
		}
	}
	t.until = now
	p.turns = append(slices.DeleteFunc(p.turns, func(o turn) bool {
		return o.left <= 0 || o.until.Add(grace).Before(now)
	}), t)
}

// plan finds out when to check next.
func (h *Shadow) plan(now time.Time) {
	h.next = time.Time{}
	at := func(t time.Time) {
		if h.next.IsZero() || t.Before(h.next) {
			h.next = t
		}
	}
	for _, c := range h.claims {
		at(c.until)
	}
	for name, p := range h.pools {
		for _, d := range []disagreement{p.unlike, p.idle} {
			if !d.since.IsZero() && !d.told {
				at(d.since.Add(h.grace))
			}
		}
		if !p.outdated.IsZero() {
			at(p.outdated)
		}
		taints := h.state.pools[name].taints.Len() > 0 && h.state.rolls(h.state.pools[name])
		idle := p.idle.since.IsZero() && len(p.sel.Nodes) > 0 && h.state.hasControllerConfig
		if (taints || idle) && h.regular.IsZero() {
			h.regular = now.Add(max(h.grace, time.Second))
		}
	}
	if !h.regular.IsZero() {
		at(h.regular)
	}
}
