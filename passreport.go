package clusterupdate

import (
	"cmp"
	"time"

	"github.com/clusterupdate/clusterupdate/runlevel"
)

// passReport is what a worker tells about itself: the state of a pass, seen from
// outside.
type passReport struct {
	// Failure is the trouble of the last pass, nil when there is none.
	Failure error
	// Done counts the tasks that succeeded in this pass, Total all of them.
	// Skipped ones are never done.
	Done, Total int
	// Completed counts the good passes since the last change or failure. It
	// is 0 in every report but the last of a good pass.
	Completed int
	// Reconciling says that the pass keeps a release; Initial that none was
	// ever completed.
	Reconciling, Initial bool
	// Version and Image are the release at work.
	Version, Image string
	// Hash is the hash of its payload.
	Hash string
	// LastProgress is when it last got further; zero when never.
	LastProgress time.Time
}

// NextReport decides what becomes of a new report in a pass that began with start.
//
// It is dropped (ok is false) when there was trouble at the start, it tells
// of none and has not got further about the same image: earlier trouble stays
// visible until the pass gets past it. Otherwise it is returned with
// LastProgress set: now where more is done or completed than at the start, or
// the image has changed without a failure, else as it was.
func nextReport(start, next passReport, now time.Time) (report passReport, ok bool) {
	change := compareProgress(next, start)
	if start.Failure != nil && next.Failure == nil && start.Image == next.Image && change < 0 {
		return passReport{}, false
	}
	moved := start.Image != next.Image && next.Failure == nil
	if change > 0 || next.Completed > start.Completed || moved {
		next.LastProgress = now
	} else if next.LastProgress.IsZero() {
		next.LastProgress = start.LastProgress
	}
	return next, true
}

// compareProgress compares done/total of two reports, exactly. A report that
// does not know its total has done nothing.
func compareProgress(a, b passReport) int {
	return cmp.Compare(a.Done*max(b.Total, 1), b.Done*max(a.Total, 1))
}

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
