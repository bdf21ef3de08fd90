package rollout

import "time"

// Delays are the waits and limits of a [Rollout]. A zero field means its
// default, which is what the machine-config controller does.
type Delays struct {
	PoolQueue time.Duration // from an event to the sync of its pool; default 5 s
	Resync    time.Duration // between syncs of all pools without events; default 30 min
	Poll      time.Duration // between lists if the API cannot watch; default 5 s
	RetryMin  time.Duration // after a first error, doubled each time; default 5 ms
	RetryMax  time.Duration // after 15 errors in a row; default 1 min
	Stall     time.Duration // without a change of phase in a pool until it is reported; default 1 h

	DrainAttempt   time.Duration // limit of one attempt; default 90 s
	DrainRetry     time.Duration // after a failed attempt; default 1 min
	DrainSlowAfter time.Duration // failing for so long, retries slow down; default 10 min
	DrainSlowRetry time.Duration // after a failed attempt then; default 5 min
	DrainFailed    time.Duration // failing for so long, it is reported as failed; default 1 h
	EvictionRetry  time.Duration // after an eviction that was refused for now; default 5 s
	PodPoll        time.Duration // between looks at an evicted pod; default 1 s
	CordonRetry    time.Duration // after a first failed cordon, doubled each time, 5 tries; default 10 s
}

// isDue reports whether the time to start an attempt at a drain has come. A time that
// is further off than any retry is due: the clock was set back.
func (d Delays) isDue(at, now time.Time) bool {
	left := at.Sub(now)
	return left <= 0 || left > max(d.DrainRetry, d.DrainSlowRetry, d.RetryMax, d.CordonRetry<<5)
}

func (d Delays) withDefaults() Delays {
	def := func(v *time.Duration, to time.Duration) {
		if *v == 0 {
			*v = to
		}
	}
	def(&d.PoolQueue, 5*time.Second)
	def(&d.Resync, 30*time.Minute)
	def(&d.Poll, 5*time.Second)
	def(&d.RetryMin, 5*time.Millisecond)
	def(&d.RetryMax, time.Minute)
	def(&d.Stall, time.Hour)
	def(&d.DrainAttempt, 90*time.Second)
	def(&d.DrainRetry, time.Minute)
	def(&d.DrainSlowAfter, 10*time.Minute)
	def(&d.DrainSlowRetry, 5*time.Minute)
	def(&d.DrainFailed, time.Hour)
	def(&d.EvictionRetry, 5*time.Second)
	def(&d.PodPoll, time.Second)
	def(&d.CordonRetry, 10*time.Second)
	return d
}
