package runlevel

import (
	"context"
	"maps"
	"reflect"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// trustFor is how long passes go by what watches show, before one applies
// everything again: a watch may have stopped telling without anybody's noticing.
const trustFor = time.Hour

// ledger is what passes have applied, and what watches have shown since. It is
// a part of the [Tracker], and guarded by its lock. It is a cache: without what
// is in it, everything is applied.
type ledger struct {
	on      bool
	mode    Mode // of the passes that go by it
	entries map[manifest.Identity]*ledgerEntry
	unnamed map[manifest.Identity]manifest.Identity // of entries with a namespace, without it
	configs map[schema.GroupVersionKind]*sighting   // the cluster's configuration, which is put into objects
	full    time.Time                               // when a pass applied everything last
	drifts  map[manifest.Identity]Drift
}

// ledgerEntry is one object of the payload.
type ledgerEntry struct {
	applied *record   // nil: not applied since watches began
	seen    *sighting // nil: never shown
	told    string    // the state whose drift was told last
}

// record is an object as it came back when it was applied.
type record struct {
	wanted       *unstructured.Unstructured // what was sent; shared
	uid          types.UID
	version      string
	digest       string            // of what is ours, as the mode has it
	fields       fieldTree         // that were ours; nil after a merge
	unlikeWanted map[string]string // digests of values that the server has worded its own way, by path
}

// sighting is the latest state of an object that a watch has shown.
type sighting struct {
	object  *clusterapi.Object // of one that went: its last state
	uid     types.UID
	version string
	digest  string
	gone    bool
}

// Saw takes in an object as a watch shows it, whole or as
// [WatchedKind.Trim] leaves it. A
// state that is older than what is known is ignored, and so is an object that
// is not in what [Tracker.Watch] was given. o must not be changed afterwards.
func (t *Tracker) Saw(o *clusterapi.Object) { t.sighted(o, false) }

// Gone takes in that an object went; o is its last known state.
func (t *Tracker) Gone(o *clusterapi.Object) { t.sighted(o, true) }

func (t *Tracker) sighted(o *clusterapi.Object, gone bool) {
	if o == nil {
		return
	}
	id, config := identityOf(o.Unstructured()), isConfig(o)
	t.mu.Lock()
	wanted, mode := t.ledger.of(id) != nil, t.ledger.mode
	t.mu.Unlock()
	if !wanted && !config {
		return
	}
	next := &sighting{object: o, uid: o.UID(), version: o.ResourceVersion(), gone: gone}
	if wanted {
		next.digest = digestOf(o.Unstructured(), mode)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.ledger.of(id); e != nil && next.follows(e.seen) {
		e.seen = next
	}
	if config && t.ledger.on && next.follows(t.ledger.configs[o.Kind()]) {
		t.ledger.configs[o.Kind()] = next
	}
}

// of returns the entry of an object as a cluster has it. Some manifests of kinds
// without namespaces name one all the same.
func (l *ledger) of(id manifest.Identity) *ledgerEntry {
	if e := l.entries[id]; e != nil || id.Namespace != "" {
		return e
	}
	return l.entries[l.unnamed[id]]
}

// follows reports whether a sighting is not older than another. An object that
// went does not come back: one of its name has another UID.
func (s *sighting) follows(last *sighting) bool {
	if last == nil {
		return true
	}
	order, known := compareVersions(s.version, last.version)
	if s.uid == last.uid {
		return s.gone || !last.gone && (!known || order >= 0)
	}
	return !known || order > 0
}

// compareVersions compares two resourceVersions as numbers. known is false where
// one is none.
func compareVersions(a, b string) (order int, known bool) {
	if a == b {
		return 0, a != ""
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return order, err == nil
}

// Unwatched says that watches have ended: what they showed is forgotten, and all
// is applied until they begin again. What has drifted stays known.
func (t *Tracker) Unwatched() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ledger = ledger{drifts: t.ledger.drifts}
}

// begin makes the ledger one for these objects and this mode.
func (l *ledger) begin(objects map[manifest.Identity]bool, mode Mode) {
	if l.mode != mode {
		*l = ledger{mode: mode, drifts: l.drifts}
	}
	if !l.on {
		l.on, l.entries, l.configs = true, make(map[manifest.Identity]*ledgerEntry), make(map[schema.GroupVersionKind]*sighting)
	}
	maps.DeleteFunc(l.entries, func(id manifest.Identity, _ *ledgerEntry) bool { return !objects[id] })
	l.unnamed = make(map[manifest.Identity]manifest.Identity)
	for id := range objects {
		if id.Namespace != "" {
			l.unnamed[manifest.Identity{Group: id.Group, Kind: id.Kind, Name: id.Name}] = id
		}
		if l.entries[id] == nil {
			l.entries[id] = &ledgerEntry{}
		}
	}
}

// trusting reports whether a pass goes by the ledger, and takes note that one
// that does not applies everything.
func (t *Tracker) trusting() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	if age := now.Sub(t.ledger.full); t.ledger.on && age >= 0 && age < trustFor {
		return true
	}
	t.ledger.full = now
	return false
}

// watchesFor reports whether watches are for passes in a mode. What they show says
// nothing to those in another one.
func (t *Tracker) watchesFor(mode Mode) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ledger.on && t.ledger.mode == mode
}

// state returns what is known of an object.
func (t *Tracker) state(id manifest.Identity) (applied record, seen sighting, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.ledger.entries[id]
	if e == nil || e.applied == nil || e.seen == nil {
		return record{}, sighting{}, false
	}
	return *e.applied, *e.seen, true
}

// shown returns an object as a watch showed it last, nil for one that it has not
// shown or that went.
func (t *Tracker) shown(id manifest.Identity) *clusterapi.Object {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.ledger.entries[id]; e != nil && e.seen != nil && !e.seen.gone {
		return e.seen.object
	}
	return nil
}

// isAsApplied reports whether a watch has shown a state that is not older than
// what was applied, in which all that we own is as it was then.
func (r *record) isAsApplied(s *sighting) bool {
	order, known := compareVersions(s.version, r.version)
	return known && order >= 0 && !s.gone && s.uid == r.uid && r.digest != "" && s.digest == r.digest
}

// hasDrifted reports whether a watch has shown that it is not so any more.
func (r *record) hasDrifted(s *sighting) bool {
	order, known := compareVersions(s.version, r.version)
	if !known || r.digest == "" {
		return false
	}
	if s.uid == r.uid {
		return s.gone || order > 0 && s.digest != r.digest
	}
	return order > 0
}

// tasksOf are the tasks that are applied together with t, in order.
func (a *applier) tasksOf(t *manifest.Task) []*manifest.Task {
	if d := a.doubles[t]; d != nil {
		return d.tasks
	}
	return []*manifest.Task{t}
}

// inPlace returns an object, as a watch showed it, that needs no look: it is as
// it was applied, and what is to be applied is the same. Else it returns nil.
func (a *applier) inPlace(ctx context.Context, t *manifest.Task) (*clusterapi.Object, error) {
	if !a.trusts {
		return nil, nil
	}
	applied, seen, ok := a.tracker.state(t.Manifest.Identity())
	if !ok || !applied.isAsApplied(&seen) {
		return nil, nil
	}
	obj, err := a.prepare(ctx, a.tasksOf(t))
	if err != nil || obj != applied.wanted && !reflect.DeepEqual(obj.Object, applied.wanted.Object) {
		return nil, err
	}
	return seen.object, nil
}

// exists reports whether a watch shows an object of which no more matters.
func (a *applier) exists(t *manifest.Task) bool {
	return a.trusts && a.tracker.shown(t.Manifest.Identity()) != nil
}

// note keeps what came back when an object was applied.
func (t *Tracker) note(wanted *unstructured.Unstructured, stored *clusterapi.Object) {
	id := identityOf(wanted)
	if !t.notes(id, ApplyServerSide) {
		return
	}
	u := stored.Unstructured()
	if _, ok := wanted.Object["stringData"]; ok && wanted.GroupVersionKind() == secretKind {
		return // the server keeps it as data, which is not known to be ours then
	}
	r := &record{wanted: wanted, uid: stored.UID(), version: stored.ResourceVersion(), digest: ownedDigest(u)}
	var others []fieldTree
	r.fields, others = ownedBy(u)
	r.unlikeWanted = make(map[string]string)
	walkOwned(r.fields, others, []place{{wanted.Object, true}, {u.Object, true}}, func(o owned) bool {
		if !o.self {
			differences(o.path, o.at[0], o.at[1], func(path string, _, found place) { r.unlikeWanted[path] = found.digest() })
		}
		return true
	})
	t.record(id, r)
}

// notes reports whether it matters what an object was when it was applied.
func (t *Tracker) notes(id manifest.Identity, mode Mode) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ledger.entries[id] != nil && t.ledger.mode == mode
}

func (t *Tracker) record(id manifest.Identity, r *record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.ledger.entries[id]; e != nil {
		e.applied = r
	}
}

// configuration reads an object of the cluster's configuration, which must not be
// changed: from a watch, where one shows it.
func configuration[T any](ctx context.Context, a *applier) (*T, error) {
	kind, err := clusterapi.KindOf[T]()
	if err != nil {
		return nil, err
	}
	if a.trusts {
		a.tracker.mu.Lock()
		seen := a.tracker.ledger.configs[kind]
		a.tracker.mu.Unlock()
		if seen != nil && !seen.gone {
			return clusterapi.As[T](seen.object)
		}
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

func isConfig(o *clusterapi.Object) bool {
	if o.Key() != configKey {
		return false
	}
	for _, kind := range configKinds {
		if o.Kind() == kind {
			return true
		}
	}
	return false
}

func identityOf(u *unstructured.Unstructured) manifest.Identity {
	kind := u.GroupVersionKind()
	return manifest.Identity{Group: kind.Group, Kind: kind.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}
}
