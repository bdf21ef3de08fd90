package clusterapi

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/internal/objects"
)

// Get reads one object and converts it to T, of which [KindOf] says the kind.
// Besides the errors of [Reader] it fails where a field has another type than
// T says; fields that T does not have are ignored.
func Get[T any](ctx context.Context, r Reader, key types.NamespacedName) (*T, error) {
	gvk, err := KindOf[T]()
	if err != nil {
		return nil, err
	}
	o, err := GetShared(ctx, r, gvk, key)
	if err != nil {
		return nil, err
	}
	if _, shared := sharedOf(r); shared {
		return owned[T](o)
	}
	out := new(T)
	if err := convertShared(o.u, out); err != nil {
		return nil, err
	}
	return out, nil
}

// List reads all matching objects, sorted by namespace, then name. One object
// that does not convert fails the whole list, since the others would look like
// all there is; the error names it. Where the reader returns objects together
// with [ErrNotCollected], so does List: they are there, and there may be more.
// As with [Get], managedFields are left out and the objects are the caller's.
func List[T any](ctx context.Context, r Reader, opts ListOptions) ([]T, error) {
	gvk, err := KindOf[T]()
	if err != nil {
		return nil, err
	}
	objects, err := ListShared(ctx, r, gvk, opts)
	if objects == nil || err != nil && !errors.Is(err, ErrNotCollected) {
		return nil, err
	}
	_, shared := sharedOf(r)
	out := make([]T, len(objects))
	for i, o := range objects {
		fault := error(nil)
		if shared {
			var t *T
			t, fault = owned[T](o)
			if fault == nil {
				out[i] = *t
			}
		} else {
			fault = convertShared(o.u, &out[i])
		}
		if fault != nil {
			return nil, errors.Join(fault, err)
		}
	}
	return out, err
}

// Create stores a new object; its apiVersion and kind need not be set. It
// returns the object as stored and leaves obj as it is. Its errors are those of
// [Writer], and one that names the field where obj cannot be converted.
func Create[T any](ctx context.Context, w Writer, obj *T, opts CreateOptions) (*T, error) {
	u, err := ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	stored, err := w.Create(ctx, u, opts)
	if err != nil {
		return nil, err
	}
	return FromUnstructured[T](stored)
}

// FromUnstructured converts to a typed object. It is strict about types and the
// ranges of numbers, and ignores fields that T does not have. An error reports
// which object and which field: "ClusterVersion version: spec.channel: ...".
func FromUnstructured[T any](u *unstructured.Unstructured) (*T, error) {
	if u == nil {
		return nil, errors.New("clusterapi: no object to convert")
	}
	out := new(T)
	if err := objects.Convert(u, out); err != nil {
		return nil, err
	}
	return out, nil
}

// ToUnstructured converts a pointer to a typed object. apiVersion and kind are
// those that the object names, else those of its type; with neither it fails.
// The result shares nothing with obj.
func ToUnstructured(obj any) (*unstructured.Unstructured, error) { return objects.ToUnstructured(obj) }

// Kinder is what a typed object that neither k8s.io/api nor
// github.com/openshift/api has implements (on its pointer), so that Get, List
// and Modify know its kind. APIKind returns a constant, so it is safe for
// concurrent use.
type Kinder interface {
	APIKind() schema.GroupVersionKind
}

// KindOf returns the group, version and kind of T, a struct of k8s.io/api or
// github.com/openshift/api, or one whose pointer implements [Kinder]. Any other
// type is an error.
func KindOf[T any]() (schema.GroupVersionKind, error) { return objects.KindOf(new(T)) }

// Key is short for types.NamespacedName; namespace is empty for cluster-scoped
// kinds.
func Key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// KeyOf returns the namespace and name of an object.
func KeyOf(u *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}
}
