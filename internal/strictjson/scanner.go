package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/limit"
)

// Scanner reads JSON in one pass, without building values that are not wanted.
// It is as strict as a JSON reader can be: keys are case-sensitive and may not
// repeat in an object, and each method accepts one type alone.
//
// Slices that it returns mostly point into Data. It is not safe for concurrent
// use.
type Scanner struct {
	Data []byte
	// Pos is the place in Data of the next byte.
	Pos int
	// MaxKeys is the largest number of keys of an object; zero means any.
	MaxKeys int
	// Spend receives how many bytes of memory reading takes, and its error ends the
	// reading; nil means no count.
	Spend func(bytes int) error

	depth int
}

// MaxDepth is how deep objects and arrays may be nested.
const MaxDepth = 500

// ErrSyntax stands for invalid JSON; [Scanner.Describe] finds the words.
var ErrSyntax = errors.New("invalid JSON")

// costKey is what a key of an object with many takes beyond its text, in bytes.
const costKey = 64

// TypeError reports that a value has another type than its place wants.
func (s *Scanner) TypeError(want string) error {
	kind := s.Kind()
	if kind == "" {
		return ErrSyntax
	}
	return fmt.Errorf("expected %s, found %s", want, kind)
}

// Kind names the type of the value that comes next, empty if none does.
func (s *Scanner) Kind() string {
	switch c := s.Peek(); {
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

// Peek skips white space and returns the next byte, 0 at the end.
func (s *Scanner) Peek() byte {
	data := s.Data
	for i := s.Pos; i < len(data); i++ {
		if c := data[i]; c > ' ' || c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			s.Pos = i
			return c
		}
	}
	s.Pos = len(data)
	return 0
}

// Accept consumes the next byte if it is c.
func (s *Scanner) Accept(c byte) bool {
	if s.Peek() != c {
		return false
	}
	s.Pos++
	return true
}

func (s *Scanner) literal(text string) error {
	if len(s.Data)-s.Pos < len(text) || string(s.Data[s.Pos:s.Pos+len(text)]) != text {
		return ErrSyntax
	}
	s.Pos += len(text)
	return nil
}

// Null consumes a null, if there is one.
func (s *Scanner) Null() (bool, error) {
	if s.Peek() != 'n' {
		return false, nil
	}
	return true, s.literal("null")
}

// Object calls field for each key, which must consume the value. A key that
// comes twice is an error.
func (s *Scanner) Object(field func(key []byte) error) error {
	if s.Peek() != '{' {
		return s.TypeError("an object")
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	s.Pos++
	if s.Accept('}') {
		return nil
	}
	var seen keySet
	for n := 1; ; n++ {
		if n > s.MaxKeys && s.MaxKeys > 0 {
			return &limit.LimitError{What: "keys of an object", Max: int64(s.MaxKeys)}
		}
		if s.Peek() != '"' {
			return ErrSyntax
		}
		key, err := s.Text()
		if err != nil {
			return err
		}
		if seen.add(key) {
			return fmt.Errorf("key %s comes twice", bounded.Quote(key))
		}
		if seen.many != nil && s.Spend != nil {
			if err := s.Spend(costKey + len(key)); err != nil {
				return err
			}
		}
		if !s.Accept(':') {
			return ErrSyntax
		}
		if err := field(key); err != nil {
			return err
		}
		switch {
		case s.Accept(','):
		case s.Accept('}'):
			return nil
		default:
			return ErrSyntax
		}
	}
}

// Array calls element for each index, which must consume the value.
func (s *Scanner) Array(element func(i int) error) error {
	if s.Peek() != '[' {
		return s.TypeError("an array")
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	s.Pos++
	if s.Accept(']') {
		return nil
	}
	for i := 0; ; i++ {
		if err := element(i); err != nil {
			return err
		}
		switch {
		case s.Accept(','):
		case s.Accept(']'):
			return nil
		default:
			return ErrSyntax
		}
	}
}

func (s *Scanner) enter() error {
	if s.depth++; s.depth > MaxDepth {
		return &limit.LimitError{What: "levels of nested JSON", Max: MaxDepth}
	}
	return nil
}

func (s *Scanner) leave() { s.depth-- }

// Text reads a string. Invalid UTF-8 becomes U+FFFD, as in encoding/json.
func (s *Scanner) Text() ([]byte, error) {
	if s.Peek() != '"' {
		return nil, s.TypeError("a string")
	}
	start := s.Pos + 1
	length := bytes.IndexByte(s.Data[start:], '"')
	if length < 0 {
		s.Pos = len(s.Data)
		return nil, ErrSyntax
	}
	token := s.Data[start : start+length]
	plain := true
	for _, c := range token {
		plain = plain && c >= ' ' && c < utf8.RuneSelf && c != '\\'
	}
	if plain {
		s.Pos = start + length + 1
		return token, nil
	}
	return s.quoted()
}

// quoted reads a string that has more than plain ASCII.
func (s *Scanner) quoted() ([]byte, error) {
	start := s.Pos
	for s.Pos++; s.Pos < len(s.Data); s.Pos++ {
		switch c := s.Data[s.Pos]; {
		case c == '"':
			s.Pos++
			token := s.Data[start:s.Pos]
			if utf8.Valid(token) && bytes.IndexByte(token, '\\') < 0 {
				return token[1 : len(token)-1], nil
			}
			return unquote(token)
		case c == '\\':
			s.Pos++ // whatever is escaped, it does not end the string
		case c < ' ':
			return nil, ErrSyntax
		}
	}
	return nil, ErrSyntax
}

func unquote(token []byte) ([]byte, error) {
	var text string
	if err := json.Unmarshal(token, &text); err != nil {
		return nil, ErrSyntax
	}
	return []byte(text), nil
}

// Number reads a number and returns its text.
func (s *Scanner) Number() ([]byte, error) {
	if c := s.Peek(); c != '-' && (c < '0' || c > '9') {
		return nil, s.TypeError("a number")
	}
	start := s.Pos
	digits := func() bool {
		from := s.Pos
		for s.Pos < len(s.Data) && s.Data[s.Pos] >= '0' && s.Data[s.Pos] <= '9' {
			s.Pos++
		}
		return s.Pos > from
	}
	next := func(chars string) bool {
		if s.Pos < len(s.Data) && strings.IndexByte(chars, s.Data[s.Pos]) >= 0 {
			s.Pos++
			return true
		}
		return false
	}
	next("-")
	if !next("0") && !digits() {
		return nil, ErrSyntax
	}
	if next(".") && !digits() {
		return nil, ErrSyntax
	}
	if next("eE") {
		next("+-")
		if !digits() {
			return nil, ErrSyntax
		}
	}
	return s.Data[start:s.Pos], nil
}

// Integer reads an integer literal: 1.0 is not one.
func (s *Scanner) Integer() ([]byte, error) {
	text, err := s.Number()
	if err != nil {
		return nil, err
	}
	if bytes.ContainsAny(text, ".eE") {
		return nil, fmt.Errorf("expected an integer, found %s", bounded.Text(string(text), bounded.MaxQuoted))
	}
	return text, nil
}

// Pair reads an array of two integers of up to nine digits, the common case of
// a list of edges. It does not consume anything else.
func (s *Scanner) Pair() (pair [2]int32, ok bool) {
	data := s.Data
	i := afterSpace(data, s.Pos)
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
	s.Pos = i + 1
	return pair, true
}

// afterSpace returns the place of the next byte that is not white space.
func afterSpace(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\t' || data[i] == '\r') {
		i++
	}
	return i
}

// Skip reads a value of any type and returns its text.
func (s *Scanner) Skip() ([]byte, error) {
	c := s.Peek()
	start := s.Pos
	var err error
	switch c {
	case '{':
		err = s.Object(func([]byte) error { _, err := s.Skip(); return err })
	case '[':
		err = s.Array(func(int) error { _, err := s.Skip(); return err })
	case '"':
		_, err = s.Text()
	case 't':
		err = s.literal("true")
	case 'f':
		err = s.literal("false")
	case 'n':
		err = s.literal("null")
	default:
		_, err = s.Number()
	}
	return s.Data[start:s.Pos], err
}

// End makes sure that nothing follows.
func (s *Scanner) End() error {
	if s.Peek() != 0 || s.Pos < len(s.Data) {
		return ErrSyntax
	}
	return nil
}

// Describe words a syntax error, as encoding/json does, and finds its line.
func (s *Scanner) Describe() (line int, err error) {
	offset := int64(s.Pos)
	err = json.Unmarshal(s.Data, new(json.RawMessage))
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		offset = syntax.Offset
	}
	if err == nil {
		err = fmt.Errorf("%w at byte %d", ErrSyntax, offset)
	}
	return 1 + bytes.Count(s.Data[:min(int(offset), len(s.Data))], []byte{'\n'}), err
}

// keySet remembers the keys of one object. Most objects have few.
type keySet struct {
	few  [8][]byte
	n    int
	many map[string]struct{}
}

// add reports whether the key was there already.
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
