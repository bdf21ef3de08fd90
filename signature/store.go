package signature

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// Store is where signatures come from. What it yields is not trusted: a store
// can withhold signatures, but not make any. One that has a method String is
// described by it to people, without any credentials. It must be safe for
// concurrent use.
type Store interface {
	// Candidates yields the signatures of a digest, in the order of the store, and
	// where each comes from. A pair with an error is a failure to retrieve one,
	// after which more may follow; an error that wraps [ErrNotFound] reports that
	// there is nothing more; a [*StoreError] is the last pair and ends the whole
	// search. The consumer stops by leaving the loop. Empty signatures are skipped,
	// and a digest that is not one gives a StoreError, so that it cannot lead out
	// of the store.
	//
	// An implementation must be safe for concurrent use, return promptly when ctx
	// ends, and bound the size and number of candidates: a store without an end
	// would keep a verification busy until its context ends.
	Candidates(ctx context.Context, digest string) iter.Seq2[Candidate, error]
}

// Candidate is a signature that nobody has verified yet, or the place where
// retrieving one failed.
type Candidate struct {
	Signature []byte
	// Store describes the store; of a composite, the member.
	Store string
	// Location is a URL, a path, or a key within an object; may be empty.
	Location string
	// Number is the signature's within its store, from 1; 0 if the pair
	// concerns the store as a whole.
	Number int
}

// ErrNotFound reports that a store has no more signatures for a digest.
var ErrNotFound = errors.New("no more signatures to check")

// StoreError is an error that ends a search: no other store of a [Serial] is
// asked, and a [Parallel] reports it after its other members have finished.
type StoreError struct {
	Store string // the store's description
	Err   error
}

// Error returns the text of Err.
func (e *StoreError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *StoreError) Unwrap() error { return e.Err }

// isStoreError reports whether err itself ends the search. A StoreError that
// another error wraps is an ordinary failure: that is how a store may soften
// one of its parts.
func isStoreError(err error) bool {
	_, ok := err.(*StoreError) // see above
	return ok
}

// candidates asks s. A panic in it is a failure to retrieve a signature, and its
// last pair: further stores may have more. What s leaves out of a candidate is
// filled in.
func candidates(ctx context.Context, s Store, digest string) iter.Seq2[Candidate, error] {
	return func(yield func(Candidate, error) bool) {
		inside, left := false, false // of the consumer's loop
		err := panics.Catch(func() error {
			for c, err := range numbered(ctx, s, digest) {
				inside = true
				if !yield(c, err) {
					left = true
					return nil
				}
				inside = false
			}
			return nil
		})
		caught, ok := err.(*panics.Error)
		switch {
		case !ok || left: // what it does behind its end plays no part
		case inside:
			panic(caught.Value) // the consumer's own
		default:
			yield(Candidate{Store: describe(s)}, fmt.Errorf("%s failed: %w", describe(s), caught))
		}
	}
}

// describe is the String of s, which may panic too.
func describe(s Store) (text string) {
	text = fmt.Sprintf("a store of type %T", s)
	if named, ok := s.(fmt.Stringer); ok {
		_ = panics.Catch(func() error { text = named.String(); return nil })
	}
	return text
}

// numbered skips empty signatures, and numbers and names those that s does not.
func numbered(ctx context.Context, s Store, digest string) iter.Seq2[Candidate, error] {
	return func(yield func(Candidate, error) bool) {
		n := 0
		for c, err := range s.Candidates(ctx, digest) {
			if err == nil && len(c.Signature) == 0 {
				continue
			}
			if c.Store == "" {
				n++
				c.Store, c.Number = describe(s), n
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

// MemoryStore holds signatures by digest. It is safe for concurrent use as long
// as it is not changed.
type MemoryStore map[string][][]byte

// Candidates implements [Store].
func (m MemoryStore) Candidates(ctx context.Context, digest string) iter.Seq2[Candidate, error] {
	return func(yield func(Candidate, error) bool) {
		c := Candidate{Store: m.String()}
		if err := checkDigest(digest); err != nil {
			yield(c, &StoreError{Store: c.Store, Err: err})
			return
		}
		for i, sig := range m[digest] {
			if err := ctx.Err(); err != nil {
				yield(c, &StoreError{Store: c.Store, Err: err})
				return
			}
			if len(sig) == 0 {
				continue
			}
			if !yield(Candidate{Signature: sig, Store: c.Store, Number: i + 1}, nil) {
				return
			}
		}
		yield(c, fmt.Errorf("in-memory signature store %s: %w", digest, ErrNotFound))
	}
}

// String describes the store.
func (m MemoryStore) String() string { return "in-memory signature store" }
