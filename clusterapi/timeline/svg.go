package timeline

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/clusterupdate/clusterupdate/internal/options"
)

// SVGOptions are the options of [Timeline.WriteSVG].
type SVGOptions struct {
	// Width of the picture in pixels; zero means 1200. It is 480 at least, and 10,000
	// at most.
	Width int
	// MaxLanes is how many lanes are shown one by one; zero means 100.
	MaxLanes int
}

// WriteSVG writes a picture that needs nothing else: no script, font or style sheet
// from elsewhere. Its colours follow the reader's preference for light or dark. The
// whole text of an entry shows when pointed at. Errors are those of an option below
// zero, of [Timeline.Validate] and of w.
func (t *Timeline) WriteSVG(w io.Writer, o SVGOptions) error {
	if err := options.NonNegative(o); err != nil {
		return err
	}
	if err := t.Validate(); err != nil {
		return err
	}
	l := t.layout(cmp.Or(o.MaxLanes, 100))
	s := &svg{l: l, width: min(max(cmp.Or(o.Width, 1200), 480), 10_000), y: 16}
	s.measure()
	s.head(t)
	top := s.y
	for _, g := range l.groups {
		s.group(g)
	}
	s.grid(top)
	s.legend()
	_, err := fmt.Fprintf(w, svgHead, s.width, s.y, s.width, s.y, xmlText(cmp.Or(t.Title, "Timeline")), svgStyle(), s.width, s.y)
	if err == nil {
		_, err = w.Write(s.under.Bytes())
	}
	if err == nil {
		_, err = w.Write(s.over.Bytes())
	}
	if err == nil {
		_, err = io.WriteString(w, "</svg>\n")
	}
	return err
}

// svg is a layout as a picture: what is written to over lies above what is under.
type svg struct {
	l           *layout
	over, under bytes.Buffer
	width, y    int // y is where the next thing goes
	left, right int // of the axis
	trouble     bool
	marks       bool
	used        []bool          // phases, by colour
	others      map[string]bool // phases that share the last colour
}

// All sizes are in pixels. Places on the axis are in hundredths of one.
const (
	rowHeight = 20
	barHeight = 14
	letter    = 7 // the width of a character, more or less
	colours   = 8 // phases that have one of their own; the others share one
)

const svgHead = `<svg xmlns="http://www.w3.org/2000/svg" class="timeline" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-label="%s">
<style>%s</style>
<defs><pattern id="timeline-trouble" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6" fill="#e5484d"/><rect width="2" height="6" fill="#cd3a40"/></pattern></defs>
<rect class="ground" width="%d" height="%d"/>
`

// fills are the colours of phases, the last for the rest. They are legible below
// dark text, on light and on dark ground.
var fills = [colours + 1]string{"#a9b8c9", "#f3cf65", "#f29a58", "#67b7ec", "#a394f0", "#5cc795", "#e39acb", "#c4b47a", "#b8b8b8"}

// svgStyle is the style sheet.
func svgStyle() string {
	var b strings.Builder
	b.WriteString(`
.timeline{--ground:#ffffff;--text:#1f2328;--muted:#59636e;--line:#d8dee4;--band:#f4f6f8}
@media (prefers-color-scheme:dark){.timeline{--ground:#0d1117;--text:#e6edf3;--muted:#9ba4ae;--line:#2c333d;--band:#161b22}}
.timeline text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;fill:#59636e;fill:var(--muted)}
.timeline .ground{fill:#ffffff;fill:var(--ground)}
.timeline .band{fill:#f4f6f8;fill:var(--band)}
.timeline .line{stroke:#d8dee4;stroke:var(--line)}
.timeline .title{font-size:16px;font-weight:600;fill:#1f2328;fill:var(--text)}
.timeline .group{font-weight:600;fill:#1f2328;fill:var(--text)}
.timeline .lane{fill:#1f2328;fill:var(--text)}
.timeline .in{font-size:11px;fill:#14181d}
.timeline .bad{font-size:11px;fill:#ffffff}
.timeline .mark{fill:#1f2328;fill:var(--text);stroke:#ffffff;stroke:var(--ground)}
.timeline .t{fill:url(#timeline-trouble)}
`)
	for i, fill := range fills {
		fmt.Fprintf(&b, ".timeline .p%d{fill:%s}\n", i, fill)
	}
	return b.String()
}

// measure decides where the axis is.
func (s *svg) measure() {
	longest := 12
	for _, g := range s.l.groups {
		for _, r := range g.rows {
			longest = max(longest, utf8.RuneCountInString(r.laneName()))
		}
	}
	s.left = 24 + min(longest*letter, s.width*3/10) + 12
	s.right = s.width - 28
	s.used, s.others = make([]bool, colours+1), map[string]bool{}
}

// x is where a time is, in hundredths of a pixel.
func (s *svg) x(at time.Duration) int { return s.left*100 + s.l.scale(at, (s.right-s.left)*100) }

// px writes hundredths of a pixel.
func px(hundredths int) string {
	switch whole, rest := hundredths/100, hundredths%100; {
	case rest == 0:
		return fmt.Sprint(whole)
	case rest%10 == 0:
		return fmt.Sprintf("%d.%d", whole, rest/10)
	default:
		return fmt.Sprintf("%d.%02d", whole, rest)
	}
}

func (s *svg) text(class string, x, y int, text string) {
	fmt.Fprintf(&s.over, "<text class=%q x=\"%d\" y=\"%d\">%s</text>\n", class, x, y, xmlText(text))
}

func (s *svg) head(t *Timeline) {
	if t.Title != "" {
		s.text("title", 20, s.y+16, cut(clean(t.Title), (s.width-40)/9))
		s.y += 26
	}
	s.text("sub", 20, s.y+14, t.headline(s.l))
	s.y += 44
}

// grid draws the axis below all else, from the top to where the rows end.
func (s *svg) grid(top int) {
	if len(s.l.groups) == 0 {
		return
	}
	free := 0
	for _, at := range s.l.ticks(max((s.right-s.left)/70, 2)) {
		x := s.x(at)
		fmt.Fprintf(&s.under, "<path class=\"line\" d=\"M%s %dV%d\"/>\n", px(x), top-4, s.y)
		label := strings.TrimPrefix(s.l.offset(at), "+")
		if half := len(label) * letter * 50; x-half >= free {
			fmt.Fprintf(&s.under, "<text x=\"%s\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", px(x), top-9, label)
			free = x + half + 600
		}
	}
}

func (s *svg) group(g *group) {
	s.text("group", 20, s.y+15, cut(groupTitle(g.name, g.lanes), (s.width-40)/letter))
	s.y += 24
	for i, r := range g.rows {
		if i%2 == 0 {
			fmt.Fprintf(&s.under, "<rect class=\"band\" x=\"20\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", s.y, s.width-40, rowHeight)
		}
		s.row(r)
	}
	s.y += 8
}

func (s *svg) row(r *row) {
	if r.track == 0 {
		name := r.laneName()
		text := xmlText(cut(name, (s.left-36)/letter))
		fmt.Fprintf(&s.over, "<text class=\"lane\" x=\"28\" y=\"%d\">%s<title>%s</title></text>\n", s.y+14, text, xmlText(r.lane.String()))
	}
	for _, b := range r.bars { // marks lie above bars
		if !b.mark() {
			s.bar(b)
		}
	}
	for _, b := range r.bars {
		if b.mark() {
			s.mark(b)
		}
	}
	s.y += rowHeight
}

// class is the colour of a bar.
func (s *svg) class(b bar) string {
	if b.Trouble {
		s.trouble = true
		return "t"
	}
	i, known := s.l.index[b.Phase]
	if !known || i >= colours {
		i = colours
		s.others[b.Phase] = true
	}
	s.used[i] = true
	return fmt.Sprint("p", i)
}

func (s *svg) bar(b bar) {
	from, to, y := s.x(b.from), s.x(b.to), s.y+(rowHeight-barHeight)/2
	class := s.class(b)
	what, length := clean(b.label()), short(b.to-b.from)
	if b.Open() {
		length = "not ended after " + length
	}
	fmt.Fprintf(&s.over, "<g><title>%s</title><rect class=%q x=\"%s\" y=\"%d\" width=\"%s\" height=\"%d\"/>",
		xmlText(fmt.Sprintf("%s\n%s\n%s, %s", clean(b.Lane.String()), what, s.l.offset(b.from), length)), class, px(from), y, px(to-from), barHeight)
	if b.Open() {
		fmt.Fprintf(&s.over, "<path class=%q d=\"M%s %dl7 %dl-7 %dz\"/>", class, px(to), y, barHeight/2, barHeight/2)
	}
	if text := fitting(what, phaseName(b.Phase), ((to-from)/100-8)/letter); text != "" {
		ink := "in"
		if b.Trouble {
			ink = "bad"
		}
		fmt.Fprintf(&s.over, "<text class=%q x=\"%s\" y=\"%d\">%s</text>", ink, px(from+400), y+11, xmlText(text))
	}
	s.over.WriteString("</g>\n")
}

// fitting is as much of a text as fits into so many characters: all of it, its
// beginning if that says more than the phase, the phase, or nothing.
func fitting(text, phase string, room int) string {
	const more = 12
	r := []rune(text)
	switch n := utf8.RuneCountInString(phase); {
	case len(r) <= room:
		return text
	case n+more <= room:
		return string(r[:room-1]) + "…"
	case n <= room:
		return phase
	}
	return ""
}

func (s *svg) mark(b bar) {
	class := "mark"
	s.marks = true
	if b.Trouble {
		class, s.trouble = "mark t", true
	}
	fmt.Fprintf(&s.over, "<path class=%q d=\"M%s %dl4 6l-4 6l-4 -6z\"><title>%s</title></path>\n", class, px(s.x(b.from)), s.y+rowHeight/2-6,
		xmlText(fmt.Sprintf("%s\n%s\n%s", clean(b.Lane.String()), clean(b.label()), s.l.offset(b.from))))
}

// phase names the phase of a colour, unless several share it.
func (s *svg) phase(colour int) string {
	if colour < colours {
		return phaseName(s.l.phases[colour])
	}
	for phase := range s.others {
		if len(s.others) == 1 {
			return phaseName(phase)
		}
	}
	return "other"
}

func (s *svg) legend() {
	type sample struct{ class, text string }
	var samples []sample
	for i, used := range s.used {
		if used {
			samples = append(samples, sample{fmt.Sprint("p", i), cut(s.phase(i), 30)})
		}
	}
	if s.trouble {
		samples = append(samples, sample{"t", "trouble"})
	}
	if s.marks {
		samples = append(samples, sample{"", "a moment"})
	}
	if len(samples) == 0 {
		s.y += 8
		return
	}
	s.y += 10
	x := 20
	for _, sample := range samples {
		width := 18 + utf8.RuneCountInString(sample.text)*letter + 18
		if x > 20 && x+width > s.width-20 {
			x = 20
			s.y += rowHeight
		}
		if sample.class != "" {
			fmt.Fprintf(&s.over, "<rect class=%q x=\"%d\" y=\"%d\" width=\"12\" height=\"12\"/>", sample.class, x, s.y)
		} else {
			fmt.Fprintf(&s.over, "<path class=\"mark\" d=\"M%d %dl4 6l-4 6l-4 -6z\"/>", x+6, s.y)
		}
		s.text("sub", x+18, s.y+10, sample.text)
		x += width
	}
	s.y += 28
}

// xmlText writes lines of text for XML.
func xmlText(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = xmlEntities.Replace(clean(line))
	}
	return strings.Join(lines, "&#10;")
}

var xmlEntities = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;")
