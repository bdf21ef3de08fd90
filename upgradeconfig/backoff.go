package upgradeconfig

import (
	"math"
	"time"
)

// Backoff describes how long to wait after a number of failures in a row: Initial
// after the first, and Factor times as long after each further one, up to Max.
type Backoff struct {
	// Initial wait; 0 means 1 minute.
	Initial time.Duration
	// Factor from one wait to the next; 0 means 2. Below 1 it counts as 1.
	Factor float64
	// Max is the longest wait; 0 means 60 minutes.
	Max time.Duration
}

// Next returns the wait after failure number attempt, the first being 1,
// without jitter.
func (b Backoff) Next(attempt int) time.Duration {
	b = b.withDefaults()
	wait := float64(b.Initial) * math.Pow(b.Factor, float64(max(attempt, 1)-1))
	if wait >= float64(b.Max) { // +Inf too
		return b.Max
	}
	return time.Duration(wait)
}

func (b Backoff) withDefaults() Backoff {
	if b.Initial <= 0 {
		b.Initial = time.Minute
	}
	if b.Factor == 0 || math.IsNaN(b.Factor) {
		b.Factor = 2
	}
	b.Factor = max(b.Factor, 1)
	if b.Max <= 0 {
		b.Max = 60 * time.Minute
	}
	return b
}
