package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// splitter cuts a stream into documents: JSON objects one after another, and
// YAML documents between lines that begin with "---". What begins with a brace
// is taken for JSON.
//
// Documents point into chunks that are never written again.
type splitter struct {
	r       io.Reader
	options Options

	chunk []byte // what is read and not yet cut
	eof   bool
	read  int64
	at    position // of the chunk's beginning

	json   bool // the last document was JSON, and no separator came since
	lost   bool // in the middle of something broken
	broken int  // how often
}

const (
	// Chunks grow with the file: most files of a tree are small.
	minChunk = 8 << 10
	maxChunk = 1 << 20

	// maxBroken bounds how often the search for a next object begins again. Each
	// time may read to the end of the file.
	maxBroken = 20
)

func newSplitter(r io.Reader, file string, o Options) *splitter {
	return &splitter{r: r, options: o, at: position{file: file, line: 1}}
}

// next returns the next document, io.EOF after the last one. Other errors are
// those of the reader, and limits.
func (s *splitter) next() (document, error) {
	doc, err := s.cutNext()
	if err == nil && int64(len(doc.text)) > s.options.MaxDocumentBytes {
		return document{}, s.tooLarge(doc.pos.line)
	}
	return doc, err
}

func (s *splitter) tooLarge(line int) error {
	return &LimitError{Limit: "MaxDocumentBytes", Max: s.options.MaxDocumentBytes, What: fmt.Sprintf("bytes in the object of line %d", line)}
}

func (s *splitter) cutNext() (document, error) {
	for {
		if s.broken > maxBroken {
			return document{}, io.EOF
		}
		if s.lost {
			if err := s.find(); err != nil {
				return document{}, err
			}
			s.lost = false
		}
		if err := s.blanks(); err != nil {
			return document{}, err
		}
		switch {
		case s.chunk[0] == '{':
			return s.cutJSON()
		case bytes.HasPrefix(s.chunk, []byte(separator)):
			s.json = false
			doc, err := s.separator()
			if err != nil || doc.err != nil {
				return doc, err
			}
		case s.json:
			doc := s.document(false)
			r, _ := utf8.DecodeRune(s.chunk)
			return s.fail(doc, fmt.Errorf("invalid character %q after top-level value", r))
		default:
			return s.cutYAML()
		}
	}
}

// fail makes doc a document with an error. The search goes on at the next line
// that begins with a brace or a separator.
func (s *splitter) fail(doc document, err error) (document, error) {
	s.lost = true
	if s.broken++; s.broken > maxBroken {
		err = fmt.Errorf("%w; the rest of the file is not read", err)
	}
	doc.err = &fault{rule: RuleSyntax, err: err}
	return doc, nil
}

// find goes on to the next line that begins with a brace or a separator.
func (s *splitter) find() error {
	for {
		if err := s.line(); err != nil {
			return err
		}
		for len(s.chunk) < len(separator) && !s.eof {
			if err := s.fill(); err != nil {
				return err
			}
		}
		if len(s.chunk) == 0 || s.chunk[0] == '{' || bytes.HasPrefix(s.chunk, []byte(separator)) {
			return nil
		}
	}
}

const separator = "---"

// blanks passes over white space, and leaves at least three bytes in the chunk
// if there are any. The first line of a YAML document keeps its indentation.
func (s *splitter) blanks() error {
	for {
		if bom := "\ufeff"; s.at.offset == 0 && bytes.HasPrefix(s.chunk, []byte(bom)) {
			s.cut(len(bom))
		}
		rest := bytes.TrimLeft(s.chunk, " \t\r\n")
		blank := len(s.chunk) - len(rest)
		if len(rest) == 0 || rest[0] != '{' {
			blank = bytes.LastIndexByte(s.chunk[:blank], '\n') + 1
		}
		s.cut(blank)
		switch {
		case s.eof && len(rest) == 0:
			return io.EOF
		case s.eof || len(rest) >= len(separator):
			return nil
		}
		if err := s.fill(); err != nil {
			return err
		}
	}
}

// cut takes n bytes off the chunk.
func (s *splitter) cut(n int) []byte {
	text := s.chunk[:n:n]
	s.chunk = s.chunk[n:]
	s.at.offset += int64(n)
	s.at.line += bytes.Count(text, []byte("\n"))
	return text
}

// fill reads more, into a new chunk if the old one is full.
func (s *splitter) fill() error {
	if cap(s.chunk)-len(s.chunk) <= cap(s.chunk)/8 {
		if int64(len(s.chunk)) > s.options.MaxDocumentBytes {
			return s.tooLarge(s.at.line)
		}
		size := max(2*len(s.chunk), min(int(4*s.read), maxChunk), minChunk)
		s.chunk = append(make([]byte, 0, size), s.chunk...)
	}
	n, err := s.r.Read(s.chunk[len(s.chunk):cap(s.chunk)])
	s.chunk = s.chunk[:len(s.chunk)+n]
	if s.read += int64(n); s.read > s.options.MaxFileBytes {
		return &LimitError{Limit: "MaxFileBytes", Max: s.options.MaxFileBytes, What: "bytes in a file"}
	}
	if errors.Is(err, io.EOF) {
		s.eof = true
		return nil
	}
	return err
}

// line cuts a line off.
func (s *splitter) line() error {
	for {
		if i := bytes.IndexByte(s.chunk, '\n'); i >= 0 {
			s.cut(i + 1)
			return nil
		}
		if s.eof {
			s.cut(len(s.chunk))
			return nil
		}
		if err := s.fill(); err != nil {
			return err
		}
	}
}

func (s *splitter) document(yaml bool) document {
	s.at.document++
	return document{pos: s.at, yaml: yaml}
}

// cutJSON cuts an object off.
func (s *splitter) cutJSON() (document, error) {
	s.json = true
	var b braces
	for {
		end, ok := b.end(s.chunk)
		switch {
		case ok:
			doc := s.document(false)
			doc.text = s.cut(end)
			return doc, nil
		case b.lineInText:
			doc := s.document(false)
			doc.pos.line += bytes.Count(s.chunk[:end], []byte("\n"))
			s.cut(end)
			return s.fail(doc, errors.New(`invalid character '\n' in string literal`))
		case s.eof:
			return s.fail(s.document(false), errors.New("unexpected end of JSON input: the object has no end"))
		}
		if err := s.fill(); err != nil {
			return document{}, err
		}
	}
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
			if level--; level == 0 {
				return i + 1, true
			}
		}
	}
	b.at, b.level, b.quoted = i, level, quoted
	return 0, false
}

// separator cuts off a line "---". With anything but a comment behind it, it is
// a document with an error.
func (s *splitter) separator() (document, error) {
	for bytes.IndexByte(s.chunk, '\n') < 0 && !s.eof {
		if err := s.fill(); err != nil {
			return document{}, err
		}
	}
	end := bytes.IndexByte(s.chunk, '\n') + 1
	if end == 0 {
		end = len(s.chunk)
	}
	at := s.at
	after := strings.TrimSpace(string(s.cut(end)[len(separator):]))
	if after == "" || after[0] == '#' {
		return document{}, nil
	}
	s.at.document++
	at.document = s.at.document
	return document{pos: at, err: &fault{rule: RuleSyntax, err: fmt.Errorf("invalid Yaml document separator: %s", shortened([]byte(after)))}}, nil
}

// cutYAML cuts a document off, up to the next line that begins with "---".
func (s *splitter) cutYAML() (document, error) {
	searched := 0
	for {
		if i := bytes.Index(s.chunk[searched:], []byte("\n"+separator)); i >= 0 {
			doc := s.document(true)
			doc.text = s.cut(searched + i + 1)
			return doc, nil
		}
		if s.eof {
			doc := s.document(true)
			doc.text = s.cut(len(s.chunk))
			return doc, nil
		}
		searched = max(0, len(s.chunk)-len(separator))
		if err := s.fill(); err != nil {
			return document{}, err
		}
	}
}
