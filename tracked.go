package clusterupdate

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/runlevel"
)

// trackedVersion is the version of the form in which clocks are saved.
const trackedVersion = 1

// tracked is what [Updater.Tracker] saves: the clocks of an update, and which
// update that is.
type tracked struct {
	Version int             `json:"version"`
	UID     types.UID       `json:"uid,omitempty"`
	Image   string          `json:"image,omitempty"`
	Started int64           `json:"started,omitempty"` // in seconds
	Tracker json.RawMessage `json:"tracker"`
}

func (t *tracked) entry() entry { return entry{t.UID, t.Image, t.Started} }

// Tracker returns, as JSON, since when each ClusterOperator is awaited and which
// deletions are pending, with the update that this is about: what is not in the
// cluster, and would start again with a new process. Give it to that one as
// [Options].Tracker. It may be called at any time; before the first pass begins it
// is what Options.Tracker was. Its error, which nothing is known to cause, is one
// of encoding.
func (u *Updater) Tracker() ([]byte, error) {
	u.mu.Lock()
	e, tracker := u.entry, u.tracker
	u.mu.Unlock()
	if tracker == nil {
		return u.o.Tracker, nil
	}
	data, err := json.Marshal(tracker)
	if err != nil {
		return nil, err
	}
	return json.Marshal(tracked{Version: trackedVersion, UID: e.uid, Image: e.image, Started: e.started, Tracker: data})
}

// readTracked reads what was saved; nil is nothing.
func readTracked(data []byte) (t tracked, err error) {
	if len(data) == 0 {
		return t, nil
	}
	if err := json.Unmarshal(data, &t); err != nil {
		return t, fmt.Errorf("clusterupdate: Options.Tracker: %w", err)
	}
	if t.Version < 1 || t.Version > trackedVersion {
		return t, fmt.Errorf("clusterupdate: Options.Tracker has version %d; this program knows 1 to %d", t.Version, trackedVersion)
	}
	if err := json.Unmarshal(t.Tracker, runlevel.NewTracker(nil)); err != nil {
		return t, fmt.Errorf("clusterupdate: Options.Tracker: %w", err)
	}
	return t, nil
}

// restore goes on with the clocks that were saved, if they are those of an entry of
// the history.
func (a *applier) restore(e entry) {
	if a.saved.Version > 0 && a.saved.entry() == e {
		a.process.log("the clocks of operators start again", json.Unmarshal(a.saved.Tracker, a.tracker))
	}
}

// startClocks takes note that a pass has begun, which started the clocks, over an
// entry of the history. The
// first one of a process goes on with those that were saved.
func (a *applier) startClocks(e entry) {
	a.restore(e)
	a.saved = tracked{}
	a.updater.mu.Lock()
	defer a.updater.mu.Unlock()
	a.updater.entry, a.updater.tracker = e, a.tracker
}
