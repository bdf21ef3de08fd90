package runlevel

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/redact"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// Drift says that an object is not any more as it was applied, as a pass found
// before it applied it again.
type Drift struct {
	Identity manifest.Identity `json:"identity"`
	// File is the manifest's.
	File string `json:"file,omitempty"`
	// Gone says that the object does not exist, Recreated that it went and
	// somebody has created one of its name.
	Gone      bool `json:"gone,omitempty"`
	Recreated bool `json:"recreated,omitempty"`
	// Fields are those of ours that are not as they were applied, or not ours any
	// more, in the order of their paths; at most 100 of them. Omitted counts the
	// others. With [ApplyMerge] they are those that a merge changes, what somebody
	// has added among them.
	Fields  []DriftedField `json:"fields,omitempty"`
	Omitted int            `json:"omitted,omitempty"`
	// Time is when it was found.
	Time time.Time `json:"time"`
}

// DriftedField is a field that somebody has changed, removed or taken over: the
// value may be the one that was applied, while the field is not ours any more.
type DriftedField struct {
	// Path is as in spec.containers[name=a].image.
	Path string `json:"path"`
	// Wanted is what was applied, Found what is there; nil where there is
	// nothing. Credentials, and all values of Secrets, are shown as
	// (redacted-12 digits), with the key that NewTracker made at random; values of
	// more than 4 KiB so, too, with their size.
	Wanted any `json:"wanted,omitempty"`
	Found  any `json:"found,omitempty"`
	// Owners are the field's, by the object's managedFields: none where it was
	// removed, since the one who removes a field is not written down.
	Owners []FieldOwner `json:"owners,omitempty"`
}

// FieldOwner is a field manager that owns a field.
type FieldOwner struct {
	Manager string `json:"manager"`
	// Operation is Apply or Update, Subresource such as status or scale.
	Operation   string `json:"operation"`
	Subresource string `json:"subresource,omitempty"`
	// Time is when the manager changed its fields last; zero: not known.
	Time time.Time `json:"time,omitzero"`
}

// String returns the owner as a text: manager (operation).
func (o FieldOwner) String() string {
	if o.Subresource != "" {
		return fmt.Sprintf("%s (%s of %s)", o.Manager, o.Operation, o.Subresource)
	}
	return fmt.Sprintf("%s (%s)", o.Manager, o.Operation)
}

// Text words the drift for people, without values.
func (d Drift) Text() string {
	name := d.Identity.Kind + " " + d.Identity.Name
	if d.Identity.Namespace != "" {
		name = d.Identity.Kind + " " + d.Identity.Namespace + "/" + d.Identity.Name
	}
	if d.Gone {
		return name + " was deleted"
	}
	var fields []string
	for _, f := range d.Fields {
		var owners []string
		for _, o := range f.Owners {
			owners = append(owners, o.String())
		}
		switch {
		case len(owners) > 0:
			fields = append(fields, f.Path+" by "+strings.Join(owners, " and "))
		case f.Found == nil:
			fields = append(fields, f.Path+" removed")
		default:
			fields = append(fields, f.Path)
		}
	}
	if d.Omitted > 0 {
		fields = append(fields, fmt.Sprintf("and %d more", d.Omitted))
	}
	what := " was changed"
	if d.Recreated {
		what = " was deleted and created again"
	}
	if len(fields) == 0 {
		return name + what
	}
	return name + what + ": " + list(fields)
}

// Drifts returns what was found to have drifted, the newest of each object, at
// most 100, the oldest first. They are not saved with the Tracker.
func (t *Tracker) Drifts() []Drift {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ledger.sortedDrifts()
}

func (l *ledger) sortedDrifts() []Drift {
	return slices.SortedFunc(maps.Values(l.drifts), func(a, b Drift) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Identity.String(), b.Identity.String()))
	})
}

// keepDrift adds a drift that is found for the first time. It reports whether it
// is: state tells apart which it is about.
func (t *Tracker) keepDrift(d *Drift, state string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.ledger.entries[d.Identity]
	if e == nil || e.told == state {
		return false
	}
	e.told, d.Time = state, t.clock.Now()
	if t.ledger.drifts == nil {
		t.ledger.drifts = make(map[manifest.Identity]Drift)
	}
	t.ledger.drifts[d.Identity] = *d
	if len(t.ledger.drifts) > maxDrifts {
		delete(t.ledger.drifts, t.ledger.sortedDrifts()[0].Identity)
	}
	return true
}

// tellDrift tells what has become of an object that is about to be applied, where
// a watch has shown that something has.
func (a *applier) tellDrift(ctx context.Context, t *manifest.Task) error {
	applied, _, ok := a.drifted(t)
	if !ok {
		return nil
	}
	live, err := clusterapi.GetShared(ctx, a.api, applied.wanted.GroupVersionKind(), clusterapi.KeyOf(applied.wanted))
	if isAbsent(err) {
		live = nil
	} else if err != nil {
		return err
	}
	a.tellDriftOf(t, live, func(r *record, d *Drift) { r.compare(live.Unstructured(), d, a.tracker.hider) })
	return nil
}

// drifted returns what was applied, and what a watch has shown that is not so any
// more.
func (a *applier) drifted(t *manifest.Task) (applied record, seen sighting, ok bool) {
	if !a.reports {
		return record{}, sighting{}, false
	}
	applied, seen, ok = a.tracker.state(t.Manifest.Identity())
	return applied, seen, ok && applied.hasDrifted(&seen)
}

// tellDriftOf does so of an object that was read, nil for one that does not exist.
// compare finds the fields of one that does.
func (a *applier) tellDriftOf(t *manifest.Task, live *clusterapi.Object, compare func(*record, *Drift)) {
	applied, seen, ok := a.drifted(t)
	if !ok {
		return
	}
	id := t.Manifest.Identity()
	d := &Drift{Identity: id, File: t.Manifest.Filename}
	if live == nil {
		d.Gone = true
		a.emitDrift(t, d, goneState(seen.uid))
		return
	}
	d.Recreated = live.UID() != applied.uid
	if d.Recreated && a.tracker.toldGone(id, applied.uid) {
		return // it was created here
	}
	compare(&applied, d)
	if !d.Recreated && len(d.Fields) == 0 {
		return // it is as it was again
	}
	a.emitDrift(t, d, string(live.UID())+" "+live.ResourceVersion())
}

// tellGone tells that an object that is only created has gone.
func (a *applier) tellGone(t *manifest.Task) {
	if !a.reports {
		return
	}
	id := t.Manifest.Identity()
	a.tracker.mu.Lock()
	e := a.tracker.ledger.entries[id]
	gone := e != nil && e.seen != nil && e.seen.gone
	state := ""
	if gone {
		state = goneState(e.seen.uid)
	}
	a.tracker.mu.Unlock()
	if gone {
		a.emitDrift(t, &Drift{Identity: id, File: t.Manifest.Filename, Gone: true}, state)
	}
}

// goneState tells one object that went apart.
func goneState(uid types.UID) string { return "gone " + string(uid) }

// toldGone reports whether it was the last that was told that an object went.
func (t *Tracker) toldGone(id manifest.Identity, uid types.UID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.ledger.entries[id]
	return e != nil && e.told == goneState(uid)
}

func (a *applier) emitDrift(t *manifest.Task, d *Drift, state string) {
	if a.tracker.keepDrift(d, state) {
		a.tell(t, EventDrifted, d.Text(), d)
	}
}

// compare finds the fields of ours that are not as they were when we applied them.
// What was empty is not ours any more once others have added to it, which is no
// drift.
func (r *record) compare(live *unstructured.Unstructured, d *Drift, hider *redact.Redactor) {
	ours, others := ownedBy(live)
	entries := managedEntries(live)
	kind := r.wanted.GroupVersionKind().GroupKind()
	walkOwned(r.fields, others, []place{{r.wanted.Object, true}, {live.Object, true}}, func(o owned) bool {
		wanted, found := o.at[0], o.at[1]
		if o.self && found.ok {
			return true // what it holds follows
		}
		add := func(path string, wanted, found place) {
			if len(d.Fields) == maxDriftedFields {
				d.Omitted++
				return
			}
			d.Fields = append(d.Fields, driftedField(hider, kind, path, wanted, found, ownersOf(entries, o.steps)))
		}
		before := len(d.Fields) + d.Omitted
		if o.self {
			add(o.path, wanted, found)
			return false
		}
		differences(o.path, wanted, found, func(path string, wanted, found place) {
			if unlike, ok := r.unlikeWanted[path]; !ok || unlike != found.digest() {
				add(path, wanted, found)
			}
		})
		if len(d.Fields)+d.Omitted == before && !isEmpty(wanted.value) && !holds(ours, o.steps) {
			add(o.path, wanted, found)
		}
		return true
	})
}

// ownersOf are the managers that own a field.
func ownersOf(entries []managedEntry, steps []string) []FieldOwner {
	return ownersWhere(entries, func(fields fieldTree) bool { return holds(fields, steps) })
}

func ownersWhere(entries []managedEntry, owns func(fieldTree) bool) []FieldOwner {
	var out []FieldOwner
	for _, e := range entries {
		if owns(e.fields) {
			at, _ := time.Parse(time.RFC3339, e.time)
			out = append(out, FieldOwner{Manager: quote(e.manager), Operation: e.operation, Subresource: e.subresource, Time: at})
		}
	}
	return out
}

// differences visits the smallest parts in which two values differ: of maps by
// key, of lists of the same length by index.
func differences(path string, a, b place, visit func(path string, a, b place)) {
	if a.ok == b.ok && reflect.DeepEqual(a.value, b.value) {
		return
	}
	switch x := a.value.(type) {
	case map[string]any:
		y, ok := b.value.(map[string]any)
		if !ok || len(x) == 0 || len(y) == 0 || redact.Together(x) || redact.Together(y) {
			break
		}
		keys := maps.Clone(x)
		maps.Copy(keys, y)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			va, oka := x[key]
			vb, okb := y[key]
			differences(clusterapi.JoinPath(path, key), place{va, oka}, place{vb, okb}, visit)
		}
		return
	case []any:
		y, ok := b.value.([]any)
		if !ok || len(x) != len(y) || len(x) == 0 || redact.Together(x) || redact.Together(y) {
			break
		}
		for i := range x {
			differences(fmt.Sprintf("%s[%d]", path, i), place{x[i], true}, place{y[i], true}, visit)
		}
		return
	}
	visit(path, a, b)
}

// digest tells values apart.
func (p place) digest() string {
	if !p.ok {
		return ""
	}
	sum := sha256.Sum256([]byte(jsonOf(p.value)))
	return hex.EncodeToString(sum[:])
}

// driftedField is a field as a report has it: without credentials, and long values
// by their size.
func driftedField(hider *redact.Redactor, kind schema.GroupKind, path string, wanted, found place, owners []FieldOwner) DriftedField {
	show := func(p place) any {
		_, v := hider.Field(kind.Group, kind.Kind, path, p.value)
		if size := len(jsonOf(p.value)); p.ok && size > maxQuote {
			return fmt.Sprintf("(%d bytes, %s", size, strings.TrimPrefix(hider.Hidden(p.value), "(redacted-"))
		}
		return v
	}
	shown, _ := hider.Field(kind.Group, kind.Kind, path, nil)
	return DriftedField{Path: quote(shown), Wanted: show(wanted), Found: show(found), Owners: owners}
}
