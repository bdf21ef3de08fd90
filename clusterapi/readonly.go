package clusterapi

import (
	"context"
	"iter"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// ReadOnly makes a whole cluster of one that is only read: a recording, or a
// cluster that must not be touched. Every verb of [Writer] and [Evictor] is
// refused with an error that apierrors.IsMethodNotSupported recognises. The
// result is a [Watcher] where r is one, and as safe for concurrent use as r.
func ReadOnly(r Reader) ClusterAPI {
	if w, ok := r.(Watcher); ok {
		return watchedReadOnly{readOnly{r}, w}
	}
	return readOnly{r}
}

type readOnly struct{ Reader }

type watchedReadOnly struct {
	readOnly
	w Watcher
}

func (r watchedReadOnly) Watch(ctx context.Context, gvk schema.GroupVersionKind, opts ListOptions) iter.Seq2[Event, error] {
	return r.w.Watch(ctx, gvk, opts)
}

func (readOnly) Create(ctx context.Context, obj *unstructured.Unstructured, _ CreateOptions) (*unstructured.Unstructured, error) {
	return nil, refuse(ctx, obj, "create")
}

func (readOnly) Apply(ctx context.Context, obj *unstructured.Unstructured, _ ApplyOptions) (*unstructured.Unstructured, error) {
	return nil, refuse(ctx, obj, "apply")
}

func (readOnly) Update(ctx context.Context, obj *unstructured.Unstructured, _ UpdateOptions) (*unstructured.Unstructured, error) {
	return nil, refuse(ctx, obj, "update")
}

func (readOnly) UpdateStatus(ctx context.Context, obj *unstructured.Unstructured, _ UpdateOptions) (*unstructured.Unstructured, error) {
	return nil, refuse(ctx, obj, "update status")
}

func (readOnly) Delete(ctx context.Context, gvk schema.GroupVersionKind, _ types.NamespacedName, _ DeleteOptions) error {
	return refuseKind(ctx, gvk, "delete")
}

func (readOnly) Evict(ctx context.Context, _ types.NamespacedName, _ EvictOptions) error {
	return refuseKind(ctx, schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, "evict")
}

func refuse(ctx context.Context, obj *unstructured.Unstructured, verb string) error {
	if obj == nil {
		return apierrors.NewBadRequest("no object")
	}
	return refuseKind(ctx, obj.GroupVersionKind(), verb)
}

func refuseKind(ctx context.Context, gvk schema.GroupVersionKind, verb string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return apierrors.NewMethodNotSupported(schema.GroupResource{Group: gvk.Group, Resource: strings.ToLower(gvk.Kind)}, verb)
}
