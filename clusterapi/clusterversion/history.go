package clusterversion

import (
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

const maxHistory = 100 // entries

// HistoryChange is what a pass knows about the release that the cluster
// reconciles.
type HistoryChange struct {
	Release       configv1.Release
	Completed     bool   // its manifests have been applied to the end
	Verified      bool   // its signature was verified
	AcceptedRisks string // why it was accepted in spite of something; empty keeps what is there
	Now           metav1.Time
}

// MergeHistory brings the history (newest first) in step with the release that
// the cluster reconciles and returns the new one; history itself is unchanged.
//
// The newest entry is kept when it is about the same release, and becomes
// Completed when c says so; it never goes back to Partial. For another release
// the newest entry is closed (an abandoned update stays Partial, with a
// completion time) and a new one is put in front. Entries without a state are
// Partial. A release without an image
// changes nothing. The result is pruned to 100 entries (see [pruneHistory]).
// AcceptedRisks of more than 32 KiB are cut.
func MergeHistory(history []configv1.UpdateHistory, c HistoryChange) []configv1.UpdateHistory {
	out := make([]configv1.UpdateHistory, 0, len(history)+1)
	for i := range history {
		out = append(out, *history[i].DeepCopy())
		if out[i].State == "" {
			out[i].State = configv1.PartialUpdate
		}
	}
	if c.Release.Image == "" {
		return out
	}
	if len(out) == 0 || !SameRelease(&out[0], c.Release) {
		if len(out) > 0 && out[0].CompletionTime == nil {
			out[0].CompletionTime = c.Now.DeepCopy()
		}
		out = append([]configv1.UpdateHistory{{
			State:       configv1.PartialUpdate,
			StartedTime: c.Now,
			Version:     c.Release.Version,
			Image:       c.Release.Image,
		}}, out...)
	}
	newest := &out[0]
	if newest.Version == "" {
		newest.Version = c.Release.Version
	}
	if newest.Image == "" {
		newest.Image = c.Release.Image
	}
	if c.Completed {
		newest.State = configv1.CompletedUpdate
		if newest.CompletionTime == nil {
			newest.CompletionTime = c.Now.DeepCopy()
		}
	}
	if c.AcceptedRisks != "" {
		newest.AcceptedRisks = bounded.Text(c.AcceptedRisks, MaxMessage)
	}
	newest.Verified = newest.Verified || c.Verified
	return pruneHistory(out, maxHistory)
}

// SameRelease reports whether an entry is about a release. What one side does
// not know cannot tell them apart.
func SameRelease(h *configv1.UpdateHistory, r configv1.Release) bool {
	if h.Image == r.Image {
		return r.Version == "" || h.Version == "" || h.Version == r.Version
	}
	return h.Image == "" && h.Version != "" && h.Version == r.Version
}

// pruneHistory removes entries from a history, newest first, until it has limit of
// them: those that say least about where the cluster has been. It keeps longest the
// newest five, the newest that completed, the very first, and those where the cluster
// changed its minor version. It changes history.
func pruneHistory(history []configv1.UpdateHistory, limit int) []configv1.UpdateHistory {
	for len(history) > limit {
		least := leastEntry(history, limit)
		history = slices.Delete(history, least, least+1)
	}
	return history
}

// leastEntry is the index of the entry to remove first.
func leastEntry(history []configv1.UpdateHistory, limit int) int {
	newestCompleted := -1
	newer := make([]int, len(history)) // next newer Completed entry, or -1
	for i, last := 0, -1; i < len(history); i++ {
		newer[i] = last
		if history[i].State == configv1.CompletedUpdate {
			if newestCompleted < 0 {
				newestCompleted = i
			}
			last = i
		}
	}
	lowest, lowestRank := 0, 0
	older := -1 // next older Completed entry
	for i := len(history) - 1; i >= 0; i-- {
		weight := 0
		switch {
		case i == limit || i < 5 || i == newestCompleted:
			weight = 1000
		case history[i].State == configv1.CompletedUpdate:
			if newer[i] < 0 || older < 0 ||
				minorOf(history[i]) != minorOf(history[newer[i]]) || minorOf(history[i]) != minorOf(history[older]) {
				weight = 30
			}
		case newer[i] < 0 || older < 0:
		case minorOf(history[newer[i]]) != minorOf(history[older]):
			weight = 20
		case patchOf(history[newer[i]]) != patchOf(history[older]):
			weight = -20
		}
		// In hundredths, so that ties are exact.
		if rank := 100*weight - 101*i; i == len(history)-1 || rank <= lowestRank {
			lowest, lowestRank = i, rank
		}
		if history[i].State == configv1.CompletedUpdate {
			older = i
		}
	}
	return lowest
}

func minorOf(h configv1.UpdateHistory) string { return versionPart(h.Version, 1) }
func patchOf(h configv1.UpdateHistory) string { return versionPart(h.Version, 2) }

// versionPart returns the n-th dot-separated part of a version's text, so that
// a candidate and its release differ in the third.
func versionPart(version string, n int) string {
	parts := strings.SplitN(version, ".", 4)
	if n >= len(parts) {
		return ""
	}
	return parts[n]
}
