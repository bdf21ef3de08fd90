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

// MermaidOptions are the options of [Timeline.WriteMermaid].
type MermaidOptions struct {
	// MaxLanes is how many lanes are shown one by one; zero means 40. Mermaid
	// itself refuses texts above 50,000 characters unless it is told otherwise.
	MaxLanes int
}

// WriteMermaid writes a gantt chart: a section for each lane, and a task for each
// entry; of a fold one for each phase. Times are UTC, to the second. Entries in
// trouble are critical, those that go on active, moments milestones. A bar without
// room for its text has the letter that its phase has in [Timeline.WriteChart], and
// the title explains it, unless it is in trouble. Errors are those of an option below
// zero, of [Timeline.Validate] and of w.
func (t *Timeline) WriteMermaid(w io.Writer, o MermaidOptions) error {
	if err := options.NonNegative(o); err != nil {
		return err
	}
	if err := t.Validate(); err != nil {
		return err
	}
	l := t.layout(cmp.Or(o.MaxLanes, 40))
	m := mermaid{layout: l, letters: letters(l.phases), used: map[string]bool{}}
	for _, g := range l.groups {
		m.group(g)
	}
	_, err := io.WriteString(w, m.head(t)+m.String())
	return err
}

// mermaid is a layout as a gantt chart: the sections.
type mermaid struct {
	*layout
	bytes.Buffer
	letters []rune          // by phase
	used    map[string]bool // phases whose letters stand for them
	longest int             // characters of the names of sections
}

// head is what comes before the sections.
func (m *mermaid) head(t *Timeline) string {
	const most, pixels = 40, 7
	var b strings.Builder
	fmt.Fprintf(&b, "---\ndisplayMode: compact\nconfig:\n  gantt:\n    leftPadding: %d\n---\ngantt\n", 20+pixels*min(m.longest, most))
	var legend []string
	for i, phase := range m.phases {
		if m.used[phase] && m.letters[i] != '#' {
			legend = append(legend, string(m.letters[i])+" "+phaseName(phase))
		}
	}
	title := t.Title
	if len(legend) > 0 {
		title = strings.TrimSpace(title + " (" + strings.Join(legend, ", ") + ")")
	}
	if title != "" {
		b.WriteString("  title " + mermaidText(title) + "\n")
	}
	axis := "%H:%M"
	switch {
	case m.span < 10*time.Minute:
		axis = "%H:%M:%S"
	case m.span >= 24*time.Hour:
		axis = "%m-%d %H:%M"
	}
	b.WriteString("  dateFormat YYYY-MM-DD HH:mm:ss\n  axisFormat " + axis + "\n  todayMarker off\n")
	if t.Omitted > 0 {
		fmt.Fprintf(&b, "  %%%% %s left out\n", count(t.Omitted, "more entry was", "more entries were"))
	}
	return b.String()
}

func (m *mermaid) section(name string) {
	name = mermaidText(cmp.Or(name, "all"))
	m.longest = max(m.longest, utf8.RuneCountInString(name))
	m.WriteString("  section " + name + "\n")
}

func (m *mermaid) group(g *group) {
	for _, r := range g.rows {
		name := r.lane.String()
		if r.track > 0 { // sections of one name are one section
			name = fmt.Sprintf("%s (%d)", name, r.track+1)
		}
		m.section(name)
		for _, b := range r.bars {
			m.task(m.label(b), b.Trouble, b.Open(), b.from, b.to)
		}
	}
	if g.folded == nil {
		return
	}
	m.section((&group{name: g.name, lanes: g.folded.lanes}).title())
	for _, s := range m.folded(g) {
		m.task(s.Phase+": "+s.text(), s.Trouble > 0, s.Open > 0, s.Start.Sub(m.begin), s.End.Sub(m.begin))
	}
}

// label is as much of the text of a bar as it has room for.
func (m *mermaid) label(b bar) string {
	const columns = 160 // characters that the whole axis has room for, more or less
	text, room := b.label(), m.scale(b.to, columns)-m.scale(b.from, columns)
	if b.Trouble || b.mark() || utf8.RuneCountInString(text) <= room {
		return text
	}
	if n := utf8.RuneCountInString(b.Phase); n > 0 && n <= room {
		return b.Phase
	}
	m.used[b.Phase] = true
	return string(m.letters[m.index[b.Phase]])
}

func (m *mermaid) task(text string, trouble, open bool, from, to time.Duration) {
	start, end := m.time(from), m.time(to)
	m.WriteString("  " + mermaidTask(cmp.Or(text, "other")) + " :")
	for _, tag := range []struct {
		name string
		set  bool
	}{{"crit", trouble}, {"active", open}, {"milestone", start == end}} {
		if tag.set {
			m.WriteString(tag.name + ", ")
		}
	}
	m.WriteString(start + ", " + end + "\n")
}

func (m *mermaid) time(at time.Duration) string {
	return m.begin.Add(at).UTC().Format(time.DateTime)
}

// mermaidText writes a text for a title or a section. Gantt charts show no entities, as
// flowcharts do, so what could end the text, or be taken for an entity, a comment, a
// directive or markup, becomes a character that looks much like it.
func mermaidText(s string) string {
	s = mermaidAlike.Replace(strings.TrimSpace(clean(s)))
	for strings.Contains(s, "%%") {
		s = strings.ReplaceAll(s, "%%", "% %")
	}
	return cmp.Or(s, "-")
}

var mermaidAlike = strings.NewReplacer(
	":", "\u2236", ";", ",", "#", "\u266f", "&", "+", "<", "\u2039", ">", "\u203a", `"`, "'", "`", "'", `\`, "\u2216", "{", "(", "}", ")")

// mermaidTask writes a text for a task, which must not begin as other lines do.
func mermaidTask(s string) string {
	s = mermaidText(s)
	if mermaidKeyword(s) || digits(s) >= 4 || strings.Contains(s[:min(len(s), 2)], "%") {
		return "\u00b7" + s
	}
	return s
}

// mermaidKeyword says that a line that begins like this is not taken for a task, or
// might not be.
func mermaidKeyword(s string) bool {
	s = strings.ToLower(s[:min(len(s), 20)])
	for _, word := range []string{
		"gantt", "title", "section", "dateformat", "axisformat", "tickinterval", "inclusiveenddates", "topaxis", "includes", "excludes",
		"todaymarker", "weekday", "weekend", "click", "call", "href", "acctitle", "accdescr", "vert",
	} {
		if strings.HasPrefix(s, word) {
			return true
		}
	}
	return false
}
