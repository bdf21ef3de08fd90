package clusterupdate

import (
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// Drifts returns what passes over a cluster that is at its release have found to be
// not as it was applied, and who did it: the newest of each object, at most 100,
// the oldest first. Each was reported as a Task event with a step of type Drifted.
// It may be called at any time.
func (u *Updater) Drifts() []runlevel.Drift {
	u.mu.Lock()
	tracker := u.tracker
	u.mu.Unlock()
	if tracker == nil {
		return nil
	}
	return tracker.Drifts()
}

// payloadWatches are the watches of what is applied, while the cluster is at its
// release: a pass makes no call for what they show to be as it was applied. It is
// the decider's own, but for its functions that the driver calls.
type payloadWatches struct {
	tracker *runlevel.Tracker
	of      *syncWork // whose they are; nil if absent
	list    []reconcile.Watch
	series  *watchSeries
}

// watchSeries is what lasts until the watches end. Events that come afterwards
// change nothing.
type watchSeries struct {
	mu    sync.Mutex
	ended bool
}

// want returns the watches for the objects of work; none for nil.
func (w *payloadWatches) want(work *syncWork) []reconcile.Watch {
	switch {
	case work == nil && w.series == nil:
		return nil
	case work == nil:
		w.series.mu.Lock()
		w.series.ended = true
		w.tracker.Unwatched()
		w.series.mu.Unlock()
		*w = payloadWatches{tracker: w.tracker}
		return nil
	case work == w.of:
		return w.list
	}
	if w.series == nil {
		w.series = &watchSeries{}
	}
	w.of, w.list = work, nil
	for _, kind := range w.tracker.Watch(work.loaded.payload.Tasks(), work.filter()) {
		w.list = append(w.list, w.watch(kind))
	}
	return w.list
}

func (w *payloadWatches) watch(kind runlevel.WatchedKind) reconcile.Watch {
	tracker, series := w.tracker, w.series
	var trim func(*unstructured.Unstructured) *unstructured.Unstructured
	if !kind.Whole {
		trim = kind.Trim
	}
	return reconcile.Watch{
		GVK: kind.GVK, Options: clusterapi.ListOptions{Namespace: kind.Namespace}, Trim: trim,
		Cache: func(_ time.Time, old, new *clusterapi.Object) {
			series.mu.Lock()
			defer series.mu.Unlock()
			if !series.ended {
				tracker.Observe(old, new)
			}
		},
	}
}

// watched is whose objects are to be watched: nobody's unless the cluster is at its
// release and can be watched. To list every kind again and again would cost more
// than to apply.
func (a *applier) watched(status *configv1.ClusterVersionStatus) *syncWork {
	_, can := a.updater.o.API.(clusterapi.Watcher)
	if !can || a.lists || a.process.o.ApplyAlways || a.work.state(status, a.work.report.Image) != runlevel.Reconciling {
		return nil
	}
	return a.work.sync
}
