package runlevel

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/apiserver"
	"github.com/clusterupdate/clusterupdate/internal/objects"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// definitions are the manifests of CustomResourceDefinitions that a payload applies,
// by what they define.
type definitions map[schema.GroupKind][]*manifest.Manifest

func definitionsOf(tasks []*manifest.Task, included func(*manifest.Manifest) bool) definitions {
	out := make(definitions)
	for _, t := range tasks {
		m := t.Manifest
		if m.GVK() == crdKind && isStatement(m) && included(m) {
			kind := apiserver.Kind(m.Object().Object)
			out[kind] = append(out[kind], m)
		}
	}
	return out
}

// merged is the definition that manifests of one object make, as it is applied.
func merged(manifests []*manifest.Manifest) *unstructured.Unstructured {
	out := manifests[0].Object()
	for _, m := range manifests[1:] {
		out = out.DeepCopy()
		objects.Merge(out, m.Object().DeepCopy(), func(string) {})
	}
	return out
}

// schema returns the schema of a custom resource whose definition the payload brings;
// nil for other kinds.
func (a *applier) schema(kind schema.GroupVersionKind) map[string]any {
	defined := a.definitions[kind.GroupKind()]
	if len(defined) == 0 {
		return nil
	}
	return apiserver.Of(merged(defined).Object, kind.Version)
}

// removeUndefined removes the fields of a custom resource that its definition lacks,
// and returns their paths, sorted. obj must be the caller's own.
func removeUndefined(obj, definition *unstructured.Unstructured) ([]string, error) {
	tree := apiserver.Of(definition.Object, obj.GroupVersionKind().Version)
	if tree == nil {
		return nil, nil
	}
	var removed []string
	obj.Object = apiserver.Prune(obj.Object, tree, func(path string) { removed = append(removed, path) })
	if len(removed) > maxUnknown {
		return nil, tooManyUnknown(removed)
	}
	slices.Sort(removed)
	return removed, nil
}

// definedInCluster returns an object without the fields that its definition in the
// cluster lacks, which a warning names; the object itself if it has none, or if the
// payload brings its definition: then the cluster is about to have that.
func (a *applier) definedInCluster(ctx context.Context, t *manifest.Task, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	kind := obj.GroupVersionKind()
	if _, ok := kubernetesType(kind); ok || kind == crdKind || len(a.definitions[kind.GroupKind()]) > 0 {
		return obj, nil
	}
	definition, err := a.definition(ctx, kind)
	if definition == nil || err != nil {
		return obj, err
	}
	out := obj.DeepCopy()
	removed, err := removeUndefined(out, definition)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Manifest, err)
	}
	if len(removed) == 0 {
		return obj, nil
	}
	a.warnUnknown(t, removed)
	return out, nil
}

// definition reads the definition of a kind; nil if the cluster has none. Most are
// named by the usual plural of the kind.
func (a *applier) definition(ctx context.Context, kind schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	found, err := clusterapi.GetShared(ctx, a.api, crdKind, clusterapi.Key("", plural.GroupResource().String()))
	if err == nil && apiserver.Kind(found.Unstructured().Object) == kind.GroupKind() {
		return found.Unstructured(), nil
	}
	if err != nil && !clusterapi.IsMissing(err) {
		return nil, err
	}
	all, err := clusterapi.ListShared(ctx, a.api, crdKind, clusterapi.ListOptions{})
	if err != nil && !clusterapi.IsAbsent(err) {
		return nil, err
	}
	for _, o := range all {
		if strings.HasSuffix(o.Key().Name, "."+kind.Group) && apiserver.Kind(o.Unstructured().Object) == kind.GroupKind() {
			return o.Unstructured(), nil
		}
	}
	return nil, nil
}

// applyFields applies an object. If that fails, and the payload does not bring its
// definition, it uses the one that the cluster has, from then on.
func (a *applier) applyFields(ctx context.Context, t *manifest.Task, obj *unstructured.Unstructured) (*clusterapi.Object, error) {
	apply := func(obj *unstructured.Unstructured) (*clusterapi.Object, error) {
		return clusterapi.WriteShared(ctx, func(ctx context.Context) (*unstructured.Unstructured, error) {
			return a.api.Apply(ctx, obj, clusterapi.ApplyOptions{FieldManager: clusterapi.ManagerPayload})
		})
	}
	id := identityOf(obj)
	if a.tracker.lacksFields(id) {
		known, err := a.definedInCluster(ctx, t, obj)
		if err != nil {
			return nil, err
		}
		return apply(known)
	}
	stored, err := apply(obj)
	if err == nil || ctx.Err() != nil || clusterapi.IsMissing(err) || apierrors.IsConflict(err) || apierrors.IsForbidden(err) {
		return stored, err
	}
	known, failed := a.definedInCluster(ctx, t, obj)
	if failed != nil || known == obj {
		return nil, err
	}
	a.tracker.noteLacking(id)
	return apply(known)
}
