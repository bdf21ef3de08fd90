package signature

import "strconv"

// quickBody decodes the common shapes of a statement: every key of the format
// at most once, in any order, texts without escapes, a timestamp of at most 18
// digits. body must be valid UTF-8. ok is false for all else, right or wrong:
// then the full decoder decides, and words the error. So the two can only
// differ if quickBody takes what the other refuses or reads differently.
func quickBody(body []byte) (s *Statement, ok bool) {
	s = new(Statement)
	q := quick{b: body}
	c := &s.Critical
	ok = q.object([]string{"critical", "optional"}, func(member int) bool {
		if member == 1 {
			return q.object([]string{"creator", "timestamp"}, func(member int) bool {
				if member == 0 {
					return q.text(&s.Optional.Creator)
				}
				return q.integer(&s.Optional.Timestamp)
			})
		}
		return q.object([]string{"type", "image", "identity"}, func(member int) bool {
			switch member {
			case 0:
				return q.text(&c.Type)
			case 1:
				return q.object([]string{"docker-manifest-digest"}, func(int) bool { return q.text(&c.Image.Digest) })
			}
			return q.object([]string{"docker-reference"}, func(int) bool { return q.text(&c.Identity.Reference) })
		})
	})
	q.space()
	return s, ok && q.i == len(body)
}

// quick is a position in a JSON text.
type quick struct {
	b []byte
	i int
}

func (q *quick) space() {
	for q.i < len(q.b) {
		switch q.b[q.i] {
		case ' ', '\n', '\r', '\t':
			q.i++
		default:
			return
		}
	}
}

// next takes c, after white space, if it comes next.
func (q *quick) next(c byte) bool {
	q.space()
	if q.i < len(q.b) && q.b[q.i] == c {
		q.i++
		return true
	}
	return false
}

// raw takes a text without escapes; it aliases the input.
func (q *quick) raw() ([]byte, bool) {
	if !q.next('"') {
		return nil, false
	}
	for start := q.i; q.i < len(q.b); q.i++ {
		switch c := q.b[q.i]; {
		case c == '"':
			q.i++
			return q.b[start : q.i-1], true
		case c == '\\' || c < ' ':
			return nil, false
		}
	}
	return nil, false
}

func (q *quick) text(to *string) bool {
	raw, ok := q.raw()
	if ok && string(raw) == bodyType { // spares a copy
		*to = bodyType
	} else {
		*to = string(raw)
	}
	return ok
}

func (q *quick) integer(to *int64) bool {
	q.space()
	start := q.i
	for q.i < len(q.b) && q.b[q.i] >= '0' && q.b[q.i] <= '9' {
		q.i++
	}
	digits := q.b[start:q.i]
	if n := len(digits); n == 0 || n > 18 || n > 1 && digits[0] == '0' {
		return false
	}
	n, err := strconv.ParseInt(string(digits), 10, 64)
	*to = n
	return err == nil // what follows, a fraction say, is refused by the caller
}

// object takes an object whose keys are among keys, none twice.
func (q *quick) object(keys []string, member func(i int) bool) bool {
	if !q.next('{') {
		return false
	}
	if q.next('}') {
		return true
	}
	for seen := 0; ; {
		key, ok := q.raw()
		if !ok || !q.next(':') {
			return false
		}
		i := 0
		for i < len(keys) && keys[i] != string(key) {
			i++
		}
		if i == len(keys) || seen&(1<<i) != 0 || !member(i) {
			return false
		}
		seen |= 1 << i
		if q.next('}') {
			return true
		}
		if !q.next(',') {
			return false
		}
	}
}
