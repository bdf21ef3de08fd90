package redact

import (
	"encoding/json"
	"strings"
)

// Field returns a field of an object of a kind, as clusterapi.Compare writes it,
// without credentials: its path, which an element of a list may bring some into,
// and its value. A nil value has no credentials, and stays.
func (r *Redactor) Field(group, kind, path string, value any) (string, any) {
	shown, hidden, last := r.path(path)
	top, _, _ := strings.Cut(path, ".")
	top, _, _ = strings.Cut(top, "[")
	secret := isSecret(group, kind) && !plainPart(top)
	w := walker{r: r}
	switch {
	case value == nil:
		return shown, nil
	case isDefinition(group, kind) && top == "spec":
		return r.SchemaField(path, value)
	case secret && path == top:
		return shown, w.hideEach(value)
	case hidden || secret:
		return shown, w.hidden(value)
	}
	return shown, w.value(last, value)
}

// Path returns the path of a field without credentials, and reports whether the
// field itself is one by its name.
func (r *Redactor) Path(path string) (shown string, hidden bool) {
	shown, hidden, _ = r.path(path)
	return shown, hidden
}

// path also returns the name of the parent for values below the path.
func (r *Redactor) path(path string) (shown string, hidden bool, last string) {
	var out strings.Builder
	named := false // the element is of a variable that holds a credential
	steps := Split(path)
	for i, step := range steps {
		inner, bracket := strings.CutPrefix(step, "[")
		if name := Name(step); name != "" {
			// The name of a Secret, in a volume for instance, is not a credential.
			refers := i < len(steps)-1 && (name == "secret" || i == len(steps)-2 && isReference(Name(steps[i+1])))
			hidden = hidden || hides(last, name) && !refers || named && name == "value"
			last, named = name, false
		} else if bracket {
			named = IsCredential(strings.TrimPrefix(strings.TrimSuffix(inner, "]"), "name=")) || namesCredential(inner)
			if value, set := strings.CutPrefix(inner, "="); set {
				value = strings.TrimSuffix(value, "]")
				if hidden || (walker{r: r}).text(unquoted(value)) != unquoted(value) {
					step = `[="` + r.Hidden(value) + `"]`
				}
			} else if text := r.Text(inner); text != inner {
				step = "[" + r.Hidden(strings.TrimSuffix(inner, "]")) + "]"
			}
		}
		out.WriteString(step)
	}
	return out.String(), hidden, last
}

// namesCredential reports an element whose keys, as a path has them, look like the
// name of a credential.
func namesCredential(inner string) bool {
	for part := range strings.SplitSeq(strings.TrimSuffix(inner, "]"), ",") {
		_, value, ok := strings.Cut(part, "=")
		if ok && IsCredential(unquoted(value)) {
			return true
		}
	}
	return false
}

func unquoted(s string) string {
	var text string
	if strings.HasPrefix(s, `"`) && json.Unmarshal([]byte(s), &text) == nil {
		return text
	}
	return s
}

// Split cuts a path into its steps, which together are the path: a name, with the
// dot before it, and what is in brackets, with the brackets.
func Split(path string) []string {
	var steps []string
	for len(path) > 0 {
		n := strings.IndexAny(path[1:], ".[") + 1
		switch {
		case path[0] == '[':
			n = bracketEnd(path)
		case n == 0:
			n = len(path)
		}
		steps = append(steps, path[:n])
		path = path[n:]
	}
	return steps
}

// Name is the name of a field, or the key of a map, that a step is; empty for an
// element of a list.
func Name(step string) string {
	inner, bracket := strings.CutPrefix(step, "[")
	switch {
	case !bracket:
		return strings.TrimPrefix(step, ".")
	case strings.HasPrefix(inner, `"`):
		return unquoted(strings.TrimSuffix(inner, "]"))
	}
	return ""
}

// bracketEnd is where the bracket that s starts with ends: not within a quoted
// text.
func bracketEnd(s string) int {
	quoted := false
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == ']' && !quoted:
			return i + 1
		}
	}
	return len(s)
}
