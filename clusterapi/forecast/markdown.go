package forecast

import (
	"fmt"
	"io"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/text"
)

// WriteMarkdown writes the forecast as a document for a change request: the verdict, a
// task for each finding, what changes and how long it takes. It returns the error of w.
func (f *Forecast) WriteMarkdown(w io.Writer) error {
	m := markdown{text.NewWriter(w)}
	m.printf("# Update of cluster %s from %s to %s\n\n", markup(f.Cluster), markup(f.From), markup(f.To))
	m.printf("**%s**\n", f.sentence())
	m.list("Path", f.pathLines())
	for _, s := range f.sections() {
		m.printf("\n## %s\n\n", s.title)
		for _, found := range s.findings {
			m.finding(found)
		}
	}
	m.list("Changes", f.changeLines())
	m.list("Credentials", f.credentialLines())
	m.list("Duration", f.durationLines())
	for _, l := range f.lists() {
		m.list(l.title, []string{strings.Join(l.items, ", ")})
	}
	m.list("To collect with "+collectCommand, f.Collect)
	m.list("Assumed", f.assumed())
	return text.Written(m.out)
}

// WriteMarkdown writes a table with a line for each cluster, and what a mirror must hold.
// It returns the error of w.
func (f *FleetForecast) WriteMarkdown(w io.Writer) error {
	m := markdown{text.NewWriter(w)}
	m.printf("# Update of %s to %s\n\n**%s**\n\n", text.Plural(len(f.Rows), "cluster"), markup(f.To), f.totals())
	m.printf("| Cluster | From | To | Verdict | Time | Cause |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, row := range f.Rows {
		cells := row.cells(f.To)
		for i := range cells {
			cells[i] = markup(cells[i])
		}
		m.printf("| %s |\n", strings.Join(cells, " | "))
	}
	if f.Mirror != nil {
		m.list("A mirror must hold", f.Mirror.Versions())
	}
	return text.Written(m.out)
}

// markdown writes a document.
type markdown struct{ out *text.Writer }

func (m markdown) printf(format string, args ...any) { fmt.Fprintf(m.out, format, args...) }

// list writes a section of lines; none writes nothing.
func (m markdown) list(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	m.printf("\n## %s\n\n", title)
	for _, line := range lines {
		m.printf("- %s\n", markup(line))
	}
}

// finding writes a task.
func (m markdown) finding(found Finding) {
	m.printf("- [ ] %s: **%s** `%s`: %s\n", found.Part, found.Check, found.Reason, markup(found.message()))
	for _, at := range found.objectLines() {
		m.printf("  - %s\n", markup(at))
	}
	if found.Remedy != "" {
		m.printf("  - To do: %s\n", markup(found.Remedy))
	}
	if len(found.Same) > 0 {
		m.printf("  - Also found by %s\n", strings.Join(found.same(), ", "))
	}
	if found.Source != "" {
		m.printf("  - Source: %s\n", markup(found.Source))
	}
}

// markup makes a text from outside one line that is not read as markup.
func markup(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	return strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`,
		"<", "&lt;", ">", "&gt;", "#", `\#`, "|", `\|`).Replace(s)
}
