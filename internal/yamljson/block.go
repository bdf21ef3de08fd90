package yamljson

// block reads a node in block context that may be a mapping or a sequence: one
// at the beginning of a line or after "- ". indent is the column of the
// collection around it, -1 if there is none. Afterwards the next token has been
// found, and it is the first of its line.
func (d *Decoder) block(indent, depth int) (int32, bool) {
	col := d.col
	switch c := d.s[d.pos]; {
	case c == '-' && blankOrEnd(d.s[d.pos+1]):
		return d.sequence(col, depth, false)
	case c == '"' || c == '\'':
		start := d.pos
		str, ok := d.quoted()
		if !ok {
			return 0, false
		}
		if d.toColon() {
			if d.pos-start > maxKey || d.lineStart > start {
				return 0, false
			}
			return d.mapping(str, col, depth)
		}
		return d.end(node{kind: kindString, str: str})
	case c == '[' || c == '{':
		return d.flowValue(depth)
	case c == '|' || c == '>':
		return d.blockScalar(indent)
	}
	key, isKey, ok := d.key()
	if !ok {
		return 0, false
	}
	if isKey {
		return d.mapping(key, col, depth)
	}
	return d.plain(indent)
}

// inline reads a node on the line of its key.
func (d *Decoder) inline(indent, depth int) (int32, bool) {
	switch d.s[d.pos] {
	case '"', '\'':
		str, ok := d.quoted()
		if !ok {
			return 0, false
		}
		return d.end(node{kind: kindString, str: str})
	case '[', '{':
		return d.flowValue(depth)
	case '|', '>':
		return d.blockScalar(indent)
	}
	return d.plain(indent)
}

// end adds a node after which its line must end, and finds the next token.
func (d *Decoder) end(n node) (int32, bool) {
	if !d.skip() || !d.bol && !d.eof {
		return 0, false
	}
	return d.add(n), true
}

func (d *Decoder) flowValue(depth int) (int32, bool) {
	n, ok := d.flow(depth)
	if !ok || !d.skip() || !d.bol && !d.eof {
		return 0, false
	}
	return n, true
}

// mapping reads a block mapping at column col whose first key has been read;
// pos is at its colon.
func (d *Decoder) mapping(key string, col, depth int) (int32, bool) {
	if d.tooDeep(depth) {
		return 0, false
	}
	m := d.add(node{kind: kindMap})
	last := int32(0)
	for {
		value, ok := d.mappingValue(col, depth+1)
		if !ok {
			return 0, false
		}
		d.nodes[value].key = key
		d.link(m, last, value)
		last = value
		if d.eof || d.col < col {
			return m, true
		}
		if d.col > col || !d.bol {
			return 0, false
		}
		switch d.s[d.pos] {
		case '"', '\'':
			start := d.pos
			key, ok = d.quoted()
			if !ok || !d.toColon() || d.pos-start > maxKey || d.lineStart > start {
				return 0, false
			}
		default:
			var isKey bool
			key, isKey, ok = d.key()
			if !ok || !isKey {
				return 0, false
			}
		}
	}
}

// mappingValue reads the value of a key of a block mapping at column col; pos is
// at the colon.
func (d *Decoder) mappingValue(col, depth int) (int32, bool) {
	d.pos++
	if !d.lineEnds() {
		for d.s[d.pos] == ' ' {
			d.pos++
		}
		return d.inline(col, depth)
	}
	if !d.skip() {
		return 0, false
	}
	switch {
	case d.eof || d.col < col:
		return d.add(node{kind: kindNull}), true
	case d.col > col:
		return d.block(col, depth)
	case d.s[d.pos] == '-' && blankOrEnd(d.s[d.pos+1]): // a sequence may be at the column of its key
		return d.sequence(col, depth, true)
	}
	return d.add(node{kind: kindNull}), true
}

// sequence reads a block sequence at column col; pos is at its first dash.
// inMapping reports that it is at the column of the mapping around it, whose next
// key ends it.
func (d *Decoder) sequence(col, depth int, inMapping bool) (int32, bool) {
	if d.tooDeep(depth) {
		return 0, false
	}
	seq := d.add(node{kind: kindSeq})
	last := int32(0)
	for {
		item, ok := d.item(col, depth+1)
		if !ok {
			return 0, false
		}
		d.link(seq, last, item)
		last = item
		if d.eof || d.col < col {
			return seq, true
		}
		if d.col > col || !d.bol {
			return 0, false
		}
		if d.s[d.pos] != '-' || !blankOrEnd(d.s[d.pos+1]) {
			return seq, inMapping
		}
	}
}

// item reads an item of a block sequence at column col; pos is at its dash.
func (d *Decoder) item(col, depth int) (int32, bool) {
	d.pos++
	if !d.lineEnds() {
		for d.s[d.pos] == ' ' {
			d.pos++
		}
		d.col = d.pos - d.lineStart
		return d.block(col, depth)
	}
	if !d.skip() {
		return 0, false
	}
	if d.eof || d.col <= col {
		return d.add(node{kind: kindNull}), true
	}
	return d.block(col, depth)
}

// toColon goes to the colon that makes what was just read a key, if it is one.
func (d *Decoder) toColon() bool {
	i := d.pos
	for d.s[i] == ' ' {
		i++
	}
	if d.s[i] != ':' || !blankOrEnd(d.s[i+1]) {
		return false
	}
	d.pos = i
	return true
}

// key reads a plain scalar on its line, if it is a key, up to its colon. If it is
// not a key, pos stays. ok is false for what must be refused: also keys that are
// not strings.
func (d *Decoder) key() (key string, isKey, ok bool) {
	if !plainStart(d.s[d.pos], d.s[d.pos+1]) {
		return "", false, false
	}
	end, stop := d.plainLine(d.pos, false)
	if stop == 0 {
		return "", false, false
	}
	if stop != ':' {
		return "", false, true
	}
	key = d.s[d.pos:end]
	if len(key) > maxKey || key == "<<" {
		return "", false, false
	}
	if k, _, _, ok := resolve(key); !ok || k != kindString {
		return "", false, false
	}
	d.pos = end
	return key, true, d.toColon()
}
