package upgrade

import (
	"errors"
	"time"

	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	configv1 "github.com/openshift/api/config/v1"
)

// schedule says whether an upgrade may start.
type schedule struct {
	// Ready: its time has come.
	Ready bool
	// Breached: its window is over. It is Ready all the same; whether it still
	// starts is up to SkipBreached.
	Breached bool
	// Wait is how long until its time comes; 0 when it is Ready, and when
	// upgradeAt is not a time.
	Wait time.Duration
}

// whenDue says whether an upgrade that is to start at upgradeAt, in RFC 3339, may
// do so now. It may from the first moment after upgradeAt on; timeOut later its
// window is over. It never may if upgradeAt is not a time, which validation
// reports.
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

// isOverdue says whether an upgrade of type [OSD] that was started, but has not
// commenced on the cluster, is to be given up: timeOut is over since the
// entry's StartTime. An upgrade that has commenced never is, nor is any with a
// timeOut of 0.
func isOverdue(t upgradeconfig.UpgradeType, e upgradeconfig.HistoryEntry, commenced bool, now time.Time, timeOut time.Duration) bool {
	return t == upgradeconfig.OSD && waitsLonger(e, commenced, now, timeOut)
}

// isDelayed says whether the provider is to hear that an upgrade, started but
// not commenced, takes longer than the trigger. With a trigger of 0 it is not.
func isDelayed(e upgradeconfig.HistoryEntry, commenced bool, now time.Time, trigger time.Duration) bool {
	return waitsLonger(e, commenced, now, trigger)
}

func waitsLonger(e upgradeconfig.HistoryEntry, commenced bool, now time.Time, limit time.Duration) bool {
	return !commenced && limit > 0 && e.StartTime != nil && now.After(e.StartTime.Add(limit))
}

// ErrNoTarget says that an UpgradeConfig names neither an image nor a version
// together with a channel.
var ErrNoTarget = errors.New("cannot find the correct upgrade spec source")

// hasCommenced says whether the cluster has been told to update to the desired
// release: spec.desiredUpdate of the ClusterVersion names its image, or in the
// absence of an image its version. A release that is named by neither an image
// nor by version and channel is [ErrNoTarget].
func hasCommenced(desired upgradeconfig.Update, cv *configv1.ClusterVersion) (bool, error) {
	if desired.Image == "" && (desired.Version == "" || desired.Channel == "") {
		return false, ErrNoTarget
	}
	if cv == nil || cv.Spec.DesiredUpdate == nil {
		return false, nil
	}
	if desired.Image != "" {
		return cv.Spec.DesiredUpdate.Image == desired.Image, nil
	}
	return cv.Spec.DesiredUpdate.Version == desired.Version, nil
}

// precedingVersion returns the version that a cluster is upgraded from: the one
// that its ClusterVersion is at or, if that is the desired one already, the
// newest completed one that is another. It is empty if that is not known.
func precedingVersion(desired string, cv *configv1.ClusterVersion) string {
	if cv == nil {
		return ""
	}
	at := cv.Status.Desired.Version
	if at != desired {
		return at
	}
	for _, h := range cv.Status.History {
		if h.State == configv1.CompletedUpdate && h.Version != "" && h.Version != desired {
			return h.Version
		}
	}
	return at
}

// target is the release that is desired, if the cluster can be told to update
// to it: by its image always, by its version if it is among the updates, with
// its image.
func target(desired upgradeconfig.Update, cv *configv1.ClusterVersion) (configv1.Release, bool) {
	if desired.Image != "" {
		return configv1.Release{Version: desired.Version, Image: desired.Image}, true
	}
	o, ok := offered(cv, desired.Version)
	return o.release, ok && o.release.Image != ""
}

// request writes the desired release into spec.desiredUpdate of a
// ClusterVersion, and reports whether it could: an image as it is, a version
// if it is among the updates. An update under a risk is requested together with
// its image, by which its risks are accepted. Other fields of a request that is
// there already stay.
func request(desired upgradeconfig.Update, cv *configv1.ClusterVersion) bool {
	if cv == nil {
		return false
	}
	if _, ok := target(desired, cv); !ok {
		return false
	}
	u := cv.Spec.DesiredUpdate
	if u == nil {
		u = &configv1.Update{}
		cv.Spec.DesiredUpdate = u
	}
	if desired.Image != "" {
		u.Version, u.Image = "", desired.Image
		return true
	}
	u.Version, u.Image = desired.Version, ""
	if o, _ := offered(cv, desired.Version); o.conditional {
		u.Image = o.release.Image
	}
	return true
}

// offer is an update that the ClusterVersion lists.
type offer struct {
	release     configv1.Release
	conditional bool
}

// offered finds a version among the updates of a ClusterVersion.
func offered(cv *configv1.ClusterVersion, version string) (offer, bool) {
	for _, r := range cv.Status.AvailableUpdates {
		if r.Version == version {
			return offer{release: r}, true
		}
	}
	for _, c := range cv.Status.ConditionalUpdates {
		if c.Release.Version == version {
			return offer{release: c.Release, conditional: true}, true
		}
	}
	return offer{}, false
}
