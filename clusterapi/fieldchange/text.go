package fieldchange

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/text"
)

const (
	maxShownValue = 200 // bytes of a value
	maxShownLines = 10  // that are gone, and that are new, of a text or list
)

// Lines words a field: in one line where its values are short, else what differs
// in them.
func Lines(f clusterapi.FieldChange) []string {
	path := Plain(f.Path)
	switch {
	case f.Old == nil:
		return []string{"+ " + path + ": " + Value(f.New)}
	case f.New == nil:
		return []string{"- " + path + ": " + Value(f.Old)}
	}
	old, new, what, ok := parts(f.Old, f.New)
	if !ok {
		before, after := jsonText(f.Old), jsonText(f.New)
		if len(before)+len(after) > maxShownValue {
			before, after = excerpts(before, after)
		}
		return []string{"~ " + path + ": " + before + " -> " + after}
	}
	gone, come := without(old, new), without(new, old)
	if len(gone)+len(come) == 0 {
		return []string{"~ " + path + ": " + what + " in another order"}
	}
	lines := []string{fmt.Sprintf("~ %s: %s: %d gone, %d new", path, what, len(gone), len(come))}
	for _, change := range []struct {
		sign  string
		parts []string
	}{{"-", gone}, {"+", come}} {
		for i, p := range change.parts {
			if i == maxShownLines {
				lines = append(lines, fmt.Sprintf("    %s and %d more", change.sign, len(change.parts)-i))
				break
			}
			lines = append(lines, "    "+change.sign+" "+bounded.Text(Plain(p), maxShownValue))
		}
	}
	return lines
}

// parts are the lines of texts, and the elements of lists.
func parts(old, new any) (a, b []string, what string, ok bool) {
	switch old := old.(type) {
	case string:
		new, ok := new.(string)
		if ok && (strings.Contains(old, "\n") || strings.Contains(new, "\n")) {
			return strings.Split(old, "\n"), strings.Split(new, "\n"), "lines", true
		}
	case []any:
		new, ok := new.([]any)
		if ok && len(jsonText(old))+len(jsonText(new)) > maxShownValue {
			return jsonTexts(old), jsonTexts(new), "elements", true
		}
	}
	return nil, nil, "", false
}

// without are the elements of list that other does not have, each as often as it
// has fewer.
func without(list, other []string) []string {
	count := make(map[string]int, len(other))
	for _, s := range other {
		count[s]++
	}
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool {
		count[s]--
		return count[s] >= 0
	})
}

// excerpts are two long texts from a little before where they differ.
func excerpts(a, b string) (string, string) {
	const before = 20
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	n = max(n-before, 0)
	cut := func(s string) string {
		if n > 0 {
			s = "..." + strings.ToValidUTF8(s[n:], "")
		}
		return bounded.Text(s, maxShownValue)
	}
	return cut(a), cut(b)
}

// Value words a value, cut to 200 bytes.
func Value(v any) string { return bounded.Text(jsonText(v), maxShownValue) }

func jsonTexts(list []any) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = jsonText(v)
	}
	return out
}

// jsonText is a value in JSON, in one line. Digests that stand for hidden values
// are texts too.
func jsonText(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Plain is a text for a line of output: quoted if it could break the line.
func Plain(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// SchemaLine counts what differs in a schema.
func SchemaLine(s SchemaChange) string {
	served := "served"
	if !s.Served {
		served = "not served"
	}
	fields, descriptions := len(s.Fields), s.Descriptions
	for _, f := range s.Fields {
		if isDescription(f.Path) {
			fields--
		}
	}
	var counts []string
	if fields > 0 {
		counts = append(counts, text.Plural(fields, "field"))
	}
	if descriptions > 0 {
		counts = append(counts, text.Plural(descriptions, "description"))
	}
	return fmt.Sprintf("~ schema of %s (%s): %s", Plain(s.Version), served, strings.Join(counts, " and "))
}
