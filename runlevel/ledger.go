package runlevel

import (
	"context"
	"reflect"
	"strconv"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/objects"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// trustFor is how long passes rely on watches before one applies everything again:
// a watch may break unnoticed.
const trustFor = time.Hour

// ledger is what passes have applied, and what watches have shown since. It is
// a part of the [Tracker], and guarded by its lock. It is a cache: without what
// is in it, everything is applied.
type ledger struct {
	entries map[manifest.Identity]*ledgerEntry // nil: nothing is watched
	full    time.Time                          // of the last pass that applied everything
	drifts  map[manifest.Identity]Drift
}

// ledgerEntry is one object of the payload, or of the cluster's configuration.
type ledgerEntry struct {
	applied *record   // nil: not applied since watches began
	seen    *sighting // nil: never shown
	drift   string    // the state whose drift was reported last
}

// record is the state of an object after it was applied.
type record struct {
	mode   Mode
	wanted *unstructured.Unstructured // what was sent; shared
	state  objectState
}

// sighting is the latest state of an object that a watch has shown.
type sighting struct {
	object *clusterapi.Object // of a deleted one, its last state
	state  objectState
	gone   bool
}

// objectState identifies what an object holds, but for its status.
type objectState struct {
	uid             types.UID
	version, digest string
}

func stateOf(u *unstructured.Unstructured) objectState {
	digest, ok := u.Object[fieldDigest].(string)
	if !ok {
		digest = contentDigest(u)
	}
	return objectState{u.GetUID(), u.GetResourceVersion(), digest}
}

// Observe records what a watch shows of an object, whole or as [WatchedKind.Trim]
// leaves it: its new state, or nil and its last state if it was deleted. It ignores
// states older than what is known, and objects that [Tracker.Watch] did not ask for.
// The states must not be changed afterwards.
func (t *Tracker) Observe(last, new *clusterapi.Object) {
	next := &sighting{object: new}
	if new == nil {
		next = &sighting{object: last, gone: true}
	}
	if next.object == nil {
		return
	}
	u := next.object.Unstructured()
	id := identityOf(u)
	if _, watched := t.entry(id); !watched {
		return
	}
	next.state = stateOf(u)
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.ledger.entries[id]; e != nil && next.follows(e.seen) {
		e.seen = next
	}
}

// follows reports whether a sighting is not older than another. A deleted object
// does not return: one of its name has another UID.
func (s *sighting) follows(last *sighting) bool {
	if last == nil {
		return true
	}
	order, known := compareVersions(s.state.version, last.state.version)
	if s.state.uid == last.state.uid {
		return s.gone || !last.gone && (!known || order >= 0)
	}
	return !known || order > 0
}

// compareVersions compares two resourceVersions as numbers. known is false if one
// is not a number.
func compareVersions(a, b string) (order int, known bool) {
	if a == b {
		return 0, a != ""
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return order, err == nil
}

// Unwatched ends what [Tracker.Watch] began: passes apply everything until it is
// called again. Drifts stay known.
func (t *Tracker) Unwatched() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ledger = ledger{drifts: t.ledger.drifts}
}

// begin keeps entries for these objects and for the cluster's configuration. Some
// manifests of kinds without namespaces name one anyway, so each object is found
// without its namespace, too.
func (l *ledger) begin(objects []manifest.Identity) {
	for _, kind := range configKinds {
		objects = append(objects, manifest.Identity{Group: kind.Group, Kind: kind.Kind, Name: configKey.Name})
	}
	entries := make(map[manifest.Identity]*ledgerEntry)
	for _, id := range objects {
		entries[id] = l.entries[id]
		if entries[id] == nil {
			entries[id] = &ledgerEntry{}
		}
	}
	for _, id := range objects {
		named := entries[id]
		id.Namespace = ""
		if entries[id] == nil {
			entries[id] = named
		}
	}
	l.entries = entries
}

// isWatching reports whether watches show the objects of passes.
func (t *Tracker) isWatching() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ledger.entries != nil
}

// trusting reports whether a pass relies on the ledger. If not, the pass applies
// everything, which trusting notes.
func (t *Tracker) trusting() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	if age := now.Sub(t.ledger.full); t.ledger.entries != nil && age >= 0 && age < trustFor {
		return true
	}
	t.ledger.full = now
	return false
}

// entry returns an object's entry; ok is false for an object that is not watched.
func (t *Tracker) entry(id manifest.Identity) (e ledgerEntry, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.ledger.entries[id]; known != nil {
		return *known, true
	}
	return ledgerEntry{}, false
}

// shown returns an object as a watch showed it last, nil for one that it has not
// shown or that was deleted.
func (t *Tracker) shown(id manifest.Identity) *clusterapi.Object {
	e, _ := t.entry(id)
	if e.seen == nil || e.seen.gone {
		return nil
	}
	return e.seen.object
}

// isApplied reports whether a watch shows an object as a mode has applied it.
func (e ledgerEntry) isApplied(mode Mode) bool {
	return e.isCurrent(mode) && !e.seen.gone && e.seen.state.uid == e.applied.state.uid &&
		e.seen.state.digest == e.applied.state.digest
}

// hasDrifted reports whether a watch shows that an object was changed or deleted since
// a mode has applied it.
func (e ledgerEntry) hasDrifted(mode Mode) bool {
	if e.applied == nil {
		return e.seen != nil && e.seen.gone
	}
	return e.isCurrent(mode) && !e.isApplied(mode)
}

// isCurrent reports whether a sighting is not older than what a mode has applied.
func (e ledgerEntry) isCurrent(mode Mode) bool {
	if e.applied == nil || e.seen == nil || e.applied.mode != mode {
		return false
	}
	order, known := compareVersions(e.seen.state.version, e.applied.state.version)
	return known && order >= 0 || e.seen.gone && e.seen.state.uid == e.applied.state.uid
}

// tasksOf are the tasks that are applied together with t, in order.
func (a *applier) tasksOf(t *manifest.Task) []*manifest.Task {
	if d := a.doubles[t]; d != nil {
		return d.tasks
	}
	return []*manifest.Task{t}
}

// inPlace returns an object, as a watch showed it, that is as it was applied, if the
// same is to be applied again. Else it returns nil. It fails as prepare does.
func (a *applier) inPlace(ctx context.Context, t *manifest.Task) (*clusterapi.Object, error) {
	e, _ := a.tracker.entry(t.Manifest.Identity())
	if !a.trusts || !e.isApplied(a.mode) {
		return nil, nil
	}
	obj, err := a.prepare(ctx, a.tasksOf(t))
	if err != nil || obj != e.applied.wanted && !reflect.DeepEqual(obj.Object, e.applied.wanted.Object) {
		return nil, err
	}
	return e.seen.object, nil
}

// exists reports whether a watch shows an object, in whatever state.
func (a *applier) exists(t *manifest.Task) bool {
	return a.trusts && a.tracker.shown(t.Manifest.Identity()) != nil
}

// note records the state of an object after it was applied in a mode.
func (t *Tracker) note(mode Mode, wanted *unstructured.Unstructured, stored *clusterapi.Object) {
	id := identityOf(wanted)
	if _, watched := t.entry(id); !watched {
		return
	}
	r := &record{mode: mode, wanted: wanted, state: stateOf(stored.Unstructured())}
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.ledger.entries[id]; e != nil {
		e.applied = r
	}
}

// configuration reads an object of the cluster's configuration, which must not be
// changed, from its watch if there is one.
func configuration[T any](ctx context.Context, a *applier) (*T, error) {
	kind, err := clusterapi.KindOf[T]()
	if err != nil {
		return nil, err
	}
	id := manifest.Identity{Group: kind.Group, Kind: kind.Kind, Name: configKey.Name}
	if seen := a.tracker.shown(id); a.trusts && seen != nil {
		return clusterapi.As[T](seen)
	}
	return clusterapi.Get[T](ctx, a.api, configKey)
}

// configKey is the name of every object of the cluster's configuration.
var configKey = clusterapi.Key("", "cluster")

// configKinds are those that are put into objects.
var configKinds = []schema.GroupVersionKind{
	configv1.GroupVersion.WithKind("APIServer"),
	configv1.GroupVersion.WithKind("Infrastructure"),
	configv1.GroupVersion.WithKind("Proxy"),
}

func identityOf(u *unstructured.Unstructured) manifest.Identity {
	kind := u.GroupVersionKind()
	return manifest.Identity{Group: kind.Group, Kind: kind.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}
}

// contentDigest is a hash of an object without what only a server sets, and of which
// of its fields are our applies'. While it is the same, an apply changes nothing.
// A generation would not do: some kinds have none, PriorityClasses keep theirs, and
// none counts changes of metadata.
func contentDigest(u *unstructured.Unstructured) string {
	content := objects.WithoutServerFields(u).Object
	if metadata, ok := content["metadata"].(map[string]any); ok { // a copy
		delete(metadata, "deletionGracePeriodSeconds")
		delete(metadata, "deletionTimestamp")
	}
	all := []any{content}
	for _, e := range managedEntries(u) {
		if e.isOurs() {
			all = append(all, e.fields)
		}
	}
	return strconv.FormatUint(objects.Hash(all, nil), 16)
}
