// Package text writes for people: tables, lines, durations, and pictures as DOT and Mermaid.
package text

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// Short formats a duration: its whole seconds in Go's notation without trailing
// zeros ("1h", "2m54s", "now"). Fractions of a second are cut off.
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

// Plural counts things: "1 node", "2 nodes".
func Plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// Indent moves all lines of a text but the first to the right by two columns.
func Indent(text string) string { return strings.ReplaceAll(text, "\n", "\n  ") }

// Wrap breaks a text into lines of at most so many characters, between words if it
// can. Spaces and line feeds only separate words.
func Wrap(s string, width int) []string {
	var lines []string
	var line []rune
	for _, word := range strings.Fields(s) {
		w := []rune(word)
		if len(line) > 0 && len(line)+1+len(w) > width {
			lines, line = append(lines, string(line)), nil
		}
		if len(line) > 0 {
			line = append(line, ' ')
		}
		for line = append(line, w...); len(line) > width; line = line[width:] {
			lines = append(lines, string(line[:width]))
		}
	}
	return append(lines, string(line))
}

// Table aligns cells into columns, as text/tabwriter does: all texts of a row but
// the last are cells, and a column is what consecutive rows have at one index. A
// line feed in a text starts a row.
type Table struct{ w *tabwriter.Writer }

// NewTable starts a table. Columns are at least width wide, and gap wider than
// their texts.
func NewTable(out io.Writer, width, gap int) Table {
	return Table{tabwriter.NewWriter(out, width, 1, gap, ' ', 0)}
}

// cell keeps out of a cell what would be its border, or would start a text without
// any.
var cell = strings.NewReplacer("\t", " ", "\v", " ", "\xff", "\uFFFD")

// Row adds a row.
func (t Table) Row(texts ...string) {
	for i, text := range texts {
		if i > 0 {
			io.WriteString(t.w, "\t") // an error is Flush's
		}
		cell.WriteString(t.w, text)
	}
	io.WriteString(t.w, "\n")
}

// Flush writes the table. Its error may be ignored if the table was started on a
// [Writer], which remembers it.
func (t Table) Flush() error { return t.w.Flush() }

// Writer replaces control characters, which texts from outside may have and a terminal
// would obey, but for line feeds and tabs. It remembers its first error, so that a text is
// written without asking after each line. Each Write gets whole characters.
type Writer struct {
	w   io.Writer
	err error
}

// NewWriter returns a writer on another.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write writes, unless that has failed before. Its error is the first one.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if _, w.err = w.w.Write(bytes.Map(visible, p)); w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

func visible(r rune) rune {
	if r == '\n' || r == '\t' || unicode.IsGraphic(r) {
		return r
	}
	return unicode.ReplacementChar
}

// Print writes texts.
func (w *Writer) Print(texts ...string) {
	for _, text := range texts {
		io.WriteString(w, text)
	}
}

// Written returns the first errors of writers, joined.
func Written(writers ...*Writer) error {
	var errs []error
	for _, w := range writers {
		errs = append(errs, w.err)
	}
	return errors.Join(errs...)
}
