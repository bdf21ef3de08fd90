package yamljson

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Object returns the generic object of a JSON text that a [Decoder] made: what
// apimachinery reads from it, with int64 for numbers that are whole and fit,
// else float64. Strings of the object are parts of text where they can be. ok
// is false for a text of another form.
func Object(text string) (object map[string]any, ok bool) {
	r := reader{s: text}
	value, ok := r.value()
	if !ok || r.pos != len(text) {
		return nil, false
	}
	object, ok = value.(map[string]any)
	return object, ok
}

// reader reads JSON without white space, as emit writes it.
type reader struct {
	s     string
	pos   int
	keys  []string // of the maps that are being read
	items []any    // of the maps and lists that are being read
	buf   []byte   // a string with escapes
	boxes [64]any  // strings that came lately, as values: see box
}

// peek returns the next character, 0 at the end.
func (r *reader) peek() byte {
	if r.pos == len(r.s) {
		return 0
	}
	return r.s[r.pos]
}

func (r *reader) value() (value any, ok bool) {
	switch r.peek() {
	case '{':
		return r.object()
	case '[':
		return r.list()
	case '"':
		s, ok := r.text()
		return r.box(s), ok
	case 't':
		return true, r.word("true")
	case 'f':
		return false, r.word("false")
	case 'n':
		return nil, r.word("null")
	}
	return r.number()
}

func (r *reader) word(w string) bool {
	if !strings.HasPrefix(r.s[r.pos:], w) {
		return false
	}
	r.pos += len(w)
	return true
}

// object collects keys and values before it makes the map, so that the map has
// its size from the beginning.
func (r *reader) object() (object map[string]any, ok bool) {
	keys, items := len(r.keys), len(r.items)
	for r.pos++; r.peek() != '}'; {
		if len(r.keys) > keys && !r.word(",") || r.peek() != '"' {
			return nil, false
		}
		key, ok := r.text()
		if !ok || !r.word(":") {
			return nil, false
		}
		value, ok := r.value()
		if !ok {
			return nil, false
		}
		r.keys, r.items = append(r.keys, key), append(r.items, value)
	}
	r.pos++
	object = make(map[string]any, len(r.keys)-keys)
	for i, key := range r.keys[keys:] {
		object[key] = r.items[items+i]
	}
	r.keys, r.items = r.keys[:keys], r.items[:items]
	return object, true
}

func (r *reader) list() (list []any, ok bool) {
	items := len(r.items)
	for r.pos++; r.peek() != ']'; {
		if len(r.items) > items && !r.word(",") {
			return nil, false
		}
		value, ok := r.value()
		if !ok {
			return nil, false
		}
		r.items = append(r.items, value)
	}
	r.pos++
	list = append(make([]any, 0, len(r.items)-items), r.items[items:]...)
	r.items = r.items[:items]
	return list, true
}

// text reads a string; pos is at its first quote, then behind its second.
func (r *reader) text() (string, bool) {
	start := r.pos + 1
	n := strings.IndexByte(r.s[start:], '"')
	if n < 0 {
		return "", false
	}
	if s := r.s[start : start+n]; strings.IndexByte(s, '\\') < 0 {
		r.pos = start + n + 1
		return s, true
	}
	r.buf = r.buf[:0]
	for i := start; i < len(r.s); i++ {
		switch c := r.s[i]; c {
		case '"':
			r.pos = i + 1
			return string(r.buf), true
		case '\\':
			n := r.escape(r.s[i+1:])
			if n == 0 {
				return "", false
			}
			i += n
		default:
			r.buf = append(r.buf, c)
		}
	}
	return "", false
}

// escape appends the character that an escape sequence stands for: s is what
// follows the backslash. It returns how long that is, 0 for a sequence that
// encoding/json does not write.
func (r *reader) escape(s string) int {
	if s == "" {
		return 0
	}
	switch s[0] {
	case '"', '\\':
		r.buf = append(r.buf, s[0])
	case 'b':
		r.buf = append(r.buf, '\b')
	case 'f':
		r.buf = append(r.buf, '\f')
	case 'n':
		r.buf = append(r.buf, '\n')
	case 'r':
		r.buf = append(r.buf, '\r')
	case 't':
		r.buf = append(r.buf, '\t')
	case 'u':
		if len(s) < 5 {
			return 0
		}
		n, err := strconv.ParseUint(s[1:5], 16, 16)
		if err != nil || !utf8.ValidRune(rune(n)) {
			return 0
		}
		r.buf = utf8.AppendRune(r.buf, rune(n))
		return 5
	default:
		return 0
	}
	return 1
}

// number reads an int64 where it is whole and fits, else a float64.
func (r *reader) number() (number any, ok bool) {
	start := r.pos
	for c := r.peek(); '0' <= c && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'; c = r.peek() {
		r.pos++
	}
	s := r.s[start:r.pos]
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}

// box makes a value of a string. Short ones come again and again ("string",
// "object"), so the last of each kind is kept, which saves most allocations.
func (r *reader) box(s string) any {
	if len(s) == 0 || len(s) > 32 {
		return s
	}
	slot := &r.boxes[(uint(len(s))*31+uint(s[0])*7+uint(s[len(s)-1])*3+uint(s[len(s)/2]))%uint(len(r.boxes))]
	if old, ok := (*slot).(string); ok && old == s {
		return *slot
	}
	*slot = s
	return *slot
}
