package sigstore

import (
	"errors"
	"fmt"
	"unicode/utf8"

	kjson "sigs.k8s.io/json"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// The defaults of [Limits].
const (
	DefaultCandidates  = 64
	DefaultBytes       = 16 << 20
	DefaultEntries     = 10000
	DefaultAnnotations = 64
)

// Limits bound what one verification reads of a source. A field that is zero or
// less means its default. Past a limit the search ends with an error that names
// it.
type Limits struct {
	// Candidates is how many images and referrers that could be about the image
	// are looked at.
	Candidates int
	// Bytes is how much is read in all: indexes, manifests, payloads, answers of
	// a token service.
	Bytes int64
	// Entries is how many entries an index, and layers a manifest, may have.
	Entries int
	// Annotations is how many each entry may have.
	Annotations int
}

func (l Limits) withDefaults() Limits {
	or := func(n *int, def int) {
		if *n <= 0 {
			*n = def
		}
	}
	or(&l.Candidates, DefaultCandidates)
	or(&l.Entries, DefaultEntries)
	or(&l.Annotations, DefaultAnnotations)
	if l.Bytes <= 0 {
		l.Bytes = DefaultBytes
	}
	return l
}

// budget is what is left of the limits in one verification.
type budget struct {
	Limits
	candidates int
	bytes      int64
}

func newBudget(l Limits) *budget {
	l = l.withDefaults()
	return &budget{Limits: l, candidates: l.Candidates, bytes: l.Bytes}
}

// limitError names a limit. It ends the search.
type limitError struct{ text string }

func (e *limitError) Error() string { return e.text }

func isLimit(err error) bool {
	_, ok := errors.AsType[*limitError](err)
	return ok
}

// candidate takes one.
func (b *budget) candidate(digest string) error {
	if b.candidates == 0 {
		return &limitError{fmt.Sprintf("more candidates for %s than the limit of %d (Limits.Candidates)", digest, b.Candidates)}
	}
	b.candidates--
	return nil
}

// read takes n bytes, before they are read where their number is known.
func (b *budget) read(n int64) error {
	if n > b.bytes {
		b.bytes = 0
		return &limitError{fmt.Sprintf("more to read than the limit of %d bytes a verification (Limits.Bytes)", b.Bytes)}
	}
	b.bytes -= n
	return nil
}

// index decodes an index or a manifest. Keys are matched exactly, none may
// occur twice; unknown ones do not matter.
func (b *budget) index(data []byte) (index, error) {
	var i index
	if err := b.scan(data); err != nil {
		return i, err
	}
	if err := decode(data, &i); err != nil {
		return i, err
	}
	for _, list := range [][]descriptor{i.Manifests, i.Layers} {
		if len(list) > b.Entries {
			return index{}, fmt.Errorf("%d entries, more than the limit of %d (Limits.Entries)", len(list), b.Entries)
		}
		for n, d := range list {
			if len(d.Annotations) > b.Annotations {
				return index{}, fmt.Errorf("entry %d has %d annotations, more than the limit of %d (Limits.Annotations)", n+1, len(d.Annotations), b.Annotations)
			}
		}
	}
	return i, nil
}

// scan counts objects and members before anything is allocated for them: what
// takes two bytes in JSON takes a hundred in memory.
func (b *budget) scan(data []byte) error {
	objects, members := 0, 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '{':
			objects++
		case ':':
			members++
		}
	}
	// An entry has two objects within, a platform and annotations.
	if most := 3*b.Entries + 64; objects > most {
		return fmt.Errorf("%d objects, more than the limit of %d entries (Limits.Entries) allows", objects, b.Entries)
	}
	if most := 16*b.Entries + 16*b.Annotations; members > most {
		return fmt.Errorf("%d members, more than the limits of %d entries and %d annotations each (Limits.Entries, Limits.Annotations) allow", members, b.Entries, b.Annotations)
	}
	return nil
}

// decode reads JSON: UTF-8, keys in their exact case, none twice. Unknown keys
// do not matter.
func decode(data []byte, to any) error {
	if !utf8.Valid(data) {
		return errors.New("invalid UTF-8")
	}
	twice, err := kjson.UnmarshalStrict(data, to, kjson.DisallowDuplicateFields)
	if err != nil {
		return err
	}
	if len(twice) > 0 {
		return fmt.Errorf("%s (%d such faults)", bounded.Text(twice[0].Error(), 256), len(twice))
	}
	return nil
}
