package preview

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/internal/objects"
)

// Diff writes what changes as a unified diff of YAML, an object after another, as
// diff -u does: without status and what else only a server sets, and with
// credentials as digests. It has objects that are created, updated and deleted. A
// preview that was read from JSON has none. The error is w's, or reports an object
// that YAML cannot hold.
func (p *Preview) Diff(w io.Writer, o TextOptions) error {
	out := bufio.NewWriter(w)
	for i := range p.Changes {
		c := &p.Changes[i]
		if !o.shows(c) || c.Action != Create && c.Action != Update && c.Action != Delete {
			continue
		}
		before, err := c.yaml(c.old)
		if err != nil {
			return errorf("%s: %w", c.Object, err)
		}
		after, err := c.yaml(c.new)
		if err != nil {
			return errorf("%s: %w", c.Object, err)
		}
		if c.Action == Delete {
			after = ""
		}
		name := strings.ReplaceAll(c.Object.String(), " ", "/")
		text := lineDiff("cluster/"+name, "update/"+name, before, after)
		header, _, _ := strings.Cut(text, "@@")
		_, header, _ = strings.Cut(header, "\n") // the line "diff a b"
		fmt.Fprint(out, header)
		for _, h := range hunks(text) {
			for _, near := range h.cut(o.Context) {
				near.print(out)
			}
		}
	}
	return out.Flush()
}

// lineDiff is a unified diff of two texts with 3 lines of context.
func lineDiff(oldName, newName, old, new string) string {
	return string(diff.Diff(oldName, []byte(old), newName, []byte(new)))
}

// yaml is a state of the object in YAML; nothing for none.
func (c *Change) yaml(obj *unstructured.Unstructured) (string, error) {
	if obj == nil {
		return "", nil
	}
	raw, err := yaml.Marshal(c.hider.Object(objects.WithoutServerFields(obj)).Object)
	return string(raw), err
}

// hunk is a part of a unified diff, and the numbers of the lines with which it starts
// in both texts.
type hunk struct {
	old, new int
	lines    []string // with their signs
}

// hunks reads a unified diff.
func hunks(text string) []hunk {
	var out []hunk
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		var h hunk
		var count int
		if n, _ := fmt.Sscanf(line, "@@ -%d,%d +%d", &h.old, &count, &h.new); n == 3 {
			out = append(out, hunk{old: max(h.old, 1), new: max(h.new, 1)})
		} else if len(out) > 0 {
			last := &out[len(out)-1]
			last.lines = append(last.lines, line)
		}
	}
	return out
}

// cut returns the parts of a hunk with less context, which is as in [TextOptions].
func (h hunk) cut(context int) []hunk {
	context = cmp.Or(context, 3)
	near := make([]bool, len(h.lines))
	for i, line := range h.lines {
		if strings.HasPrefix(line, " ") {
			continue
		}
		for j := max(i-max(context, 0), 0); j <= min(i+max(context, 0), len(near)-1); j++ {
			near[j] = true
		}
	}
	var out []hunk
	old, new := h.old, h.new
	for i, line := range h.lines {
		if near[i] && (i == 0 || !near[i-1]) {
			out = append(out, hunk{old: old, new: new})
		}
		if near[i] {
			last := &out[len(out)-1]
			last.lines = append(last.lines, line)
		}
		if !strings.HasPrefix(line, "+") {
			old++
		}
		if !strings.HasPrefix(line, "-") {
			new++
		}
	}
	return out
}

// print writes the hunk. Its header counts from the line before if a text has none of
// its lines.
func (h hunk) print(w io.Writer) {
	olds, news := len(h.lines), len(h.lines)
	for _, line := range h.lines {
		switch {
		case strings.HasPrefix(line, "-"):
			news--
		case strings.HasPrefix(line, "+"):
			olds--
		}
	}
	old, new := h.old, h.new
	if olds == 0 {
		old--
	}
	if news == 0 {
		new--
	}
	fmt.Fprintf(w, "@@ -%d,%d +%d,%d @@\n", old, olds, new, news)
	for _, line := range h.lines {
		fmt.Fprintln(w, line)
	}
}
