package upgradeconfig

import (
	"math"
	"math/big"
	"strconv"
	"time"
)

// Backoff says how long to wait after so many failures in a row: Initial after
// the first, and Factor times as long after each further one, up to Max.
type Backoff struct {
	// Initial wait; 0 means 1 minute.
	Initial time.Duration
	// Factor from one wait to the next; 0 means 2. Below 1 it counts as 1.
	Factor float64
	// Max is the longest wait; 0 means 60 minutes.
	Max time.Duration
}

// Next returns the wait after failure number attempt, the first being 1. There
// is no jitter in it.
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

// Jitter spreads a wait evenly over [(1-factor) d, (1+factor) d): over the whole
// nanoseconds from the lower bound rounded down to the upper one rounded up,
// without the latter. rand returns a number in [0, n). A factor that is not
// positive leaves d as it is; above 1 it counts as 1.
func Jitter(d time.Duration, factor float64, rand func(n int64) int64) time.Duration {
	if d <= 0 || !(factor > 0) {
		return d
	}
	low, high := jitterBounds(d, min(factor, 1))
	return low + time.Duration(rand(int64(high-low)))
}

// jitterBounds computes exactly: 0.1 is meant to be a tenth, which a float64 is
// not, and one rounding error would move a bound.
func jitterBounds(d time.Duration, factor float64) (low, high time.Duration) {
	f, ok := new(big.Rat).SetString(strconv.FormatFloat(factor, 'g', -1, 64))
	if !ok {
		return d, d + 1 // not reached: factor is in (0, 1]
	}
	wait := new(big.Rat).SetInt64(int64(d))
	spread := new(big.Rat).Mul(wait, f)
	l := new(big.Rat).Sub(wait, spread)
	h := new(big.Rat).Add(wait, spread)
	down := new(big.Int).Quo(l.Num(), l.Denom())
	up := new(big.Int).Add(h.Num(), h.Denom())
	up.Sub(up, big.NewInt(1)).Quo(up, h.Denom())
	if !up.IsInt64() {
		return time.Duration(down.Int64()), math.MaxInt64
	}
	return time.Duration(down.Int64()), time.Duration(up.Int64())
}
