package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// foldedPhases is how many phases of a fold are distinguished. Those past them are
// one.
const foldedPhases = 20

// summarize adds a row to a folded group for each phase of the fold: from its first
// start to its last end, with what its bars have in common as text.
func (l *layout) summarize(g *group) {
	phases := make([][]bar, foldedPhases+1)
	for _, b := range g.folded {
		i := min(l.index[b.Phase], foldedPhases)
		phases[i] = append(phases[i], b)
	}
	lane := Lane{Name: groupTitle(g.name, g.foldedLanes)}
	track := 0
	for i, bars := range phases {
		if len(bars) == 0 {
			continue
		}
		phase := "other"
		if i < foldedPhases {
			phase = phaseName(l.phases[i])
		}
		g.rows = append(g.rows, &row{lane: lane, track: track, bars: []bar{l.summary(lane, phase, bars)}})
		track++
	}
}

func (l *layout) summary(lane Lane, phase string, bars []bar) bar {
	s := bar{from: bars[0].from, to: bars[0].to}
	trouble, open := 0, 0
	durations := make([]time.Duration, len(bars))
	for i, b := range bars {
		s.from, s.to = min(s.from, b.from), max(s.to, b.to)
		durations[i] = b.to - b.from
		if b.Trouble {
			trouble++
		}
		if b.Open() {
			open++
		}
	}
	slices.Sort(durations)
	median, longest := durations[(len(durations)-1)/2], durations[len(durations)-1]
	text := count(len(bars), "time", "times")
	if longest > 0 {
		text += ", " + short(median)
		if longest != median {
			text += " as a rule, " + short(longest) + " at most"
		}
		text += fmt.Sprintf(", up to %d at once", atOnce(bars))
		if open > 0 {
			text += fmt.Sprintf(", %d not ended", open)
		}
		if trouble > 0 {
			text += fmt.Sprintf(", %d in trouble", trouble)
		}
	}
	s.Entry = &Entry{Lane: lane, Start: l.begin.Add(s.from), End: l.begin.Add(s.to), Phase: phase, Text: text}
	return s
}

// atOnce is the most bars that continue at one time.
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
