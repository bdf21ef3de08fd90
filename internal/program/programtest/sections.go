package programtest

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// Document is a file of sections. A section begins with a line of ## and its name.
type Document struct {
	file, head string
	names      []string
	texts      map[string]string
}

const heading = "\n## "

// Sections reads a file of sections.
func Sections(t *testing.T, file string) *Document {
	t.Helper()
	head, rest, _ := strings.Cut(string(checktest.Get(os.ReadFile(file))(t)), heading)
	d := &Document{file: file, head: head, texts: map[string]string{}}
	for section := range strings.SplitSeq(rest, heading) {
		name, text, _ := strings.Cut(section, "\n\n")
		if name != "" {
			d.names = append(d.names, name)
			d.texts[name] = text
		}
	}
	return d
}

// Names are the names of the sections, in their order.
func (d *Document) Names() []string { return d.names }

// Get returns a section without its heading; empty if there is none.
func (d *Document) Get(name string) string { return d.texts[name] }

// set writes a file with a section replaced or added.
func (d *Document) set(t *testing.T, name, text string) {
	t.Helper()
	if _, known := d.texts[name]; !known {
		d.names = append(d.names, name)
		slices.Sort(d.names)
	}
	d.texts[name] = text
	var b strings.Builder
	b.WriteString(d.head)
	for _, name := range d.names {
		b.WriteString(heading + name + "\n\n" + d.texts[name])
	}
	checktest.OK(t, os.WriteFile(d.file, []byte(b.String()), 0o644))
}
