package signature

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"

	"github.com/clusterupdate/clusterupdate/internal/httpclient"
)

// maxTransportErrors in a row mean that a server is not there.
const maxTransportErrors = 2

// probe asks a store for the files signature-1, signature-2 and so on of a
// digest.
type probe struct {
	store string // described
	last  int    // number of the last one
	// remote stores may be out of reach: transport errors in a row end the search.
	remote bool
	// read returns one file and its place for people. The error is ErrNotFound
	// if there is no such file.
	read func(ctx context.Context, name string) (location string, data []byte, err error)
}

func (p probe) candidates(ctx context.Context, digest string) iter.Seq2[Candidate, error] {
	return func(yield func(Candidate, error) bool) {
		own := Candidate{Store: p.store}
		prefix, err := DigestKey(digest, "=")
		if err != nil {
			yield(own, &StoreError{Store: p.store, Err: err})
			return
		}
		failures := 0 // transport errors in a row
		for n := 1; n <= p.last; n++ {
			if err := ctx.Err(); err != nil {
				yield(own, &StoreError{Store: p.store, Err: err})
				return
			}
			location, data, err := p.read(ctx, path.Join(prefix, fmt.Sprintf("signature-%d", n)))
			c := Candidate{Store: p.store, Location: location, Number: n, Signature: data}
			_, unsendable := errors.AsType[*httpclient.RequestError](err)
			switch {
			case err == nil:
				failures = 0
				if len(data) > 0 && !yield(c, nil) {
					return
				}
				continue
			case errors.Is(err, ErrNotFound):
				yield(c, err)
				return
			case unsendable:
				yield(c, fmt.Errorf("could not build request to check signature: %w", err))
				return
			case p.remote && ctx.Err() != nil:
				yield(own, &StoreError{Store: p.store, Err: ctx.Err()})
				return
			case p.remote && transportError(err):
				failures++
			default:
				failures = 0
			}
			if !yield(c, err) {
				return
			}
			if failures == maxTransportErrors {
				yield(own, fmt.Errorf("%s given up after %d transport errors in a row: %w", p.store, failures, ErrNotFound))
				return
			}
		}
		yield(own, fmt.Errorf("%s has been asked for %d signatures: %w", p.store, p.last, ErrNotFound))
	}
}

// transportError reports whether a failed fetch got no complete answer.
func transportError(err error) bool {
	_, status := errors.AsType[statusError](err)
	_, large := errors.AsType[errTooLarge](err)
	return !status && !large
}

func orDefault(n, def int) int {
	if n <= 0 {
		return def
	}
	return n
}
