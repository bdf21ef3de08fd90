package runtimeclient

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/internal/backend"
)

// write runs a verb on a copy of the caller's object, into which the client
// puts the stored one.
func (c *cluster) write(ctx context.Context, obj *unstructured.Unstructured, do func(u *unstructured.Unstructured) error) (*unstructured.Unstructured, error) {
	if obj == nil || obj.Object == nil {
		return nil, backend.BadRequest("no object")
	}
	gvk := obj.GroupVersionKind()
	u := obj.DeepCopy()
	err := c.one(ctx, gvk, clusterapi.KeyOf(obj), func(key types.NamespacedName) error {
		if key.Namespace == "" {
			// Manifests of cluster-wide objects name a namespace now and then.
			unstructured.RemoveNestedField(u.Object, "metadata", "namespace")
		}
		if err := do(u); err != nil {
			return err
		}
		return backend.Same(u, gvk, key)
	})
	return only(u, err)
}

// Create implements [clusterapi.Writer].
func (c *cluster) Create(ctx context.Context, obj *unstructured.Unstructured, opts clusterapi.CreateOptions) (*unstructured.Unstructured, error) {
	return c.write(ctx, obj, func(u *unstructured.Unstructured) error {
		if err := backend.Creatable(u); err != nil {
			return err
		}
		return c.client.Create(ctx, u, owner(opts.FieldManager))
	})
}

// Apply implements [clusterapi.Writer].
func (c *cluster) Apply(ctx context.Context, obj *unstructured.Unstructured, opts clusterapi.ApplyOptions) (*unstructured.Unstructured, error) {
	return c.write(ctx, obj, func(u *unstructured.Unstructured) error {
		if err := backend.Applicable(u, opts); err != nil {
			return err
		}
		return c.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.ForceOwnership, owner(opts.FieldManager))
	})
}

// Update implements [clusterapi.Writer].
//
// Some kinds' servers create what an update does not find, unless it reports which
// UID it replaces. An object that does not say it is read first.
func (c *cluster) Update(ctx context.Context, obj *unstructured.Unstructured, opts clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	return c.write(ctx, obj, func(u *unstructured.Unstructured) error {
		if err := backend.Replaceable(u); err != nil {
			return err
		}
		if u.GetUID() == "" {
			stored := named(u.GroupVersionKind(), clusterapi.KeyOf(u))
			if err := c.client.Get(ctx, client.ObjectKeyFromObject(u), stored); err != nil {
				return err
			}
			u.SetUID(stored.GetUID())
		}
		return c.client.Update(ctx, u, owner(opts.FieldManager))
	})
}

// UpdateStatus implements [clusterapi.Writer].
func (c *cluster) UpdateStatus(ctx context.Context, obj *unstructured.Unstructured, opts clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	return c.write(ctx, obj, func(u *unstructured.Unstructured) error {
		if err := backend.Replaceable(u); err != nil {
			return err
		}
		patch, err := backend.StatusPatch(u)
		if err != nil {
			return err
		}
		err = c.client.SubResource("status").Patch(ctx, u, client.RawPatch(types.JSONPatchType, patch), owner(opts.FieldManager))
		if !backend.IsUnserved(err) {
			return err
		}
		// Either the kind is not served or it has no status.
		if there := c.client.Get(ctx, client.ObjectKeyFromObject(u), u.DeepCopy()); there == nil {
			return fmt.Errorf("%s %s: the kind has no status subresource", u.GetKind(), u.GetName())
		}
		return err
	})
}

func owner(manager string) client.FieldOwner {
	return client.FieldOwner(cmp.Or(manager, clusterapi.ManagerDefault))
}

// Delete implements [clusterapi.Writer].
func (c *cluster) Delete(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, opts clusterapi.DeleteOptions) error {
	o := backend.Deletion(opts)
	options := &client.DeleteOptions{PropagationPolicy: o.PropagationPolicy, GracePeriodSeconds: o.GracePeriodSeconds, Preconditions: o.Preconditions}
	return c.one(ctx, gvk, key, func(key types.NamespacedName) error {
		if err := backend.CheckName(gvk.Kind, key.Name); err != nil {
			return err
		}
		return c.client.Delete(ctx, named(gvk, key), options)
	})
}

// Evict implements [clusterapi.Evictor].
func (c *cluster) Evict(ctx context.Context, pod types.NamespacedName, opts clusterapi.EvictOptions) error {
	eviction, err := backend.Eviction(pod, opts)
	if err != nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(eviction)
	if err != nil {
		return err
	}
	gvk := corev1.SchemeGroupVersion.WithKind("Pod")
	return c.one(ctx, gvk, pod, func(key types.NamespacedName) error {
		return c.client.SubResource("eviction").Create(ctx, named(gvk, key), &unstructured.Unstructured{Object: content})
	})
}

// named is the object of that kind and name, and no more.
func named(gvk schema.GroupVersionKind, key types.NamespacedName) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(key.Namespace)
	u.SetName(key.Name)
	return u
}
