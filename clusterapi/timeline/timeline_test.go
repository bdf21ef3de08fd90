package timeline_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/clusterapi/timeline"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// errorWriter is full.
type errorWriter struct{}

func (errorWriter) Write([]byte) (int, error) { return 0, errors.New("full") }

// wrapped tells errors of several forms apart.
func wrapped(err error, form string) error { return fmt.Errorf("%w (%s)", err, form) }

func TestValidate(t *testing.T) {
	late := time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	many := make([]timeline.Entry, 30)
	for _, tt := range []struct {
		name string
		tl   timeline.Timeline
		want []string
	}{
		{"empty", timeline.Timeline{}, nil},
		{"a moment, and one that goes on", timeline.Timeline{Entries: []timeline.Entry{{Start: at(1), End: at(1)}, {Start: at(1)}}}, nil},
		{"no start", timeline.Timeline{Entries: []timeline.Entry{{Lane: timeline.Lane{Group: "worker", Name: "a"}}}}, []string{`timeline: entry 0, of lane "worker/a", has no start`}},
		{"backwards", timeline.Timeline{Entries: []timeline.Entry{{Start: at(2)}, {Start: at(2), End: at(1)}}}, []string{`timeline: entry 1, of lane "", ends before it starts`}},
		{"late", timeline.Timeline{Entries: []timeline.Entry{{Start: at(2), End: late}}}, []string{`timeline: entry 0, of lane "", has a time outside of the years 1 to 9999`}},
		{"a late end", timeline.Timeline{End: late}, []string{"timeline: End is outside of the years 1 to 9999"}},
		{"omitted", timeline.Timeline{Omitted: -1}, []string{"timeline: Omitted is negative: -1"}},
		{"many", timeline.Timeline{Entries: many}, func() (want []string) {
			for i := range 10 {
				want = append(want, fmt.Sprintf(`timeline: entry %d, of lane "", has no start`, i))
			}
			return want
		}()},
	} {
		var got []string
		if err := tt.tl.Validate(); err != nil {
			got = strings.Split(err.Error(), "\n")
		}
		checktest.SameIn(t, tt.name, tt.want, got)
	}
}

// Lanes come in the order in which they begin, then by name as people read it.
func TestOrder(t *testing.T) {
	var entries []timeline.Entry
	want := []string{"late/a", "late/b", "w/w", "w/w-2", "w/w-03", "w/w-3", "w/w-10", "w/w-10a", "w/w-99999999999999999999", "w/x"}
	for i, name := range want {
		group, lane, _ := strings.Cut(name, "/")
		start := at(100)
		if group == "late" {
			start = at(i)
		}
		entries = append(entries, timeline.Entry{Lane: timeline.Lane{Group: group, Name: lane}, Start: start, End: start.Add(time.Minute), Phase: "p"})
	}
	tl := &timeline.Timeline{Entries: entries}
	sorted := cmp.Diff("", "")
	for seed := range uint64(20) {
		rand.New(rand.NewPCG(seed, 1)).Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
		tl.Sort()
		var got []string
		for _, e := range tl.Entries {
			got = append(got, e.Lane.String())
		}
		sorted += cmp.Diff(want, got)
	}
	checktest.Equal(t, "", sorted, "sorted")
}

func TestRecorder(t *testing.T) {
	lane := timeline.Lane{Group: "worker", Name: "a"}
	entry := func(start int, phase string) timeline.Entry {
		return timeline.Entry{Lane: lane, Start: at(start), Phase: phase}
	}
	ended := func(start, end int, phase string) timeline.Entry {
		e := entry(start, phase)
		e.End = at(end)
		return e
	}
	for _, tt := range []struct {
		name string
		do   func(r *timeline.Recorder)
		want []timeline.Entry
		end  int
	}{
		{"nothing ends", func(r *timeline.Recorder) { r.End(lane, at(1)) }, nil, 0},
		{"one after the other", func(r *timeline.Recorder) {
			r.Start(entry(1, "p"))
			r.Start(entry(3, "q"))
			r.End(lane, at(7))
			r.End(lane, at(9)) // has ended
		}, []timeline.Entry{ended(1, 3, "p"), ended(3, 7, "q")}, 7},
		{"goes on", func(r *timeline.Recorder) { r.Start(entry(1, "p")) }, []timeline.Entry{entry(1, "p")}, 1},
		{"the same again", func(r *timeline.Recorder) {
			r.Start(entry(1, "p"))
			r.Start(entry(5, "p"))
		}, []timeline.Entry{entry(1, "p")}, 5},
		{"the same, now in trouble", func(r *timeline.Recorder) {
			r.Start(entry(1, "p"))
			e := entry(5, "p")
			e.Trouble = true
			r.Start(e)
		}, []timeline.Entry{ended(1, 5, "p"), {Lane: lane, Start: at(5), Phase: "p", Trouble: true}}, 5},
		{"no time for the first one", func(r *timeline.Recorder) {
			r.Start(entry(1, "p"))
			r.Start(entry(1, "q"))
			r.Start(entry(0, "r"))
			r.End(lane, at(2))
		}, []timeline.Entry{ended(1, 2, "r")}, 2},
		{"as a whole, beside what goes on", func(r *timeline.Recorder) {
			r.Start(entry(1, "p"))
			r.Add(ended(2, 8, "q"))
			r.End(lane, at(4))
		}, []timeline.Entry{ended(1, 4, "p"), ended(2, 8, "q")}, 8},
		{"the clock was set back", func(r *timeline.Recorder) {
			r.Start(entry(10, "p"))
			r.End(lane, at(5))
			r.Add(ended(7, 3, "q"))
		}, []timeline.Entry{ended(7, 7, "q"), ended(10, 10, "p")}, 10},
		{"an end that Start does not look at", func(r *timeline.Recorder) { r.Start(ended(1, 2, "p")) }, []timeline.Entry{entry(1, "p")}, 1},
		{"long and broken texts", func(r *timeline.Recorder) {
			r.Add(timeline.Entry{Lane: timeline.Lane{Name: "\xff"}, Start: at(1), Text: strings.Repeat("x", 5000)})
			r.Start(timeline.Entry{Lane: timeline.Lane{Name: "\xfe"}, Start: at(2)})
			r.End(timeline.Lane{Name: "\xfe"}, at(3))
		}, []timeline.Entry{
			{Lane: timeline.Lane{Name: "\uFFFD"}, Start: at(1), Text: strings.Repeat("x", 4075) + "... (925 more bytes)"},
			{Lane: timeline.Lane{Name: "\uFFFD"}, Start: at(2), End: at(3)},
		}, 3},
	} {
		r := recorder(t, timeline.Options{Title: "x", Phases: []string{"q"}})
		tt.do(r)
		got := recorded(t, r)
		checktest.SameIn(t, tt.name, tt.want, got.Entries)
		if end := got.End; tt.end != 0 && !end.Equal(at(tt.end)) || got.Title != "x" || got.Phases[0] != "q" {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}

// A timeline is good though not everything fitted, and the recorder goes on.
func TestRecorderLimit(t *testing.T) {
	r := recorder(t, timeline.Options{MaxEntries: 2})
	for i := range 5 {
		r.Start(timeline.Entry{Lane: timeline.Lane{Name: "a"}, Start: at(i), Phase: fmt.Sprint(i)})
	}
	r.End(timeline.Lane{Name: "a"}, at(9))
	got, err := r.Timeline()
	var limit *timeline.LimitError
	if !errors.As(err, &limit) || limit.Limit != "Options.MaxEntries" || limit.Max != 2 || err.Error() != "timeline: more than 2 entries (limit Options.MaxEntries)" {
		t.Errorf("%v", err)
	}
	if len(got.Entries) != 2 || got.Omitted != 3 || !got.End.Equal(at(9)) || !got.Entries[1].End.Equal(at(2)) {
		t.Errorf("%+v", got)
	}
	checktest.Has(t, textOf(t, got, timeline.TextOptions{}), "2 entries (3 more left out)")
	if _, err := timeline.NewRecorder(timeline.Options{MaxEntries: -1}); err == nil || err.Error() != "timeline.Options: MaxEntries is negative: -1" {
		t.Error(err)
	}
	r = recorder(t, timeline.Options{})
	r.Add(timeline.Entry{})
	checktest.Fails(t, checktest.Err(r.Timeline()), "an entry without a start")
	checktest.Good(t, got.WriteText(io.Discard, timeline.TextOptions{}))
}

func TestEntry(t *testing.T) {
	e := timeline.Entry{Start: at(0)}
	checktest.FailIf(t, !e.Open() || e.Duration() != 0, "an entry without an end goes on")
	if e.End = at(3); e.Open() || e.Duration() != 3*time.Second {
		t.Error("an entry with an end has a duration")
	}
	for want, lane := range map[string]timeline.Lane{"": {}, "g": {Group: "g"}, "n": {Name: "n"}, "g/n": {Group: "g", Name: "n"}} {
		checktest.Equal(t, want, lane.String(), "String")
	}
}
