package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/internal/backend"
)

// verb is a write of one object.
type verb func(ctx context.Context, k kind, key types.NamespacedName, obj *unstructured.Unstructured) (*unstructured.Unstructured, error)

// write runs a verb on a copy of the caller's object.
func (c *Cluster) write(ctx context.Context, obj *unstructured.Unstructured, do verb) (out *unstructured.Unstructured, err error) {
	if obj == nil || obj.Object == nil {
		return nil, backend.BadRequest("no object")
	}
	err = c.one(ctx, obj.GroupVersionKind(), clusterapi.KeyOf(obj), func(ctx context.Context, k kind, key types.NamespacedName) (err error) {
		in := obj.DeepCopy()
		if !k.namespaced {
			// Manifests of cluster-wide objects name a namespace now and then.
			unstructured.RemoveNestedField(in.Object, "metadata", "namespace")
		}
		out, err = do(ctx, k, key, in)
		return err
	})
	return out, err
}

// Create implements [clusterapi.Writer].
func (c *Cluster) Create(ctx context.Context, obj *unstructured.Unstructured, opts clusterapi.CreateOptions) (*unstructured.Unstructured, error) {
	return c.write(ctx, obj, func(ctx context.Context, k kind, key types.NamespacedName, in *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if err := backend.Creatable(in); err != nil {
			return nil, err
		}
		path, err := pathToAll(k, key.Namespace)
		if err != nil {
			return nil, err
		}
		request := params(c.rest.Post().AbsPath(path...), &metav1.CreateOptions{FieldManager: manager(opts.FieldManager), DryRun: c.dryRun()})
		return stored(ctx, request, in, key)
	})
}

// Apply implements [clusterapi.Writer].
func (c *Cluster) Apply(ctx context.Context, obj *unstructured.Unstructured, opts clusterapi.ApplyOptions) (*unstructured.Unstructured, error) {
	return c.write(ctx, obj, func(ctx context.Context, k kind, key types.NamespacedName, in *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if err := backend.Applicable(in, opts); err != nil {
			return nil, err
		}
		if k.status {
			delete(in.Object, "status")
		}
		path, err := pathTo(k, key)
		if err != nil {
			return nil, err
		}
		force := true
		request := params(c.rest.Patch(types.ApplyYAMLPatchType).AbsPath(path...), &metav1.PatchOptions{FieldManager: opts.FieldManager, Force: &force, DryRun: c.dryRun()})
		body, err := encode(in)
		if err != nil {
			return nil, err
		}
		return object(ctx, request.Body(body), in.GroupVersionKind(), key)
	})
}

// Update implements [clusterapi.Writer].
//
// Some kinds' servers create what an update does not find, unless it reports which
// UID it replaces. An object that does not say it is read first.
func (c *Cluster) Update(ctx context.Context, obj *unstructured.Unstructured, opts clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	return c.write(ctx, obj, func(ctx context.Context, k kind, key types.NamespacedName, in *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if err := backend.Replaceable(in); err != nil {
			return nil, err
		}
		path, err := pathTo(k, key)
		if err != nil {
			return nil, err
		}
		if in.GetUID() == "" {
			stored, err := object(ctx, c.rest.Get().AbsPath(path...), in.GroupVersionKind(), key)
			if err != nil {
				return nil, err
			}
			in.SetUID(stored.GetUID())
		}
		request := params(c.rest.Put().AbsPath(path...), &metav1.UpdateOptions{FieldManager: manager(opts.FieldManager), DryRun: c.dryRun()})
		return stored(ctx, request, in, key)
	})
}

// UpdateStatus implements [clusterapi.Writer].
//
// It is a patch of the status alone, since an update of that subresource writes
// labels, annotations and finalizers of many kinds as well.
func (c *Cluster) UpdateStatus(ctx context.Context, obj *unstructured.Unstructured, opts clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	return c.write(ctx, obj, func(ctx context.Context, k kind, key types.NamespacedName, in *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if err := backend.Replaceable(in); err != nil && k.status {
			return nil, err
		}
		path, err := pathTo(k, key, "status")
		if err != nil {
			return nil, err
		}
		patch, err := backend.StatusPatch(in)
		if err != nil {
			return nil, err
		}
		request := params(c.rest.Patch(types.JSONPatchType).AbsPath(path...), &metav1.PatchOptions{FieldManager: manager(opts.FieldManager), DryRun: c.dryRun()})
		out, err := object(ctx, request.Body(patch), in.GroupVersionKind(), key)
		if apierrors.IsNotFound(err) && !k.status {
			err = fmt.Errorf("%s %s: the kind has no status subresource: %w", in.GetKind(), in.GetName(), err)
		}
		return out, err
	})
}

// stored sends an object and returns it as stored.
func stored(ctx context.Context, request *rest.Request, in *unstructured.Unstructured, key types.NamespacedName) (*unstructured.Unstructured, error) {
	body, err := encode(in)
	if err != nil {
		return nil, err
	}
	return object(ctx, with(request, body), in.GroupVersionKind(), key)
}

func encode(in *unstructured.Unstructured) ([]byte, error) {
	body, err := json.Marshal(in.Object)
	if err != nil {
		return nil, backend.BadRequest("%s %s: %v", in.GetKind(), in.GetName(), err)
	}
	return body, nil
}

func manager(name string) string { return cmp.Or(name, clusterapi.ManagerDefault) }

// dryRun is the value of the option of that name, which every write sends.
func (c *Cluster) dryRun() []string {
	if c.o.DryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// DryRun reports whether writes store nothing: [Options].DryRun.
func (c *Cluster) DryRun() bool { return c.o.DryRun }

// Delete implements [clusterapi.Writer].
//
// Its options are the body, all of them: if there is one, a server does not read
// the query.
func (c *Cluster) Delete(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, opts clusterapi.DeleteOptions) error {
	options := backend.Deletion(opts)
	options.DryRun = c.dryRun()
	return c.one(ctx, gvk, key, func(ctx context.Context, k kind, key types.NamespacedName) error {
		path, err := pathTo(k, key)
		if err != nil {
			return err
		}
		body, err := json.Marshal(options)
		if err != nil {
			return err
		}
		_, err = send(ctx, with(c.rest.Delete().AbsPath(path...), body))
		return err
	})
}

// Evict implements [clusterapi.Evictor].
//
// The client would wait by itself, and try again, where a budget that is not up
// to date makes the server name a time to wait: but a refusal is an answer here,
// and the caller's to act on.
func (c *Cluster) Evict(ctx context.Context, pod types.NamespacedName, opts clusterapi.EvictOptions) error {
	eviction, err := backend.Eviction(pod, opts)
	if err != nil {
		return err
	}
	path, err := pathTo(kind{resource: corev1.SchemeGroupVersion.WithResource("pods"), namespaced: true}, pod, "eviction")
	if err != nil {
		return err
	}
	body, err := json.Marshal(eviction)
	if err != nil {
		return err
	}
	return c.call(ctx, func(ctx context.Context) error {
		request := params(c.rest.Post().AbsPath(path...), &metav1.CreateOptions{DryRun: c.dryRun()})
		_, err := send(ctx, with(request, body).MaxRetries(0))
		return err
	})
}
