package clusterapi

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// ReadOnly makes a whole cluster of one that is only read: a recording, or a
// cluster that must not be touched. Every verb of [Writer] and [Evictor] is
// refused with an error that apierrors.IsMethodNotSupported recognises. The
// result is a [Watcher] and a [Follower] where r is one, and [Shared] with the
// objects of r where r is. [TimeOf], [AlertsOf] and [Assumed] answer as for r. It is as safe for concurrent use as r.
func ReadOnly(r Reader) ClusterAPI {
	w, watches := r.(Watcher)
	f, follows := r.(Follower)
	only := readOnly{r}
	switch {
	case watches && follows:
		return struct {
			readOnly
			Watcher
			Follower
		}{only, w, f}
	case watches:
		return struct {
			readOnly
			Watcher
		}{only, w}
	case follows:
		return struct {
			readOnly
			Follower
		}{only, f}
	}
	return only
}

// readOnly has no field that leads to more of a reader than it should.
type readOnly struct{ r Reader }

func (r readOnly) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	return r.r.Get(ctx, gvk, key)
}

func (r readOnly) List(ctx context.Context, gvk schema.GroupVersionKind, opts ListOptions) (*unstructured.UnstructuredList, error) {
	return r.r.List(ctx, gvk, opts)
}

func (r readOnly) GetShared(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*Object, error) {
	return GetShared(ctx, r.r, gvk, key)
}

func (r readOnly) ListShared(ctx context.Context, gvk schema.GroupVersionKind, opts ListOptions) ([]*Object, error) {
	return ListShared(ctx, r.r, gvk, opts)
}

func (r readOnly) Time() time.Time { return TimeOf(r.r) }

func (r readOnly) Firing(ctx context.Context) ([]Alert, error) { return AlertsOf(ctx, r.r) }

func (r readOnly) Assumed(gvk schema.GroupVersionKind) bool { return Assumed(r.r, gvk) }

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
