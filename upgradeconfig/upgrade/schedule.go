package upgrade

import (
	"time"

	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

// schedule reports whether an upgrade may start.
type schedule struct {
	// Ready: its time has come.
	Ready bool
	// Breached: its window is over. It is still Ready; whether it still
	// starts is up to SkipBreached.
	Breached bool
	// Wait is how long until its time comes; 0 when it is Ready, and when
	// upgradeAt is not a time.
	Wait time.Duration
}

// whenDue reports whether an upgrade that is to start at upgradeAt, in RFC 3339,
// may do so now: after upgradeAt. Its window is over timeOut later. If upgradeAt is
// not a time, which validation reports, it never may.
func whenDue(upgradeAt string, now time.Time, timeOut time.Duration) schedule {
	at, err := time.Parse(time.RFC3339, upgradeAt)
	switch {
	case err != nil:
		return schedule{}
	case !now.After(at):
		return schedule{Wait: at.Sub(now)}
	}
	return schedule{Ready: true, Breached: !now.Before(at.Add(timeOut))}
}

// isOverdue reports whether an upgrade of type OSD fails that was started, but has
// not commenced on the cluster within timeOut of the entry's StartTime. With a
// timeOut of 0 it does not.
func isOverdue(t upgradeconfig.UpgradeType, e upgradeconfig.HistoryEntry, commenced bool, now time.Time, timeOut time.Duration) bool {
	return t == upgradeconfig.OSD && waitsLonger(e, commenced, now, timeOut)
}

// isDelayed reports whether the provider hears that an upgrade, started but not
// commenced, takes longer than the trigger. With a trigger of 0 it does not.
func isDelayed(e upgradeconfig.HistoryEntry, commenced bool, now time.Time, trigger time.Duration) bool {
	return waitsLonger(e, commenced, now, trigger)
}

func waitsLonger(e upgradeconfig.HistoryEntry, commenced bool, now time.Time, limit time.Duration) bool {
	return !commenced && limit > 0 && e.StartTime != nil && now.After(e.StartTime.Add(limit))
}
