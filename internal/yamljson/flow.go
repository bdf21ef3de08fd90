package yamljson

import "strings"

// flow reads a flow collection; pos is at its first bracket, then behind its
// last.
func (d *Decoder) flow(depth int) (int32, bool) {
	if d.tooDeep(depth) {
		return 0, false
	}
	if d.s[d.pos] == '{' {
		return d.flowMapping(depth)
	}
	d.pos++
	seq := d.add(node{kind: kindSeq})
	last := int32(0)
	for {
		if !d.flowSkip() {
			return 0, false
		}
		if d.s[d.pos] == ']' {
			d.pos++
			return seq, true
		}
		item, ok := d.flowNode(depth)
		if !ok {
			return 0, false
		}
		d.link(seq, last, item)
		last = item
		if !d.flowNext(']') {
			return 0, false
		}
	}
}

func (d *Decoder) flowMapping(depth int) (int32, bool) {
	d.pos++
	m := d.add(node{kind: kindMap})
	last := int32(0)
	for {
		if !d.flowSkip() {
			return 0, false
		}
		if d.s[d.pos] == '}' {
			d.pos++
			return m, true
		}
		key, ok := d.flowKey()
		if !ok {
			return 0, false
		}
		d.pos++ // the colon
		if !d.flowSkip() {
			return 0, false
		}
		value, ok := d.flowNode(depth)
		if !ok {
			return 0, false
		}
		d.nodes[value].key = key
		d.link(m, last, value)
		last = value
		if !d.flowNext('}') {
			return 0, false
		}
	}
}

// flowNext passes over the comma after an item; before the closing bracket
// there need not be one.
func (d *Decoder) flowNext(closing byte) bool {
	if !d.flowSkip() {
		return false
	}
	if d.s[d.pos] == ',' {
		d.pos++
		return true
	}
	return d.s[d.pos] == closing
}

// flowKey reads a key up to its colon, which must be on the same line.
func (d *Decoder) flowKey() (string, bool) {
	start := d.pos
	var key string
	if c := d.s[d.pos]; c == '"' || c == '\'' {
		var ok bool
		key, ok = d.quoted()
		if !ok {
			return "", false
		}
		for d.s[d.pos] == ' ' {
			d.pos++
		}
		if d.s[d.pos] != ':' || strings.IndexByte(d.s[start:d.pos], '\n') >= 0 {
			return "", false
		}
	} else {
		var isKey, ok bool
		if !plainStart(c, d.s[d.pos+1]) {
			return "", false
		}
		if end, stop := d.plainLine(d.pos, true); stop != ':' || end == d.pos {
			return "", false
		}
		key, isKey, ok = d.key()
		if !ok || !isKey {
			return "", false
		}
	}
	return key, d.pos-start <= maxKey
}

// flowNode reads a node in flow context.
func (d *Decoder) flowNode(depth int) (int32, bool) {
	switch c := d.s[d.pos]; c {
	case '[', '{':
		return d.flow(depth + 1)
	case '"', '\'':
		str, ok := d.quoted()
		if !ok {
			return 0, false
		}
		return d.add(node{kind: kindString, str: str}), true
	default:
		if !plainStart(c, d.s[d.pos+1]) {
			return 0, false
		}
	}
	end, stop := d.plainLine(d.pos, true)
	if stop != ',' && stop != ']' && stop != '}' && stop != '\n' && stop != '#' {
		return 0, false
	}
	k, num, str, ok := resolve(d.s[d.pos:end])
	if !ok {
		return 0, false
	}
	d.pos = end
	return d.add(node{kind: k, num: num, str: str}), true
}

// flowSkip goes to the next token in flow context, where line ends and
// indentation mean nothing. It returns false at the document's end too.
func (d *Decoder) flowSkip() bool {
	return d.skip() && !d.eof
}
