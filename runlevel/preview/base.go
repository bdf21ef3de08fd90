package preview

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// base is the cluster as the fork reads it. What was not collected, or must not
// be read, is an empty list that is not complete, so that the fork stores
// objects as if they were new. It remembers the states that it has given out.
type base struct {
	reader clusterapi.Reader

	mu     sync.Mutex // guards what follows
	states map[ref]*clusterapi.Object
	failed error // the first failure that says nothing about the cluster
}

// ref is an object of a cluster, in any version.
type ref struct {
	schema.GroupKind
	types.NamespacedName
}

func refOf(gvk schema.GroupVersionKind, key types.NamespacedName) ref {
	return ref{gvk.GroupKind(), key}
}

func (b *base) List(ctx context.Context, gvk schema.GroupVersionKind, o clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	objects, err := b.ListShared(ctx, gvk, o)
	if objects == nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{Items: make([]unstructured.Unstructured, len(objects))}
	for i, o := range objects {
		list.Items[i] = *o.Unstructured().DeepCopy()
	}
	return list, err
}

func (b *base) ListShared(ctx context.Context, gvk schema.GroupVersionKind, o clusterapi.ListOptions) ([]*clusterapi.Object, error) {
	objects, err := clusterapi.ListShared(ctx, b.reader, gvk, o)
	switch {
	case apierrors.IsForbidden(err):
		err = forbidden{err}
	case err != nil && !errors.Is(err, clusterapi.ErrNotCollected) && !meta.IsNoMatchError(err):
		b.fail(ctx, fmt.Errorf("reading %s: %w", gvk.Kind, err))
		return nil, err
	}
	if errors.Is(err, clusterapi.ErrNotCollected) && objects == nil {
		objects = []*clusterapi.Object{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, o := range objects {
		b.states[refOf(gvk, o.Key())] = o
	}
	return objects, err
}

func (b *base) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	o, err := b.GetShared(ctx, gvk, key)
	if err != nil {
		return nil, err
	}
	return o.Unstructured().DeepCopy(), nil
}

func (b *base) GetShared(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*clusterapi.Object, error) {
	o, err := clusterapi.GetShared(ctx, b.reader, gvk, key)
	switch {
	case apierrors.IsForbidden(err):
		err = forbidden{err}
	case err != nil && !clusterapi.IsAbsent(err):
		b.fail(ctx, fmt.Errorf("reading %s %s: %w", gvk.Kind, key.Name, err))
	}
	return o, err
}

// Shares reports that what it returns is shared if its reader is'.
func (b *base) Shares(r clusterapi.Reader) bool {
	if s, ok := b.reader.(interface{ Shares(clusterapi.Reader) bool }); ok {
		return r == clusterapi.Reader(b) && s.Shares(b.reader)
	}
	_, ok := b.reader.(clusterapi.Shared)
	return ok && r == clusterapi.Reader(b)
}

func (b *base) fail(ctx context.Context, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed == nil && ctx.Err() == nil {
		b.failed = err
	}
}

// failure is why the preview cannot continue, or nil.
func (b *base) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed
}

// state is an object as the cluster has it, or nil.
func (b *base) state(r ref) *clusterapi.Object {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.states[r]
}

// forbidden is the error of a read that is not allowed. It says no more about what
// exists than the error for an object that was not collected.
type forbidden struct{ error }

func (e forbidden) Unwrap() error        { return e.error }
func (e forbidden) Is(target error) bool { return target == clusterapi.ErrNotCollected }
