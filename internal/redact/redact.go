// Package redact hides credentials in what this library shows and keeps: in
// objects, fields, URLs and texts. It is the one place that knows what looks like
// a credential: names of fields, keys, variables and flags; users, queries and
// fragments of URLs; private keys, pull secrets, web tokens; the contents of files.
//
// All functions are pure and safe for concurrent use.
package redact

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// Redactor hides credentials. What it hides is shown as (redacted-12 digits), of
// an HMAC: two equal values of a report are seen to be equal, and nobody can find
// out by trial what they are. The zero value shows (redacted) alone, for errors
// and texts.
type Redactor struct {
	key   []byte
	known *strings.Replacer // see With
}

// New returns the redactor of one report. A nil key is a random one; with another
// key, equal reports have equal texts.
func New(key []byte) *Redactor {
	if len(key) == 0 {
		key = make([]byte, sha256.Size)
		rand.Read(key) // never fails
	}
	sum := sha256.Sum256(key)
	return &Redactor{key: sum[:]}
}

const (
	mark    = "(redacted"
	unkeyed = mark + ")"
)

// Matches reports whether shown may be what a Redactor made of value: it has hidden
// parts, and is equal apart from these.
func Matches(shown, value string) bool {
	if !strings.Contains(shown, mark) {
		return false
	}
	parts := anyMark.Split(shown, -1)
	if len(parts) == 1 || !strings.HasPrefix(value, parts[0]) {
		return false
	}
	rest := value[len(parts[0]):]
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}

var anyMark = regexp.MustCompile(`\(redacted(-[0-9a-f]{12})?\)`)

// Hidden stands for a value that is hidden: of a text itself, and of the JSON of
// everything else.
func (r *Redactor) Hidden(value any) string {
	text, ok := value.(string)
	if !ok {
		raw, err := json.Marshal(value)
		if err != nil {
			raw = fmt.Append(nil, value)
		}
		text = string(raw)
	}
	switch {
	case marked.MatchString(text):
		return text // it is hidden already
	case len(r.key) == 0:
		return unkeyed
	}
	mac := hmac.New(sha256.New, r.key)
	mac.Write([]byte(text))
	return mark + "-" + hex.EncodeToString(mac.Sum(nil)[:6]) + ")"
}
