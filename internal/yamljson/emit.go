package yamljson

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// emit writes a node as JSON and returns it as a value.
func (d *Decoder) emit(i int32) any {
	n := &d.nodes[i]
	switch n.kind {
	case kindFalse:
		d.out = append(d.out, "false"...)
		return false
	case kindTrue:
		d.out = append(d.out, "true"...)
		return true
	case kindInt:
		d.out = strconv.AppendInt(d.out, n.num, 10)
		return n.num
	case kindFloat:
		d.out = append(d.out, n.str...)
		return jsonNumber(n.str)
	case kindString:
		d.out = appendString(d.out, n.str)
		return d.box(n.str)
	case kindSeq:
		return d.emitSeq(i)
	case kindMap:
		return d.emitMap(i)
	default:
		d.out = append(d.out, "null"...)
		return nil
	}
}

func (d *Decoder) emitSeq(i int32) []any {
	list := make([]any, 0, d.nodes[i].n)
	d.out = append(d.out, '[')
	for c := d.nodes[i].first; c != 0; c = d.nodes[c].next {
		if len(list) > 0 {
			d.out = append(d.out, ',')
		}
		list = append(list, d.emit(c))
	}
	d.out = append(d.out, ']')
	return list
}

// emitMap writes the keys sorted. Of equal ones the last counts.
func (d *Decoder) emitMap(i int32) map[string]any {
	m := make(map[string]any, d.nodes[i].n)
	from := len(d.order)
	inOrder := true
	last := ""
	for c := d.nodes[i].first; c != 0; c = d.nodes[c].next {
		key := d.nodes[c].key
		inOrder = inOrder && (key > last || len(d.order) == from)
		last = key
		d.order = append(d.order, c)
	}
	to := len(d.order)
	if !inOrder {
		slices.SortStableFunc(d.order[from:to], func(a, b int32) int {
			return strings.Compare(d.nodes[a].key, d.nodes[b].key)
		})
	}
	d.out = append(d.out, '{')
	for k := from; k < to; k++ {
		c := d.order[k]
		key := d.nodes[c].key
		if k+1 < to && d.nodes[d.order[k+1]].key == key {
			continue
		}
		if d.out[len(d.out)-1] != '{' {
			d.out = append(d.out, ',')
		}
		d.out = appendString(d.out, key)
		d.out = append(d.out, ':')
		m[key] = d.emit(c)
	}
	d.out = append(d.out, '}')
	d.order = d.order[:from]
	return m
}

// box makes a value of a string. Short ones come again and again ("string",
// "object"), so the last of each kind is kept, which saves most allocations.
func (d *Decoder) box(s string) any {
	if len(s) == 0 || len(s) > 32 {
		return s
	}
	slot := &d.boxes[(uint(len(s))*31+uint(s[0])*7+uint(s[len(s)-1])*3+uint(s[len(s)/2]))%uint(len(d.boxes))]
	if old, ok := (*slot).(string); ok && old == s {
		return *slot
	}
	*slot = s
	return *slot
}

// jsonNumber returns what apimachinery reads from the JSON text of a number.
func jsonNumber(text string) any {
	if !strings.Contains(text, ".") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return json.Number(text) // not possible: the text was made from a number
	}
	return f
}

const hex = "0123456789abcdef"

// appendString appends s in the form of encoding/json.
func appendString(out []byte, s string) []byte {
	out = append(out, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if plainInJSON[c] {
			continue
		}
		if c >= utf8.RuneSelf {
			if c == 0xe2 && (strings.HasPrefix(s[i:], "\u2028") || strings.HasPrefix(s[i:], "\u2029")) {
				out = append(out, s[start:i]...)
				out = append(out, `\u202`...)
				out = append(out, hex[s[i+2]&0xf])
				i += 2
				start = i + 1
			}
			continue
		}
		out = append(out, s[start:i]...)
		switch c {
		case '\\', '"':
			out = append(out, '\\', c)
		case '\b':
			out = append(out, '\\', 'b')
		case '\f':
			out = append(out, '\\', 'f')
		case '\n':
			out = append(out, '\\', 'n')
		case '\r':
			out = append(out, '\\', 'r')
		case '\t':
			out = append(out, '\\', 't')
		default:
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		}
		start = i + 1
	}
	out = append(out, s[start:]...)
	return append(out, '"')
}
