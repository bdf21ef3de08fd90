package timeline

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// clean makes a line of a text from anywhere: nothing that moves a terminal's cursor,
// turns the direction of writing, or that XML cannot hold.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == '\uFFFE', r == '\uFFFF':
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// cut shortens a name to so many characters, in its middle: the ends tell names
// apart.
func cut(s string, most int) string {
	r := []rune(s)
	if len(r) <= most {
		return s
	}
	if most <= 1 {
		return string(r[:max(most, 0)])
	}
	head := most / 2
	return string(r[:head]) + "…" + string(r[len(r)-(most-head-1):])
}

// short formats a duration: its whole seconds without trailing zeros, below ten
// seconds also milliseconds.
func short(d time.Duration) string {
	unit := time.Second
	if -10*time.Second < d && d < 10*time.Second {
		unit = time.Millisecond
	}
	s := d.Truncate(unit).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if rest, ok := strings.CutSuffix(s, zero); ok {
			s = rest + zero[:1]
		}
	}
	return s
}

// offset is a time relative to the origin.
func (l *layout) offset(at time.Duration) string {
	at -= l.origin.Sub(l.begin)
	if at < 0 {
		return short(at)
	}
	return "+" + short(at)
}

// count is a number of things.
func count(n int, thing, things string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %s", n, things)
}

// headline gives the start, the end and the contents of the timeline.
func (t *Timeline) headline(l *layout) string {
	if len(t.Entries) == 0 && t.Omitted == 0 {
		return "no entries"
	}
	s := fmt.Sprintf("%s, %s: %s, %s", l.origin.UTC().Format(time.RFC3339), short(l.span),
		count(l.lanes, "lane", "lanes"), count(len(t.Entries), "entry", "entries"))
	if t.Omitted > 0 {
		s += fmt.Sprintf(" (%d more left out)", t.Omitted)
	}
	return s
}

// groupTitle is the name of a group, with the number of its lanes.
func groupTitle(name string, lanes int) string {
	name = cmp.Or(clean(name), "all")
	return fmt.Sprintf("%s (%s)", name, count(lanes, "lane", "lanes"))
}

// laneName is the name of a row in its group.
func (r *row) laneName() string {
	if r.lane.Name == "" {
		return clean(r.lane.Group)
	}
	return clean(r.lane.Name)
}

// phaseName is what a phase is called if it must be called something.
func phaseName(p string) string {
	if p == "" {
		return "other"
	}
	return clean(p)
}

// pad fills a text with spaces up to a width.
func pad(b *bytes.Buffer, s string, width int) {
	b.WriteString(s)
	for n := utf8.RuneCountInString(s); n < width; n++ {
		b.WriteByte(' ')
	}
}
