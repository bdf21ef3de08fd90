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
