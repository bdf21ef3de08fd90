package dump

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Get implements [clusterapi.Reader]. Where the object is not there, the error
// reports what that means: apierrors.IsNotFound recognises it where the recording
// has the kind whole, meta.IsNoMatchError where the cluster does not serve the kind
// in that version, and it is [clusterapi.ErrNotCollected] in all other cases.
func (r *Recording) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	o, err := r.find(ctx, gvk, key)
	if err != nil {
		return nil, err
	}
	return o.own(gvk)
}

// GetShared implements [clusterapi.Shared]. Errors are those of Get.
func (r *Recording) GetShared(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*clusterapi.Object, error) {
	o, err := r.find(ctx, gvk, key)
	if err != nil {
		return nil, err
	}
	return o.in(gvk)
}

// Shares reports whether other is r itself: see [clusterapi.Shared].
func (r *Recording) Shares(other clusterapi.Reader) bool { return other == clusterapi.Reader(r) }

func (r *Recording) find(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*object, error) {
	k, err := r.kind(ctx, gvk)
	if err != nil {
		return nil, err
	}
	if k.scope == scopeCluster && k.byKey[key] == nil {
		key.Namespace = ""
	}
	if o := k.byKey[key]; o != nil {
		return o, nil
	}
	if k.in(key.Namespace) == gradeWhole {
		return nil, apierrors.NewNotFound(k.groupResource(), key.Name)
	}
	return nil, fmt.Errorf("%s %s: %w", gvk.Kind, keyText(key), clusterapi.ErrNotCollected)
}

func keyText(key types.NamespacedName) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.String()
}

// List implements [clusterapi.Reader]. Where the recording does not have everything
// that is asked for, the error is a [*PartialError], which
// [clusterapi.ErrNotCollected] recognises, and comes with what there is, which may
// be nothing. It comes instead of a [*clusterapi.LimitError], too. Other errors are
// those of Get.
func (r *Recording) List(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	list := &unstructured.UnstructuredList{Object: map[string]any{}, Items: []unstructured.Unstructured{}}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	some, err := r.each(ctx, gvk, opts, func(o *object) (bool, error) {
		u, err := o.own(gvk)
		if err != nil || !opts.Selects(u) {
			return false, err
		}
		list.Items = append(list.Items, *u)
		return true, nil
	})
	if !some {
		return nil, err
	}
	return list, err
}

// ListShared implements [clusterapi.Shared]. Errors are those of List.
func (r *Recording) ListShared(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) ([]*clusterapi.Object, error) {
	out := []*clusterapi.Object{}
	some, err := r.each(ctx, gvk, opts, func(o *object) (bool, error) {
		shared, err := o.in(gvk)
		if err != nil || !opts.Selects(shared.Unstructured()) {
			return false, err
		}
		out = append(out, shared)
		return true, nil
	})
	if !some {
		return nil, err
	}
	return out, err
}

// each calls take for the objects of a kind and namespace; it returns whether the
// options select the object. some reports that there is a result, with or without
// an error.
func (r *Recording) each(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions, take func(*object) (bool, error)) (some bool, err error) {
	k, err := r.kind(ctx, gvk)
	if err != nil {
		return false, err
	}
	candidates := k.objects
	if opts.Namespace != "" {
		candidates = k.of(opts.Namespace)
	}
	partial := r.partial(k, gvk, opts.Namespace)
	taken := 0
	for _, o := range candidates {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		selected, err := take(o)
		if err != nil {
			return false, err
		}
		if selected {
			taken++
		}
		if partial == nil && opts.Limit > 0 && taken > opts.Limit {
			return false, opts.Exceeded(gvk)
		}
	}
	return true, partial
}

// partial returns what a list of a kind lacks, nil for nothing.
func (r *Recording) partial(k *kind, gvk schema.GroupVersionKind, namespace string) error {
	if k.whole {
		return nil
	}
	e := &PartialError{GVK: gvk}
	switch {
	case k.scope == scopeCluster:
	case namespace != "":
		if k.wholeIn[namespace] {
			return nil
		}
		e.Namespaces, e.AllKnown = []string{namespace}, true
	default:
		e.Namespaces = r.spaces.sorted(func(ns string) bool { return !k.wholeIn[ns] })
		e.AllKnown = r.spaces.whole && k.scope == scopeNamespaced
	}
	return e
}

// kind returns what there is of a kind, in a version that may be served.
func (r *Recording) kind(ctx context.Context, gvk schema.GroupVersionKind) (*kind, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	k := r.lookup(gvk.GroupKind())
	switch {
	case gvk.Kind == "" || gvk.Version == "":
	case k.versions[gvk.Version] || k.listed && len(k.versions) == 0: // an empty v1 List has no version
		return k, nil
	case !k.defined && !r.served.denies(gvk.Group):
		if len(k.versions) == 0 {
			return k, nil
		}
		return nil, fmt.Errorf("%s in version %s: %w", gvk.Kind, gvk.Version, clusterapi.ErrNotCollected)
	}
	return nil, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
}

// lookup returns a kind, one without objects if nothing is known of it.
func (r *Recording) lookup(gk schema.GroupKind) *kind {
	if k := r.kinds[gk]; k != nil {
		return k
	}
	k := &kind{gk: gk, scope: scopeOf(gk)}
	k.whole = r.claims.coverEmpty(gk, k.groupResource())
	k.assumed = k.whole
	return k
}

// Coverage reports how much of a kind the recording has. The version does not
// matter, since an object is the same in all of them.
func (r *Recording) Coverage(gvk schema.GroupVersionKind) Coverage {
	k := r.lookup(gvk.GroupKind())
	c := Coverage{Cluster: k.cluster(), Assumed: k.assumed}
	if k.scope == scopeCluster {
		return c
	}
	c.Namespaces = make(map[string]string)
	for ns := range r.spaces.known {
		c.Namespaces[ns] = k.in(ns)
	}
	return c
}

// Assumed reports whether a kind counts as whole on the word of [Options].Whole or
// [MustGather] alone: then, that an object is absent is assumed.
func (r *Recording) Assumed(gvk schema.GroupVersionKind) bool {
	return r.lookup(gvk.GroupKind()).assumed
}

// own returns an object in a version of its kind, to keep.
func (o *object) own(gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	content, err := o.content()
	if err != nil {
		return nil, err
	}
	content["apiVersion"] = gvk.GroupVersion().String()
	return &unstructured.Unstructured{Object: content}, nil
}

// in returns an object in a version of its kind, to look at.
func (o *object) in(gvk schema.GroupVersionKind) (*clusterapi.Object, error) {
	if gvk == o.gvk {
		return o.share()
	}
	u, err := o.own(gvk)
	return clusterapi.NewObject(u), err
}
