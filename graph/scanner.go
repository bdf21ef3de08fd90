package graph

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// scanner reads JSON in one pass, without building values that nobody wants.
// It is as strict as a JSON reader can be: keys are case-sensitive and may not
// repeat in an object, and each method accepts one type alone.
//
// Slices that it returns mostly point into data.
type scanner struct {
	data    []byte
	pos     int
	depth   int
	maxKeys int
	budget
}

const maxDepth = 500

// errSyntax stands for invalid JSON; syntaxError finds the words.
var errSyntax = errors.New("invalid JSON")

var errDepth = &LimitError{Limit: "levels of nested JSON", Max: maxDepth}

// typeError says that a value has another type than its place wants.
func (s *scanner) typeError(want string) error {
	kind := s.kind()
	if kind == "" {
		return errSyntax
	}
	return fmt.Errorf("expected %s, found %s", want, kind)
}

// kind names the type of the value that comes next, empty if none does.
func (s *scanner) kind() string {
	switch c := s.peek(); {
	case c == '{':
		return "an object"
	case c == '[':
		return "an array"
	case c == '"':
		return "a string"
	case c == 't' || c == 'f':
		return "a boolean"
	case c == 'n':
		return "null"
	case c == '-' || c >= '0' && c <= '9':
		return "a number"
	}
	return ""
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	data := s.data
	for i := s.pos; i < len(data); i++ {
		if c := data[i]; c > ' ' || c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			s.pos = i
			return c
		}
	}
	s.pos = len(data)
	return 0
}

// accept consumes the next byte if it is c.
func (s *scanner) accept(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.pos++
	return true
}

func (s *scanner) literal(text string) error {
	if len(s.data)-s.pos < len(text) || string(s.data[s.pos:s.pos+len(text)]) != text {
		return errSyntax
	}
	s.pos += len(text)
	return nil
}

// null consumes a null, if there is one.
func (s *scanner) null() (bool, error) {
	if s.peek() != 'n' {
		return false, nil
	}
	return true, s.literal("null")
}

// object calls field for each key, which must consume the value. A key that
// comes twice is an error.
func (s *scanner) object(field func(key []byte) error) error {
	if s.peek() != '{' {
		return s.typeError("an object")
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	s.pos++
	if s.accept('}') {
		return nil
	}
	var seen keySet
	for n := 1; ; n++ {
		if err := atMost(n, s.maxKeys, limitKeys); err != nil {
			return err
		}
		if s.peek() != '"' {
			return errSyntax
		}
		key, err := s.text()
		if err != nil {
			return err
		}
		if seen.add(key) {
			return fmt.Errorf("key %s comes twice", bounded.Quote(key))
		}
		if seen.many != nil {
			if err := s.spend(costKey + len(key)); err != nil {
				return err
			}
		}
		if !s.accept(':') {
			return errSyntax
		}
		if err := field(key); err != nil {
			return err
		}
		switch {
		case s.accept(','):
		case s.accept('}'):
			return nil
		default:
			return errSyntax
		}
	}
}

// array calls element for each index, which must consume the value.
func (s *scanner) array(element func(i int) error) error {
	if s.peek() != '[' {
		return s.typeError("an array")
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	s.pos++
	if s.accept(']') {
		return nil
	}
	for i := 0; ; i++ {
		if err := element(i); err != nil {
			return err
		}
		switch {
		case s.accept(','):
		case s.accept(']'):
			return nil
		default:
			return errSyntax
		}
	}
}

func (s *scanner) enter() error {
	if s.depth++; s.depth > maxDepth {
		return errDepth
	}
	return nil
}

func (s *scanner) leave() { s.depth-- }

// text reads a string. Invalid UTF-8 becomes U+FFFD, as in encoding/json.
func (s *scanner) text() ([]byte, error) {
	if s.peek() != '"' {
		return nil, s.typeError("a string")
	}
	start := s.pos + 1
	length := bytes.IndexByte(s.data[start:], '"')
	if length < 0 {
		s.pos = len(s.data)
		return nil, errSyntax
	}
	token := s.data[start : start+length]
	plain := true
	for _, c := range token {
		plain = plain && c >= ' ' && c < utf8.RuneSelf && c != '\\'
	}
	if plain {
		s.pos = start + length + 1
		return token, nil
	}
	return s.quoted()
}

// quoted reads a string that has more than plain ASCII.
func (s *scanner) quoted() ([]byte, error) {
	start := s.pos
	for s.pos++; s.pos < len(s.data); s.pos++ {
		switch c := s.data[s.pos]; {
		case c == '"':
			s.pos++
			token := s.data[start:s.pos]
			if utf8.Valid(token) && bytes.IndexByte(token, '\\') < 0 {
				return token[1 : len(token)-1], nil
			}
			return unquote(token)
		case c == '\\':
			s.pos++ // whatever is escaped, it does not end the string
		case c < ' ':
			return nil, errSyntax
		}
	}
	return nil, errSyntax
}

func unquote(token []byte) ([]byte, error) {
	var text string
	if err := json.Unmarshal(token, &text); err != nil {
		return nil, errSyntax
	}
	return []byte(text), nil
}

// number reads a number and returns its text.
func (s *scanner) number() ([]byte, error) {
	if c := s.peek(); c != '-' && (c < '0' || c > '9') {
		return nil, s.typeError("a number")
	}
	start := s.pos
	digits := func() bool {
		from := s.pos
		for s.pos < len(s.data) && s.data[s.pos] >= '0' && s.data[s.pos] <= '9' {
			s.pos++
		}
		return s.pos > from
	}
	next := func(chars string) bool {
		if s.pos < len(s.data) && strings.IndexByte(chars, s.data[s.pos]) >= 0 {
			s.pos++
			return true
		}
		return false
	}
	next("-")
	if !next("0") && !digits() {
		return nil, errSyntax
	}
	if next(".") && !digits() {
		return nil, errSyntax
	}
	if next("eE") {
		next("+-")
		if !digits() {
			return nil, errSyntax
		}
	}
	return s.data[start:s.pos], nil
}

// integer reads an integer literal: 1.0 is none.
func (s *scanner) integer() ([]byte, error) {
	text, err := s.number()
	if err != nil {
		return nil, err
	}
	if bytes.ContainsAny(text, ".eE") {
		return nil, fmt.Errorf("expected an integer, found %s", bounded.Text(string(text), bounded.MaxQuoted))
	}
	return text, nil
}

// pair reads an array of two integers of up to nine digits, the common case of
// a list of edges. Anything else it leaves where it is.
func (s *scanner) pair() (pair [2]int32, ok bool) {
	data := s.data
	i := afterSpace(data, s.pos)
	for n, before := range [...]byte{'[', ','} {
		if i >= len(data) || data[i] != before {
			return pair, false
		}
		i = afterSpace(data, i+1)
		start, value := i, int32(0)
		for i < len(data) && data[i]-'0' <= 9 && i-start < 9 {
			value = 10*value + int32(data[i]-'0')
			i++
		}
		if i == start || data[start] == '0' && i > start+1 {
			return pair, false
		}
		pair[n] = value
		i = afterSpace(data, i)
	}
	if i >= len(data) || data[i] != ']' {
		return pair, false
	}
	s.pos = i + 1
	return pair, true
}

// afterSpace returns the place of the next byte that is no white space.
func afterSpace(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\t' || data[i] == '\r') {
		i++
	}
	return i
}

// skip reads a value of any type and returns its text.
func (s *scanner) skip() ([]byte, error) {
	c := s.peek()
	start := s.pos
	var err error
	switch c {
	case '{':
		err = s.object(func([]byte) error { _, err := s.skip(); return err })
	case '[':
		err = s.array(func(int) error { _, err := s.skip(); return err })
	case '"':
		_, err = s.text()
	case 't':
		err = s.literal("true")
	case 'f':
		err = s.literal("false")
	case 'n':
		err = s.literal("null")
	default:
		_, err = s.number()
	}
	return s.data[start:s.pos], err
}

// end makes sure that nothing follows.
func (s *scanner) end() error {
	if s.peek() != 0 || s.pos < len(s.data) {
		return errSyntax
	}
	return nil
}

// describe words a syntax error, as encoding/json does, and finds its line.
func (s *scanner) describe() (line int, err error) {
	offset := int64(s.pos)
	err = json.Unmarshal(s.data, new(json.RawMessage))
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		offset = syntax.Offset
	}
	if err == nil {
		err = fmt.Errorf("%w at byte %d", errSyntax, offset)
	}
	return 1 + bytes.Count(s.data[:min(int(offset), len(s.data))], []byte{'\n'}), err
}

// keySet remembers the keys of one object. Most objects have few.
type keySet struct {
	few  [8][]byte
	n    int
	many map[string]struct{}
}

// add says whether the key was there already.
func (k *keySet) add(key []byte) bool {
	if k.many != nil {
		if _, ok := k.many[string(key)]; ok {
			return true
		}
		k.many[string(key)] = struct{}{}
		return false
	}
	for _, old := range k.few[:k.n] {
		if bytes.Equal(old, key) {
			return true
		}
	}
	if k.n < len(k.few) {
		k.few[k.n] = key
		k.n++
		return false
	}
	k.many = make(map[string]struct{}, 2*len(k.few))
	for _, old := range k.few {
		k.many[string(old)] = struct{}{}
	}
	k.many[string(key)] = struct{}{}
	return false
}

// arena copies strings out of the input into few large pieces, so that a graph
// costs few allocations and does not hold its text alive.
type arena struct {
	piece    strings.Builder
	interned map[string]string
}

// string returns a copy.
func (a *arena) string(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if a.piece.Cap()-a.piece.Len() < len(b) {
		size := min(max(2*a.piece.Cap(), 1<<10), 64<<10)
		a.piece = strings.Builder{}
		a.piece.Grow(max(size, len(b)))
	}
	start := a.piece.Len()
	a.piece.Write(b)
	return a.piece.String()[start:]
}

// intern returns a copy of a text that has none yet, for all that are equal.
func (a *arena) intern(b []byte) string {
	s := a.string(b)
	if a.interned == nil {
		a.interned = map[string]string{}
	}
	a.interned[s] = s
	return s
}
