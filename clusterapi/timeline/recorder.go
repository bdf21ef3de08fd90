package timeline

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/options"
)

// Options are the options of a [Recorder].
type Options struct {
	// Title, Start and Phases are those of the timeline.
	Title  string
	Start  time.Time
	Phases []string
	// MaxEntries is how many entries are kept; zero means 100,000.
	MaxEntries int
}

const (
	defaultEntries = 100_000
	maxText        = 4 << 10 // bytes of a text of an entry
)

// LimitError reports which limit was passed: Limit is the name of the field that
// holds it, as in Options.MaxEntries.
type LimitError = limit.LimitError

// Recorder makes a timeline from what happens. Times that run backwards, as they do
// when a clock is set, make an entry a moment. It is not safe for concurrent use.
type Recorder struct {
	o       Options
	entries []Entry
	open    map[Lane]int // the entry that Start began last
	omitted int
	latest  time.Time
}

// NewRecorder returns a recorder without entries. It fails where an option is
// negative.
func NewRecorder(o Options) (*Recorder, error) {
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	o.MaxEntries = cmp.Or(o.MaxEntries, defaultEntries)
	o.Phases = slices.Clone(o.Phases)
	return &Recorder{o: o, open: map[Lane]int{}}, nil
}

// Start starts an entry in its lane, whatever its End says. What Start began there
// before ends then. If that says the same, it continues instead; if it would last
// no time, the new one takes its place.
func (r *Recorder) Start(e Entry) {
	e.End = time.Time{}
	e = e.bounded()
	if i, ok := r.open[e.Lane]; ok && i >= 0 {
		if last := r.entries[i]; last.Phase == e.Phase && last.Text == e.Text && last.Trouble == e.Trouble {
			r.see(e.Start)
			return
		}
		if start := r.entries[i].Start; !start.Before(e.Start) {
			e.Start = start
			r.entries[i] = e
			return
		}
	}
	r.End(e.Lane, e.Start)
	r.open[e.Lane] = r.add(e)
}

// End ends what Start began last in a lane. It does nothing if nothing continues.
func (r *Recorder) End(lane Lane, at time.Time) {
	lane = lane.bounded()
	i, ok := r.open[lane]
	if !ok {
		return
	}
	delete(r.open, lane)
	if r.see(at); i >= 0 {
		e := &r.entries[i]
		e.End = latest(e.Start, at)
	}
}

// Add adds an entry as it is. It may overlap others of its lane.
func (r *Recorder) Add(e Entry) {
	if !e.Open() {
		e.End = latest(e.Start, e.End)
	}
	r.add(e.bounded())
}

// add returns the place of the entry, -1 if there is no room for it.
func (r *Recorder) add(e Entry) int {
	r.see(latest(e.Start, e.End))
	if len(r.entries) >= r.o.MaxEntries {
		r.omitted++
		return -1
	}
	r.entries = append(r.entries, e)
	return len(r.entries) - 1
}

func (r *Recorder) see(at time.Time) { r.latest = latest(r.latest, at) }

// Timeline returns what was recorded so far, sorted. The recorder may continue.
// Entries that did not fit are counted in Omitted, and the error is a [*LimitError]
// then; the timeline is still good. Other errors are those of [Timeline.Validate].
func (r *Recorder) Timeline() (*Timeline, error) {
	t := &Timeline{Title: r.o.Title, Start: r.o.Start, End: r.latest, Phases: slices.Clone(r.o.Phases),
		Entries: slices.Clone(r.entries), Omitted: r.omitted}
	t.Sort()
	if err := t.Validate(); err != nil {
		return t, err
	}
	if r.omitted > 0 {
		return t, &LimitError{Where: "timeline", Limit: "Options.MaxEntries", Max: int64(r.o.MaxEntries), What: "entries"}
	}
	return t, nil
}

func (e Entry) bounded() Entry {
	e.Lane, e.Phase, e.Text = e.Lane.bounded(), boundedText(e.Phase), boundedText(e.Text)
	return e
}

func (l Lane) bounded() Lane { return Lane{boundedText(l.Group), boundedText(l.Name)} }

func boundedText(s string) string {
	return bounded.Text(strings.ToValidUTF8(s, "\uFFFD"), maxText)
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
