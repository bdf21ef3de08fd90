package main

import (
	"cmp"
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// An inventory is a backend of one's own: a map from kinds to objects. It is only read.
type inventory map[schema.GroupVersionKind][]*unstructured.Unstructured

func newInventory(objects []*unstructured.Unstructured) clusterapi.ClusterAPI {
	i := inventory{}
	for _, u := range objects {
		i[u.GroupVersionKind()] = append(i[u.GroupVersionKind()], u)
	}
	return clusterapi.ReadOnly(i)
}

func (i inventory) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	list, err := i.List(ctx, gvk, clusterapi.ListOptions{Namespace: key.Namespace})
	if err != nil {
		return nil, err
	}
	for _, u := range list.Items {
		if clusterapi.KeyOf(&u) == key {
			return &u, nil
		}
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.String())
}

func (i inventory) List(ctx context.Context, gvk schema.GroupVersionKind, o clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if i[gvk] == nil {
		return nil, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	}
	list := &unstructured.UnstructuredList{}
	for _, u := range i[gvk] {
		if o.Selects(u) {
			list.Items = append(list.Items, *u.DeepCopy())
		}
	}
	if o.Limit > 0 && len(list.Items) > o.Limit {
		return nil, o.Exceeded(gvk)
	}
	slices.SortFunc(list.Items, func(a, b unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return list, nil
}
