package manifest

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/fieldchange"
)

// DiffTextOptions are the options of [PayloadDiff.WriteText].
type DiffTextOptions struct {
	// Component and Kind restrict the objects to those of a component, and of a
	// kind. Empty: all. The counts on top are of everything.
	Component, Kind string
	// Schemas lists the fields of schemas that differ. Default: they are counted.
	Schemas bool
	// Images lists the images whose pull specs changed. Default: they are counted,
	// and those added or removed listed.
	Images bool
}

// WriteText writes the diff for people: the counts, then the objects by runlevel
// and component, each with a sign (+ comes, ~ changes, - goes) and its fields, then
// the images. Long values are cut to what differs in them. An error is w's.
func (d *PayloadDiff) WriteText(w io.Writer, o DiffTextOptions) error {
	t := diffText{o: o, groups: make(map[diffGroup][]diffEntry), pulls: make(map[[2]string]string)}
	for _, i := range d.Images {
		t.pulls[[2]string{i.Old, i.New}] = i.Name
	}
	t.collect(d)
	fmt.Fprintf(&t.out, "%s -> %s\n", fieldchange.Plain(d.Old), fieldchange.Plain(d.New))
	fmt.Fprintf(&t.out, "objects: %d added, %d newly included, %d removed (%d orphaned), %d newly excluded, %d changed, %d moved, %d unchanged\n",
		len(d.Added), len(d.Included), len(d.Removed), len(d.Orphans()), len(d.Excluded), len(d.Changed), len(d.Moved), d.Unchanged)
	fmt.Fprintf(&t.out, "deletions: %d added, %d removed\n", len(d.DeletesAdded), len(d.DeletesRemoved))
	added, removed := 0, 0
	for _, i := range d.Images {
		switch {
		case i.Old == "":
			added++
		case i.New == "":
			removed++
		}
	}
	fmt.Fprintf(&t.out, "images: %d added, %d removed, %d changed\n", added, removed, len(d.Images)-added-removed)
	for _, g := range slices.SortedFunc(maps.Keys(t.groups), diffGroup.compare) {
		fmt.Fprintf(&t.out, "\n%s\n", g)
		for _, e := range t.groups[g] {
			t.out.WriteString("  " + e.line + "\n")
			for _, l := range e.fields {
				t.out.WriteString("      " + l + "\n")
			}
		}
	}
	t.images(d.Images)
	_, err := io.WriteString(w, t.out.String())
	return err
}

// diffGroup is a component in a runlevel. Names without one come last.
type diffGroup struct{ level, component string }

func (g diffGroup) compare(other diffGroup) int {
	if (g.level == "") != (other.level == "") {
		return cmp.Compare(other.level, g.level)
	}
	return cmp.Or(cmp.Compare(g.level, other.level), cmp.Compare(g.component, other.component))
}

func (g diffGroup) String() string {
	if g.level == "" {
		return "without a runlevel"
	}
	return "runlevel " + g.level + ", " + g.component
}

// diffEntry is an object in the text.
type diffEntry struct {
	line   string
	fields []string
}

type diffText struct {
	o      DiffTextOptions
	groups map[diffGroup][]diffEntry
	pulls  map[[2]string]string // the image whose pull specs these are in both releases
	out    strings.Builder
}

// collect sorts what differs into groups: within each, what comes, then what
// changes, then what goes.
func (t *diffText) collect(d *PayloadDiff) {
	told := make(map[Identity]bool) // what becomes of a deletion
	wasDeleted := make(map[Identity]bool)
	for _, r := range d.DeletesRemoved {
		wasDeleted[r.Identity] = true
	}
	for _, a := range d.Added {
		note := ""
		switch {
		case a.Duplicate:
			note = " (another manifest of it: " + fieldchange.Plain(a.File) + ")"
		case wasDeleted[a.Identity]:
			told[a.Identity] = true
			note = " (the old release deleted it)"
		}
		t.add(a, "+", note)
	}
	for _, i := range d.Included {
		t.add(i, "+", " (newly included, was excluded: "+reasonsText(i.Reasons)+")")
	}
	moved := make(map[*Manifest]MovedObject)
	for _, m := range d.Moved {
		moved[m.To.Manifest] = m
	}
	for _, c := range d.Changed {
		note := ""
		if m, ok := moved[c.Manifest]; ok {
			note = movedText(m)
			delete(moved, c.Manifest)
		}
		t.add(c, "~", note, t.fields(c)...)
	}
	for _, m := range d.Moved {
		if _, ok := moved[m.To.Manifest]; ok {
			t.add(m.To, "~", movedText(m))
		}
	}
	for _, r := range d.Removed {
		switch r.Fate {
		case fateDeleted:
			told[r.Identity] = true
			t.add(r, "-", " (deleted)")
		case fateDuplicate:
			t.add(r, "-", " (applied by another manifest still, not by "+fieldchange.Plain(r.File)+")")
		default:
			t.add(r, "-", " (orphaned: neither mentioned nor deleted any more)")
		}
	}
	for _, e := range d.Excluded {
		t.add(e, "-", " (newly excluded: "+reasonsText(e.Reasons)+")")
	}
	for _, r := range d.DeletesAdded {
		if !told[r.Identity] {
			t.add(r, "-", " (deleted where it is still there)")
		}
	}
	for _, r := range d.DeletesRemoved {
		if !told[r.Identity] {
			t.add(r, "~", " (not deleted any more)")
		}
	}
}

func (t *diffText) add(o DiffObject, sign, note string, fields ...string) {
	if t.o.Component != "" && o.Component != t.o.Component || t.o.Kind != "" && o.Identity.Kind != t.o.Kind {
		return
	}
	g := diffGroup{o.Level, o.Component}
	t.groups[g] = append(t.groups[g], diffEntry{line: sign + " " + objectText(o.Identity) + note, fields: fields})
}

func (t *diffText) fields(c DiffObject) []string {
	var lines []string
	for _, f := range c.Fields {
		lines = append(lines, t.field(f)...)
	}
	for _, s := range c.Schemas {
		lines = append(lines, fieldchange.SchemaLine(s))
		if t.o.Schemas {
			for _, f := range s.Fields {
				for _, l := range fieldchange.Lines(f) {
					lines = append(lines, "    "+l)
				}
			}
		}
	}
	return lines
}

// field words a field. Pull specs that change with the component's image, as
// nearly all do in every release, are only said to.
func (t *diffText) field(f clusterapi.FieldChange) []string {
	old, isText := f.Old.(string)
	new, alsoText := f.New.(string)
	if name, ok := t.pulls[[2]string{old, new}]; ok && isText && alsoText {
		return []string{"~ " + fieldchange.Plain(f.Path) + ": the new image " + fieldchange.Plain(name)}
	}
	return fieldchange.Lines(f)
}

func (t *diffText) images(images []ImageChange) {
	var lines []string
	for _, i := range images {
		switch {
		case i.Old == "":
			lines = append(lines, "+ "+fieldchange.Plain(i.Name)+" "+fieldchange.Plain(i.New))
		case i.New == "":
			lines = append(lines, "- "+fieldchange.Plain(i.Name)+" "+fieldchange.Plain(i.Old))
		case t.o.Images:
			lines = append(lines, "~ "+fieldchange.Plain(i.Name)+" "+fieldchange.Plain(i.Old)+" -> "+fieldchange.Plain(i.New))
		}
	}
	if len(lines) > 0 && t.o.Component == "" && t.o.Kind == "" {
		t.out.WriteString("\nimages\n  " + strings.Join(lines, "\n  ") + "\n")
	}
}

func movedText(m MovedObject) string {
	if m.To.Level == "" || m.From.Level == "" {
		return " (moved from " + fieldchange.Plain(m.From.File) + " to " + fieldchange.Plain(m.To.File) + ")"
	}
	return fmt.Sprintf(" (moved from %s of runlevel %s)", m.From.Component, m.From.Level)
}

// reasonsText has each reason once.
func reasonsText(reasons []ExclusionReason) string {
	var texts []string
	for _, r := range reasons {
		if text := fieldchange.Plain(r.Reason); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "; ")
}

func objectText(id Identity) string {
	name := id.Name
	if id.Namespace != "" {
		name = id.Namespace + "/" + id.Name
	}
	return fieldchange.Plain(id.Kind) + " " + fieldchange.Plain(name)
}
