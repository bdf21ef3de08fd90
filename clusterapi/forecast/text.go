package forecast

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/timeline"
	"github.com/clusterupdate/clusterupdate/graph/path"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/text"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/runlevel/preview"
)

// Limits of a text; JSON has everything.
const (
	maxObjects = 10      // objects of a finding
	maxMessage = 1 << 10 // bytes of a message
)

// collectCommand collects what a recording lacks.
const collectCommand = "oc adm inspect --all-namespaces"

// TextOptions are the options of the WriteText methods.
type TextOptions struct {
	// Width in columns; zero, and anything below 80, means 80.
	Width int
}

// WriteText writes the forecast for a terminal. It returns the error of w.
func (f *Forecast) WriteText(w io.Writer, o TextOptions) error {
	p := printer{out: text.NewWriter(w), width: max(o.Width, 80)}
	p.line(0, "", "Update of cluster "+cmp.Or(f.Cluster, "(without an ID)")+" from "+f.From+" to "+f.To)
	p.line(0, "", f.sentence())
	p.lines("Path:", f.pathLines())
	for _, s := range f.sections() {
		p.line(0, "", "")
		p.line(0, "", s.title+":")
		for _, found := range s.findings {
			p.finding(found)
		}
	}
	p.line(0, "", "")
	p.lines("Changes:", f.changeLines())
	p.lines("Credentials:", f.credentialLines())
	p.lines("Duration:", f.durationLines())
	for _, list := range f.lists() {
		p.lines(list.title+":", []string{strings.Join(list.items, ", ")})
	}
	if len(f.Collect) > 0 {
		p.line(0, "To collect: ", collectCommand+" with each of: "+strings.Join(f.Collect, ", "))
	}
	p.lines("Assumed:", f.assumed())
	if err := text.Written(p.out); err != nil || f.Rehearsal == nil || f.Rehearsal.Timeline == nil {
		return err
	}
	p.line(0, "", "")
	if err := text.Written(p.out); err != nil {
		return err
	}
	return f.Rehearsal.Timeline.WriteText(w, timeline.TextOptions{Width: min(p.width, 1000)})
}

// WriteSVG draws the timeline of the rehearsal. It returns an error if there is none,
// or w's error.
func (f *Forecast) WriteSVG(w io.Writer, o timeline.SVGOptions) error {
	if f.Rehearsal != nil && f.Rehearsal.Timeline != nil {
		return f.Rehearsal.Timeline.WriteSVG(w, o)
	}
	for _, found := range f.Findings {
		if found.Check == checkRehearsal {
			return fmt.Errorf("forecast: there is no rehearsal to draw: %s", found.Message)
		}
	}
	return errors.New("forecast: there is no rehearsal to draw")
}

// printer writes lines that are not wider than a terminal.
type printer struct {
	out   *text.Writer
	width int
}

// line writes a text after a mark, indented; what does not fit, and further lines, go
// below the text.
func (p printer) line(indent int, mark, s string) {
	start := strings.Repeat(" ", indent) + mark
	for paragraph := range strings.SplitSeq(s, "\n") {
		for _, line := range text.Wrap(paragraph, p.width-len(start)) {
			p.out.Print(strings.TrimRight(start+line, " "), "\n")
			start = strings.Repeat(" ", len(start))
		}
	}
}

// lines writes a title with lines below it, or one line after it; nothing for none.
func (p printer) lines(title string, lines []string) {
	switch len(lines) {
	case 0:
	case 1:
		p.line(0, title+" ", lines[0])
	default:
		p.line(0, "", title)
		for _, line := range lines {
			p.line(2, "", line)
		}
	}
}

// finding writes a finding, the objects at fault and what to do about it.
func (p printer) finding(found Finding) {
	p.line(2, string(found.Part)+": ", found.Check+" "+found.Reason+": "+found.message())
	for _, at := range found.objectLines() {
		p.line(6, "- ", at)
	}
	if found.Remedy != "" {
		p.line(4, "To do: ", found.Remedy)
	}
	if len(found.Same) > 0 {
		p.line(4, "Also found by ", strings.Join(found.same(), ", "))
	}
}

// message is the message without the remedy, if it ends in it, and cut to a length that
// people read.
func (f Finding) message() string {
	message := strings.TrimSpace(strings.TrimSuffix(f.Message, f.Remedy))
	if f.Unknown {
		message = strings.ReplaceAll(message, "\n", "; ")
	}
	return bounded.Text(message, maxMessage)
}

// same are the names of the checks that find the same.
func (f Finding) same() []string {
	var names []string
	for _, other := range f.Same {
		names = append(names, other.Check)
	}
	return names
}

// objectLines names those objects at fault that the message does not name.
func (f Finding) objectLines() []string {
	var lines []string
	for _, o := range f.Objects {
		if strings.Contains(f.Message, o.Name) && strings.Contains(f.Message, o.Note) || o.GVK.Kind == "ClusterVersion" {
			continue
		}
		name := o.Name
		if o.Namespace != "" {
			name = o.Namespace + "/" + name
		}
		line := o.GVK.Kind + " " + name
		for _, more := range []string{o.FieldPath, o.Note} {
			if more != "" {
				line += ": " + bounded.Text(more, bounded.MaxQuoted)
			}
		}
		lines = append(lines, line)
	}
	if more := len(lines) - maxObjects; more > 0 {
		lines = append(lines[:maxObjects], text.Plural(more, "more object"))
	}
	return lines
}

// sentence is the verdict with its figures.
func (f *Forecast) sentence() string {
	var counts []string
	for _, s := range f.sections() {
		title := strings.ToLower(s.title)
		if len(s.findings) == 1 {
			title = strings.TrimSuffix(title, "s")
		}
		counts = append(counts, strconv.Itoa(len(s.findings))+" "+title)
	}
	if len(counts) == 0 {
		return string(f.Verdict())
	}
	return string(f.Verdict()) + ": " + strings.Join(counts, ", ")
}

// section is the findings of one weight.
type section struct {
	title    string
	findings []Finding
}

// sections sorts the findings: what blocks, what is to know, what is not known.
func (f *Forecast) sections() []section {
	all := []section{
		{title: "Blocking"}, {title: "Not decided"}, {title: "Warnings"}, {title: "Not known"}, {title: "Notes"},
	}
	for _, found := range f.Findings {
		i := 4
		switch {
		case found.Severity >= preconditions.Blocking && !found.Unknown:
			i = 0
		case found.Severity >= preconditions.Blocking:
			i = 1
		case found.Unknown:
			i = 3
		case found.Severity == preconditions.Warning:
			i = 2
		}
		all[i].findings = append(all[i].findings, found)
	}
	return slices.DeleteFunc(all, func(s section) bool { return len(s.findings) == 0 })
}

// pathLines are the updates of the path, and what can be reached instead.
func (f *Forecast) pathLines() []string {
	var lines []string
	if f.Path != nil {
		lines = hopLines(f.Path)
	}
	if f.Nearest == nil {
		return lines
	}
	versions := f.Nearest.Versions()
	head := "the nearest version above " + f.To + " that can be reached is " + versions[len(versions)-1]
	if slices.ContainsFunc(f.WhyNot(), func(found Finding) bool { return !found.aboutTarget() }) {
		head += ", once the cluster does not block it"
	}
	return append(append(lines, head+":"), hopLines(f.Nearest)...)
}

// hopLines are the updates of a path, a line each.
func hopLines(way *path.Path) []string {
	var lines []string
	for _, hop := range way.Hops {
		line := hop.From + " to " + hop.To + " in " + hop.Channel
		if hop.Recommendation != "Recommended" {
			line += " (" + hop.Recommendation + ")"
		}
		lines = append(lines, line)
	}
	return lines
}

// changeLines count the changes, a line for each action that changes something.
func (f *Forecast) changeLines() []string {
	var lines []string
	for _, action := range []preview.Action{preview.Create, preview.Update, preview.Delete, preview.Fail} {
		kinds := f.Counts[action]
		names := slices.SortedFunc(maps.Keys(kinds), func(a, b string) int {
			return cmp.Or(cmp.Compare(kinds[b], kinds[a]), cmp.Compare(a, b))
		})
		total := 0
		for i, kind := range names {
			total += kinds[kind]
			names[i] = strconv.Itoa(kinds[kind]) + " " + kind
		}
		if total > 0 {
			lines = append(lines, fmt.Sprintf("%s %d: %s", action, total, strings.Join(names, ", ")))
		}
	}
	return lines
}

// credentialLines are the CredentialsRequests that differ.
func (f *Forecast) credentialLines() []string {
	var lines []string
	for _, c := range f.Credentials {
		line := string(c.Action) + " " + c.Namespace + "/" + c.Name
		if c.Secret != "" {
			line += ", Secret " + c.Secret
		}
		lines = append(lines, line)
	}
	return lines
}

// durationLines are the figures of the rehearsal and of the documentation.
func (f *Forecast) durationLines() []string {
	var lines []string
	if r := f.Rehearsal; r != nil {
		lines = append(lines, r.summary())
		if q := r.Quantiles; q.Runs > 1 {
			lines = append(lines, fmt.Sprintf("%d of %d runs completed: half of them in %s, nine of ten in %s, all in %s",
				q.Completed, q.Runs, minutes(q.Total.P50), minutes(q.Total.P90), minutes(q.Total.Max)))
		}
	}
	if f.Documented > 0 {
		lines = append(lines, minutes(f.Documented)+" by the documentation's formula")
	}
	return lines
}

// summary is the outcome of a rehearsal in a line.
func (r *Rehearsal) summary() string {
	if r.Outcome == Completed {
		return minutes(r.Total) + " by rehearsal, " + minutes(r.ControlPlane) + " of it for the control plane"
	}
	line := string(r.Outcome) + " in rehearsal"
	for _, c := range r.Why {
		line += "; " + c.String()
	}
	return line
}

// list is names under a title.
type list struct {
	title string
	items []string
}

// lists are the checks without findings.
func (f *Forecast) lists() []list {
	all := []list{
		{"Passed", f.Checks[preconditions.Passed]},
		{"Bypassed", f.Checks[preconditions.Bypassed]},
		{"Not applicable", f.Checks[preconditions.NotApplicable]},
	}
	return slices.DeleteFunc(all, func(l list) bool { return len(l.items) == 0 })
}

// assumed is what forecast and rehearsal take for granted.
func (f *Forecast) assumed() []string {
	if f.Rehearsal == nil {
		return f.Assumed
	}
	return slices.Concat(f.Assumed, f.Rehearsal.Assumed)
}

// minutes rounds a duration for people.
func minutes(d time.Duration) string { return text.Short(d.Round(time.Minute)) }

// WriteText writes a table with a line for each cluster, and what a mirror must hold. It
// returns the error of w.
func (f *FleetForecast) WriteText(w io.Writer, o TextOptions) error {
	p := printer{out: text.NewWriter(w), width: max(o.Width, 80)}
	table := text.NewTable(p.out, 0, 2)
	table.Row("CLUSTER", "FROM", "TO", "VERDICT", "TIME", "CAUSE")
	rest := 0
	for _, row := range f.Rows {
		rest = max(rest, len(row.Name))
	}
	for _, row := range f.Rows {
		cells := row.cells(f.To)
		cells[5] = bounded.Text(cells[5], max(p.width-rest-50, 60))
		table.Row(cells...)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	p.line(0, "", f.totals())
	if f.Mirror != nil {
		p.line(0, "A mirror must hold: ", strings.Join(f.Mirror.Versions(), ", "))
	}
	return text.Written(p.out)
}

// cells are a cluster's name, versions, verdict, duration and first cause.
func (r Row) cells(to string) []string {
	if r.Forecast == nil {
		return []string{r.Name, "", to, string(r.Verdict()), "", r.Error}
	}
	f := r.Forecast
	took, cause := "", ""
	switch {
	case f.Rehearsal != nil && f.Rehearsal.Outcome == Completed:
		took = minutes(f.Rehearsal.Total)
	case f.Documented > 0:
		took = "~" + minutes(f.Documented)
	}
	if len(f.Findings) > 0 && f.Verdict() != Ready {
		first := f.Findings[0]
		cause = first.Check
		if first.Reason != first.Check {
			cause += " " + first.Reason
		}
	}
	return []string{r.Name, f.From, f.To, string(r.Verdict()), took, cause}
}

// totals counts the clusters by verdict.
func (f *FleetForecast) totals() string {
	counts := map[Verdict]int{}
	for _, row := range f.Rows {
		counts[row.Verdict()]++
	}
	var all []string
	for _, v := range []Verdict{Blocked, Unknown, Warnings, Ready} {
		if counts[v] > 0 {
			all = append(all, strconv.Itoa(counts[v])+" "+string(v))
		}
	}
	return text.Plural(len(f.Rows), "cluster") + ": " + strings.Join(all, ", ")
}
