package runlevel

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/objects"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// double is an object that several manifests of a payload make statements
// about, as feature sets bring them. They are merged and applied once a pass,
// by the first of their tasks that runs: applied one after the other by the
// same field manager, each would take back what the others set.
type double struct {
	tasks []*manifest.Task // in the order of the payload
	// lock is held while applying, and guards applied.
	lock    chan struct{}
	applied bool
}

// doublesOf returns the doubles of the included manifests by task. Objects
// that are created only or deleted are not statements to merge: each such
// manifest is for itself, as it is for the cluster-version operator.
func doublesOf(tasks []*manifest.Task, included func(*manifest.Manifest) bool) map[*manifest.Task]*double {
	seen := make(map[manifest.Identity]int, len(tasks))
	for _, t := range tasks {
		seen[t.Manifest.Identity()]++
	}
	byObject := make(map[manifest.Identity]*double)
	doubles := make(map[*manifest.Task]*double)
	for _, t := range tasks {
		id := t.Manifest.Identity()
		if seen[id] < 2 || !isStatement(t.Manifest) || !included(t.Manifest) {
			continue
		}
		d, ok := byObject[id]
		if !ok {
			d = &double{lock: make(chan struct{}, 1)}
			byObject[id] = d
		}
		d.tasks = append(d.tasks, t)
		doubles[t] = d
	}
	for t, d := range doubles {
		if len(d.tasks) < 2 {
			delete(doubles, t)
		}
	}
	return doubles
}

// createdOnly returns the objects that an included manifest only creates.
func createdOnly(tasks []*manifest.Task, included func(*manifest.Manifest) bool) map[manifest.Identity]bool {
	out := make(map[manifest.Identity]bool)
	for _, t := range tasks {
		if t.Manifest.CreatesOnly() && included(t.Manifest) {
			out[t.Manifest.Identity()] = true
		}
	}
	return out
}

// isStatement reports a manifest that reports what an object is to be, always.
func isStatement(m *manifest.Manifest) bool {
	return !m.Deletes() && !m.CreatesOnly()
}

// applyOnce applies the manifest of a task, or all those of its object, unless
// that has happened in this pass. It returns the object as stored; if it
// was applied before and look is false, nil.
func (a *applier) applyOnce(ctx context.Context, t *manifest.Task, look bool) (*clusterapi.Object, error) {
	if shown, err := a.inPlace(ctx, t); shown != nil || err != nil {
		return shown, err
	}
	d, ok := a.doubles[t]
	if !ok {
		return a.apply(ctx, []*manifest.Task{t})
	}
	select {
	case d.lock <- struct{}{}:
		defer func() { <-d.lock }()
	case <-ctx.Done():
		return nil, ended(ctx)
	}
	if d.applied {
		if !look {
			return nil, nil
		}
		last := d.tasks[len(d.tasks)-1].Manifest
		stored, err := clusterapi.GetShared(ctx, a.api, last.GVK(), clusterapi.KeyOf(last.Object()))
		if !apierrors.IsNotFound(err) {
			return stored, err
		}
	}
	stored, err := a.apply(ctx, d.tasks)
	d.applied = err == nil
	return stored, err
}

// apply applies the manifests of one object as the mode says, and reports what has
// drifted. What it returns must not be changed.
func (a *applier) apply(ctx context.Context, tasks []*manifest.Task) (*clusterapi.Object, error) {
	t := tasks[0]
	obj, err := a.prepare(ctx, tasks)
	if err != nil {
		return nil, err
	}
	drifted := a.drifted(t)
	var live *clusterapi.Object
	if drifted != nil || a.mode == ApplyMerge || isClusterOperator(t.Manifest) || a.mayNeedAdoption(obj) {
		live, err = a.read(ctx, t, obj)
		if err != nil {
			return nil, err
		}
	}
	if live == nil {
		a.reportGone(t, drifted)
	}
	var stored *clusterapi.Object
	if a.mode == ApplyMerge {
		stored, err = a.applyMerged(ctx, live, obj)
	} else {
		stored, err = a.applyServerSide(ctx, t, live, obj)
	}
	if drifted != nil && live != nil {
		next := stored.Unstructured()
		if err != nil {
			next = a.intended(live.Unstructured(), obj)
		}
		a.reportChanged(t, drifted, obj, live.Unstructured(), next)
	}
	if err != nil {
		return nil, err
	}
	a.tracker.note(a.mode, obj, stored)
	return stored, nil
}

// read reads an object that is about to be applied. It returns nil for one that does
// not exist, but an error for a ClusterOperator, which only precreate creates.
func (a *applier) read(
	ctx context.Context, t *manifest.Task, obj *unstructured.Unstructured,
) (*clusterapi.Object, error) {
	live, err := clusterapi.GetShared(ctx, a.api, obj.GroupVersionKind(), clusterapi.KeyOf(obj))
	absent := clusterapi.IsMissing(err) || a.mode == ApplyServerSide && errors.Is(err, clusterapi.ErrNotCollected)
	if absent && !isClusterOperator(t.Manifest) {
		return nil, nil
	}
	return live, err
}

// applyServerSide applies an object by one server-side apply, after it has adopted
// what others own of it. live may be nil if the object does not exist, or is not
// expected to have such fields. What it returns must not be changed.
func (a *applier) applyServerSide(
	ctx context.Context, t *manifest.Task, live *clusterapi.Object, obj *unstructured.Unstructured,
) (*clusterapi.Object, error) {
	if live != nil {
		_, err := a.adopt(ctx, identityOf(obj), live)
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) && !apierrors.IsNotFound(err) {
			return nil, err
		}
		// an update that is refused is tried again after the apply, which may mend its cause
	}
	stored, err := a.applyFields(ctx, t, obj)
	if err != nil {
		return nil, err
	}
	again, err := a.adopt(ctx, identityOf(obj), stored) // what nobody has looked at before
	if err != nil || !again {
		return stored, err
	}
	stored, err = a.applyFields(ctx, t, obj)
	if err == nil {
		a.tracker.noteAdoption(identityOf(obj), false)
	}
	return stored, err
}

// merge merges the manifests of one object, prepared one by one. Of two values the
// later one counts, and a warning says so.
func (a *applier) merge(tasks []*manifest.Task, objs []*unstructured.Unstructured) *unstructured.Unstructured {
	out := objs[0]
	overridden := make(map[string]string) // the file that has the last word, by path
	for i, obj := range objs[1:] {
		objects.Merge(out, obj, func(path string) { overridden[path] = tasks[i+1].Manifest.Filename })
	}
	if len(overridden) == 0 {
		return out
	}
	var files, paths []string
	for _, t := range tasks {
		files = append(files, t.Manifest.Filename)
	}
	for _, path := range slices.Sorted(maps.Keys(overridden)) {
		paths = append(paths, fmt.Sprintf("%s (by %s)", path, overridden[path]))
	}
	first := tasks[0]
	a.warn(first, fmt.Sprintf("%s: applied as one from %s; overridden: %s", first.Manifest.Identity(), list(files), list(paths)))
	return out
}
