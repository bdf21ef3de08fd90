package timeline

import (
	"bytes"
	"cmp"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/internal/text"
)

// TextOptions are the options of [Timeline.WriteText].
type TextOptions struct {
	// Width of the text in columns; zero means 80. It is 40 at least, and 1000 at
	// most.
	Width int
	// MaxLanes is how many lanes are shown one by one; zero means 500.
	MaxLanes int
}

func (o TextOptions) withDefaults() (TextOptions, error) {
	if err := options.NonNegative(o); err != nil {
		return o, err
	}
	o.Width, o.MaxLanes = min(max(cmp.Or(o.Width, 80), 40), 1000), cmp.Or(o.MaxLanes, 500)
	return o, nil
}

// WriteText writes one line an entry, in the order in which they start: when, relative
// to the timeline's start, for how long, in which lane, and what. Entries that
// continue have a + after what is known of their duration, those in trouble a ! before
// their phase. Long texts are wrapped. Errors are those of an option below zero, of
// [Timeline.Validate] and of w.
func (t *Timeline) WriteText(w io.Writer, o TextOptions) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	if err := t.Validate(); err != nil {
		return err
	}
	l := t.layout(o.MaxLanes)
	lines := l.lines()
	var widths [3]int
	for i, head := range []string{"START", "FOR", "LANE"} {
		widths[i] = len(head)
	}
	for _, line := range lines {
		for i, cell := range line.cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	widths[2] = min(widths[2], max(o.Width/3, 12))
	var b bytes.Buffer
	t.writeHead(&b, l)
	if len(lines) > 0 {
		writeLine(&b, [3]string{"START", "FOR", "LANE"}, "WHAT", widths, o.Width)
	}
	for _, line := range lines {
		writeLine(&b, line.cells, line.what, widths, o.Width)
	}
	_, err = w.Write(b.Bytes())
	return err
}

// writeHead writes what a text starts with.
func (t *Timeline) writeHead(b *bytes.Buffer, l *layout) {
	if t.Title != "" {
		b.WriteString(clean(t.Title) + "\n")
	}
	b.WriteString(t.headline(l) + "\n")
}

// textLine is a line of a text: start, duration and lane, and what.
type textLine struct {
	cells [3]string
	what  string
}

// lines are the entries, and a summary for each phase of a fold.
func (l *layout) lines() []textLine {
	var bars []bar
	for _, g := range l.groups {
		for _, r := range g.rows {
			bars = append(bars, r.bars...)
		}
	}
	slices.SortStableFunc(bars, func(a, b bar) int { return compareEntries(a.Entry, b.Entry) })
	lines := make([]textLine, len(bars))
	for i, b := range bars {
		line := textLine{[3]string{l.offset(b.from), short(b.to - b.from), clean(b.Lane.String())}, clean(b.label())}
		if b.Open() {
			line.cells[1] += "+"
		}
		if b.Trouble {
			line.what = "! " + line.what
		}
		lines[i] = line
	}
	return lines
}

func writeLine(b *bytes.Buffer, cells [3]string, what string, widths [3]int, width int) {
	var line bytes.Buffer
	indent := 0
	for i, cell := range cells {
		pad(&line, cut(cell, widths[i]), widths[i]+2)
		indent += widths[i] + 2
	}
	for _, part := range text.Wrap(what, max(width-indent, 12)) {
		b.WriteString(strings.TrimRight(line.String()+part, " ") + "\n")
		line.Reset()
		pad(&line, "", indent)
	}
}
