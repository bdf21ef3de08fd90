package clusterversion

import (
	"context"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Hook does something else around an update: pausing MachineHealthChecks, say. It reads
// the cluster, does what is due, and returns; what it must remember is in the cluster. A
// new process, which remembers nothing, calls it again.
//
// While the newest entry of the history is Partial, an update or an installation,
// BeforeApply is called; no pass over the manifests starts, and none that waits
// continues, before every hook is done. While that entry is Completed, AfterComplete is
// called. Each is called at once when the entry changes so, and at the start of a
// process; as long as it waits or fails, when it asks for that, or after growing delays;
// and when it is done, again after the updater's interval, so that changes in the
// meantime are found. An entry that stays Completed while overrides or capabilities
// change is not an update. Each way out of an update ends at an entry that is Completed:
// of the same release, or of another that was asked for instead.
//
// In the meantime the status is written, and other hooks are called. A hook that waits is
// named in the message of the condition Progressing, one that fails also in Failing, with
// the reason UpdateHookFailed. Both are events.
//
// A call may take a minute; then its context ends, and it must return. It waits by
// returning, or with the function Sleep of package reconcile. An error or a panic is a
// failure. Two calls of one hook never overlap, so a Hook need not be safe for concurrent
// use unless several updaters share it.
type Hook interface {
	// Name distinguishes hooks; administrators read it. It is always the same.
	Name() string
	// BeforeApply makes the cluster ready for what is applied.
	BeforeApply(ctx context.Context, r HookRequest) (HookWait, error)
	// AfterComplete takes back what BeforeApply has done, for whatever release.
	AfterComplete(ctx context.Context, r HookRequest) (HookWait, error)
}

// HookRequest is what a [Hook] is called with.
type HookRequest struct {
	// API is the cluster. A hook uses no other one.
	API clusterapi.ClusterAPI
	// ClusterVersion as it was read; status.history[0] is the update. It must not be
	// changed.
	ClusterVersion *configv1.ClusterVersion
	// Now is the time.
	Now time.Time
}

// HookWait is what a [Hook] that is not done waits for. The zero value: it is done.
type HookWait struct {
	// After is the time until the next call: a second or more, and at most the
	// updater's interval. 0 means 15 seconds.
	After time.Duration
	// Reason is what it waits for.
	Reason string
}

// EverCompleted reports whether a ClusterVersion has ever completed a release: until
// then it is being installed.
func EverCompleted(cv *configv1.ClusterVersion) bool {
	return slices.ContainsFunc(cv.Status.History, func(h configv1.UpdateHistory) bool {
		return h.State == configv1.CompletedUpdate
	})
}
