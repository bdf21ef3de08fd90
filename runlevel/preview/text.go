package preview

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/fieldchange"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/text"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// TextOptions are the options of [Preview.Text] and [Preview.Diff]. They are plain
// data; the zero value shows everything that changes.
type TextOptions struct {
	// Component and Kind restrict the objects to those of one component, by file
	// name, or of one kind; empty means all.
	Component, Kind string
	// Context is how many unchanged lines are written around those that change in a
	// text of several lines: 0 means 3, which is the most; negative means none.
	Context int
	// Unchanged shows objects that stay as they are too, a line each.
	Unchanged bool
}

// shows reports that a change is among those to show.
func (o TextOptions) shows(c *Change) bool {
	return (o.Kind == "" || o.Kind == c.Object.Kind) && (o.Component == "" || o.Component == c.Tasks[0].Component)
}

// signs are written before objects.
var signs = map[Action]string{Create: "+", Update: "~", Delete: "-", Fail: "!", Unknown: "?"}

// Text writes the preview for people: what changes by runlevel, a block for each
// object, and counts. The error is w's.
//
//   - created   ~ updated   - deleted   ! refused   ? not known
func (p *Preview) Text(w io.Writer, o TextOptions) error {
	t := &printer{Writer: bufio.NewWriter(w), o: o, why: "not ours to remove"}
	if p.Mode == runlevel.ApplyMerge {
		t.why, t.merges = "a merge does not remove it", true
	}
	title := "Update"
	if p.Running != nil {
		title += " from " + p.Running.Version
	}
	if p.Release.Version != "" {
		title += " to " + p.Release.Version
	}
	t.line("%s: %s", title, p.counts(o))
	refused, behind := p.Count(Fail), p.behind()
	if behind > 0 {
		t.line("%d refused, %d behind them", refused, behind)
	}
	level := ""
	for i := range p.Changes {
		c := &p.Changes[i]
		if !o.shows(c) || signs[c.Action] == "" && !o.Unchanged {
			continue
		}
		if c.Tasks[0].Level != level {
			level = c.Tasks[0].Level
			t.line("")
			t.line("Runlevel %s", level)
		}
		t.change(c)
	}
	if o.Component == "" && o.Kind == "" {
		t.rest(p)
	}
	return t.Flush()
}

// counts words the counts of the objects shown.
func (p *Preview) counts(o TextOptions) string {
	n := make(map[Action]int)
	for i := range p.Changes {
		if o.shows(&p.Changes[i]) {
			n[p.Changes[i].Action]++
		}
	}
	var out []string
	for _, a := range []struct {
		Action
		words string
	}{
		{Create, "to create"}, {Update, "to update"}, {Delete, "to delete"}, {Fail, "refused"}, {Unknown, "not known"},
		{keep, "unchanged"}, {skip, "left as they are"}, {absent, "absent already"}, {unmanaged, "not managed"}, {excluded, "excluded"},
	} {
		if n[a.Action] > 0 || a.Action == Create || a.Action == Update {
			out = append(out, fmt.Sprintf("%d %s", n[a.Action], a.words))
		}
	}
	return strings.Join(out, ", ")
}

// behind counts the changes that do not happen since others are refused.
func (p *Preview) behind() int {
	n := 0
	for i := range p.Changes {
		c := &p.Changes[i]
		if c.Action != Fail && len(c.HeldBy) > 0 {
			n++
		}
	}
	return n
}

// printer writes lines; its first error stays with the buffer.
type printer struct {
	*bufio.Writer
	o   TextOptions
	why string // what is stale stays

	merges bool // the mode is ApplyMerge
}

// line writes a line. Texts among args that could break it are quoted: they come from
// releases, clusters and servers.
func (t *printer) line(format string, args ...any) {
	for i, a := range args {
		switch a := a.(type) {
		case string:
			args[i] = fieldchange.Plain(a)
		case fmt.Stringer:
			args[i] = fieldchange.Plain(a.String())
		}
	}
	fmt.Fprintf(t, format+"\n", args...)
}

// quoted writes a line of package fieldchange, which quotes what could break it.
func (t *printer) quoted(line string) { fmt.Fprintln(t, line) }

const indent = "      "

func (t *printer) change(c *Change) {
	sign := signs[c.Action]
	if sign == "" {
		t.line("    %s: %s%s", c.Object, strings.ToLower(string(c.Action)), after(": ", c.Reason))
		return
	}
	t.line("")
	var files []string
	for _, task := range c.Tasks {
		files = append(files, task.File)
	}
	t.line("  %s %s    %s", sign, c.Object, strings.Join(files, ", "))
	if c.Reason != "" {
		t.line(indent+"%s", bounded.Text(c.Reason, maxText))
	}
	if len(c.Awaited) > 0 {
		t.line(indent+"%s", awaitedText(c.Awaited))
	}
	drifted := make(map[string]string)
	for _, d := range c.Drift {
		text := "somebody else has changed it"
		for i, o := range d.Owners {
			text += " and " + o.String()
			if i == 0 {
				text = o.String() + " has changed it"
			}
		}
		drifted[d.Path] = text
	}
	for _, f := range c.Fields {
		t.field(f, drifted[f.Path])
	}
	for _, s := range c.Schemas {
		t.schema(s)
	}
	for _, name := range c.Dropped {
		t.line(indent+"! version %s goes, and objects may be stored in it", name)
	}
	for _, f := range c.Stale {
		why := t.why
		switch {
		case t.merges:
		case slices.Contains(c.OperatorRemoves, f.Path):
			why += "; the version operator would"
		default:
			why += "; the version operator would not"
		}
		t.line(indent+"= %s: %s stays: %s", f.Path, fieldchange.Value(f.Value), why)
	}
	if c.Rolls != nil {
		t.rolls(c.Rolls)
	}
	for _, d := range c.Dependents {
		more := ""
		if d.Unknown {
			more = " or more"
		}
		t.line(indent+"- %d%s %s with it", d.Count, more, d.Kind)
	}
	t.answer(c.Server)
}

func (t *printer) field(f clusterapi.FieldChange, note string) {
	for i, l := range fieldchange.Lines(f) {
		if i == 0 && note != "" {
			l += "    # " + fieldchange.Plain(note)
		}
		t.quoted(indent + l)
	}
}

func (t *printer) schema(s fieldchange.SchemaChange) {
	t.quoted(indent + fieldchange.SchemaLine(s))
	for _, f := range s.Fields {
		for _, l := range fieldchange.Lines(f) {
			t.quoted(indent + "    " + l)
		}
	}
}

func (t *printer) rolls(r *Rolls) {
	switch nodes := r.Nodes(); {
	case r.Unknown != "":
		t.line(indent+"replaces pods: which ones is not known: %s", bounded.Text(r.Unknown, maxText))
	case len(r.Pods) == 0:
		t.line(indent + "replaces no pod that runs now")
	default:
		t.line(indent+"replaces %s on %s", text.Plural(len(r.Pods), "pod"), bounded.Join(nodes, ", ", maxText))
	}
}

func (t *printer) answer(a *Answer) {
	switch {
	case a == nil:
	case a.NeedsOther:
		t.line(indent+"the server cannot tell yet%s", after(": ", bounded.Text(a.Error, maxText)))
	case a.Error != "":
		t.line(indent+"! the server refuses it: %s", bounded.Text(a.Error, maxText))
	case a.Accepts:
		t.line(indent + "the server accepts it")
	default:
		t.line(indent + "the server would store it otherwise:")
		for _, f := range a.Fields {
			t.field(f, "")
		}
	}
}

// rest writes what is not about one object of the release.
func (t *printer) rest(p *Preview) {
	section := func(title string, n int, item func(i int)) {
		if n > 0 {
			t.line("")
			t.line("%s", title)
			for i := range n {
				item(i)
			}
		}
	}
	section("Rights that change", len(p.Access), func(i int) {
		a := p.Access[i]
		who := after(", of ", bounded.Join(a.Subjects, ", ", maxText))
		t.line("    %s%s", a.Object, who)
		for _, g := range a.Gained {
			t.line("      + %s", g)
		}
		for _, l := range a.Lost {
			t.line("      - %s", l)
		}
	})
	section("Capabilities that the update enables implicitly", len(p.Implicit), func(i int) { t.line("    %s", p.Implicit[i]) })
	section("Objects of the running release that nobody manages any more", len(p.Left), func(i int) {
		state := "it may exist"
		if e := p.Left[i].Exists; e != nil && *e {
			state = "it stays"
		} else if e != nil {
			state = "it does not exist"
		}
		t.line("    %s: %s", p.Left[i].Object, state)
	})
	section("APIs that go and are in use", len(p.RemovedAPIs), func(i int) {
		a := p.RemovedAPIs[i]
		t.line("    %s: %s in the last day", a.Resource, text.Plural(int(a.Requests), "request"))
	})
	t.images(p.Images)
	section("To know more: oc adm inspect", len(p.Unknowns), func(i int) { t.line("    %s", p.Unknowns[i]) })
	section("Assumed", len(p.Assumed), func(i int) { t.line("    %s", p.Assumed[i]) })
}

// images counts the component images that change, as nearly all do in every
// release, and names those that come or go.
func (t *printer) images(images []manifest.ImageChange) {
	var lines []string
	added, removed := 0, 0
	for _, i := range images {
		switch {
		case i.Old == "":
			added++
			lines = append(lines, "+ "+fieldchange.Plain(i.Name))
		case i.New == "":
			removed++
			lines = append(lines, "- "+fieldchange.Plain(i.Name))
		}
	}
	if len(images) > 0 {
		t.line("")
		t.line("Component images: %d added, %d removed, %d changed", added, removed, len(images)-added-removed)
	}
	for _, l := range lines {
		t.line("    %s", l)
	}
}

// maxText bounds a value, or a text of somebody else's, in bytes.
const maxText = 200

// after puts a text after another, unless it is empty.
func after(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}
