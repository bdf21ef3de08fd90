package simulation

import (
	"context"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/objects"
)

// read returns an object that must not be changed, as stored and as a T; nil if
// absent, or if it is being deleted.
func read[T any](ctx context.Context, p *process, gvk schema.GroupVersionKind, key types.NamespacedName) (*clusterapi.Object, *T, error) {
	o, err := clusterapi.GetShared(ctx, p.api, gvk, key)
	if clusterapi.IsMissing(err) {
		return nil, nil, nil
	}
	if err != nil || o.Unstructured().GetDeletionTimestamp() != nil {
		return nil, nil, err
	}
	t, err := clusterapi.As[T](o)
	return o, t, err
}

// change writes the differences that f makes to an object, provided that it is
// still as it was read; one that is gone is left alone. It returns the object as
// stored.
func change[T any, P interface {
	*T
	runtime.Object
}](ctx context.Context, p *process, o *clusterapi.Object, status bool, f func(P)) (*clusterapi.Object, error) {
	before, err := clusterapi.As[T](o)
	if err != nil {
		return nil, err
	}
	after := P(before).DeepCopyObject().(P)
	f(after)
	u := &unstructured.Unstructured{Object: o.Unstructured().Object}
	changed, err := objects.Overlay(u, P(before), after, status)
	if err != nil || !changed {
		return o, err
	}
	return p.write(ctx, o, u, status)
}

// annotate sets annotations of an object, and deletes those without a value
// that keep does not name, as change does.
func (p *process) annotate(ctx context.Context, o *clusterapi.Object, values map[string]string, keep ...string) (*clusterapi.Object, error) {
	content := maps.Clone(o.Unstructured().Object)
	metadata, _ := content["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	annotations, _ := metadata["annotations"].(map[string]any)
	annotations = maps.Clone(annotations)
	if annotations == nil {
		annotations = make(map[string]any)
	}
	for k, v := range values {
		if v == "" && !slices.Contains(keep, k) {
			delete(annotations, k)
		} else {
			annotations[k] = v
		}
	}
	metadata["annotations"], content["metadata"] = annotations, metadata
	return p.write(ctx, o, &unstructured.Unstructured{Object: content}, false)
}

// write stores u, the new form of o.
func (p *process) write(ctx context.Context, o *clusterapi.Object, u *unstructured.Unstructured, status bool) (*clusterapi.Object, error) {
	stored, err := clusterapi.WriteShared(ctx, func(ctx context.Context) (*unstructured.Unstructured, error) {
		if status {
			return p.api.UpdateStatus(ctx, u, update)
		}
		return p.api.Update(ctx, u, update)
	})
	switch {
	case apierrors.IsNotFound(err):
		return o, nil
	case apierrors.IsConflict(err):
		// What was decided from is old: the next attempt sees what is stored.
		_, _ = clusterapi.GetShared(ctx, p.api, o.Kind(), o.Key())
		return nil, err
	}
	return stored, err
}

// createTyped creates an object. One that is there already is not an error.
func createTyped[T any](ctx context.Context, p *process, obj *T) error {
	u, err := clusterapi.ToUnstructured(obj)
	if err != nil {
		return err
	}
	return p.create(ctx, u)
}

func (p *process) create(ctx context.Context, u *unstructured.Unstructured) error {
	_, err := clusterapi.WriteShared(ctx, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return p.api.Create(ctx, u, create)
	})
	if apierrors.IsAlreadyExists(err) {
		// The cache may not have it yet.
		_, _ = clusterapi.GetShared(ctx, p.api, u.GroupVersionKind(), clusterapi.KeyOf(u))
		return nil
	}
	return err
}

// remove asks for the deletion of an object.
func (p *process) remove(ctx context.Context, o *clusterapi.Object) error {
	err := p.api.Delete(ctx, o.Kind(), o.Key(), clusterapi.DeleteOptions{UID: o.UID()})
	if apierrors.IsConflict(err) {
		return nil // another of its name, which was not meant
	}
	return ignoreNotFound(err)
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
