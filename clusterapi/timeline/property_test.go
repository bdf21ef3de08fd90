package timeline_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/checktest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/clusterapi/timeline"
)

// drawTimeline draws a timeline, its entries each with a text of its own.
func drawTimeline(t *rapid.T, most int) *timeline.Timeline {
	name := rapid.OneOf(rapid.SampledFrom([]string{"", "worker", "worker-1", "<a&b>", "a:b;c", "%%{x}%%", "%%%", "#35;", "gantt", "2026-01-01", "]]>"}), rapid.StringN(0, 8, -1))
	second := rapid.IntRange(-5000, 5000)
	tl := &timeline.Timeline{Title: name.Draw(t, "title"), Phases: rapid.SliceOfN(name, 0, 3).Draw(t, "phases")}
	if rapid.Bool().Draw(t, "has a start") {
		tl.Start = at(second.Draw(t, "origin"))
	}
	if rapid.Bool().Draw(t, "has an end") {
		tl.End = at(second.Draw(t, "end of all"))
	}
	if len(tl.Phases) == 0 {
		tl.Phases = nil
	}
	n := rapid.IntRange(0, most).Draw(t, "entries")
	for i := range n {
		e := timeline.Entry{
			Lane:  timeline.Lane{Group: name.Draw(t, "group"), Name: name.Draw(t, "lane")},
			Start: at(second.Draw(t, "start")), Phase: name.Draw(t, "phase"),
			Text: fmt.Sprintf("entry%dends", i), Trouble: rapid.Bool().Draw(t, "trouble"),
		}
		if length := rapid.IntRange(-1, 3000).Draw(t, "length"); length >= 0 {
			e.End = e.Start.Add(time.Duration(length) * 100 * time.Millisecond)
		}
		tl.Entries = append(tl.Entries, e)
	}
	return tl
}

// forms are all forms of a timeline but JSON, without folds.
func forms(t testing.TB, tl *timeline.Timeline) map[string]string {
	return map[string]string{
		"text": textOf(t, tl, timeline.TextOptions{Width: 500}),
		"svg":  svgOf(t, tl, timeline.SVGOptions{MaxLanes: 500}),
	}
}

// svgBars reads a picture: the titles of what can be pointed at, and the bars.
func svgBars(picture string) (titles []string, bars []svgBar, err error) {
	d := xml.NewDecoder(strings.NewReader(picture))
	var path []xml.StartElement
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return titles, bars, nil
		}
		if err != nil {
			return nil, nil, err
		}
		switch token := token.(type) {
		case xml.StartElement:
			switch token.Name.Local {
			case "svg", "style", "defs", "pattern", "rect", "path", "text", "title", "g":
			default:
				return nil, nil, fmt.Errorf("unexpected element %s", token.Name.Local)
			}
			if token.Name.Local == "rect" && path[len(path)-1].Name.Local == "g" {
				bars = append(bars, newBar(token))
			}
			path = append(path, token)
		case xml.EndElement:
			path = path[:len(path)-1]
		case xml.CharData:
			if n := len(path); n > 1 && path[n-1].Name.Local == "title" && path[n-2].Name.Local != "text" {
				titles = append(titles, string(token))
			}
		}
	}
}

// svgBar is a bar, in hundredths of a pixel.
type svgBar struct{ y, from, to int }

func newBar(e xml.StartElement) (b svgBar) {
	for _, a := range e.Attr {
		switch f, _ := strconv.ParseFloat(a.Value, 64); a.Name.Local {
		case "x":
			b.from = int(f*100 + 0.5)
		case "y":
			b.y = int(f * 100)
		case "width":
			b.to = int(f*100 + 0.5)
		}
	}
	b.to += b.from
	return b
}

// Every entry is shown once in each form, no two bars of a row overlap, and the
// order of the entries does not matter.
func TestRendering(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tl := drawTimeline(r, 25)
		all := forms(t, tl)
		titles, bars, err := svgBars(all["svg"])
		if err != nil {
			r.Fatalf("%v\n%s", err, all["svg"])
		}
		pointed := strings.Join(titles, "\n")
		for i := range tl.Entries {
			text := fmt.Sprintf("entry%dends", i)
			for form, where := range map[string]string{"text": all["text"], "svg": pointed} {
				if n := strings.Count(where, text); n != 1 {
					r.Fatalf("%s is in the %s %d times:\n%s", text, form, n, where)
				}
			}
		}
		slices.SortFunc(bars, func(a, b svgBar) int {
			if a.y != b.y {
				return a.y - b.y
			}
			return a.from - b.from
		})
		for i := 1; i < len(bars); i++ {
			if a, b := bars[i-1], bars[i]; a.y == b.y && a.to > b.from && b.to > b.from && a.to > a.from {
				r.Fatalf("bars overlap: %v and %v\n%s", a, b, all["svg"])
			}
		}
		rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 0)).Shuffle(len(tl.Entries), func(i, j int) {
			tl.Entries[i], tl.Entries[j] = tl.Entries[j], tl.Entries[i]
		})
		if diff := cmp.Diff(all, forms(t, tl)); diff != "" {
			r.Fatalf("in another order:\n%s", diff)
		}
		tl.Sort()
		checktest.SameIn(r, "sorted", all, forms(t, tl))
	})
}

// Folded or not, no entry is lost: what is shown and what is counted add up.
func TestFoldsCount(t *testing.T) {
	times := regexp.MustCompile(`: (\d+) times?(,|$)`)
	rapid.Check(t, func(r *rapid.T) {
		tl := drawTimeline(r, 40)
		text := textOf(t, tl, timeline.TextOptions{Width: 500, MaxLanes: rapid.IntRange(1, 20).Draw(r, "lanes")})
		n := 0
		for line := range strings.Lines(text) {
			if m := times.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
				folded, _ := strconv.Atoi(m[1])
				n += folded
			}
			n += strings.Count(line, "ends")
		}
		if n != len(tl.Entries) {
			r.Fatalf("%d of %d entries:\n%s", n, len(tl.Entries), text)
		}
	})
}

// A recorder keeps all that it is told, one entry at a time in each lane.
func TestRecording(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		rec := recorder(t, timeline.Options{})
		now, starts := 0, 0
		open := map[string]string{}
		for range rapid.IntRange(0, 60).Draw(r, "steps") {
			now += rapid.IntRange(1, 5).Draw(r, "passes")
			lane := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "lane")
			if rapid.IntRange(0, 3).Draw(r, "what") == 0 {
				rec.End(timeline.Lane{Name: lane}, at(now))
				delete(open, lane)
				continue
			}
			phase := rapid.SampledFrom([]string{"p", "q"}).Draw(r, "phase")
			if open[lane] != phase {
				starts++
			}
			open[lane] = phase
			rec.Start(timeline.Entry{Lane: timeline.Lane{Name: lane}, Start: at(now), Phase: phase})
		}
		got := recorded(t, rec)
		last := map[string]timeline.Entry{}
		goesOn := map[string]string{}
		for _, e := range got.Entries {
			if before, ok := last[e.Lane.Name]; ok && before.Duration() > 0 && (before.Open() || before.End.After(e.Start)) {
				r.Fatalf("%+v and %+v overlap", before, e)
			}
			if last[e.Lane.Name] = e; e.Open() {
				goesOn[e.Lane.Name] = e.Phase
			}
		}
		if diff := cmp.Diff(open, goesOn); diff != "" || len(got.Entries) != starts {
			r.Fatalf("%d of %d entries; what goes on: %s", len(got.Entries), starts, diff)
		}
	})
}
