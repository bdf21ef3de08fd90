package yamljson

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v2" // which sigs.k8s.io/yaml decodes with

	"github.com/clusterupdate/clusterupdate/internal/limit"
)

// Size is about what sigs.k8s.io/yaml makes of a document.
type Size struct {
	// Aliases is how many places of the text may be an alias. It is 0 for a
	// document that has no anchor, and so no alias.
	Aliases int
	// Bytes is the size of the JSON, at most, of a document that may have
	// aliases; else the size of the text.
	Bytes int64
	// Heap is how many bytes the conversion to JSON allocates, at most.
	Heap int64
}

// Measure returns the size of a YAML document before anything expands its
// aliases: a few hundred bytes can stand for gigabytes. It stops counting if
// aliases make more than most bytes of JSON. The error is a [*limit.LimitError] if
// Heap is more than [limit.Heap], and else one of syntax.
//
// It reads aliases with the parser that sigs.k8s.io/yaml has, node by node, so
// what it counts is what a conversion makes. A document without aliases is not
// parsed: its size follows from its characters.
func Measure[T string | []byte](text T, most int64) (Size, error) {
	size := Size{Aliases: mayAlias(text), Bytes: int64(len(text)), Heap: textHeap(text)}
	if size.Aliases == 0 || size.Heap > limit.Heap {
		return size, heapLimit.Check(size.Heap)
	}
	m := meter{Size: size, most: most}
	m.Bytes = 0
	var root part
	if err := yaml.Unmarshal([]byte(text), &root); err != nil {
		return m.Size, err
	}
	err := m.measure(&root, 0)
	if m.Bytes > most {
		err = nil
	}
	return m.Size, err
}

var heapLimit = limit.Limit{Max: limit.Heap, What: "bytes of memory for a document"}

// What a conversion allocates, as measured and rounded up: it makes nodes of a
// document, then maps and lists, these again for JSON, and a text that grows.
const (
	heapValue   = 1100
	heapByte    = 18
	heapOpen    = 600  // more, for a level of brackets
	heapEscape  = 60   // more, for a character that JSON writes as six
	heapNewLine = 10   // more, for a character that JSON writes as two
	heapPart    = 1000 // a part of a document with aliases, which Measure also decodes

	maxParts = 10_000 // levels, which is also where the parser gives up
)

// textHeap bounds what a document without aliases makes.
func textHeap[T string | []byte](text T) int64 {
	heap := heapValue * int64(MayBegin(text))
	for i := range len(text) {
		heap += heapByte
		switch c := text[i]; {
		case c == '<', c == '>', c == '&', c == '\\', c < ' ' && c != '\n':
			heap += heapEscape
		case c == '[', c == '{':
			heap += heapOpen
		case c == '\n', c == '"', c >= utf8.RuneSelf:
			heap += heapNewLine
		case c == '!': // a tag can make any character of another
			return (heapValue+heapOpen)*int64(MayBegin(text)) + (heapByte+heapEscape)*int64(len(text))
		}
	}
	return heap
}

// MayBegin counts the characters of a YAML document behind which a value can start,
// and so bounds how many it has without aliases.
func MayBegin[T string | []byte](text T) int {
	n := 1
	flow := !utf8Valid(text) // of another encoding any character counts
	for i := range len(text) {
		switch text[i] {
		case '[', '{':
			flow = true
			n++
		case ',':
			if flow {
				n++
			}
		case ':', '?', '-':
			if flow || endsToken(text, i+1) {
				n++
			}
		}
	}
	return n
}

func utf8Valid[T string | []byte](text T) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return utf8.ValidString(string(text[i:]))
		}
	}
	return true
}

// endsToken reports whether the character at i may be a blank, the end of a line,
// or of the text.
func endsToken[T string | []byte](text T, i int) bool {
	return i >= len(text) || text[i] <= ' ' || text[i] >= utf8.RuneSelf
}

// mayAlias counts the places where an alias may be, 0 if there is none for an
// anchor. Such a place may also be in a text or a comment.
func mayAlias[T string | []byte](text T) int {
	anchors, aliases := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '&':
			if mayName(text, i) {
				anchors++
			}
		case '*':
			if mayName(text, i) {
				aliases++
			}
		}
	}
	switch {
	case anchors > 0 && aliases > 0:
		return aliases
	case !utf8Valid(text): // of another encoding, the neighbours are not its characters
		return strings.Count(string(text), "*")
	}
	return 0
}

// mayName reports whether the character at i may start an anchor or alias: a
// character of a name follows, and none of a word is before it.
func mayName[T string | []byte](text T, i int) bool {
	return i+1 < len(text) && (isName(text[i+1]) || text[i+1] >= utf8.RuneSelf) && (i == 0 || !isName(text[i-1]) && text[i-1] != text[i])
}

func isName(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '-'
}

// part is a node of a document that the parser has read and not yet decoded. It
// is null if decode is nil.
type part struct{ decode func(any) error }

// UnmarshalYAML keeps the node for later.
func (p *part) UnmarshalYAML(decode func(any) error) error {
	p.decode = decode
	return nil
}

// UnmarshalText does nothing: the parser calls it instead for the strings "null" and
// "~", which count as null.
func (p *part) UnmarshalText([]byte) error { return nil }

// meter adds up the sizes of the parts of a document, and adds them again for each
// alias that stands for them.
type meter struct {
	Size
	most int64 // bytes
}

// errEnough ends the counting.
var errEnough = errors.New("more than enough")

func (m *meter) add(n int, text string) error {
	size := int64(n)
	if text != "" {
		size += max(jsonSize(text), longestNumber)
	}
	m.Bytes += size
	m.Heap += heapPart + 8*size + 4*int64(len(text))
	if text != "" && strings.IndexByte("0123456789+-.", text[0]) >= 0 {
		m.Heap += 20 * int64(len(text)) // which may be a number or a time
	}
	if m.Bytes > m.most {
		return errEnough
	}
	return heapLimit.Check(m.Heap)
}

// longestNumber is the size of the longest JSON of a number or boolean, which may be
// longer than its YAML: 1e20, y.
const longestNumber = 26

// jsonSize is the size of a string in JSON, at most.
func jsonSize(text string) int64 {
	n := int64(len(text)) + 2
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"', c == '\\', c == '\n':
			n++
		case c < ' ', c == '<', c == '>', c == '&', c >= utf8.RuneSelf:
			n += 5
		}
	}
	return n
}

func (m *meter) measure(p *part, depth int) error {
	if depth > maxParts {
		return errors.New("yaml: it is nested too deep, or an anchor contains an alias to itself")
	}
	if p == nil || p.decode == nil {
		return m.add(len(`"null",`), "")
	}
	var text string
	err := p.decode(&text)
	if err == nil {
		return m.add(len(`"",`), text)
	}
	if !errors.As(err, new(*yaml.TypeError)) {
		return err
	}
	if err := m.add(len("{},"), ""); err != nil {
		return err
	}
	var list []part
	err = p.decode(&list)
	if err == nil {
		for i := range list {
			if err := m.measure(&list[i], depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	if !errors.As(err, new(*yaml.TypeError)) {
		return err
	}
	// Pointers are keys of which no two are equal, and which are not decoded.
	var fields map[*part]part
	if err := p.decode(&fields); err != nil {
		return err
	}
	for key, value := range fields {
		var name string
		if key != nil && key.decode != nil {
			if err := key.decode(&name); err != nil {
				return fmt.Errorf("yaml: a key of a map is not a string: %w", err)
			}
		}
		if err := m.add(len(`"":`), name); err != nil {
			return err
		}
		if err := m.measure(&value, depth+1); err != nil {
			return err
		}
	}
	return nil
}
