package runlevel

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// defaultAdopt are the managers of [Options.Adopt]: the operator that wrote the
// cluster before, and what [ApplyMerge] writes as.
var defaultAdopt = []string{"cluster-version-operator", clusterapi.ManagerPayload}

// adoption is what passes know of objects whose fields others own. It is a part of
// the [Tracker], and guarded by its lock.
type adoption struct {
	begun   bool                       // an object came back as ours alone
	foreign bool                       // an object had fields to adopt
	done    map[manifest.Identity]bool // objects without such fields
}

// mayNeedAdoption reports whether an object is to be read before it is applied, so
// that it changes once and not twice: once anything of the cluster had fields to
// adopt, all are. Until anything is known, those that roll out pods are.
func (a *applier) mayNeedAdoption(obj *unstructured.Unstructured) bool {
	id, kind := identityOf(obj), obj.GroupVersionKind()
	a.tracker.mu.Lock()
	defer a.tracker.mu.Unlock()
	known := &a.tracker.adoption
	if a.created[id] || known.done[id] {
		return false
	}
	return known.foreign || !known.begun && (kind == deploymentKind || kind == daemonSetKind)
}

// noteAdoption notes whether an object had fields to adopt.
func (t *Tracker) noteAdoption(id manifest.Identity, foreign bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if foreign {
		t.adoption.foreign = true
		return
	}
	t.adoption.begun = true
	if t.adoption.done == nil {
		t.adoption.done = make(map[manifest.Identity]bool)
	}
	t.adoption.done[id] = true
}

// adopt makes the fields that the managers to adopt own in an object those of our
// own apply, so that the next apply removes what the manifest does not name. It
// reports whether there were any. No field changes.
func (a *applier) adopt(ctx context.Context, id manifest.Identity, live *clusterapi.Object) (bool, error) {
	if a.created[id] {
		return false, nil // a manifest that only creates it has set fields that are to stay
	}
	next, managers, err := adopted(live.Unstructured(), a.adopts)
	if err != nil {
		return false, err
	}
	a.tracker.noteAdoption(id, len(managers) > 0)
	if len(managers) == 0 {
		return false, nil
	}
	_, err = clusterapi.WriteShared(ctx, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return a.api.Update(ctx, next, clusterapi.UpdateOptions{FieldManager: clusterapi.ManagerPayload})
	})
	if err != nil {
		return false, fmt.Errorf("adopting the fields of %s: %w", list(managers), err)
	}
	return true, nil
}

// adopts reports whether the fields of an entry are to become ours.
func (a *applier) adopts(e managedEntry) bool {
	return e.operation == "Update" && e.subresource == "" && slices.Contains(a.managers, e.manager)
}

// adopted returns a copy of an object in whose managedFields the entries that adopts
// selects are part of our own apply's, and the managers of the entries, sorted;
// without any, nil. Entries of subresources stay as they are.
//
// Of entries in several versions of the kind all fields are taken over, in the
// version of our own entry or else of the latest one. A path that this version does
// not have is of no effect.
func adopted(obj *unstructured.Unstructured, adopts func(managedEntry) bool) (*unstructured.Unstructured, []string, error) {
	value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "metadata", "managedFields")
	entries, _ := value.([]any)
	if !slices.ContainsFunc(entries, func(v any) bool { e, ok := managedEntryOf(v); return ok && adopts(e) }) {
		return nil, nil, nil // as most
	}
	var managers []string
	var base map[string]any // the entry that becomes ours
	var kept []any
	applied := false // base is our own apply's
	fields := fieldpath.NewSet()
	for _, v := range entries {
		e, ok := managedEntryOf(v)
		ours := ok && e.isOurs()
		if !ours && (!ok || !adopts(e)) {
			kept = append(kept, v)
			continue
		}
		set, err := e.set()
		if err != nil {
			return nil, nil, err
		}
		fields = fields.Union(set)
		if !ours {
			managers = append(managers, quote(e.manager))
		}
		if ours || !applied {
			base, _ = v.(map[string]any)
			applied = ours
		}
	}
	if obj.GroupVersionKind().GroupKind() == clusterOperatorKind.GroupKind() {
		// The spec is the operator's, and never applied: an apply would remove it.
		fields = fields.RecursiveDifference(fieldpath.NewSet(fieldpath.MakePathOrDie("spec")))
	}
	raw, err := fields.ToJSON()
	if err != nil {
		return nil, nil, err
	}
	var tree map[string]any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return nil, nil, err
	}
	entry := maps.Clone(base)
	entry["manager"], entry["operation"], entry["fieldsV1"] = clusterapi.ManagerPayload, "Apply", tree
	metadata, _ := obj.Object["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	metadata["managedFields"] = append([]any{entry}, kept...)
	out := maps.Clone(obj.Object)
	out["metadata"] = metadata
	slices.Sort(managers)
	return &unstructured.Unstructured{Object: out}, slices.Compact(managers), nil
}
