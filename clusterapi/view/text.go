package view

import (
	"errors"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	configv1 "github.com/openshift/api/config/v1"
)

// Wording chooses between the phrases of releases of the command line tool.
type Wording string

// The wordings.
const (
	Current Wording = ""        // what the tool prints today
	Docs418 Wording = "Docs418" // what the documentation of 4.18 shows
)

// Short formats a duration as the views do: its whole seconds in Go's notation
// without trailing zeros ("1h", "2m54s", "now"). Fractions of a second are cut
// off.
func Short(d time.Duration) string {
	d = d.Truncate(time.Second)
	if d == 0 {
		return "now"
	}
	s := d.String()
	if h, ok := strings.CutSuffix(s, "h0m0s"); ok {
		return h + "h"
	}
	if m, ok := strings.CutSuffix(s, "m0s"); ok {
		return m + "m"
	}
	return s
}

// indent moves all lines of a text but the first to the right by two columns.
func indent(text string) string { return strings.ReplaceAll(text, "\n", "\n  ") }

// find returns the first condition of a type, nil without one.
func find(conditions []configv1.ClusterOperatorStatusCondition, t configv1.ClusterStatusConditionType) *configv1.ClusterOperatorStatusCondition {
	for i := range conditions {
		if conditions[i].Type == t {
			return &conditions[i]
		}
	}
	return nil
}

// table aligns cells into columns, as text/tabwriter does: all texts of a line
// but the last are cells, and a column is what consecutive lines have at one
// index. A line feed in a text begins a line.
type table struct{ w *tabwriter.Writer }

// versionTable begins a table of versions, and wideTable one of anything else.
func versionTable(out io.Writer) table { return table{tabwriter.NewWriter(out, 14, 1, 1, ' ', 0)} }
func wideTable(out io.Writer) table    { return table{tabwriter.NewWriter(out, 0, 1, 3, ' ', 0)} }

// cellText keeps out of a cell what would be its border, or would begin a text
// without any.
var cellText = strings.NewReplacer("\t", " ", "\v", " ", "\xff", "\uFFFD")

// row adds a line.
func (t table) row(texts ...string) {
	for i, text := range texts {
		if i > 0 {
			io.WriteString(t.w, "\t") // an error is that of flush
		}
		cellText.WriteString(t.w, text)
	}
	io.WriteString(t.w, "\n")
}

// flush writes the table. The error may be ignored where the table was begun on a
// writer, which remembers it.
func (t table) flush() error { return t.w.Flush() }

// writer remembers its first error, so that a view is written without asking
// after each line.
type writer struct {
	w   io.Writer
	err error
}

// writers are those of a view: for what it shows and for what it warns of.
func writers(out, errOut io.Writer) (*writer, *writer) { return &writer{w: out}, &writer{w: errOut} }

func (w *writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.w.Write(p)
	w.err = err
	return n, err
}

func (w *writer) print(texts ...string) {
	for _, text := range texts {
		io.WriteString(w, text)
	}
}

// written returns the first error of either.
func written(out, errOut *writer) error { return errors.Join(out.err, errOut.err) }
