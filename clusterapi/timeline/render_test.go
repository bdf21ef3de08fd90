package timeline_test

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/timeline"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// rendered is what a form writes.
func rendered(t testing.TB, write func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	checktest.OK(t, write(&b))
	return b.String()
}

func textOf(t testing.TB, tl *timeline.Timeline, o timeline.TextOptions) string {
	return rendered(t, func(w io.Writer) error { return tl.WriteText(w, o) })
}

func svgOf(t testing.TB, tl *timeline.Timeline, o timeline.SVGOptions) string {
	return rendered(t, func(w io.Writer) error { return tl.WriteSVG(w, o) })
}

// hostile is a timeline whose names and texts try to be more than text.
func hostile(t testing.TB) *timeline.Timeline {
	r := recorder(t, timeline.Options{Title: "title </style><script>alert(1)</script> %%{init: {}}%% \x1b[2J"})
	for i, name := range []string{
		"<b>&amp;\"'", "section x", "a:b;c#d", "gantt", "2026-01-01", "\x1b]0;x\x07", "a\nb\u2028c", "\u202egnp.exe", "\xff\xfe", "`%%`{}\\", "",
	} {
		lane := timeline.Lane{Group: "]]>" + name, Name: name}
		r.Add(timeline.Entry{Lane: lane, Start: at(i), End: at(i + 60), Phase: name, Text: "click " + name + "\n  section evil"})
		r.Add(timeline.Entry{Lane: lane, Start: at(i), End: at(i), Phase: "mark " + name, Trouble: i%2 == 0})
	}
	return recorded(t, r)
}

// The forms of a few timelines.
func TestForms(t *testing.T) {
	overlap := &timeline.Timeline{Title: "Overlapping", End: at(500), Entries: []timeline.Entry{
		{Lane: timeline.Lane{Name: "80"}, Start: at(0), End: at(300), Phase: "Working"},
		{Lane: timeline.Lane{Name: "80"}, Start: at(100).In(time.FixedZone("", 7200)), End: at(200).In(time.FixedZone("", -19800)), Phase: "Working", Text: "another part"},
		{Lane: timeline.Lane{Name: "80"}, Start: at(200), End: at(400), Phase: "Waiting"},
		{Lane: timeline.Lane{Name: "80"}, Start: at(250), End: at(250), Text: "a moment without a phase"},
		{Lane: timeline.Lane{Name: "9"}, Start: at(-60), Phase: "Working", Trouble: true, Text: "goes on"},
		{Lane: timeline.Lane{}, Start: at(0), End: at(1), Phase: ""},
	}, Start: at(0), Omitted: 3}
	for name, tl := range map[string]*timeline.Timeline{
		"rollout": rollout(t, 4, 4, "master", "worker"),
		"folded":  rollout(t, 60, 25, "worker", "infra"),
		"hostile": hostile(t), "overlap": overlap, "empty": {},
	} {
		t.Run(name, func(t *testing.T) {
			lanes := 0 // those of the defaults
			if name == "folded" {
				lanes = 20
			}
			golden(t, name+".txt", textOf(t, tl, timeline.TextOptions{MaxLanes: lanes}))
			golden(t, name+".svg", svgOf(t, tl, timeline.SVGOptions{MaxLanes: lanes}))
			data := checktest.Get(json.MarshalIndent(tl, "", " "))(t)
			if name != "folded" {
				golden(t, name+".json", string(data)+"\n")
			}
		})
	}
}

// A text keeps to its width where words let it, and names are cut in the middle.
func TestTextWidth(t *testing.T) {
	tl := &timeline.Timeline{Entries: []timeline.Entry{{
		Lane:  timeline.Lane{Group: "worker", Name: "ip-10-0-128-91.us-west-2.compute.internal"},
		Start: at(0), End: at(10), Phase: "Draining", Text: strings.Repeat("word ", 40) + strings.Repeat("x", 200),
	}}}
	for _, width := range []int{1, 40, 60, 80, 200} {
		for line := range strings.Lines(textOf(t, tl, timeline.TextOptions{Width: width})) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > max(width, 40) && !strings.HasPrefix(line, "2026-") {
				t.Errorf("width %d: a line of %d: %s", width, n, line)
			}
		}
	}
	checktest.Has(t, textOf(t, tl, timeline.TextOptions{Width: 80}), "worker/ip-10-…ute.internal ")
}

// However many lanes, groups and phases there are, what is shown stays small, and
// nodes in trouble stay in sight.
func TestFoldBounds(t *testing.T) {
	for name, lane := range map[string]func(i int) (timeline.Lane, string){
		"lanes": func(i int) (timeline.Lane, string) {
			return timeline.Lane{Group: "g", Name: string(rune('a' + i))}, "p"
		},
		"groups": func(i int) (timeline.Lane, string) {
			return timeline.Lane{Group: string(rune('a' + i)), Name: "l"}, "p"
		},
		"tracks": func(i int) (timeline.Lane, string) { return timeline.Lane{Group: "g", Name: "l"}, "p" },
		"phases": func(i int) (timeline.Lane, string) {
			return timeline.Lane{Group: "g", Name: string(rune('a' + i))}, string(rune('a' + i))
		},
	} {
		t.Run(name, func(t *testing.T) {
			tl := &timeline.Timeline{}
			for i := range 3000 {
				l, p := lane(i)
				tl.Entries = append(tl.Entries, timeline.Entry{Lane: l, Start: at(i), End: at(i + 3000), Phase: p, Trouble: i == 2500})
			}
			for form, lines := range map[string]int{
				textOf(t, tl, timeline.TextOptions{MaxLanes: 10}): 40,
				svgOf(t, tl, timeline.SVGOptions{MaxLanes: 10}):   160,
			} {
				n := strings.Count(form, "\n")
				checktest.FailIf(t, n > lines, "%d lines:\n%.2000s", n, form)
			}
		})
	}
	tl := rollout(t, 2000, 700, "worker")
	for _, form := range []string{
		textOf(t, tl, timeline.TextOptions{}), svgOf(t, tl, timeline.SVGOptions{}),
	} {
		checktest.Has(t, form, "worker-699", "worker-1399")
		checktest.FailIf(t, strings.Contains(form, "worker-698"), "nothing is folded:\n%.1000s", form)
		checktest.FailIf(t, len(form) > 200<<10, "%d bytes", len(form))
	}
}

// Equal phases have equal colours if Phases lists them.
func TestPhases(t *testing.T) {
	tl := &timeline.Timeline{Phases: []string{"Draining", "Deciding", "Doing", ""}, Entries: []timeline.Entry{
		{Lane: timeline.Lane{Name: "n"}, Start: at(0), End: at(60), Phase: "Doing"},
		{Lane: timeline.Lane{Name: "n"}, Start: at(60), End: at(120), Phase: "Draining"},
	}}
	if svg := svgOf(t, tl, timeline.SVGOptions{}); !strings.Contains(svg, `class="p2"`) || !strings.Contains(svg, `class="p0"`) || strings.Contains(svg, `class="p1"`) {
		t.Error(svg)
	}
}

// Times as far apart as they can be neither panic nor overlap.
func TestFarApart(t *testing.T) {
	tl := &timeline.Timeline{Entries: []timeline.Entry{
		{Lane: timeline.Lane{Name: "n"}, Start: time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC), End: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), Phase: "long"},
		{Lane: timeline.Lane{Name: "n"}, Start: time.Date(5000, 1, 2, 0, 0, 0, 0, time.UTC), Phase: "open"},
	}}
	for _, form := range []string{textOf(t, tl, timeline.TextOptions{}), svgOf(t, tl, timeline.SVGOptions{})} {
		checktest.Has(t, form, "long")
	}
}

// Options that cannot work are refused by name, and so are writers that fail.
func TestFormErrors(t *testing.T) {
	fine, bad := rollout(t, 1, 9, "worker"), &timeline.Timeline{Entries: []timeline.Entry{{}}}
	full := errorWriter{}
	_, unwritten := json.Marshal(bad)
	for want, err := range map[string]error{
		"timeline.TextOptions: Width is negative: -1":                                                              fine.WriteText(io.Discard, timeline.TextOptions{Width: -1}),
		"timeline.TextOptions: MaxLanes is negative: -1":                                                           fine.WriteText(io.Discard, timeline.TextOptions{MaxLanes: -1}),
		"timeline.SVGOptions: Width is negative: -9":                                                               fine.WriteSVG(io.Discard, timeline.SVGOptions{Width: -9}),
		`timeline: entry 0, of lane "", has no start`:                                                              bad.WriteText(io.Discard, timeline.TextOptions{}),
		`timeline: entry 0, of lane "", has no start ` + "(svg)":                                                   wrapped(bad.WriteSVG(io.Discard, timeline.SVGOptions{}), "svg"),
		`json: error calling MarshalJSON for type *timeline.Timeline: timeline: entry 0, of lane "", has no start`: unwritten,
		"full":       fine.WriteText(full, timeline.TextOptions{}),
		"full (svg)": wrapped(fine.WriteSVG(full, timeline.SVGOptions{Width: math.MaxInt32}), "svg"),
	} {
		checktest.FailIf(t, err == nil || err.Error() != want, "got %v, want %s", err, want)
	}
}
