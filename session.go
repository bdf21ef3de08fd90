package clusterupdate

import (
	"reflect"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// session is what an Updater remembers between its decisions. It is a cache:
// nothing of it is needed to go on after a restart, and it is about one entry
// of the history and one request. Where either has moved, for whatever reason, it
// is dropped before anything else happens.
type session struct {
	entry  entry  // as last read or written
	target target // what was last asked for

	ran      bool    // a release was completed before: what is applied is not an installation
	load     attempt // at the wanted release
	fallback attempt // at what the cluster has been at, where that is refused
	accepted string  // what ReleaseAccepted says of sync
	asked    *configv1.Update

	sync        *syncWork // what passes apply; nil: nothing is loaded yet
	pass        bool      // one is under way
	waits       bool      // all that is left of it
	begun       time.Time // of the last pass, at its first manifest
	changed     bool      // sync, since the last pass that got through
	report      passReport
	passErr     error     // of the last pass
	toldFailure string    // of that, last
	attempt     int       // of the pass in its state
	failures    int       // passes failed in a row
	nextPass    time.Time // zero: at once

	hooks   []hookAnswer // what the hooks of Options said, in their order
	applied *loaded      // of which a pass has begun
	checks  recheck      // before that
}

// entry identifies the newest entry of a ClusterVersion's history.
type entry struct {
	uid     types.UID
	image   string
	started int64 // in seconds, as it is stored
}

func entryOf(cv *configv1.ClusterVersion) entry {
	e := entry{uid: cv.UID}
	if len(cv.Status.History) > 0 {
		h := cv.Status.History[0]
		e.image, e.started = h.Image, h.StartedTime.Unix()
	}
	return e
}

// target is a release that is to be applied, and how. Loads of the same target have
// the same result.
type target struct {
	origin         origin
	image, version string
	force          bool
	gates          string
}

// attemptKey is a target and the specification that it came from. Attempts at one back
// off; another specification is tried at once.
type attemptKey struct {
	target
	uid        types.UID
	generation int64
}

// attempt is how the last load of a release ended.
type attempt struct {
	key      attemptKey
	out      *loaded // not applied yet; nil: it failed
	force    bool
	err      *LoadError
	failures int // in a row
	retry    time.Time
}

// syncWork is what passes apply.
type syncWork struct {
	*loaded
	owner     types.UID // of the ClusterVersion
	force     bool
	overrides []configv1.ComponentOverride
	caps      manifest.Capabilities
	found     bool // operators report it already: it becomes a Completed entry
}

// same reports whether nothing has changed that a pass would have to begin
// again for.
func (w *syncWork) same(o *syncWork) bool {
	return w.loaded == o.loaded && w.owner == o.owner && w.force == o.force &&
		reflect.DeepEqual(w.overrides, o.overrides) && w.caps.Equal(o.caps)
}

func (w *syncWork) filter() manifest.Filter {
	return manifest.Filter{Gates: w.gates.enabled, Capabilities: &w.caps, Overrides: w.overrides}
}

// follow drops what a session knows about another entry of the history: the
// release that passes apply, their progress and their waits. It reports whether
// it did.
func (s *session) follow(cv *configv1.ClusterVersion) bool {
	e := entryOf(cv)
	if s.entry == e {
		return false
	}
	known := s.entry != entry{}
	*s = session{entry: e, asked: s.asked, ran: s.ran}
	return known
}

// loadedVersion is the version of an image that was loaded, empty if that is not
// known.
func (s *session) loadedVersion(image string) string {
	for _, a := range []*attempt{&s.load, &s.fallback} {
		if a.out != nil && a.out.release.Image == image {
			return a.out.release.Version
		}
	}
	return ""
}

// ask drops what a session knows about another request: a release that was
// loaded for it, a refusal, and the waits after it.
func (s *session) ask(want, base target) {
	if s.load.key.target != want {
		s.load = attempt{}
	}
	if s.fallback.key.target != base {
		s.fallback = attempt{}
	}
	if s.sync != nil && s.target.image != "" && s.target.image != want.image && s.sync.release.Image == want.image {
		s.accepted = "Payload loaded " + quoted(s.sync.release) // a request that was withdrawn is history
	}
	s.target = want
}

// adopt makes w what passes apply; message is what ReleaseAccepted says of it.
// Other work than before begins with a pass of its own.
func (s *session) adopt(w *syncWork, status *configv1.ClusterVersionStatus, message string) {
	if s.report.Image != w.release.Image {
		s.report = passReport{Version: w.release.Version, Image: w.release.Image, LastProgress: s.report.LastProgress}
	}
	if s.sync == nil || s.sync.loaded != w.loaded {
		s.accepted, s.toldFailure = message, ""
	}
	if s.load.out == w.loaded {
		s.load = attempt{}
	}
	if s.fallback.out == w.loaded {
		s.fallback = attempt{}
	}
	s.changed = s.sync != nil
	state := s.state(status, w.release.Image)
	if w.found {
		state = runlevel.Reconciling
	}
	s.report.Completed, s.report.Reconciling, s.report.Initial = 0, state == runlevel.Reconciling, state == runlevel.Initializing
	s.sync, s.pass, s.waits, s.passErr, s.attempt, s.failures, s.nextPass = w, false, false, nil, 0, 0, time.Time{}
}

// state is what a pass over a release is for, as the object says it. Work that
// changed is brought to the cluster as carefully as an update.
func (s *session) state(status *configv1.ClusterVersionStatus, image string) runlevel.State {
	switch h := status.History; {
	case !s.ran:
		return runlevel.Initializing
	case len(h) > 0 && h[0].State == configv1.CompletedUpdate && h[0].Image == image && !s.changed:
		return runlevel.Reconciling
	}
	return runlevel.Updating
}
