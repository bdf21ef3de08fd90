package runlevel

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/defaults"
	"github.com/clusterupdate/clusterupdate/internal/redact"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel/merge"
)

// applyMerged applies an object in mode [ApplyMerge]: it is created where there is
// none, else updated, if a merge changes it. A conflict is an error: the task is
// tried again. What it returns must not be changed.
func (a *applier) applyMerged(ctx context.Context, t *manifest.Task, obj *unstructured.Unstructured) (*clusterapi.Object, error) {
	live, err := clusterapi.GetShared(ctx, a.api, obj.GroupVersionKind(), clusterapi.KeyOf(obj))
	if apierrors.IsNotFound(err) && !isClusterOperator(t.Manifest) { // which its turn never creates
		a.tellDriftOf(t, nil, nil)
		stored, err := a.createNew(ctx, obj)
		if err != nil {
			return nil, err
		}
		a.tracker.noteMerged(obj, stored, true)
		return stored, nil
	}
	if err != nil {
		return nil, err
	}
	merged, changed, err := merge.Merge(live.Unstructured(), obj)
	if err != nil {
		return nil, err
	}
	a.tellDriftOf(t, live, func(r *record, d *Drift) {
		if changed {
			r.compareMerged(live.Unstructured(), obj, d, a.tracker.hider)
		}
	})
	stored := live
	if changed {
		stored, err = clusterapi.WriteShared(ctx, func(ctx context.Context) (*unstructured.Unstructured, error) {
			return a.api.Update(ctx, merged, clusterapi.UpdateOptions{FieldManager: clusterapi.ManagerPayload})
		})
		if err != nil {
			return nil, err
		}
	}
	a.tracker.noteMerged(obj, stored, changed)
	return stored, nil
}

// createNew creates an object.
func (a *applier) createNew(ctx context.Context, obj *unstructured.Unstructured) (*clusterapi.Object, error) {
	return clusterapi.WriteShared(ctx, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return a.api.Create(ctx, obj, clusterapi.CreateOptions{FieldManager: clusterapi.ManagerPayload})
	})
}

// contentDigest is a hash of all that a merge looks at. While it is the same, a
// merge comes to the same.
func contentDigest(obj *unstructured.Unstructured) string {
	obj = clusterapi.WithoutServerFields(obj) // a copy, metadata included
	for _, field := range []string{"deletionGracePeriodSeconds", "deletionTimestamp"} {
		unstructured.RemoveNestedField(obj.Object, "metadata", field)
	}
	sum := sha256.Sum256([]byte(jsonOf(obj.Object)))
	return hex.EncodeToString(sum[:16])
}

// noteMerged keeps what an object is after a merge. Of one that was written, it
// keeps what another merge would write all the same, since the server words it in
// its own way.
func (t *Tracker) noteMerged(wanted *unstructured.Unstructured, stored *clusterapi.Object, written bool) {
	id := identityOf(wanted)
	if !t.notes(id, ApplyMerge) {
		return
	}
	u := stored.Unstructured()
	r := &record{wanted: wanted, uid: stored.UID(), version: stored.ResourceVersion(), digest: contentDigest(u)}
	if written {
		r.unlikeWanted = make(map[string]string)
		for _, f := range mergeChanges(u, wanted) {
			r.unlikeWanted[f.Path] = valueAt(f.Old).digest()
		}
	}
	t.record(id, r)
}

// compareMerged finds the fields that a merge changes, but for those that it would
// have changed at once when the object was written last.
func (r *record) compareMerged(live, wanted *unstructured.Unstructured, d *Drift, hider *redact.Redactor) {
	kind := live.GroupVersionKind().GroupKind()
	for _, f := range mergeChanges(live, wanted) {
		wanted, found := valueAt(f.New), valueAt(f.Old)
		if unlike, ok := r.unlikeWanted[f.Path]; ok && unlike == found.digest() {
			continue
		}
		if len(d.Fields) == maxDriftedFields {
			d.Omitted++
			continue
		}
		d.Fields = append(d.Fields, driftedField(hider, kind, f.Path, wanted, found, FieldOwners(live, f.Path)))
	}
}

// mergeChanges are the fields that a merge changes in an object that has its
// defaults, as a server stores it.
func mergeChanges(live, wanted *unstructured.Unstructured) []clusterapi.FieldChange {
	live = defaults.Fill(live)
	merged, changed, err := merge.Merge(live, wanted)
	if err != nil || !changed {
		return nil // an error of the merge is the task's
	}
	return clusterapi.Compare(clusterapi.WithoutServerFields(live), clusterapi.WithoutServerFields(merged), nil)
}

// valueAt is a value of a change, in which nil is none.
func valueAt(v any) place { return place{v, v != nil} }
