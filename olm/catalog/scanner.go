package catalog

import (
	"bytes"
	"unicode/utf8"
)

// scanner reads well-formed JSON in the plain form that tools write, several
// times as fast as encoding/json. Its methods return ok = false for anything
// invalid, and where a plainer reading might differ from that of encoding/json
// (escapes, repeated and unknown keys): the caller then asks encoding/json,
// which has the last word and finds the words of errors.
type scanner struct {
	data  []byte
	pos   int
	depth int // levels of nesting left
}

// next passes over white space and returns the next byte, 0 at the end.
func (s *scanner) next() byte {
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; c {
		case ' ', '\n', '\t', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

func (s *scanner) accept(c byte) bool {
	if s.next() != c {
		return false
	}
	s.pos++
	return true
}

// end reports whether nothing but white space is left.
func (s *scanner) end() bool { return s.next() == 0 && s.pos == len(s.data) }

// text reads a string without escapes and of valid UTF-8. The result points
// into data.
func (s *scanner) text() (text []byte, ok bool) {
	if !s.accept('"') {
		return nil, false
	}
	start, ascii := s.pos, true
	for i := start; i < len(s.data); i++ {
		switch c := s.data[i]; {
		case c == '"':
			s.pos = i + 1
			text = s.data[start:i]
			return text, ascii || utf8.Valid(text)
		case c == '\\' || c < ' ':
			return nil, false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return nil, false
}

// object calls field for each key, which must read the value.
func (s *scanner) object(field func(key []byte) bool) bool {
	if s.depth--; s.depth < 0 || !s.accept('{') {
		return false
	}
	if s.accept('}') {
		s.depth++
		return true
	}
	for {
		key, ok := s.text()
		if !ok || !s.accept(':') || !field(key) {
			return false
		}
		if s.accept(',') {
			continue
		}
		s.depth++
		return s.accept('}')
	}
}

// array calls element for each element, which must read it.
func (s *scanner) array(element func() bool) bool {
	if s.depth--; s.depth < 0 || !s.accept('[') {
		return false
	}
	if s.accept(']') {
		s.depth++
		return true
	}
	for {
		if !element() {
			return false
		}
		if s.accept(',') {
			continue
		}
		s.depth++
		return s.accept(']')
	}
}

// flatObject reads a whole document of one object, whose keys are among three
// names and whose values are texts. A value that is absent is nil.
func (s *scanner) flatObject(names *[3]string) (values [3][]byte, ok bool) {
	if !s.accept('{') {
		return values, false
	}
	for more := !s.accept('}'); more; {
		key, ok := s.text()
		if !ok || !s.accept(':') {
			return values, false
		}
		field := 0
		for field < len(names) && string(key) != names[field] {
			field++
		}
		if field == len(names) || values[field] != nil {
			return values, false
		}
		if values[field], ok = s.text(); !ok {
			return values, false
		}
		if more = s.accept(','); !more && !s.accept('}') {
			return values, false
		}
	}
	return values, s.end()
}

// value passes over a value and returns it. Unlike text it knows escapes.
func (s *scanner) value() (value []byte, ok bool) {
	s.next()
	start := s.pos
	if !s.skip() {
		return nil, false
	}
	return s.data[start:s.pos], true
}

func (s *scanner) skip() bool {
	switch s.next() {
	case '{':
		return s.skipObject()
	case '[':
		return s.array(s.skip)
	case '"':
		return s.skipText()
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	}
	return s.number()
}

func (s *scanner) skipObject() bool {
	if s.depth--; s.depth < 0 || !s.accept('{') {
		return false
	}
	if s.accept('}') {
		s.depth++
		return true
	}
	for {
		if s.next() != '"' || !s.skipText() || !s.accept(':') || !s.skip() {
			return false
		}
		if s.accept(',') {
			continue
		}
		s.depth++
		return s.accept('}')
	}
}

// skipText passes over a string. s.pos is at its opening quote.
func (s *scanner) skipText() bool {
	for i := s.pos + 1; i < len(s.data); i++ {
		switch c := s.data[i]; {
		case c == '"':
			s.pos = i + 1
			return true
		case c < ' ':
			return false
		case c == '\\':
			i++
			switch {
			case i == len(s.data):
				return false
			case s.data[i] == 'u':
				if i+4 >= len(s.data) || !hex(s.data[i+1:i+5]) {
					return false
				}
				i += 4
			case bytes.IndexByte([]byte(`"\/bfnrt`), s.data[i]) < 0:
				return false
			}
		}
	}
	return false
}

func hex(digits []byte) bool {
	for _, c := range digits {
		if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
			return false
		}
	}
	return true
}

func (s *scanner) literal(text string) bool {
	if !bytes.HasPrefix(s.data[s.pos:], []byte(text)) {
		return false
	}
	s.pos += len(text)
	return true
}

func (s *scanner) number() bool {
	s.has('-')
	if !s.has('0') && !s.digits() {
		return false
	}
	if s.has('.') && !s.digits() {
		return false
	}
	if s.has('e') || s.has('E') {
		if !s.has('+') {
			s.has('-')
		}
		return s.digits()
	}
	return true
}

// has consumes c if it comes next, without white space before it.
func (s *scanner) has(c byte) bool {
	if s.pos < len(s.data) && s.data[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

func (s *scanner) digits() bool {
	start := s.pos
	for s.pos < len(s.data) && s.data[s.pos] >= '0' && s.data[s.pos] <= '9' {
		s.pos++
	}
	return s.pos > start
}

// fieldSet remembers which fields of an object have come.
type fieldSet uint

// add reports whether the field is new.
func (f *fieldSet) add(field uint) bool {
	had := *f&(1<<field) != 0
	*f |= 1 << field
	return !had
}
