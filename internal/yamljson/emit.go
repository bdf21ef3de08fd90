package yamljson

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// emit writes a node as JSON.
func (d *Decoder) emit(i int32) {
	n := &d.nodes[i]
	switch n.kind {
	case kindFalse:
		d.out = append(d.out, "false"...)
	case kindTrue:
		d.out = append(d.out, "true"...)
	case kindInt:
		d.out = strconv.AppendInt(d.out, n.num, 10)
	case kindFloat:
		d.out = append(d.out, n.str...)
	case kindString:
		d.out = appendString(d.out, n.str)
	case kindSeq:
		d.emitSeq(i)
	case kindMap:
		d.emitMap(i)
	default:
		d.out = append(d.out, "null"...)
	}
}

func (d *Decoder) emitSeq(i int32) {
	d.out = append(d.out, '[')
	for c := d.nodes[i].first; c != 0; c = d.nodes[c].next {
		if c != d.nodes[i].first {
			d.out = append(d.out, ',')
		}
		d.emit(c)
	}
	d.out = append(d.out, ']')
}

// emitMap writes the keys sorted. Of equal ones the last counts.
func (d *Decoder) emitMap(i int32) {
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
		d.emit(c)
	}
	d.out = append(d.out, '}')
	d.order = d.order[:from]
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
