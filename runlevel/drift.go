package runlevel

import (
	"cmp"
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
	"github.com/clusterupdate/clusterupdate/internal/apiserver"
	"github.com/clusterupdate/clusterupdate/internal/objects"
	"github.com/clusterupdate/clusterupdate/internal/redact"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel/merge"
)

// Drift is an object that was not as it was applied when a pass applied it again.
type Drift struct {
	Identity manifest.Identity `json:"identity"`
	// File is the manifest's.
	File string `json:"file,omitempty"`
	// Gone is set if the object did not exist, Recreated if it was deleted and
	// somebody has created one of its name.
	Gone      bool `json:"gone,omitempty"`
	Recreated bool `json:"recreated,omitempty"`
	// Fields are those that the apply has changed, and those of ours that others had
	// taken over, in the order of their paths; at most 100 of them. Omitted counts
	// the others.
	Fields  []DriftedField `json:"fields,omitempty"`
	Omitted int            `json:"omitted,omitempty"`
	// Time is when it was found.
	Time time.Time `json:"time"`
}

// DriftedField is a field that somebody has changed, removed or taken over: the
// value may be the one that was applied, while the field was not ours any more.
type DriftedField struct {
	// Path is as in spec.containers[name=a].image.
	Path string `json:"path"`
	// Wanted is the value after the apply, Found the one before; nil if absent.
	// Credentials, and all values of Secrets, are shown as (redacted-12 digits),
	// with the key that NewTracker made at random; values of more than 4 KiB so,
	// too, with their size.
	Wanted any `json:"wanted,omitempty"`
	Found  any `json:"found,omitempty"`
	// Owners are the field's, by the object's managedFields before the apply: none
	// if it was removed, since managedFields do not say who removes a field.
	Owners []FieldOwner `json:"owners,omitempty"`
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

// Drifts returns the newest drift of each object, at most 100, the oldest first. They
// are not saved with the Tracker.
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

// keepDrift records a drift, unless it was recorded last for the same state of the object.
func (t *Tracker) keepDrift(d *Drift, state string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.ledger.entries[d.Identity]
	if e == nil || e.drift == state {
		return false
	}
	e.drift = state
	d.Time = t.clock.Now()
	if t.ledger.drifts == nil {
		t.ledger.drifts = make(map[manifest.Identity]Drift)
	}
	t.ledger.drifts[d.Identity] = *d
	if len(t.ledger.drifts) > maxDrifts {
		delete(t.ledger.drifts, t.ledger.sortedDrifts()[0].Identity)
	}
	return true
}

// drifted returns what is known of an object that a watch shows to be not as it was
// applied; nil for other objects.
func (a *applier) drifted(t *manifest.Task) *ledgerEntry {
	e, _ := a.tracker.entry(t.Manifest.Identity())
	if !a.reports || !e.hasDrifted(a.mode) {
		return nil
	}
	return &e
}

// goneState is the state of an object that was deleted.
func goneState(uid types.UID) string { return "gone " + string(uid) }

// reportGone reports that an object was deleted. e is what is known of it; nil if a
// watch does not show that it has drifted.
func (a *applier) reportGone(t *manifest.Task, e *ledgerEntry) {
	if e != nil {
		d := &Drift{Identity: t.Manifest.Identity(), File: t.Manifest.Filename, Gone: true}
		a.report(t, d, goneState(e.seen.state.uid))
	}
}

// reportChanged reports what an apply of wanted has changed in an object: from live to
// next. e is what was known before.
func (a *applier) reportChanged(t *manifest.Task, e *ledgerEntry, wanted, live, next *unstructured.Unstructured) {
	d := &Drift{Identity: t.Manifest.Identity(), File: t.Manifest.Filename}
	if e.applied != nil && live.GetUID() != e.applied.state.uid {
		d.Recreated = true
		if e.drift == goneState(e.applied.state.uid) {
			return // a pass has created it again
		}
	}
	a.addFields(d, wanted, live, next)
	if d.Recreated || len(d.Fields) > 0 {
		a.report(t, d, string(live.GetUID())+" "+live.GetResourceVersion())
	}
}

func (a *applier) report(t *manifest.Task, d *Drift, state string) {
	if a.tracker.keepDrift(d, state) {
		a.tell(t, EventDrifted, d.Text(), d)
	}
}

// addFields adds the fields that an apply of wanted has changed in an object, but for
// those that only we had set, and those that it has taken over from others.
func (a *applier) addFields(d *Drift, wanted, live, next *unstructured.Unstructured) {
	kind := wanted.GroupVersionKind()
	owners := ownershipOf(live)
	hider := a.tracker.hider
	var fields []DriftedField
	add := func(path string, found, wanted any, by []FieldOwner) {
		fields = append(fields, DriftedField{Path: path, Wanted: wanted, Found: found, Owners: by})
	}
	before, after := objects.WithoutServerFields(live), objects.WithoutServerFields(next)
	if a.mode == ApplyMerge { // a merge writes defaults
		before, after = apiserver.Fill(before), apiserver.Fill(after)
	}
	changes := clusterapi.Compare(before, after, a.schema(kind))
	for _, f := range changes {
		if owners.isOurs(f.Path) {
			continue // the manifest has changed, or the server words it in its own way
		}
		by := owners.of(f.Path)
		differences(f.Path, f.Old, f.New, func(path string, found, wanted any) { add(path, found, wanted, by) })
	}
	for field := range appliedFields(next).Difference(appliedFields(live)).Leaves().All() {
		path, value := pathText(field), fieldAt(wanted.Object, field)
		by := owners.of(path)
		changed := slices.ContainsFunc(changes, func(f clusterapi.FieldChange) bool {
			return isWithin(canonical(path), canonical(f.Path)) || isWithin(canonical(f.Path), canonical(path))
		})
		if len(by) > 0 && !changed && !isEmpty(value) {
			add(path, fieldAt(live.Object, field), value, by)
		}
	}
	slices.SortStableFunc(fields, func(a, b DriftedField) int { return strings.Compare(a.Path, b.Path) })
	shown := min(len(fields), maxDriftedFields)
	d.Omitted = len(fields) - shown
	for _, f := range fields[:shown] {
		d.Fields = append(d.Fields, f.shown(hider, kind.GroupKind()))
	}
}

// intended returns what an apply that failed would have made of an object.
func (a *applier) intended(live, wanted *unstructured.Unstructured) *unstructured.Unstructured {
	if a.mode == ApplyMerge {
		merged, _, err := merge.Merge(live, wanted)
		if err == nil {
			return merged
		}
	}
	next := live.DeepCopy()
	objects.Merge(next, wanted, nil)
	return next
}

// isEmpty reports an absent value, and a map or list without anything in it.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// differences visits the smallest parts in which two values differ: of maps by key,
// of lists of the same length by index. nil stands for no value.
func differences(path string, a, b any, visit func(path string, a, b any)) {
	if reflect.DeepEqual(a, b) {
		return
	}
	if isEmpty(a) || isEmpty(b) || redact.Together(a) || redact.Together(b) {
		visit(path, a, b)
		return
	}
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			keys := maps.Clone(x)
			maps.Copy(keys, y)
			for _, key := range slices.Sorted(maps.Keys(keys)) {
				differences(objects.JoinPath(path, key), x[key], y[key], visit)
			}
			return
		}
	case []any:
		if y, ok := b.([]any); ok && len(x) == len(y) {
			for i := range x {
				differences(fmt.Sprintf("%s[%d]", path, i), x[i], y[i], visit)
			}
			return
		}
	}
	visit(path, a, b)
}

// shown returns a field as a report has it: without credentials, and long values by
// their size.
func (f DriftedField) shown(hider *redact.Redactor, kind schema.GroupKind) DriftedField {
	value := func(v any) any {
		if size := len(jsonOf(v)); size > maxQuote {
			return fmt.Sprintf("(%d bytes, %s", size, strings.TrimPrefix(hider.Hidden(v), "(redacted-"))
		}
		_, shown := hider.Field(kind.Group, kind.Kind, f.Path, v)
		return shown
	}
	path, _ := hider.Field(kind.Group, kind.Kind, f.Path, nil)
	return DriftedField{Path: quote(path), Wanted: value(f.Wanted), Found: value(f.Found), Owners: f.Owners}
}
