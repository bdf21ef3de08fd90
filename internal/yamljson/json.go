package yamljson

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// DecodeJSON reads the JSON value at the beginning of a text that is UTF-8, and
// returns it as encoding/json writes what apimachinery reads: keys sorted,
// numbers whole if they are and fit an int64. n is where the value ends. text is
// valid until the next call. ok is false for what is not JSON, nested too deep,
// or has too many values.
func (d *Decoder) DecodeJSON(s string) (text []byte, n int, ok bool) {
	d.nodes = append(d.nodes[:0], node{})
	d.s, d.pos = s, 0
	d.root, ok = d.jsonValue(1)
	if !ok || d.Full() {
		return nil, 0, false
	}
	d.out, d.order = d.room(len(s)), d.order[:0]
	d.emit(d.root)
	return d.out, d.pos, true
}

// jsonNext skips white space and returns the next character, 0 at the end.
func (d *Decoder) jsonNext() byte {
	for ; d.pos < len(d.s); d.pos++ {
		if c := d.s[d.pos]; c > ' ' || c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
	}
	return 0
}

func (d *Decoder) jsonValue(depth int) (int32, bool) {
	if d.Full() {
		return 0, false
	}
	switch c := d.jsonNext(); c {
	case '{', '[':
		if d.tooDeep(depth) {
			return 0, false
		}
		d.pos++
		if c == '[' {
			return d.jsonList(depth)
		}
		return d.jsonMap(depth)
	case '"':
		text, ok := d.jsonText()
		return d.add(node{kind: kindString, str: text}), ok
	case 't':
		return d.jsonWord("true", kindTrue)
	case 'f':
		return d.jsonWord("false", kindFalse)
	case 'n':
		return d.jsonWord("null", kindNull)
	}
	return d.jsonNumber()
}

func (d *Decoder) jsonWord(word string, k kind) (int32, bool) {
	if !strings.HasPrefix(d.s[d.pos:], word) {
		return 0, false
	}
	d.pos += len(word)
	return d.add(node{kind: k}), true
}

func (d *Decoder) jsonList(depth int) (int32, bool) {
	list := d.add(node{kind: kindSeq})
	last := int32(0)
	for d.jsonNext() != ']' {
		if last != 0 {
			if d.s[d.pos:] == "" || d.s[d.pos] != ',' {
				return 0, false
			}
			d.pos++
		}
		item, ok := d.jsonValue(depth + 1)
		if !ok {
			return 0, false
		}
		d.link(list, last, item)
		last = item
	}
	d.pos++
	return list, true
}

func (d *Decoder) jsonMap(depth int) (int32, bool) {
	m := d.add(node{kind: kindMap})
	last := int32(0)
	for c := d.jsonNext(); c != '}'; c = d.jsonNext() {
		if last != 0 {
			if c != ',' {
				return 0, false
			}
			d.pos++
			c = d.jsonNext()
		}
		if c != '"' {
			return 0, false
		}
		key, ok := d.jsonText()
		if !ok || d.jsonNext() != ':' {
			return 0, false
		}
		d.pos++
		value, ok := d.jsonValue(depth + 1)
		if !ok {
			return 0, false
		}
		d.nodes[value].key = key
		d.link(m, last, value)
		last = value
	}
	d.pos++
	return m, true
}

// jsonText reads a string; pos is at its first quote, then behind its last.
func (d *Decoder) jsonText() (text string, ok bool) {
	start := d.pos + 1
	for i := start; i < len(d.s); i++ {
		switch c := d.s[i]; {
		case c == '"':
			d.pos = i + 1
			return d.s[start:i], true
		case c == '\\':
			return d.jsonEscaped(start, i)
		case c < ' ':
			return "", false
		}
	}
	return "", false
}

// jsonEscaped reads a string that has its first escape at i.
func (d *Decoder) jsonEscaped(start, i int) (text string, ok bool) {
	s := d.s
	d.buf = append(d.buf[:0], s[start:i]...)
	for i < len(s) {
		c := s[i]
		switch {
		case c == '"':
			d.pos = i + 1
			return string(d.buf), true
		case c < ' ':
			return "", false
		case c != '\\':
			d.buf = append(d.buf, c)
			i++
			continue
		case i+1 == len(s):
			return "", false
		}
		c = s[i+1]
		i += 2
		switch at := strings.IndexByte(`"\/bfnrt`, c); {
		case at >= 0:
			d.buf = append(d.buf, "\"\\/\b\f\n\r\t"[at])
		case c == 'u':
			r, ok := hex4(s[i:])
			if !ok {
				return "", false
			}
			i += 4
			if utf16.IsSurrogate(r) {
				var second rune
				if strings.HasPrefix(s[i:], `\u`) {
					second, _ = hex4(s[i+2:])
				}
				r = utf16.DecodeRune(r, second)
				if r != utf8.RuneError {
					i += 6
				}
			}
			d.buf = utf8.AppendRune(d.buf, r)
		default:
			return "", false
		}
	}
	return "", false
}

// hex4 reads four hexadecimal digits.
func hex4(s string) (rune, bool) {
	if len(s) < 4 {
		return 0, false
	}
	r, err := strconv.ParseUint(s[:4], 16, 16)
	return rune(r), err == nil
}

func (d *Decoder) jsonNumber() (int32, bool) {
	start := d.pos
	digits := func() bool {
		from := d.pos
		for d.pos < len(d.s) && d.s[d.pos] >= '0' && d.s[d.pos] <= '9' {
			d.pos++
		}
		return d.pos > from
	}
	next := func(chars string) bool {
		if d.pos == len(d.s) || strings.IndexByte(chars, d.s[d.pos]) < 0 {
			return false
		}
		d.pos++
		return true
	}
	next("-")
	if !next("0") && !digits() || next(".") && !digits() {
		return 0, false
	}
	if next("eE") {
		next("+-")
		if !digits() {
			return 0, false
		}
	}
	s := d.s[start:d.pos]
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return d.add(node{kind: kindInt, num: n}), true
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(f, 0) {
		return 0, false
	}
	text, err := json.Marshal(f)
	return d.add(node{kind: kindFloat, str: string(text)}), err == nil
}
