package dump

import (
	"encoding/json"
	"iter"
	"strings"
)

// The functions here read parts of a JSON text without making values of it. The
// text is valid and has no white space, as internal/yamljson and encoding/json
// write it.

// fields yields keys and values of a map, nothing for what is not a map.
func fields(text string) iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		if text == "" || text[0] != '{' {
			return
		}
		for i := 1; i < len(text) && text[i] != '}'; {
			if text[i] == ',' {
				i++
			}
			end := valueEnd(text, i)
			key, _ := textOf(text[i:end])
			i = min(end+1, len(text)) // behind the colon
			end = valueEnd(text, i)
			if !yield(key, text[i:end]) {
				return
			}
			i = end
		}
	}
}

// elements yields the elements of a list, nothing for what is not a list.
func elements(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if text == "" || text[0] != '[' {
			return
		}
		for i := 1; i < len(text) && text[i] != ']'; {
			if text[i] == ',' {
				i++
			}
			end := valueEnd(text, i)
			if !yield(text[i:end]) {
				return
			}
			i = end
		}
	}
}

// field returns the value at a path of keys, "" if absent.
func field(text string, path ...string) string {
	for _, step := range path {
		found := ""
		for key, value := range fields(text) {
			if key == step {
				found = value
				break
			}
		}
		text = found
	}
	return text
}

// textOf returns the value of a string. ok is false for anything else.
func textOf(value string) (text string, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	inner := value[1 : len(value)-1]
	if strings.IndexByte(inner, '\\') < 0 {
		return inner, true
	}
	return unescape(value)
}

// unescape is apart, since what json.Unmarshal fills is allocated.
func unescape(value string) (text string, ok bool) {
	err := json.Unmarshal([]byte(value), &text)
	return text, err == nil
}

// valueEnd returns where the value that starts at i ends.
func valueEnd(s string, i int) int {
	level := 0
	for i < len(s) {
		switch s[i] {
		case '"':
			i = stringEnd(s, i)
			if level == 0 {
				return i
			}
			continue
		case '{', '[':
			level++
		case '}', ']':
			if level == 0 {
				return i // behind a number or word
			}
			if level--; level == 0 {
				return i + 1
			}
		case ',', ':':
			if level == 0 {
				return i
			}
		}
		i++
	}
	return len(s)
}

// stringEnd returns where the string that starts at i ends.
func stringEnd(s string, i int) int {
	for i++; i < len(s); {
		n := strings.IndexByte(s[i:], '"')
		if n < 0 {
			return len(s)
		}
		quote := i + n
		slashes := 0
		for slashes < n && s[quote-1-slashes] == '\\' {
			slashes++
		}
		i = quote + 1
		if slashes%2 == 0 {
			return i
		}
	}
	return len(s)
}
