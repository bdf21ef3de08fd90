package catalog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// splitter cuts a stream into documents: JSON objects one after another, and YAML
// documents between lines that start with "---". What starts with a brace is taken
// for JSON.
type splitter struct {
	scanner *bufio.Scanner
	options Options

	rest []byte // what is read and not yet cut
	eof  bool   // nothing follows it
	at   position
	doc  document // the last one that was cut

	object   braces // at the beginning of rest
	searched int    // bytes of rest without a separator
	json     bool   // the last document was JSON, with no separator since
	lost     bool   // in the middle of something broken
	broken   int    // how often
}

const (
	separator = "---"

	// maxBroken bounds how often the search for a next object starts again. Each
	// time may read to the end of the file.
	maxBroken = 20
)

func newSplitter(r io.Reader, file string, o Options) *splitter {
	s := &splitter{options: o, at: position{file: file, line: 1}}
	s.scanner = bufio.NewScanner(&limitedReader{r: r, left: o.MaxFileBytes, max: o.MaxFileBytes})
	// A document is known to end when what follows it is seen.
	s.scanner.Buffer(nil, int(min(o.MaxDocumentBytes, math.MaxInt-8))+8)
	s.scanner.Split(func(data []byte, eof bool) (int, []byte, error) {
		s.rest, s.eof = data, eof
		found := s.cutNext()
		advance := len(data) - len(s.rest)
		if !found {
			return advance, nil, nil
		}
		return advance, append([]byte{}, s.doc.text...), nil // the scanner's buffer is written again
	})
	return s
}

// limitedReader reads up to a number of bytes. More is an error.
type limitedReader struct {
	r         io.Reader
	left, max int64
}

func (l *limitedReader) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	l.left -= int64(n)
	if l.left < 0 {
		return n, &LimitError{Limit: "MaxFileBytes", Max: l.max, What: "bytes in a file"}
	}
	return n, err
}

// next returns the next document, io.EOF after the last one. Other errors are
// those of the reader, and limits.
func (s *splitter) next() (document, error) {
	tooLarge := func(line int) (document, error) {
		return document{}, &LimitError{Limit: "MaxDocumentBytes", Max: s.options.MaxDocumentBytes,
			What: fmt.Sprintf("bytes in the object of line %d", line)}
	}
	if s.broken > maxBroken || !s.scanner.Scan() {
		switch err := s.scanner.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			return tooLarge(s.at.line)
		case err != nil:
			return document{}, err
		}
		return document{}, io.EOF
	}
	s.doc.text = s.scanner.Bytes()
	if int64(len(s.doc.text)) > s.options.MaxDocumentBytes {
		return tooLarge(s.doc.pos.line)
	}
	return s.doc, nil
}

// cutNext cuts the next document off, if rest has it whole. Otherwise it is
// called again with more.
func (s *splitter) cutNext() bool {
	for {
		if s.lost && !s.find() || !s.skipBlanks() {
			return false
		}
		switch {
		case s.rest[0] == '{':
			return s.cutJSON()
		case bytes.HasPrefix(s.rest, []byte(separator)):
			if found, whole := s.cutSeparator(); found || !whole {
				return found
			}
		case s.json:
			r, _ := utf8.DecodeRune(s.rest)
			return s.fail(fmt.Errorf("invalid character %q after top-level value", r))
		default:
			return s.cutYAML()
		}
	}
}

// find continues to the next line that starts with a brace or a separator.
func (s *splitter) find() bool {
	for s.lost {
		end, ok := s.endOfLine()
		next := s.rest[end:]
		if !ok || len(next) < len(separator) && !s.eof {
			return false
		}
		s.cut(end)
		s.lost = len(next) > 0 && next[0] != '{' && !bytes.HasPrefix(next, []byte(separator))
	}
	return true
}

func (s *splitter) endOfLine() (end int, ok bool) {
	if i := bytes.IndexByte(s.rest, '\n'); i >= 0 {
		return i + 1, true
	}
	return len(s.rest), s.eof
}

// skipBlanks passes over white space, and reports whether enough follows to
// recognize it. The first line of a YAML document keeps its indentation.
func (s *splitter) skipBlanks() bool {
	if bom := "\ufeff"; s.at.offset == 0 && bytes.HasPrefix(s.rest, []byte(bom)) {
		s.cut(len(bom))
	}
	text := bytes.TrimLeft(s.rest, " \t\r\n")
	blank := len(s.rest) - len(text)
	if len(text) == 0 || text[0] != '{' {
		blank = bytes.LastIndexByte(s.rest[:blank], '\n') + 1
	}
	s.cut(blank)
	return len(text) >= len(separator) || s.eof && len(text) > 0
}

// cut takes n bytes off the rest.
func (s *splitter) cut(n int) []byte {
	text := s.rest[:n]
	s.rest = s.rest[n:]
	s.at.offset += int64(n)
	s.at.line += bytes.Count(text, []byte("\n"))
	return text
}

// found makes the next n bytes the document.
func (s *splitter) found(n int, yaml bool) bool {
	s.at.document++
	s.doc = document{pos: s.at, yaml: yaml}
	s.doc.text = s.cut(n)
	s.object, s.searched = braces{}, 0
	return true
}

// fail makes the document one with an error. The search continues at the next line
// that starts with a brace or a separator.
func (s *splitter) fail(err error) bool {
	s.lost = true
	s.broken++
	if s.broken > maxBroken {
		err = fmt.Errorf("%w; the rest of the file is not read", err)
	}
	s.found(0, false)
	s.doc.bad = &fault{rule: ruleSyntax, err: err}
	return true
}

func (s *splitter) cutJSON() bool {
	s.json = true
	end, ok := s.object.end(s.rest)
	switch {
	case ok:
		return s.found(end, false)
	case s.object.lineInText:
		begin := s.at
		s.cut(end)
		s.fail(errors.New(`invalid character '\n' in string literal`))
		s.doc.pos.offset = begin.offset
		return true
	case s.eof:
		return s.fail(errors.New("unexpected end of JSON input: the object has no end"))
	}
	return false
}

// braces finds the end of a JSON object, in as many steps as its text comes in.
type braces struct {
	at, level  int
	quoted     bool
	lineInText bool // a string holds the end of a line, which no JSON does
}

// end returns the length of the object at the beginning of text, ok = false if
// its end is not there yet. Each call must come with the same text, or a longer
// one.
func (b *braces) end(text []byte) (n int, ok bool) {
	i, level, quoted := b.at, b.level, b.quoted
	for ; i < len(text); i++ {
		c := text[i]
		if quoted {
			switch c {
			case '"':
				quoted = false
			case '\\':
				i++
			case '\n':
				b.lineInText = true
				return i, false
			}
			continue
		}
		switch c {
		case '"':
			quoted = true
		case '{', '[':
			level++
		case '}', ']':
			level--
			if level == 0 {
				return i + 1, true
			}
		}
	}
	b.at, b.level, b.quoted = i, level, quoted
	return 0, false
}

// cutSeparator cuts off a line "---". With anything but a comment behind it, it
// is a document with an error.
func (s *splitter) cutSeparator() (found, whole bool) {
	end, whole := s.endOfLine()
	if !whole {
		return false, false
	}
	s.json = false
	after := strings.TrimSpace(string(s.rest[len(separator):end]))
	if after == "" || after[0] == '#' {
		s.cut(end)
		return false, true
	}
	s.found(end, false)
	s.doc.text, s.doc.bad = nil, &fault{rule: ruleSyntax,
		err: fmt.Errorf("invalid Yaml document separator: %s", shortened([]byte(after)))}
	return true, true
}

// cutYAML cuts a document off, up to the next line that starts with "---".
func (s *splitter) cutYAML() bool {
	if i := bytes.Index(s.rest[s.searched:], []byte("\n"+separator)); i >= 0 {
		return s.found(s.searched+i+1, true)
	}
	if s.eof {
		return s.found(len(s.rest), true)
	}
	s.searched = max(0, len(s.rest)-len(separator))
	return false
}
