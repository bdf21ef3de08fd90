package preview

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Diff writes what changes as a unified diff of YAML, an object after another, as
// diff -u does: without status and what else only a server sets, and with
// credentials as digests. It has objects that are created, updated and deleted.
// A preview that was read from JSON has none of them. The error is that of w, or
// of an object that YAML cannot hold.
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
		for _, line := range hunks(text, o.Context) {
			fmt.Fprintln(out, line)
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
	raw, err := yaml.Marshal(c.hider.Object(clusterapi.WithoutServerFields(obj)).Object)
	return string(raw), err
}

// hunks returns the hunks of a unified diff with less context: lines, from the
// first @@ on. context is as in [TextOptions].
func hunks(text string, context int) []string {
	if context == 0 || context > 3 {
		context = 3
	}
	context = max(context, 0)
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	var out []string
	var oldLine, newLine int
	var hunk []string
	oldStart, newStart := 0, 0
	flush := func() {
		if len(hunk) > 0 {
			out = append(append(out, hunkHeader(oldStart, newStart, hunk)), hunk...)
		}
		hunk = nil
	}
	for i, line := range lines {
		if strings.HasPrefix(line, "@@ ") {
			flush()
			fmt.Sscanf(line, "@@ -%d", &oldLine)
			_, plus, _ := strings.Cut(line, " +")
			fmt.Sscanf(plus, "%d", &newLine)
			oldLine, newLine = max(oldLine, 1), max(newLine, 1)
			continue
		}
		if oldLine == 0 {
			continue // the header
		}
		if near(lines, i, context) {
			if len(hunk) == 0 {
				oldStart, newStart = oldLine, newLine
			}
			hunk = append(hunk, line)
		} else {
			flush()
		}
		switch line[:min(1, len(line))] {
		case "-":
			oldLine++
		case "+":
			newLine++
		default:
			oldLine++
			newLine++
		}
	}
	flush()
	return out
}

// near reports a line that changes, or is not far from one.
func near(lines []string, i, context int) bool {
	for j := max(i-context, 0); j <= min(i+context, len(lines)-1); j++ {
		if between := lines[min(i, j) : max(i, j)+1]; (lines[j] != "" && (lines[j][0] == '-' || lines[j][0] == '+')) && !hasHeader(between) {
			return true
		}
	}
	return false
}

func hasHeader(lines []string) bool {
	for _, l := range lines {
		if strings.HasPrefix(l, "@@ ") {
			return true
		}
	}
	return false
}

func hunkHeader(oldStart, newStart int, hunk []string) string {
	olds, news := 0, 0
	for _, l := range hunk {
		switch l[:min(1, len(l))] {
		case "-":
			olds++
		case "+":
			news++
		default:
			olds++
			news++
		}
	}
	if olds == 0 {
		oldStart--
	}
	if news == 0 {
		newStart--
	}
	return fmt.Sprintf("@@ -%d,%d +%d,%d @@", oldStart, olds, newStart, news)
}
