package timeline

import (
	"cmp"
	"container/heap"
	"math/bits"
	"slices"
	"time"
)

// layout is a timeline as it is shown: rows of bars that do not overlap.
type layout struct {
	origin time.Time     // what times are relative to
	begin  time.Time     // where the axis begins
	span   time.Duration // and how long it is
	phases []string      // in the order of their colours
	index  map[string]int
	groups []*group
	lanes  int // of all groups
	rows   int
}

// group is the rows of a group of lanes.
type group struct {
	name  string
	lanes int
	rows  []*row
	// folded are the bars of the lanes that have no row, foldedLanes of them.
	folded      []bar
	foldedLanes int
}

// row is a line of bars, in order. A lane whose bars overlap has several.
type row struct {
	lane  Lane
	track int
	bars  []bar
}

// bar is an entry by its place on the axis.
type bar struct {
	*Entry
	from, to time.Duration
}

// mark reports that the bar is a moment.
func (b bar) mark() bool { return !b.Open() && b.from == b.to }

// unfolded is how many lanes in trouble stay out of a fold.
const unfolded = 5

// layout places the entries on at most so many rows, a fold counted as one.
func (t *Timeline) layout(maxRows int) *layout {
	l := &layout{origin: t.Start, index: map[string]int{}}
	order := make([]*Entry, len(t.Entries))
	var first, last time.Time
	for i := range t.Entries {
		e := &t.Entries[i]
		order[i] = e
		if i == 0 || e.Start.Before(first) {
			first = e.Start
		}
		last = latest(last, latest(e.Start, e.End))
	}
	last = latest(last, t.End)
	if l.origin.IsZero() {
		l.origin = first
	}
	l.begin = l.origin
	if len(order) > 0 && first.Before(l.begin) {
		l.begin = first
	}
	l.span = max(last.Sub(l.begin), 0)
	slices.SortStableFunc(order, compareEntries)

	bars := map[Lane][]bar{}
	groups := map[string]*group{}
	var lanes []Lane // in the order in which they begin
	for _, p := range t.Phases {
		l.see(p)
	}
	for _, e := range order {
		l.see(e.Phase)
		b := bar{Entry: e, from: e.Start.Sub(l.begin), to: l.span}
		if !e.Open() {
			b.to = e.End.Sub(l.begin)
		}
		if _, known := bars[e.Lane]; !known {
			lanes = append(lanes, e.Lane)
		}
		bars[e.Lane] = append(bars[e.Lane], b)
	}
	slices.SortStableFunc(lanes, func(a, b Lane) int {
		return cmp.Or(cmp.Compare(bars[a][0].from, bars[b][0].from), compareNames(a.Group, b.Group), compareNames(a.Name, b.Name))
	})
	for _, lane := range lanes {
		g := groups[lane.Group]
		if g == nil {
			g = &group{name: lane.Group}
			groups[lane.Group], l.groups = g, append(l.groups, g)
		}
		g.lanes++
		g.rows = append(g.rows, tracks(lane, bars[lane])...)
	}
	l.lanes = len(lanes)
	l.foldTo(maxRows)
	for _, g := range l.groups {
		l.summarize(g)
	}
	return l
}

func (l *layout) see(phase string) {
	if _, known := l.index[phase]; !known {
		l.index[phase] = len(l.phases)
		l.phases = append(l.phases, phase)
	}
}

// tracks puts the bars of a lane, sorted by start, on as few rows as they need.
// Marks take no room.
func tracks(lane Lane, bars []bar) []*row {
	rows := []*row{{lane: lane}}
	ends := trackHeap{{}}
	for _, b := range bars {
		if b.mark() {
			rows[0].bars = append(rows[0].bars, b)
			continue
		}
		if ends[0].until > b.from {
			heap.Push(&ends, track{index: len(rows)})
			rows = append(rows, &row{lane: lane, track: len(rows)})
		}
		r := rows[ends[0].index]
		r.bars = append(r.bars, b)
		ends[0].until = b.to
		heap.Fix(&ends, 0)
	}
	return rows
}

// track is a row of a lane, and until when it is taken.
type track struct {
	index int
	until time.Duration
}

type trackHeap []track

func (h trackHeap) Len() int { return len(h) }
func (h trackHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].until, h[j].until), cmp.Compare(h[i].index, h[j].index)) < 0
}
func (h trackHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *trackHeap) Push(x any)   { *h = append(*h, x.(track)) }
func (h *trackHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// foldTo folds the largest groups until at most so many rows are left. Where the
// groups alone are too many, they become one.
func (l *layout) foldTo(maxRows int) {
	for _, g := range l.groups {
		l.rows += len(g.rows)
	}
	if l.rows <= maxRows {
		return
	}
	if len(l.groups) > maxRows {
		all := &group{}
		for _, g := range l.groups {
			all.lanes += g.lanes
			all.rows = append(all.rows, g.rows...)
		}
		l.groups = []*group{all}
	}
	bySize := slices.Clone(l.groups)
	slices.SortStableFunc(bySize, func(a, b *group) int { return cmp.Compare(len(b.rows), len(a.rows)) })
	for _, keep := range []int{unfolded, 0} { // lanes in trouble, if there is room
		for _, g := range bySize {
			if l.rows <= maxRows {
				return
			}
			before := len(g.rows)
			if g.folded != nil {
				before++
			}
			g.fold(keep)
			l.rows += len(g.rows) + 1 - before
		}
	}
}

// fold takes the rows of a group together, but for those of the first lanes in
// trouble.
func (g *group) fold(keep int) {
	kept := map[Lane]bool{}
	for _, r := range g.rows {
		if len(kept) < keep && slices.ContainsFunc(r.bars, func(b bar) bool { return b.Trouble }) {
			kept[r.lane] = true
		}
	}
	g.foldedLanes = g.lanes - len(kept)
	var rows []*row
	for _, r := range g.rows {
		if kept[r.lane] {
			rows = append(rows, r)
			continue
		}
		g.folded = append(g.folded, r.bars...)
	}
	g.rows = rows
}

// scale places a time on an axis of so many units.
func (l *layout) scale(at time.Duration, size int) int {
	if l.span <= 0 {
		return 0
	}
	at = min(max(at, 0), l.span)
	hi, lo := bits.Mul64(uint64(at), uint64(size))
	place, _ := bits.Div64(hi, lo, uint64(l.span))
	return int(place)
}

// step returns a round distance of ticks, so that at most so many are on the axis.
func (l *layout) step(most int) time.Duration {
	const day = 24 * time.Hour
	for _, d := range []time.Duration{
		time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
		time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
		day, 2 * day, 7 * day, 14 * day, 30 * day, 90 * day, 365 * day, 3650 * day,
	} {
		if l.span/d < time.Duration(most) {
			return d
		}
	}
	return 36500 * day
}

// ticks are the round times on the axis, from its beginning.
func (l *layout) ticks(most int) []time.Duration {
	step := l.step(most)
	var out []time.Duration
	offset := l.origin.Sub(l.begin) % step // so that the origin has one
	for at := offset; at <= l.span && len(out) <= most; at += step {
		out = append(out, at)
	}
	return out
}
