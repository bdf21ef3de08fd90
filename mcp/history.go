package mcp

import (
	"maps"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// History is how long nodes took for the steps of their updates, as their phases
// told: what the next ones may take. Feed it the phases of nodes as they are seen,
// such as the events NodePhase of package rollout. The zero value has seen nothing.
// It is not safe for concurrent use.
type History struct {
	now  map[string]phaseSince // by node
	seen map[Phase]*seenTimes
}

type phaseSince struct {
	phase Phase
	since time.Time // zero: it was in the phase when it was seen first
	taken map[Phase]time.Duration
}

// seenTimes sums up durations.
type seenTimes struct {
	n             int
	min, max, sum time.Duration
}

// Add tells that a node has come to a phase. The times of a node count once it is
// done, if it did not fail on the way and was seen from its beginning.
func (h *History) Add(node string, p Phase, at time.Time) {
	if h.now == nil {
		h.now, h.seen = map[string]phaseSince{}, map[Phase]*seenTimes{}
	}
	was, known := h.now[node]
	if known && was.phase == p {
		return
	}
	next := phaseSince{phase: p, since: at}
	switch {
	case p == PhaseFailed || p == PhaseJoining:
	case known && was.phase == PhaseDone || p == PhaseTargeted:
		next.taken = map[Phase]time.Duration{}
	case was.taken != nil:
		next.taken = was.taken
		next.taken[was.phase] += at.Sub(was.since)
	}
	if p == PhaseDone {
		for _, group := range [][]Phase{{PhaseCordoning, PhaseDraining}, {PhaseApplying}, {PhaseRebooting}, {PhaseUncordoning}} {
			h.count(group, next.taken)
		}
		next.taken = nil
	}
	h.now[node] = next
}

// AddMachineConfigNode tells what the conditions of a MachineConfigNode tell: since when
// the steps of its node's update are over that are. Give it each change of the object,
// before or after the phases of the same node, or alone; what is older than what is known
// already is left out. Conditions start anew with the next update.
func (h *History) AddMachineConfigNode(m *mcfgv1.MachineConfigNode) {
	for _, step := range []struct {
		over mcfgv1.StateProgress
		next Phase
	}{
		{mcfgv1.MachineConfigNodeUpdatePrepared, PhaseTargeted},
		{mcfgv1.MachineConfigNodeUpdateCordoned, PhaseDraining},
		{mcfgv1.MachineConfigNodeUpdateDrained, PhaseApplying},
		{mcfgv1.MachineConfigNodeUpdateFilesAndOS, PhaseRebooting},
		{mcfgv1.MachineConfigNodeUpdateRebooted, PhaseUncordoning},
		{mcfgv1.MachineConfigNodeUpdateUncordoned, PhaseDone},
	} {
		c := meta.FindStatusCondition(m.Status.Conditions, string(step.over))
		if c == nil || c.Status != metav1.ConditionTrue {
			continue
		}
		since, known := h.Since(m.Name)
		if at := c.LastTransitionTime.Time; !known || at.After(since) {
			h.Add(m.Name, step.next, at)
		}
	}
}

// count adds the time of some phases of a node that went through one of them.
func (h *History) count(phases []Phase, taken map[Phase]time.Duration) {
	total, went := time.Duration(0), false
	for _, p := range phases {
		d, ok := taken[p]
		total, went = total+d, went || ok
	}
	if !went {
		return
	}
	s := h.seen[phases[0]]
	if s == nil {
		s = &seenTimes{min: total}
		h.seen[phases[0]] = s
	}
	s.n++
	s.sum += total
	s.min, s.max = min(s.min, total), max(s.max, total)
}

// Forget drops a node that is gone; what it has told stays.
func (h *History) Forget(node string) { delete(h.now, node) }

// Since returns since when a node is in its phase.
func (h *History) Since(node string) (since time.Time, ok bool) {
	p, ok := h.now[node]
	return p.since, ok
}

// Nodes returns how many nodes have been seen to reach an end.
func (h *History) Nodes() int {
	n := 0
	for s := range maps.Values(h.seen) {
		n = max(n, s.n)
	}
	return n
}

// Times returns what was seen, for [EstimateInput].Steps; what was not stays zero.
func (h *History) Times() StepTimes {
	span := func(p Phase) Span {
		s := h.seen[p]
		if s == nil {
			return Span{}
		}
		return Span{s.min, s.sum / time.Duration(s.n), s.max}
	}
	t := StepTimes{Drain: span(PhaseCordoning), Apply: span(PhaseApplying), Reboot: span(PhaseRebooting), Uncordon: span(PhaseUncordoning)}
	if t.Reboot != (Span{}) {
		t.Ready = Exactly(-1) // it is seen as a part of the reboot
	}
	return t
}
