package signature

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// Store is where signatures come from. What it yields is not trusted: a store
// can withhold signatures, but not make any.
type Store interface {
	// Signatures yields the signatures of a digest, in the order of the store.
	// A pair with an error is a failure to retrieve one, after which more may
	// follow; an error that wraps [ErrNotFound] says that there is nothing
	// more; a [*StoreError] is the last pair and ends the whole search. The
	// consumer stops by leaving the loop. Empty signatures are skipped, and a
	// digest that is none gives a StoreError, so that it cannot lead out of
	// the store.
	//
	// An implementation must be safe for concurrent use, return promptly when
	// ctx ends, and bound the size and number of what it yields: a store
	// without an end would keep a verification busy until its context ends.
	Signatures(ctx context.Context, digest string) iter.Seq2[[]byte, error]
	// String describes the store to people, without any credentials.
	String() string
}

// Locator is optional: a [Store] that has it says where each signature comes
// from, and results and errors of a verification tell. Find it by type
// assertion. All stores of this package have it.
type Locator interface {
	// Candidates yields what Signatures yields, with its origin.
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
	// Number is the signature's within its store, from 1; 0 where the pair
	// concerns the store as a whole.
	Number int
}

// ErrNotFound says that a store has no more signatures for a digest.
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

// candidates asks s, whether it is a Locator or not. A panic in it is a failure
// to retrieve a signature, and its last pair: other stores may have more.
func candidates(ctx context.Context, s Store, digest string) iter.Seq2[Candidate, error] {
	return func(yield func(Candidate, error) bool) {
		inside, left := false, false // of the consumer's loop
		err := panics.Catch(func() error {
			for c, err := range origins(ctx, s, digest) {
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

// describe is s.String, which may panic too.
func describe(s Store) (text string) {
	if panics.Catch(func() error { text = s.String(); return nil }) != nil {
		text = fmt.Sprintf("a store of type %T", s)
	}
	return text
}

func origins(ctx context.Context, s Store, digest string) iter.Seq2[Candidate, error] {
	if l, ok := s.(Locator); ok {
		return l.Candidates(ctx, digest)
	}
	return func(yield func(Candidate, error) bool) {
		n := 0
		for sig, err := range s.Signatures(ctx, digest) {
			if err == nil && len(sig) == 0 {
				continue
			}
			n++
			if !yield(Candidate{Signature: sig, Store: s.String(), Number: n}, err) {
				return
			}
		}
	}
}

// signatures drops the origins.
func signatures(seq iter.Seq2[Candidate, error]) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for c, err := range seq {
			if !yield(c.Signature, err) {
				return
			}
		}
	}
}

// MemoryStore holds signatures by digest. It is safe for concurrent use as long
// as it is not changed.
type MemoryStore map[string][][]byte

// Signatures implements [Store].
func (m MemoryStore) Signatures(ctx context.Context, digest string) iter.Seq2[[]byte, error] {
	return signatures(m.Candidates(ctx, digest))
}

// Candidates implements [Locator].
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

// String implements [Store].
func (m MemoryStore) String() string { return "in-memory signature store" }
