package runlevel

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/internal/redact"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// Tracker is what passes remember from one to the next: since when each
// ClusterOperator is awaited, which deletions were requested, and which
// warnings were given. It lives as long as the program works on one release of one
// cluster. With a new one the clocks start again and requests are forgotten, unless it
// is made from what an earlier one was saved as: a Tracker is JSON. A time that
// is later than now, because a clock was set back, counts as now.
//
// It is safe for concurrent use. The zero value and nil are not usable.
type Tracker struct {
	clock clock.PassiveClock
	hider *redact.Redactor // of the drift's texts

	mu        sync.Mutex
	operators map[string]time.Time
	deletions map[deletionKey]deletion
	warned    map[string]struct{}

	ledger   ledger
	adoption adoption                   // never saved
	lacking  map[manifest.Identity]bool // the same for objects whose definition in the cluster lacks fields
}

// deletion is the state of one object that is to be gone.
type deletion struct {
	requested, verified bool
	overruled           bool // the release that deletes it has applied it since
}

// deletionKey identifies an object to delete.
type deletionKey struct {
	group, kind, namespace, name string
}

// String returns the text of a deletion: kind "ns/name". It does not name the
// group, as the cluster-version operator does not.
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
		hider:     redact.New(nil),
		operators: make(map[string]time.Time),
		deletions: make(map[deletionKey]deletion),
		warned:    make(map[string]struct{}),
		lacking:   make(map[manifest.Identity]bool),
	}
}

// COStart returns since when a ClusterOperator is awaited: when it was first
// applied, in any state, and not found good since. A pass with attempt 0 forgets it.
func (t *Tracker) COStart(name string) (time.Time, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	start, ok := t.operators[name]
	if now := t.clock.Now(); start.After(now) {
		start = now
		t.operators[name] = now
	}
	return start, ok
}

// StartCO notes that a ClusterOperator is awaited from now on, unless it is
// already. [Run] calls it when the node of the operator starts; other drivers must
// do the same.
func (t *Tracker) StartCO(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.operators[name]; !ok {
		t.operators[name] = t.clock.Now()
	}
}

// stopCO notes that a ClusterOperator was found good.
func (t *Tracker) stopCO(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.operators, name)
}

// reset forgets since when ClusterOperators are awaited. [Run] does so at the
// start of each pass with attempt 0. Deletions stay.
func (t *Tracker) reset() {
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
	return slices.Compact(out) // objects of two groups may read the same
}

func (t *Tracker) deletion(key deletionKey) deletion {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.deletions[key]
}

// applied records that an object was applied: its deletion is forgotten or, if the
// same release asks for it, over.
func (t *Tracker) applied(key deletionKey, deletes bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch d := t.deletions[key]; {
	case !d.requested:
	case deletes:
		t.deletions[key] = deletion{requested: true, verified: true, overruled: true}
	default:
		delete(t.deletions, key)
	}
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
		clear(t.warned) // a second report is better than growth
	}
	t.warned[text] = struct{}{}
	return !known
}

// lacksFields reports whether the definition of an object in the cluster lacked
// fields that its manifest names.
func (t *Tracker) lacksFields(id manifest.Identity) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lacking[id]
}

func (t *Tracker) noteLacking(id manifest.Identity) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lacking[id] = true
}

// trackerVersion is the version of the form in which a Tracker is saved.
const trackerVersion = 1

// savedTracker is a Tracker as JSON. Warnings are left out: one that is repeated
// does no harm.
type savedTracker struct {
	Version   int                  `json:"version"`
	Operators map[string]time.Time `json:"operators,omitempty"`
	Deletions []savedDeletion      `json:"deletions,omitempty"`
}

type savedDeletion struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Verified  bool   `json:"verified,omitempty"`
	Overruled bool   `json:"overruled,omitempty"`
}

// MarshalJSON returns what the Tracker remembers, but for warnings.
func (t *Tracker) MarshalJSON() ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	saved := savedTracker{Version: trackerVersion, Operators: t.operators}
	for key, d := range t.deletions {
		if d.requested {
			saved.Deletions = append(saved.Deletions, savedDeletion{key.group, key.kind, key.namespace, key.name, d.verified, d.overruled})
		}
	}
	slices.SortFunc(saved.Deletions, func(a, b savedDeletion) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Group, b.Group))
	})
	return json.Marshal(saved)
}

// UnmarshalJSON replaces what the Tracker, made by [NewTracker], remembers. It
// fails, and changes nothing, for a form of a later version.
func (t *Tracker) UnmarshalJSON(data []byte) error {
	var saved savedTracker
	if err := json.Unmarshal(data, &saved); err != nil {
		return fmt.Errorf("runlevel: a saved tracker: %w", err)
	}
	if saved.Version < 1 || saved.Version > trackerVersion {
		return fmt.Errorf("runlevel: a saved tracker has version %d; this program knows 1 to %d", saved.Version, trackerVersion)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.operators == nil {
		return errors.New("runlevel: a tracker is made by NewTracker before one is restored into it")
	}
	clear(t.operators)
	maps.Copy(t.operators, saved.Operators)
	clear(t.deletions)
	for _, d := range saved.Deletions {
		t.deletions[deletionKey{d.Group, d.Kind, d.Namespace, d.Name}] = deletion{requested: true, verified: d.Verified, overruled: d.Overruled}
	}
	return nil
}
