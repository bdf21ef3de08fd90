package redact

import (
	"encoding/json"
	"strings"
)

// Path returns the path of a field, as clusterapi.Compare writes it, without the
// credentials that an element of a list may bring into it, and reports whether
// the field itself is to be hidden: because a field or key on the way looks like
// a credential, or because it is the value of a variable that does.
func Path(path string) (shown string, hidden bool) {
	var out strings.Builder
	named, last := false, ""
	steps := Split(path)
	for i, step := range steps {
		inner, bracket := strings.CutPrefix(step, "[")
		switch {
		case !bracket:
			last = strings.TrimPrefix(step, ".")
			refers := last == "secret" && i < len(steps)-1 // as of a volume, with the Secret's name
			hidden = hidden || IsCredential(last) && !refers
		case strings.HasPrefix(inner, `"`): // a key
			last = key(inner)
			hidden = hidden || IsCredential(last)
		default: // an element
			last = ""
			named = IsCredential(inner)
			if value, set := strings.CutPrefix(inner, "="); set && hidden || userInURL.MatchString(inner) {
				step = `[="` + Digest(strings.TrimSuffix(value, "]")) + `"]`
			}
		}
		out.WriteString(step)
	}
	return out.String(), hidden || named && last == "value"
}

// Split cuts a path into its steps, which together are the path: a name, with
// the dot before it, and what stands in brackets, with these.
func Split(path string) []string {
	var steps []string
	for len(path) > 0 {
		n := 0
		if path[0] == '[' {
			n = bracketEnd(path)
		} else if n = strings.IndexAny(path[1:], ".[") + 1; n == 0 {
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
		return key(inner)
	}
	return ""
}

// key reads a key that is quoted, up to the closing bracket.
func key(inner string) string {
	var s string
	if err := json.Unmarshal([]byte(strings.TrimSuffix(inner, "]")), &s); err != nil {
		return inner // not quoted as it should be: as it stands
	}
	return s
}

// bracketEnd is where the bracket that s begins with ends: not within a quoted
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
