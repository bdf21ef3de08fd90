package mcp

import (
	"slices"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// class is how one node counts in its pool.
type class struct {
	candidate   bool // may be targeted once it is Ready
	failing     bool // not a candidate, and its daemon fails
	mcdFailing  bool
	updated     bool
	ready       bool // Updated and Ready
	unavailable bool
	degraded    bool
	eligible    bool // Candidate and Ready
	held        bool // eligible, and goes first
	boot        bool // eligible, and booted into a custom pool

	wrongTaint, wrongTopology bool

	// From its MachineConfigNode, if there is one.
	mcnUpdated, mcnDegraded, pinned, pinning bool
}

// counts are a pool's sums of its nodes' classes.
type counts struct {
	total, updated, ready, unavailable, degraded, candidates, mcdFailing int
	failing, failingOnly                                                 int // all; those that are not Unavailable too
	mcnUpdated, mcnDegraded, pinned, pinning                             int
}

// classify judges one node by the present goal of its pool.
func (s *State) classify(n NodeState, p *poolRecord) class {
	c := class{
		candidate:     n.Candidate(p.goal),
		mcdFailing:    n.MCDFailing(),
		updated:       n.Updated(p.goal),
		unavailable:   n.Unavailable(),
		degraded:      n.Degraded() || n.Unreconcilable(),
		wrongTaint:    n.UpdateTaint != n.WantsTaint(p.goal),
		wrongTopology: s.topology != "" && n.Topology != s.topology,
	}
	if s.o.Compat {
		c.candidate = n.lacksTarget(p.goal)
	}
	c.ready = c.updated && n.Ready()
	c.failing = !c.candidate && c.mcdFailing
	c.eligible = c.candidate && n.Ready()
	c.held = c.eligible && s.o.holdFailing() && n.holds()
	c.boot = c.eligible && s.bootPool(n) != nil
	if m := s.mcns[n.Name]; m != nil {
		c.mcnUpdated, c.mcnDegraded = mcnMarks(m, p.goal, s.o.ImageModeStatusReporting)
		c.pinned, c.pinning = mcnPinned(m)
	}
	return c
}

// bootPool returns the custom pool that the node booted straight into and
// whose labels it lacks; else nil.
func (s *State) bootPool(n NodeState) *poolRecord {
	if n.FirstPivotConfig == "" || n.PoolLabelsApplied {
		return nil
	}
	owner := s.owners[n.FirstPivotConfig]
	if owner == PoolMaster || owner == PoolWorker {
		return nil
	}
	return s.pools[owner]
}

// mcnMarks reads Updated and NodeDegraded of a MachineConfigNode. If both count,
// the first in the list wins. Updated counts only with image mode status reporting,
// and only if it is about the goal.
func mcnMarks(m *mcfgv1.MachineConfigNode, g Goal, imageMode bool) (updated, degraded bool) {
	for _, c := range m.Status.Conditions {
		if c.Status != metav1.ConditionTrue {
			continue
		}
		switch mcfgv1.StateProgress(c.Type) {
		case mcfgv1.MachineConfigNodeUpdated:
			if imageMode && mcnReached(m, g) {
				return true, false
			}
		case mcfgv1.MachineConfigNodeNodeDegraded:
			return false, true
		}
	}
	return false, false
}

func mcnReached(m *mcfgv1.MachineConfigNode, g Goal) bool {
	v, image := m.Status.ConfigVersion, string(m.Status.ConfigImage.DesiredImage)
	if v == nil || v.Desired != g.Config {
		return false
	}
	if g.Layered {
		return g.HasBuild && v.Desired == g.BuildConfig && image != "" && image == g.Image
	}
	return image == ""
}

// mcnDegradedMessage is the message of condition NodeDegraded, if it is True.
func mcnDegradedMessage(m *mcfgv1.MachineConfigNode) string {
	if m == nil {
		return ""
	}
	i := slices.IndexFunc(m.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == string(mcfgv1.MachineConfigNodeNodeDegraded) && c.Status == metav1.ConditionTrue
	})
	if i < 0 {
		return ""
	}
	return m.Status.Conditions[i].Message
}

// mcnPinned reports whether all pinned image sets are there (also if none are
// wanted), and whether some are on their way. A MachineConfigNode without
// conditions says nothing yet.
func mcnPinned(m *mcfgv1.MachineConfigNode) (done, pending bool) {
	done = true
	for _, p := range m.Status.PinnedImageSets {
		if p.DesiredGeneration <= 0 || p.CurrentGeneration != p.DesiredGeneration {
			done = false
		}
	}
	return done && len(m.Status.Conditions) > 0, !done
}

// count adds a node to (sign 1) or takes it from (sign -1) the counters and
// sets of its pool.
func (p *poolRecord) count(n *nodeRecord, sign int) {
	c := &n.class
	add := func(v *int, is bool) {
		if is {
			*v += sign
		}
	}
	p.n.total += sign
	add(&p.n.updated, c.updated)
	add(&p.n.ready, c.ready)
	add(&p.n.unavailable, c.unavailable)
	add(&p.n.degraded, c.degraded)
	add(&p.n.candidates, c.candidate)
	add(&p.n.mcdFailing, c.mcdFailing)
	add(&p.n.failing, c.failing)
	add(&p.n.failingOnly, c.failing && !c.unavailable)
	add(&p.n.mcnUpdated, c.mcnUpdated)
	add(&p.n.mcnDegraded, c.mcnDegraded)
	add(&p.n.pinned, c.pinned)
	add(&p.n.pinning, c.pinning)

	put := func(t *treap[*nodeRecord], is bool) {
		switch {
		case is && sign > 0:
			t.Insert(n)
		case is:
			t.Delete(n)
		}
	}
	put(p.eligible, c.eligible && !c.held)
	put(p.held, c.held)
	put(p.boots, c.boot)
	put(p.degraded, c.degraded)
	put(p.mcnBad, c.mcnDegraded)
	put(p.holders, c.unavailable || c.failing)
	put(p.taints, c.wrongTaint)
	put(p.topology, c.wrongTopology)
}
