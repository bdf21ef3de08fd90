package view

import (
	"time"

	configv1 "github.com/openshift/api/config/v1"
)

// baseline is how long an update is taken to last without a better idea, and
// settled the time of progress from which on it is extrapolated.
const (
	baseline = time.Hour
	settled  = 5 * time.Minute
	coarse   = 10 * time.Minute // durations above are shown in minutes
)

// forever bounds what times that cannot be right lead to, in seconds.
const forever = 100 * 365 * 24 * 60 * 60

// estimate is what is thought of the rest of a control plane's update.
type estimate struct {
	remaining time.Duration // negative: late by so much
	total     time.Duration // of the whole update, whole minutes
}

// estimateRest extrapolates an update of the control plane: from the share of
// operators that are updated and when the last of them made progress. elapsed is
// the time that it has taken; progress that until the last progress.
func estimateRest(elapsed, progress, usual time.Duration, share float64) estimate {
	if share >= 1 {
		return estimate{total: elapsed.Truncate(time.Minute)}
	}
	total := usual.Seconds()
	if w := timeShare(share); share > 0 && w > 0 && progress > settled {
		total = progress.Seconds() / w
	}
	rest := total - elapsed.Seconds()
	if rest >= 0 {
		rest *= 1.2
	} else {
		rest /= 1.2
	}
	remaining := time.Duration(max(-forever, min(rest, forever))) * time.Second
	if remaining > coarse {
		remaining = remaining.Round(time.Minute)
	}
	return estimate{remaining: remaining, total: (elapsed + remaining).Truncate(time.Minute)}
}

// timeShare is the share of its time that an update has spent when a share of
// its operators is updated. It was fitted to recorded updates of one kind of
// cluster, piece by piece, and jumps where the pieces meet.
func timeShare(c float64) float64 {
	switch {
	case c < 0.25:
		return -0.03078788 + c*2.62886 - c*c*3.823954
	case c < 0.9:
		return 0.1851215 + c*1.64994 - c*c*4.676898 + c*c*c*5.451824 - c*c*c*c*2.125286
	}
	return 25053.32 - c*107394.3 + c*c*172527.2 - c*c*c*123107 + c*c*c*c*32921.81
}

// usualDuration is how long the newest completed update of the cluster took, not
// counting the installation and the update that runs.
func usualDuration(history []configv1.UpdateHistory) time.Duration {
	if len(history) < 3 {
		return baseline
	}
	for _, h := range history[1 : len(history)-1] {
		if completed(h) {
			return h.CompletionTime.Sub(h.StartedTime.Time)
		}
	}
	return baseline
}

// completed reports that an update ended well, and when.
func completed(h configv1.UpdateHistory) bool {
	return h.State == configv1.CompletedUpdate && h.CompletionTime != nil
}

// rounded is a duration as it is shown: in minutes if it is long.
func rounded(d time.Duration) time.Duration {
	if d > coarse {
		return d.Round(time.Minute)
	}
	return d.Round(time.Second)
}
