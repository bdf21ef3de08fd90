package olm

import (
	"errors"
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
)

// Range is a set of versions, the meaning of skipRange and versionRange. The
// zero Range contains nothing. A Range is immutable.
type Range struct {
	text string
	test semver.Range
}

// maxRange is the largest range in bytes: many times what anybody writes, and
// little enough that testing a version stays cheap.
const maxRange = 64 << 10

// ParseRange reads a range in the language of github.com/blang/semver: blanks
// mean AND, " || " means OR, the operators are = == != ! < <= > >=, and x is a
// wildcard in the last place (1.2.x). Pre-releases are ordinary versions:
// "<2.0.0" contains 2.0.0-rc.1. Build metadata does not count.
//
// The language has its oddities: versions need three parts (but 1.x is fine),
// a token of one character is passed over (so "1.0.0 - 2.0.0" contains nothing),
// and where a version has an x that is not its whole last part only >= and <
// work.
//
// The error is about a text that is empty, too long, or not a range.
func ParseRange(text string) (r Range, err error) {
	if len(text) > maxRange {
		return Range{}, fmt.Errorf("version range of %d bytes is longer than %d", len(text), maxRange)
	}
	if strings.Trim(text, " ") == "" {
		return Range{}, errors.New("version range is empty")
	}
	defer func() {
		if fault := recover(); fault != nil {
			r, err = Range{}, fmt.Errorf("could not parse range %q: %v", text, fault)
		}
	}()
	test, err := semver.ParseRange(text)
	if err != nil {
		return Range{}, err
	}
	// With nothing between two "||" the library's test would call a nil function.
	if emptyAlternative(text) {
		return Range{}, fmt.Errorf("could not parse range %q: nothing between || and ||", text)
	}
	return Range{text: text, test: test}, nil
}

// emptyAlternative reports whether nothing but passed-over tokens stands
// between two tokens "||". Tokens end at blanks, except at those after < > and =;
// tokens of one character are passed over.
func emptyAlternative(text string) bool {
	var last byte // the last character that is not a blank
	start, empty := 0, false
	for i := 0; i <= len(text); i++ {
		if i < len(text) && (text[i] != ' ' || last == '<' || last == '>' || last == '=') {
			if text[i] != ' ' {
				last = text[i]
			}
			continue
		}
		token := text[start:i]
		start = i + 1
		switch {
		case len(token) < 2:
		case token != "||":
			empty = false
		case empty:
			return true
		default:
			empty = true
		}
	}
	return false
}

// String is the range as written.
func (r Range) String() string { return r.text }

// Contains reports whether the version lies in the range.
func (r Range) Contains(v semver.Version) bool { return r.test != nil && r.test(v) }

// ranges parses each text once. Catalogs repeat few ranges often.
type ranges map[string]parsedRange

type parsedRange struct {
	r   *Range
	err error
}

func (m ranges) parse(text string) (*Range, error) {
	if p, ok := m[text]; ok {
		return p.r, p.err
	}
	var p parsedRange
	if r, err := ParseRange(text); err != nil {
		p.err = err
	} else {
		p.r = &r
	}
	m[text] = p
	return p.r, p.err
}
