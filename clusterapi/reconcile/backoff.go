package reconcile

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	firstBackoff = 10 * time.Millisecond
	maxBackoff   = 30 * time.Second
	// maxConflicts is how many conflicts in a row are tried again at once.
	maxConflicts = 5
	// maxRetryAfter is how long a server that asks to be left alone is.
	maxRetryAfter = 2 * time.Minute
)

// backoff is the delay after so many failures in a row: 10 ms, doubled each
// time, at most 30 s.
func backoff(failures int) time.Duration {
	return min(firstBackoff<<min(failures-1, 12), maxBackoff)
}

// retryAfter is how long the server that gave an error asks to be left alone,
// at most 2 minutes.
func retryAfter(err error) (time.Duration, bool) {
	seconds, ok := apierrors.SuggestsClientDelay(err)
	if !ok || seconds <= 0 {
		return 0, false
	}
	return min(time.Duration(seconds)*time.Second, maxRetryAfter), true
}

// failing is the record of failures in a row. The zero value has none.
type failing struct {
	count       int
	since, last time.Time
	next        time.Duration // how long they last at the next event
	busy        bool          // an event has reported that the server is busy
	absent      bool          // an event has reported that a kind is not served
	reported    bool          // there was an event
}

// fail counts a failure and reports whether it makes an event: the first does,
// and one after 10 seconds, 100 seconds and so on.
func (f *failing) fail(now time.Time) bool {
	f.count++
	f.last = now
	if f.since.After(now) {
		f.since = now // the clock was set back
	}
	switch {
	case f.count == 1:
		f.since, f.next = now, 10*time.Second
	case now.Sub(f.since) < f.next:
		return false
	default:
		for f.next <= now.Sub(f.since) {
			f.next *= 10
		}
	}
	return true
}

// wait returns the delay before the next attempt, and whether it is the server
// that asked for it.
func (f *failing) wait(err error) (delay time.Duration, busy bool) {
	delay = backoff(f.count)
	if asked, ok := retryAfter(err); ok && asked > delay {
		return asked, true
	}
	return delay, false
}
