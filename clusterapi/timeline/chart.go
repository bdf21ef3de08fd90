package timeline

import (
	"bytes"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// WriteChart writes bars of letters, one line a lane, below an axis of times relative to
// the timeline's start. A letter stands for what took most of its part of the
// time, a ! for trouble in it, however short, and a * for moments where nothing else
// went on. Of a fold it shows how many lanes are in each phase, up to 9, and + for
// more. Errors are those of an option below zero, of [Timeline.Validate] and of w.
func (t *Timeline) WriteChart(w io.Writer, o TextOptions) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	if err := t.Validate(); err != nil {
		return err
	}
	l := t.layout(o.MaxLanes)
	c := chart{layout: l, letters: letters(l.phases)}
	for _, g := range l.groups {
		for _, r := range g.rows {
			c.label = max(c.label, utf8.RuneCountInString(r.laneName()))
		}
		if g.folded != nil {
			for i := range min(len(l.phases), foldedPhases+1) {
				c.label = max(c.label, utf8.RuneCountInString(l.foldedPhase(i)))
			}
		}
	}
	c.label = min(c.label, o.Width/3)
	c.cells = o.Width - c.label - 4
	var b bytes.Buffer
	t.writeHead(&b, l)
	if len(t.Entries) > 0 {
		c.axis(&b)
	}
	for _, g := range l.groups {
		b.WriteString(g.title() + "\n")
		for _, r := range g.rows {
			c.row(&b, r)
		}
		c.fold(&b, g)
	}
	c.legend(&b, o.Width)
	_, err = w.Write(b.Bytes())
	return err
}

// chart is a layout in letters.
type chart struct {
	*layout
	letters []rune // by phase
	label   int    // columns of the names of lanes
	cells   int    // columns of the axis
	trouble bool   // is shown somewhere
	moments bool
}

// maxLetters is how many phases are told apart in a chart, the last for all others.
const maxLetters = 63

// letters chooses a letter for each phase: one of its own where there is one.
func letters(phases []string) []rune {
	const spare = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	taken := map[rune]bool{}
	out := make([]rune, len(phases))
	for i, p := range phases {
		if out[i] = '#'; len(taken) == len(spare) {
			continue
		}
		p = strings.ToLower(clean(p))
		for _, r := range p + strings.ToUpper(p) + spare {
			if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) && !taken[r] {
				out[i], taken[r] = r, true
				break
			}
		}
	}
	return out
}

// line writes a name and its cells.
func (c *chart) line(b *bytes.Buffer, name string, cells []rune) {
	b.WriteString("  ")
	pad(b, cut(name, c.label), c.label+2)
	b.WriteString(strings.TrimRight(string(cells), " ") + "\n")
}

func (c *chart) axis(b *bytes.Buffer) {
	cells := []rune(strings.Repeat(" ", c.cells))
	free := 0
	for _, at := range c.ticks(max(c.cells/8, 2)) {
		i, text := c.cell(at), []rune(strings.TrimPrefix(c.offset(at), "+"))
		if i < free || i+len(text) > len(cells) {
			continue
		}
		copy(cells[i:], text)
		free = i + len(text) + 1
	}
	c.line(b, "", cells)
}

// cell is where a time is on the axis.
func (c *chart) cell(at time.Duration) int { return min(c.scale(at, c.cells), c.cells-1) }

func (c *chart) row(b *bytes.Buffer, r *row) {
	n := min(len(c.phases), maxLetters)
	spans := c.coverage(r.bars, c.cells, n+1, func(b bar) int {
		if b.Trouble {
			return n
		}
		return min(c.index[b.Phase], n-1)
	})
	cells := []rune(strings.Repeat(" ", c.cells))
	for i := range cells {
		most := 0
		for phase := range n {
			if spans[phase][i] > most {
				most, cells[i] = spans[phase][i], c.letters[phase]
			}
		}
		if spans[n][i] > 0 {
			cells[i], c.trouble = '!', true
		}
	}
	for _, bar := range r.bars {
		i := c.cell(bar.from)
		switch {
		case bar.Trouble:
			cells[i], c.trouble = '!', true
		case cells[i] == ' ' && bar.mark():
			cells[i], c.moments = '*', true
		case cells[i] == ' ':
			cells[i] = c.letters[c.index[bar.Phase]] // too short to count
		}
	}
	name := r.laneName()
	if r.track > 0 {
		name = ""
	}
	c.line(b, name, cells)
}

// fold writes how many lanes of a fold are in each phase.
func (c *chart) fold(b *bytes.Buffer, g *group) {
	if g.folded == nil {
		return
	}
	if len(g.rows) > 0 {
		b.WriteString("  " + count(g.folded.lanes, "other lane", "other lanes") + "\n")
	}
	n := min(len(c.phases), foldedPhases+1)
	spans := c.coverage(g.folded.bars, c.cells, n, func(b bar) int { return min(c.index[b.Phase], n-1) })
	for i, span := range spans {
		cells := []rune(strings.Repeat(" ", c.cells))
		any := false
		for k, thousandths := range span {
			if n := (thousandths + 999) / 1000; n > 9 {
				cells[k], any = '+', true
			} else if n > 0 {
				cells[k], any = rune('0'+n), true
			}
		}
		if any {
			c.line(b, c.foldedPhase(i), cells)
		}
	}
}

func (c *chart) legend(b *bytes.Buffer, width int) {
	const most = 20
	used := map[string]bool{}
	for _, g := range c.groups {
		for _, r := range g.rows {
			for _, bar := range r.bars {
				if !bar.mark() && !bar.Trouble {
					used[bar.Phase] = true
				}
			}
		}
	}
	var parts []string
	for i, p := range c.phases {
		if used[p] {
			parts = append(parts, string(c.letters[i])+" "+phaseName(p))
		}
	}
	if len(parts) > most {
		parts = append(parts[:most], "and more")
	}
	if c.trouble {
		parts = append(parts, "! trouble")
	}
	if c.moments {
		parts = append(parts, "* a moment")
	}
	at := 0
	for i, part := range parts {
		n := utf8.RuneCountInString(part)
		switch {
		case i == 0:
		case at+2+n > width:
			b.WriteByte('\n')
			at = 0
		default:
			b.WriteString("  ")
			at += 2
		}
		b.WriteString(part)
		at += n
	}
	if at > 0 {
		b.WriteByte('\n')
	}
}
