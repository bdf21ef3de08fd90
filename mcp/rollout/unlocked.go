package rollout

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// unlocked is a cluster that gives up a lock, which its caller holds, while a
// call is under way: events are taken in meanwhile.
type unlocked struct {
	api clusterapi.ClusterAPI
	mu  *sync.Mutex
}

// without makes a call without the lock.
func without[T any](mu *sync.Mutex, call func() (T, error)) (T, error) {
	mu.Unlock()
	defer mu.Lock()
	return call()
}

func (u unlocked) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	return without(u.mu, func() (*unstructured.Unstructured, error) { return u.api.Get(ctx, gvk, key) })
}

func (u unlocked) List(ctx context.Context, gvk schema.GroupVersionKind, o clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	return without(u.mu, func() (*unstructured.UnstructuredList, error) { return u.api.List(ctx, gvk, o) })
}

func (u unlocked) GetShared(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*clusterapi.Object, error) {
	return without(u.mu, func() (*clusterapi.Object, error) { return clusterapi.GetShared(ctx, u.api, gvk, key) })
}

func (u unlocked) ListShared(ctx context.Context, gvk schema.GroupVersionKind, o clusterapi.ListOptions) ([]*clusterapi.Object, error) {
	return without(u.mu, func() ([]*clusterapi.Object, error) { return clusterapi.ListShared(ctx, u.api, gvk, o) })
}

func (u unlocked) Create(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.CreateOptions) (*unstructured.Unstructured, error) {
	return without(u.mu, func() (*unstructured.Unstructured, error) { return u.api.Create(ctx, obj, o) })
}

func (u unlocked) Apply(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.ApplyOptions) (*unstructured.Unstructured, error) {
	return without(u.mu, func() (*unstructured.Unstructured, error) { return u.api.Apply(ctx, obj, o) })
}

func (u unlocked) Update(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	return without(u.mu, func() (*unstructured.Unstructured, error) { return u.api.Update(ctx, obj, o) })
}

func (u unlocked) UpdateStatus(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	return without(u.mu, func() (*unstructured.Unstructured, error) { return u.api.UpdateStatus(ctx, obj, o) })
}

func (u unlocked) Delete(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, o clusterapi.DeleteOptions) error {
	_, err := without(u.mu, func() (any, error) { return nil, u.api.Delete(ctx, gvk, key, o) })
	return err
}

func (u unlocked) Evict(ctx context.Context, pod types.NamespacedName, o clusterapi.EvictOptions) error {
	_, err := without(u.mu, func() (any, error) { return nil, u.api.Evict(ctx, pod, o) })
	return err
}
