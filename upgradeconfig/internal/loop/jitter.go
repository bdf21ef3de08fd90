package loop

import (
	"math"
	"math/bits"
	"time"
)

// Jitter spreads a wait evenly over [(1-factor) d, (1+factor) d): over the whole
// nanoseconds from the lower bound rounded down to the upper one rounded up,
// without the latter. rand returns a number in [0, n). A factor counts in
// billionths: one below leaves d as it is, one above 1 counts as 1.
func Jitter(d time.Duration, factor float64, rand func(n int64) int64) time.Duration {
	const one = 1e9
	if d <= 0 || !(factor*one >= 1) {
		return d
	}
	high, low := bits.Mul64(uint64(d), uint64(min(factor, 1)*one))
	quotient, rest := bits.Div64(high, low, one)
	if rest > 0 {
		quotient++
	}
	spread := time.Duration(quotient) // at most d
	width := 2 * spread
	if d > math.MaxInt64-spread {
		width = math.MaxInt64 - (d - spread)
	}
	return d - spread + time.Duration(rand(int64(width)))
}
