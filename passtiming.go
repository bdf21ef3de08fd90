package clusterupdate

import (
	"time"

	"github.com/clusterupdate/clusterupdate/runlevel"
)

// The times of the cluster-version operator's worker, as pure functions: the
// caller draws the random numbers, each in [0, 1).

// passLimit returns the time that one pass may take: the interval while
// Initializing, otherwise twice that.
func passLimit(state runlevel.State, interval time.Duration) time.Duration {
	if state == runlevel.Initializing {
		return interval
	}
	return 2 * interval
}

// passDelay returns the time until the next pass, given how many passes have
// failed in a row. After a success (0) that is the interval; after failures
// an eighth, a quarter and half of it, then the whole, each lengthened by up
// to a fifth.
func passDelay(failures int, interval time.Duration, random float64) time.Duration {
	switch {
	case failures <= 0:
		return interval
	case failures <= 3:
		interval /= 1 << (4 - failures)
	}
	return spread(interval, random/5)
}

func spread(d time.Duration, part float64) time.Duration {
	return d + time.Duration(float64(d)*part)
}
