package mcp

import (
	"time"
)

// StepTimes are how long the parts of a node's update take. A zero Span is the
// default that its field names as minimum, expected, maximum; take what was seen, as a
// [History] tells, where there is something. A negative Expected leaves the part out.
type StepTimes struct {
	// Target is how long after a node is done, or the pool has changed, the next
	// one is told; always 5 s.
	Target Span
	// Wave is how long the pods of one wave of a drain take to end and to be
	// replaced; 5 s, 45 s, 3 min.
	Wave Span
	// Drain is how long a drain takes that is not predicted; that of one wave.
	Drain Span
	// Apply is how long files and the OS image take; 1 min, 2 min, 5 min.
	Apply Span
	// Reboot is how long the host is away; 1 min, 90 s, 15 min: virtual machines
	// are fast, and hardware is slow.
	Reboot Span
	// Ready is how long until the kubelet is ready after that; 10 s, 30 s, 2 min.
	Ready Span
	// Uncordon is how long the request to be uncordoned takes; 5 s, 10 s, 15 s.
	Uncordon Span
}

const (
	daemonReacts = time.Second                     // after its node has changed
	drainQueue   = 5 * time.Second                 // before a request for a drain is looked at
	drainPoll    = 10 * time.Second                // between looks of the daemon at its request
	budgetRetry  = 5 * time.Second                 // between tries to evict a pod
	drainRowEnd  = 13*time.Minute + 30*time.Second // attempts follow one another at once until then
	drainPause   = 5 * time.Minute                 // after that, between two of them
	moveTime     = 20 * time.Second                // to a config of equal content
)

func (t StepTimes) withDefaults() StepTimes {
	t.Target = t.Target.or(Exactly(5 * time.Second))
	t.Wave = t.Wave.or(Span{5 * time.Second, 45 * time.Second, 3 * time.Minute})
	t.Drain = t.Drain.or(seenBy(t.Wave))
	t.Apply = t.Apply.or(Span{time.Minute, 2 * time.Minute, 5 * time.Minute})
	t.Reboot = t.Reboot.or(Span{time.Minute, 90 * time.Second, 15 * time.Minute})
	t.Ready = t.Ready.or(Span{10 * time.Second, 30 * time.Second, 2 * time.Minute})
	t.Uncordon = t.Uncordon.or(Span{5 * time.Second, 10 * time.Second, 15 * time.Second})
	for _, s := range []*Span{&t.Target, &t.Wave, &t.Drain, &t.Apply, &t.Reboot, &t.Ready, &t.Uncordon} {
		if s.Expected < 0 {
			*s = Span{}
		}
	}
	return t
}

// seenBy adds to the time that evictions take what it takes to ask for the drain
// and to see that it is over.
func seenBy(evictions Span) Span {
	return evictions.add(Exactly(drainQueue)).add(Span{0, drainPoll / 2, drainPoll})
}

// estimator knows how long a node takes.
type estimator struct {
	steps StepTimes
	node  Span // in all; zero: the steps added up
}

// of returns how long a node of a pool takes from its target on, or from now on if it
// is on its way.
func (e *estimator) of(p *EstimatePool, n *EstimateNode) Span {
	whole := n.Time.or(e.node)
	if whole == (Span{}) && p.SameContent {
		whole = Exactly(moveTime)
	}
	steps := e.stepsOf(p, n)
	left := steps[max(stepAt(n.Phase), 0):]
	if whole != (Span{}) {
		// Of a time that is known in all, the share of the steps that are left.
		left = []Span{share(whole, sum(left), sum(steps))}
	}
	if stepAt(n.Phase) >= 0 {
		left[0] = left[0].less(n.In)
	}
	return sum(left)
}

// The steps of a node's update, in their order.
const (
	stepStart = iota
	stepDrain
	stepApply
	stepReboot
	stepReady
	stepUncordon
)

// stepAt is the step that a node in a phase is in; negative: it waits for its turn.
func stepAt(p Phase) int {
	switch p {
	case PhaseTargeted, PhasePreparing, PhaseJoining:
		return stepStart
	case PhaseCordoning, PhaseDraining:
		return stepDrain
	case PhaseApplying:
		return stepApply
	case PhaseRebooting:
		return stepReboot
	case PhaseUncordoning:
		return stepUncordon
	}
	return -1
}

func (e *estimator) stepsOf(p *EstimatePool, n *EstimateNode) []Span {
	steps := make([]Span, stepUncordon+1)
	steps[stepStart] = Exactly(daemonReacts)
	steps[stepUncordon] = e.steps.Uncordon
	if p.SameContent {
		return steps
	}
	if n.Drain == nil || !n.Drain.NotRequired {
		steps[stepDrain] = e.drain(n.Drain)
	}
	steps[stepApply] = e.steps.Apply
	steps[stepReboot] = e.steps.Reboot
	steps[stepReady] = e.steps.Ready
	return steps
}

// drain is how long from the request until the daemon sees it fulfilled.
func (e *estimator) drain(d *Drain) Span {
	if d == nil {
		return e.steps.Drain
	}
	slow := time.Duration(0)
	for _, p := range d.Pods {
		for _, note := range p.Notes {
			slow = max(slow, note.Expected)
		}
	}
	w, n := e.steps.Wave, time.Duration(len(d.Waves))
	out := Span{n * w.Min, n * w.Expected, n * w.Max}
	if n > 1 { // each wave but the first waits for a budget
		out.Min, _ = drainSeen(out.Min)
		_, out.Expected = drainSeen(out.Expected)
		_, out.Max = drainSeen(out.Max)
	}
	out.Max = max(out.Max, slow)
	return seenBy(out)
}

// drainSeen is when a drain ends at the earliest and at the latest for which budgets
// allow the last eviction at a time after it began. An attempt that is under way
// tries again every 5 s. Attempts follow one another at once in the first 13½
// minutes, the next begins at 17:00, and each later one 6½ minutes after the one
// before.
func drainSeen(allowed time.Duration) (earliest, latest time.Duration) {
	if allowed <= drainRowEnd {
		return allowed, allowed + budgetRetry
	}
	start := drainRowEnd - drainAttempt + drainPause // 17:00
	for start+drainAttempt < allowed {
		start += drainAttempt + drainPause
	}
	if allowed <= start {
		return start, start + time.Second
	}
	return allowed, allowed + budgetRetry
}

func sum(spans []Span) (total Span) {
	for _, s := range spans {
		total = total.add(s)
	}
	return total
}

// share is that part of whole that part is of all.
func share(whole, part, all Span) Span {
	of := func(whole, part, all time.Duration) time.Duration {
		if all <= 0 || part >= all {
			return whole
		}
		return time.Duration(float64(whole) * float64(part) / float64(all))
	}
	return Span{of(whole.Min, part.Min, all.Min), of(whole.Expected, part.Expected, all.Expected), of(whole.Max, part.Max, all.Max)}
}
