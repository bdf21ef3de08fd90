// Package bounded cuts texts and lists that come from outside to a size that a
// condition, an event or an error can carry, and reports what it left out.
package bounded

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Text returns s if it has at most limit bytes. Otherwise it returns the longest
// beginning of s that ends between two characters and still leaves room for a note
// of how many bytes are missing. The result never has more than limit bytes; where
// not even the note fits, it is the beginning alone.
func Text(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	// The note grows with the number in it, which is largest for an empty
	// beginning.
	room := limit - len(note(len(s)))
	if room < 0 {
		return start(s, limit)
	}
	kept := start(s, room)
	return kept + note(len(s)-len(kept))
}

// Join joins items with sep like strings.Join where the result has at most limit
// bytes. Otherwise it joins the first items that fit together with a note of how
// many more there are. Where not even one fits, it reports how many there are.
func Join(items []string, sep string, limit int) string {
	size := 0
	fit := 0 // how many items leave room for the note
	for i, item := range items {
		if i > 0 {
			size += len(sep)
		}
		size += len(item)
		if size > limit {
			break
		}
		if left := len(items) - i - 1; left == 0 || size+len(more(left)) <= limit {
			fit = i + 1
		}
	}
	switch fit {
	case len(items):
		return strings.Join(items, sep)
	case 0:
		return start(fmt.Sprintf("%d in all", len(items)), limit)
	default:
		return strings.Join(items[:fit], sep) + more(len(items)-fit)
	}
}

func note(missing int) string { return fmt.Sprintf("... (%d more bytes)", missing) }

func more(n int) string { return fmt.Sprintf(" and %d more", n) }

// start returns the beginning of s of at most limit bytes that cuts no
// character in two.
func start(s string, limit int) string {
	limit = max(limit, 0)
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// MaxQuoted is how many bytes of a text [Quote] repeats.
const MaxQuoted = 512

// Quote quotes a text from outside for an error, as %q does. Of one that is longer
// than [MaxQuoted] it reports how much is left out.
func Quote[T string | []byte](text T) string {
	return strconv.Quote(Text(string(text), MaxQuoted))
}

// MaxErrors is how many bytes the text of [Errors] has, and MaxError the text of
// one of its errors.
const (
	MaxErrors = 32 << 10
	MaxError  = 4 << 10
)

// Errors joins errors about outside input as errors.Join does. Its text is the
// first ones', with a note of how many more there are.
func Errors(errs ...error) error {
	errs = slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
	switch {
	case len(errs) == 0:
		return nil
	}
	return joined(errs)
}

type joined []error

func (j joined) Error() string {
	var texts []string
	size := 0
	for _, err := range j {
		text := ""
		if size <= MaxErrors { // later ones are counted alone
			text = Text(err.Error(), MaxError)
			size += len(text)
		}
		texts = append(texts, text)
	}
	return Join(texts, "\n", MaxErrors)
}

func (j joined) Unwrap() []error { return j }
