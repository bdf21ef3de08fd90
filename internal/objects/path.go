package objects

import (
	"encoding/json"
	"regexp"
	"strings"
)

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// JoinPath appends the name of a field, or the key of a map, to a path: a.b, or
// a["b.c"] where a key has other than letters, digits, _ and -.
func JoinPath(path, name string) string {
	switch {
	case !plainKey.MatchString(name):
		return path + "[" + quoteJSON(name) + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

// ElementPath returns the key of a list's element as it is written in a path:
// [name=x], or [containerPort=8443,protocol=TCP]. Keys that the element lacks are
// left out, but for a protocol, which is TCP then.
func ElementPath(element any, keys []string) string {
	m, _ := element.(map[string]any)
	var sb strings.Builder
	for _, k := range keys {
		v, ok := m[k]
		if !ok && k == "protocol" {
			v, ok = "TCP", true
		}
		if !ok {
			continue
		}
		if sb.Len() > 0 {
			sb.WriteByte(',')
		}
		sb.WriteString(k + "=")
		if s := plainText(v); plainKey.MatchString(s) {
			sb.WriteString(s)
		} else {
			sb.WriteString(quoteJSON(v))
		}
	}
	return "[" + sb.String() + "]"
}

// plainText is a string itself, and the JSON of everything else.
func plainText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return text(v)
}

func quoteJSON(v any) string {
	var sb strings.Builder
	e := json.NewEncoder(&sb)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return text(v)
	}
	return strings.TrimSuffix(sb.String(), "\n")
}

// text is the JSON form, in which maps are sorted.
func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil { // a JSON tree has no value that fails, except NaN
		return "\x01" + err.Error()
	}
	return string(data)
}
