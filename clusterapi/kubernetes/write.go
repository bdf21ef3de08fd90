package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// verb is a write of one object by a client for its kind.
type verb func(client dynamic.ResourceInterface, k kind, obj *unstructured.Unstructured) (*unstructured.Unstructured, error)

// write runs a verb on a copy of the caller's object.
func (c *cluster) write(ctx context.Context, obj *unstructured.Unstructured, do verb) (*unstructured.Unstructured, error) {
	if obj == nil {
		return nil, badRequest("no object")
	}
	var out *unstructured.Unstructured
	err := c.one(ctx, obj.GroupVersionKind(), clusterapi.KeyOf(obj), func(client dynamic.ResourceInterface, k kind) (err error) {
		in := obj.DeepCopy()
		if !k.namespaced {
			// Manifests of cluster-wide objects name a namespace now and then.
			unstructured.RemoveNestedField(in.Object, "metadata", "namespace")
		}
		out, err = do(client, k, in)
		return err
	})
	return only(out, err)
}

// Create implements [clusterapi.Writer].
func (c *cluster) Create(ctx context.Context, obj *unstructured.Unstructured, opts clusterapi.CreateOptions) (*unstructured.Unstructured, error) {
	return c.write(ctx, obj, func(client dynamic.ResourceInterface, _ kind, in *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		return client.Create(ctx, in, metav1.CreateOptions{FieldManager: manager(opts.FieldManager)})
	})
}

// Apply implements [clusterapi.Writer].
func (c *cluster) Apply(ctx context.Context, obj *unstructured.Unstructured, opts clusterapi.ApplyOptions) (*unstructured.Unstructured, error) {
	if opts.FieldManager == "" {
		return nil, badRequest("a field manager is required to apply")
	}
	return c.write(ctx, obj, func(client dynamic.ResourceInterface, k kind, in *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if k.status {
			delete(in.Object, "status")
		}
		return client.Apply(ctx, in.GetName(), in, metav1.ApplyOptions{FieldManager: opts.FieldManager, Force: true})
	})
}

// Update implements [clusterapi.Writer].
func (c *cluster) Update(ctx context.Context, obj *unstructured.Unstructured, opts clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	return c.write(ctx, obj, func(client dynamic.ResourceInterface, _ kind, in *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if err := replaceable(in); err != nil {
			return nil, err
		}
		return client.Update(ctx, in, metav1.UpdateOptions{FieldManager: manager(opts.FieldManager)})
	})
}

// UpdateStatus implements [clusterapi.Writer].
func (c *cluster) UpdateStatus(ctx context.Context, obj *unstructured.Unstructured, opts clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	return c.write(ctx, obj, func(client dynamic.ResourceInterface, k kind, in *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if err := replaceable(in); err != nil {
			return nil, err
		}
		out, err := client.UpdateStatus(ctx, in, metav1.UpdateOptions{FieldManager: manager(opts.FieldManager)})
		if apierrors.IsNotFound(err) && !k.status {
			err = fmt.Errorf("%s %s: the kind has no status subresource: %w", in.GetKind(), in.GetName(), err)
		}
		return out, err
	})
}

// replaceable refuses what many kinds' servers accept: an update that does not
// say what it replaces.
func replaceable(obj *unstructured.Unstructured) error {
	if obj.GetResourceVersion() == "" {
		return badRequest("%s %s: metadata.resourceVersion must be specified for an update", obj.GetKind(), obj.GetName())
	}
	return nil
}

func manager(name string) string {
	if name == "" {
		return clusterapi.ManagerDefault
	}
	return name
}

// Delete implements [clusterapi.Writer].
func (c *cluster) Delete(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, opts clusterapi.DeleteOptions) error {
	propagation := opts.Propagation
	if propagation == "" {
		propagation = metav1.DeletePropagationBackground
	}
	options := metav1.DeleteOptions{PropagationPolicy: &propagation}
	if opts.UID != "" || opts.ResourceVersion != "" {
		options.Preconditions = &metav1.Preconditions{}
		if opts.UID != "" {
			options.Preconditions.UID = &opts.UID
		}
		if opts.ResourceVersion != "" {
			options.Preconditions.ResourceVersion = &opts.ResourceVersion
		}
	}
	return c.one(ctx, gvk, key, func(client dynamic.ResourceInterface, _ kind) error {
		return client.Delete(ctx, key.Name, options)
	})
}

// Evict implements [clusterapi.Evictor].
//
// The client would wait by itself, and try again, where a budget that is not up
// to date makes the server name a time to wait: but a refusal is an answer here,
// and the caller's to act upon.
func (c *cluster) Evict(ctx context.Context, pod types.NamespacedName, opts clusterapi.EvictOptions) error {
	if pod.Name == "" || pod.Namespace == "" {
		return badRequest("an eviction needs a pod's name and namespace, not %q", pod)
	}
	eviction := policyv1.Eviction{
		TypeMeta:      metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "Eviction"},
		ObjectMeta:    metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
		DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: opts.GracePeriodSeconds},
	}
	if opts.UID != "" {
		eviction.DeleteOptions.Preconditions = &metav1.Preconditions{UID: &opts.UID}
	}
	body, err := json.Marshal(eviction)
	if err != nil {
		return err
	}
	return c.rest.Post().
		AbsPath("/api/v1/namespaces", pod.Namespace, "pods", pod.Name, "eviction").
		SetHeader("Content-Type", "application/json").
		MaxRetries(0).
		Body(body).
		Do(ctx).
		Error()
}
