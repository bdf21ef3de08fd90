package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// Timeline is what happened, or is expected to.
type Timeline struct {
	// Title is shown above it; empty: none.
	Title string
	// Start is what times are relative to. Zero means the start of the first entry.
	Start time.Time
	// End is how far the timeline goes: entries without an end are shown up to it.
	// Zero, or one before the last time of an entry, means that time.
	End time.Time
	// Phases are phases in the order in which they get their colours and letters.
	// Others come after them, in the order in which they start. Two timelines with
	// the same Phases are drawn alike.
	Phases []string
	// Entries may be in any order.
	Entries []Entry
	// Omitted is how many more entries there were.
	Omitted int
}

// Entry is something that continues in a lane for a time.
type Entry struct {
	Lane Lane
	// Start is required.
	Start time.Time
	// End is zero for what continues still, and Start for a moment.
	End time.Time
	// Phase says in a word or two what continues. Entries of one phase are drawn
	// alike.
	Phase string
	// Text is more about it, in words; empty: nothing.
	Text string
	// Trouble reports that something is wrong: it is blocked, or failed.
	Trouble bool
}

// Lane is where entries are shown.
type Lane struct {
	// Group is a machine config pool, or what else lanes are shown together for; may
	// be empty.
	Group string
	// Name is a node, an operator or a runlevel.
	Name string
}

// String is the name after the group's.
func (l Lane) String() string {
	if l.Group == "" || l.Name == "" {
		return l.Group + l.Name
	}
	return l.Group + "/" + l.Name
}

// Open reports that the entry continues.
func (e Entry) Open() bool { return e.End.IsZero() }

// Duration is how long the entry lasted; zero for one that continues.
func (e Entry) Duration() time.Duration {
	if e.Open() {
		return 0
	}
	return e.End.Sub(e.Start)
}

// label is the phase and the text.
func (e *Entry) label() string {
	if e.Phase == "" || e.Text == "" {
		return e.Phase + e.Text
	}
	return e.Phase + ": " + e.Text
}

// Validate returns an error for each of the first entries that cannot be shown,
// joined: one without a start, one that ends before it, and times outside of the
// years 1 to 9999. The forms return it too.
func (t *Timeline) Validate() error {
	const most = 10
	var errs []error
	for _, f := range []struct {
		name string
		at   time.Time
	}{{"Start", t.Start}, {"End", t.End}} {
		if !inRange(f.at) {
			errs = append(errs, fmt.Errorf("timeline: %s is outside of the years 1 to 9999", f.name))
		}
	}
	if t.Omitted < 0 {
		errs = append(errs, fmt.Errorf("timeline: Omitted is negative: %d", t.Omitted))
	}
	for i := range t.Entries {
		e, fault := &t.Entries[i], ""
		switch {
		case e.Start.IsZero():
			fault = "has no start"
		case !inRange(e.Start) || !inRange(e.End):
			fault = "has a time outside of the years 1 to 9999"
		case !e.Open() && e.End.Before(e.Start):
			fault = "ends before it starts"
		default:
			continue
		}
		errs = append(errs, fmt.Errorf("timeline: entry %d, of lane %q, %s", i, e.Lane, fault))
		if len(errs) >= most {
			break
		}
	}
	return bounded.Errors(errs...)
}

func inRange(t time.Time) bool {
	y := t.UTC().Year()
	return 1 <= y && y <= 9999
}

// Sort orders the entries by start, end, lane, phase and text.
func (t *Timeline) Sort() {
	slices.SortStableFunc(t.Entries, func(a, b Entry) int { return compareEntries(&a, &b) })
}

// compareEntries orders all entries that differ in what is shown.
func compareEntries(a, b *Entry) int {
	if c := a.Start.Compare(b.Start); c != 0 {
		return c
	}
	if c := compareBools(a.Open(), b.Open()); c != 0 {
		return c
	}
	if c := a.End.Compare(b.End); c != 0 {
		return c
	}
	return cmp.Or(compareNames(a.Lane.Group, b.Lane.Group), compareNames(a.Lane.Name, b.Lane.Name),
		cmp.Compare(a.Phase, b.Phase), cmp.Compare(a.Text, b.Text), compareBools(a.Trouble, b.Trouble))
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// compareNames orders names as people do: numbers in them by value.
func compareNames(a, b string) int {
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		x, y := digits(a[i:]), digits(b[j:])
		if x == 0 || y == 0 {
			if a[i] != b[j] {
				return cmp.Compare(a[i], b[j])
			}
			i, j = i+1, j+1
			continue
		}
		m, n := trimZeros(a[i:i+x]), trimZeros(b[j:j+y])
		if c := cmp.Or(cmp.Compare(len(m), len(n)), cmp.Compare(m, n)); c != 0 {
			return c
		}
		i, j = i+x, j+y
	}
	return cmp.Or(cmp.Compare(len(a)-i, len(b)-j), cmp.Compare(a, b))
}

// digits counts the digits that a text starts with.
func digits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}

func trimZeros(s string) string {
	for len(s) > 1 && s[0] == '0' {
		s = s[1:]
	}
	return s
}
