package timeline

import (
	"cmp"
	"slices"
	"time"
)

// Summary is what the entries of one phase in a group have in common.
type Summary struct {
	Group, Phase string
	// Entries is their number, and Trouble that of those in trouble. Open go on.
	Entries, Trouble, Open int
	// Start is the first start, and End the last end, or that of the timeline.
	Start, End time.Time
	// Median and Longest are those of their durations; of an entry that goes on what
	// is known of it.
	Median, Longest time.Duration
	// AtOnce is the most of them that went on at one time. Moments do not count.
	AtOnce int
}

// Summarize returns a summary of each phase of each group: groups in the order in
// which they begin, phases in that of their colours. Of entries that
// [Timeline.Validate] refuses it means nothing.
func (t *Timeline) Summarize() []Summary {
	l := t.layout(len(t.Entries))
	var out []Summary
	for _, g := range l.groups {
		var bars []bar
		for _, r := range g.rows {
			bars = append(bars, r.bars...)
		}
		for i, bars := range l.byPhase(bars, len(l.phases)) {
			if len(bars) > 0 {
				out = append(out, l.summary(g.name, l.phases[i], bars))
			}
		}
	}
	return out
}

// folded returns a summary of each phase of a fold.
func (l *layout) folded(g *group) []Summary {
	var out []Summary
	for i, bars := range l.byPhase(g.folded.bars, foldedPhases+1) {
		if len(bars) > 0 {
			out = append(out, l.summary(g.name, l.foldedPhase(i), bars))
		}
	}
	return out
}

// byPhase sorts bars by their phases, of which the last is that of all others too.
func (l *layout) byPhase(bars []bar, phases int) [][]bar {
	out := make([][]bar, phases)
	for _, b := range bars {
		i := min(l.index[b.Phase], phases-1)
		out[i] = append(out[i], b)
	}
	return out
}

func (l *layout) summary(group, phase string, bars []bar) Summary {
	s := Summary{Group: group, Phase: phase, Entries: len(bars), AtOnce: atOnce(bars)}
	first, last := bars[0].from, bars[0].to
	durations := make([]time.Duration, len(bars))
	for i, b := range bars {
		first, last = min(first, b.from), max(last, b.to)
		durations[i] = b.to - b.from
		if b.Trouble {
			s.Trouble++
		}
		if b.Open() {
			s.Open++
		}
	}
	slices.Sort(durations)
	s.Start, s.End = l.begin.Add(first), l.begin.Add(last)
	s.Median, s.Longest = durations[(len(durations)-1)/2], durations[len(durations)-1]
	return s
}

// atOnce is the most bars that go on at one time.
func atOnce(bars []bar) int {
	type edge struct {
		at    time.Duration
		delta int
	}
	edges := make([]edge, 0, 2*len(bars))
	for _, b := range bars {
		if b.from < b.to {
			edges = append(edges, edge{b.from, 1}, edge{b.to, -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.delta, b.delta)) })
	most, now := 0, 0
	for _, e := range edges {
		now += e.delta
		most = max(most, now)
	}
	return most
}
