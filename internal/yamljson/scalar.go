package yamljson

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// plainStart reports whether c, followed by next, starts a plain scalar that is
// read here. Some that YAML allows are refused.
func plainStart(c, next byte) bool {
	switch c {
	case ' ', '\n', '\t', '?', ':', ',', '[', ']', '{', '}', '#', '&', '*', '!', '|', '>', '\'', '"', '%', '@', '`':
		return false
	case '-':
		return !blankOrEnd(next)
	}
	return true
}

// plainLine returns the end of the part of a plain scalar that is on one line and
// begins at i, without blanks at its end, and what ends it: ':' for a key's colon,
// '#' for a comment, '\n', in flow context also one of its indicators, or 0 if it
// must be refused.
func (d *Decoder) plainLine(i int, flow bool) (end int, stop byte) {
	s := d.s
	start := i
scan:
	for ; ; i++ {
		if class[s[i]] == text {
			continue
		}
		switch c := s[i]; c {
		case '\n':
			stop = c
			break scan
		case '\t':
			return 0, 0
		case ':':
			if blankOrEnd(s[i+1]) {
				stop = c
				break scan
			}
			if flow {
				return 0, 0
			}
		case '#':
			if i > start && s[i-1] == ' ' {
				stop = c
				break scan
			}
		case ',', '[', ']', '{', '}', '?':
			if flow {
				stop = c
				break scan
			}
		}
	}
	for end = i; end > start && s[end-1] == ' '; {
		end--
	}
	return end, stop
}

// plain reads a plain scalar in block context, over several lines if need be.
func (d *Decoder) plain(indent int) (int32, bool) {
	s := d.s
	if !plainStart(s[d.pos], s[d.pos+1]) {
		return 0, false
	}
	end, stop := d.plainLine(d.pos, false)
	if stop == ':' || stop == 0 {
		return 0, false
	}
	value := s[d.pos:end]
	joined := false
	for stop == '\n' {
		i, breaks := d.nextLine(end)
		if i < 0 {
			return 0, false
		}
		if i == len(s) || i-d.lineStart <= indent || s[i] == '#' {
			break
		}
		if !joined {
			d.buf = append(d.buf[:0], value...)
			joined = true
		}
		d.buf = appendBreaks(d.buf, breaks)
		end, stop = d.plainLine(i, false)
		if stop == ':' || stop == 0 {
			return 0, false
		}
		d.buf = append(d.buf, s[i:end]...)
	}
	d.pos = end
	if joined {
		return d.end(node{kind: kindString, str: string(d.buf)})
	}
	k, num, str, ok := resolve(value)
	if !ok {
		return 0, false
	}
	return d.end(node{kind: k, num: num, str: str})
}

// nextLine returns the first character that is not a blank on a later line than i,
// and the number of line ends between them; lineStart becomes its line's. It
// returns -1 for what must be refused.
func (d *Decoder) nextLine(i int) (pos, breaks int) {
	s := d.s
	for ; i < len(s); i++ {
		switch s[i] {
		case ' ':
		case '\n':
			breaks++
			d.lineStart = i + 1
		case '\t':
			return -1, 0
		default:
			return i, breaks
		}
	}
	return i, breaks
}

// appendBreaks folds line ends: one becomes a blank, of several the first goes.
func appendBreaks(buf []byte, breaks int) []byte {
	if breaks == 1 {
		return append(buf, ' ')
	}
	for range breaks - 1 {
		buf = append(buf, '\n')
	}
	return buf
}

// quoted reads a quoted scalar; pos is at its first quote, then behind its second.
// If it has several lines, lineStart is the start of its last.
func (d *Decoder) quoted() (string, bool) {
	s := d.s
	quote := s[d.pos]
	start := d.pos + 1
	i := start
	for i < len(s) && s[i] != quote && s[i] != '\\' && s[i] != '\n' {
		i++
	}
	if i < len(s) && s[i] == quote && (quote == '"' || i+1 == len(s) || s[i+1] != quote) {
		d.pos = i + 1
		return s[start:i], true
	}
	d.buf = append(d.buf[:0], s[start:i]...)
	for i < len(s) {
		switch c := s[i]; {
		case c == quote:
			if quote == '"' || i+1 == len(s) || s[i+1] != quote {
				d.pos = i + 1
				return string(d.buf), true
			}
			d.buf = append(d.buf, quote)
			i += 2
		case c == '\\' && quote == '"':
			if s[i+1] == '\n' {
				// An escaped line end: it goes, and so do the blanks of the next
				// line; further line ends stay.
				var breaks int
				i, breaks = d.nextLine(i + 1)
				if i < 0 || d.documentEnd(i) {
					return "", false
				}
				for range breaks - 1 {
					d.buf = append(d.buf, '\n')
				}
				continue
			}
			n := d.escape(s[i:])
			if n == 0 {
				return "", false
			}
			i += n
		case c == '\n':
			// Blanks at the end of the line go too; escaped ones are not blanks.
			end := len(d.buf)
			for j := i; j > start && s[j-1] == ' ' && !(quote == '"' && escapedAt(s, start, j-1)); j-- {
				end--
			}
			if j := i - (len(d.buf) - end); j > start && s[j-1] == '\t' {
				return "", false
			}
			d.buf = d.buf[:end]
			var breaks int
			i, breaks = d.nextLine(i)
			if i < 0 || d.documentEnd(i) {
				return "", false
			}
			d.buf = appendBreaks(d.buf, breaks)
		default:
			j := i + 1
			for j < len(s) && s[j] != quote && s[j] != '\\' && s[j] != '\n' {
				j++
			}
			d.buf = append(d.buf, s[i:j]...)
			i = j
		}
	}
	return "", false
}

// documentEnd reports whether a mark that ends documents is at i, where quoted
// scalars must not have it.
func (d *Decoder) documentEnd(i int) bool {
	return i == d.lineStart && strings.HasPrefix(d.s[i:], "...")
}

// escapedAt reports whether an odd number of backslashes precedes s[i].
func escapedAt(s string, start, i int) bool {
	n := 0
	for i-n > start && s[i-n-1] == '\\' {
		n++
	}
	return n%2 == 1
}

// escape appends the character that the escape sequence s begins with stands
// for. It returns the sequence's length, 0 if it must be refused.
func (d *Decoder) escape(s string) int {
	var r rune
	switch s[1] {
	case '0':
		r = 0
	case 'a':
		r = '\a'
	case 'b':
		r = '\b'
	case 't':
		r = '\t'
	case 'n':
		r = '\n'
	case 'v':
		r = '\v'
	case 'f':
		r = '\f'
	case 'r':
		r = '\r'
	case 'e':
		r = 0x1b
	case ' ', '"', '\'', '\\':
		r = rune(s[1])
	case 'N':
		r = 0x85
	case '_':
		r = 0xa0
	case 'L':
		r = 0x2028
	case 'P':
		r = 0x2029
	case 'x':
		return d.hexEscape(s, 2)
	case 'u':
		return d.hexEscape(s, 4)
	case 'U':
		return d.hexEscape(s, 8)
	default:
		return 0
	}
	d.buf = utf8.AppendRune(d.buf, r)
	return 2
}

func (d *Decoder) hexEscape(s string, digits int) int {
	if len(s) < 2+digits {
		return 0
	}
	r, err := strconv.ParseUint(s[2:2+digits], 16, 31)
	if err != nil || !utf8.ValidRune(rune(r)) {
		return 0
	}
	d.buf = utf8.AppendRune(d.buf, rune(r))
	return 2 + digits
}

// blockScalar reads a literal or folded scalar; pos is at its indicator.
func (d *Decoder) blockScalar(indent int) (int32, bool) {
	s := d.s
	literal := s[d.pos] == '|'
	d.pos++
	var chomp byte
	increment := 0
	for ; ; d.pos++ {
		c := s[d.pos]
		if (c == '-' || c == '+') && chomp == 0 {
			chomp = c
		} else if c >= '1' && c <= '9' && increment == 0 {
			increment = int(c - '0')
		} else {
			break
		}
	}
	if !d.lineEnds() {
		return 0, false
	}
	i := d.pos + strings.IndexByte(s[d.pos:], '\n') + 1
	column := 0
	if increment > 0 {
		column = max(indent, 0) + increment
	}
	// As libyaml has it, the first lines' longest indentation counts, also in lines
	// with nothing but blanks.
	var breaks int
	if column == 0 {
		longest := 0
		i, breaks, longest = blankLines(s, i, 0)
		column = max(longest, indent+1, 1)
		if i < len(s) && s[i] == '\t' {
			return 0, false
		}
	} else {
		i, breaks, _ = blankLines(s, i, column)
	}
	d.buf = d.buf[:0]
	leadingBreak, leadingBlank := false, false
	for i < len(s) && d.columnAt(i) == column {
		trailingBlank := s[i] == ' ' || s[i] == '\t'
		if !literal && !leadingBlank && !trailingBlank && leadingBreak {
			if breaks == 0 {
				d.buf = append(d.buf, ' ')
			}
		} else if leadingBreak {
			d.buf = append(d.buf, '\n')
		}
		for range breaks {
			d.buf = append(d.buf, '\n')
		}
		leadingBlank = trailingBlank
		end := i + strings.IndexByte(s[i:], '\n')
		d.buf = append(d.buf, s[i:end]...)
		leadingBreak = true
		i, breaks, _ = blankLines(s, end+1, column)
	}
	if i < len(s) && s[i] == '\t' {
		return 0, false
	}
	if chomp != '-' && leadingBreak {
		d.buf = append(d.buf, '\n')
	}
	if chomp == '+' {
		for range breaks {
			d.buf = append(d.buf, '\n')
		}
	}
	// Back to the line end before the next token, so that it is the first of
	// its line.
	d.pos = i
	for d.pos > 0 && s[d.pos-1] != '\n' {
		d.pos--
	}
	d.lineStart = d.pos
	return d.end(node{kind: kindString, str: string(d.buf)})
}

// blankLines passes over up to column blanks of a line, and over line ends. A
// column of 0 means any number; then longest is the longest indentation seen.
func blankLines(s string, i, column int) (pos, breaks, longest int) {
	for {
		start := i
		for i < len(s) && s[i] == ' ' && (column == 0 || i-start < column) {
			i++
		}
		longest = max(longest, i-start)
		if i == len(s) || s[i] != '\n' {
			return i, breaks, longest
		}
		breaks++
		i++
	}
}

// columnAt returns the column of i, before which its line has only blanks.
func (d *Decoder) columnAt(i int) int {
	n := 0
	for i-n > 0 && d.s[i-n-1] == ' ' {
		n++
	}
	return n
}
