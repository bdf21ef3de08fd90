package runlevel

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Tracker is what passes remember from one to the next: since when each
// ClusterOperator is awaited, which deletions were requested, and which
// warnings were given. It lives as long as the program works on one cluster;
// the clocks start anew and requests are forgotten with a new one.
//
// It is safe for concurrent use. The zero value and nil are not usable.
type Tracker struct {
	clock clock.PassiveClock

	mu        sync.Mutex
	operators map[string]time.Time
	deletions map[deletionKey]deletion
	warned    map[string]struct{}
}

// deletion is the state of one object that is to be gone.
type deletion struct {
	requested, verified bool
}

// deletionKey names an object as deletions are told apart: by kind, not by
// group, like the cluster-version operator does.
type deletionKey struct {
	kind, namespace, name string
}

// String returns the text of a deletion: kind "ns/name".
func (k deletionKey) String() string {
	if k.namespace == "" {
		return fmt.Sprintf("%s %q", k.kind, k.name)
	}
	return fmt.Sprintf("%s %q", k.kind, k.namespace+"/"+k.name)
}

// NewTracker returns an empty Tracker. A nil clock is the real one.
func NewTracker(c clock.PassiveClock) *Tracker {
	if c == nil {
		c = clock.RealClock{}
	}
	return &Tracker{
		clock:     c,
		operators: make(map[string]time.Time),
		deletions: make(map[deletionKey]deletion),
		warned:    make(map[string]struct{}),
	}
}

// COStart returns since when a ClusterOperator is awaited: when it was first
// applied, in any state, and not found good since. [Reset] forgets it.
//
// [Reset]: Tracker.Reset
func (t *Tracker) COStart(name string) (time.Time, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	start, ok := t.operators[name]
	return start, ok
}

// StartCO notes that a ClusterOperator is awaited from now on, unless it is
// already. [Run] calls it when the node of the operator starts; a driver of
// one's own does likewise.
func (t *Tracker) StartCO(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.operators[name]; !ok {
		t.operators[name] = t.clock.Now()
	}
}

// StopCO notes that a ClusterOperator was found good.
func (t *Tracker) StopCO(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.operators, name)
}

// Reset forgets since when ClusterOperators are awaited. [Run] does so at the
// start of each pass with attempt 0. Deletions stay.
func (t *Tracker) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.operators)
}

// PendingDeletions returns the objects whose deletion was requested and that
// have not been found gone, as texts like `service "ns/name"`, sorted. While
// there are any, the cluster must not be updated to another minor release.
func (t *Tracker) PendingDeletions() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []string
	for key, d := range t.deletions {
		if d.requested && !d.verified {
			out = append(out, key.String())
		}
	}
	slices.Sort(out)
	return out
}

func (t *Tracker) deletion(key deletionKey) deletion {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.deletions[key]
}

func (t *Tracker) setDeletion(key deletionKey, d deletion) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.deletions[key] = d
}

// warnOnce reports whether a warning is given for the first time.
func (t *Tracker) warnOnce(text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, known := t.warned[text]
	if len(t.warned) >= maxWarned && !known {
		clear(t.warned) // to be told once more is better than to grow
	}
	t.warned[text] = struct{}{}
	return !known
}
