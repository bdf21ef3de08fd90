package runlevel

import (
	"errors"
	"iter"
	"time"
)

// Backoff describes how often a task is tried in a pass, and how long to wait
// between two attempts. There is no jitter.
type Backoff struct {
	// Base is the wait after the first attempt.
	Base time.Duration
	// Factor multiplies the wait from one attempt to the next; 0 means 1.
	Factor float64
	// Steps is the largest number of attempts. Less than 1 is an error of the
	// pass.
	Steps int
	// Cap ends the series: the attempt that a longer wait would follow is the
	// last one. 0 means none.
	Cap time.Duration
}

// backoffFor returns the cluster-version operator's back-off for a state:
// attempts at 0, 1, 3 and 7 seconds while Initializing, at 0 and 10 seconds
// otherwise.
func backoffFor(state State) Backoff {
	if state == Initializing {
		return Backoff{Base: time.Second, Factor: 2, Steps: 4, Cap: 15 * time.Second}
	}
	return Backoff{Base: 10 * time.Second, Factor: 1.3, Steps: 3, Cap: 15 * time.Second}
}

var errNoSteps = errors.New("SyncWorker requires at least one backoff step to apply any manifests")

// delays yields the waits between attempts: one fewer than there are
// attempts. Nothing is waited for after the last one.
func (b Backoff) delays() iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		wait := b.Base
		for steps := b.Steps - 1; steps > 0; steps-- {
			next := wait
			if b.Factor != 0 {
				next = time.Duration(float64(wait) * b.Factor)
			}
			if b.Cap > 0 && next > b.Cap {
				return
			}
			if !yield(wait) {
				return
			}
			wait = next
		}
	}
}
