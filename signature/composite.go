package signature

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// Serial asks stores in order until the consumer has enough or one
// of them ends the search with a [*StoreError]. To put a store in front of an
// existing composite, wrap both: Serial(first, rest).
func Serial(stores ...Store) Store { return serial(stores) }

// Parallel asks stores at the same time. Each result reaches the consumer, one
// at a time, in the order of arrival; a consumer that leaves cancels the rest,
// and the sequence returns when all members have. An error that ends the search
// in one member is held back until all have finished. A member that panics is a
// failure of that member.
func Parallel(stores ...Store) Store { return parallel(stores) }

type serial []Store

func (s serial) String() string { return "serial signature store wrapping " + list(s) }

func (s serial) Candidates(ctx context.Context, digest string) iter.Seq2[Candidate, error] {
	return func(yield func(Candidate, error) bool) {
		own := Candidate{Store: s.String()}
		for _, store := range s {
			for c, err := range candidates(ctx, store, digest) {
				if !yield(c, err) || isStoreError(err) {
					return
				}
			}
			if err := ctx.Err(); err != nil {
				yield(own, &StoreError{Store: own.Store, Err: err})
				return
			}
		}
		yield(own, &exhaustedError{own.Store})
	}
}

type parallel []Store

func (p parallel) String() string { return "parallel signature store wrapping " + list(p) }

type result struct {
	candidate Candidate
	err       error
}

func (p parallel) Candidates(ctx context.Context, digest string) iter.Seq2[Candidate, error] {
	return func(yield func(Candidate, error) bool) {
		inner, cancel := context.WithCancel(ctx)
		results := make(chan result)
		ended := make([]error, len(p)) // what ended each member's search
		var wg sync.WaitGroup
		for i, store := range p {
			wg.Go(func() { ended[i] = forward(inner, store, digest, results) })
		}
		done := make(chan struct{})
		go func() {
			wg.Wait()
			close(done)
		}()
		defer func() {
			cancel() // members that still send give up, too
			<-done
		}()

		for running := true; running; {
			select {
			case r := <-results:
				if !yield(r.candidate, r.err) {
					return
				}
			case <-done: // the channel has no buffer: nothing is left in it
				running = false
			}
		}
		own := Candidate{Store: p.String()}
		for _, err := range ended {
			if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
				continue
			}
			yield(own, err)
			return
		}
		if err := ctx.Err(); err != nil {
			yield(own, &StoreError{Store: own.Store, Err: err})
			return
		}
		yield(own, &exhaustedError{own.Store})
	}
}

// forward sends the results of a store to out, and returns the error that ended
// its search.
func forward(ctx context.Context, store Store, digest string, out chan<- result) error {
	for c, err := range candidates(ctx, store, digest) {
		if isStoreError(err) {
			return err
		}
		select {
		case out <- result{c, err}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func list(stores []Store) string {
	if len(stores) == 0 {
		return "no stores"
	}
	names := make([]string, len(stores))
	for i, s := range stores {
		names[i] = describe(s)
	}
	return bounded.Join(names, ", ", maxChain/2)
}
