package memory

import (
	"context"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/objects"
)

// Get implements [clusterapi.Reader]. It takes constant time, plus the copy.
func (c *Cluster) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	o, err := c.GetShared(ctx, gvk, key)
	return o.Unstructured().DeepCopy(), err
}

// Shares reports whether r is c itself: a wrapper of c is asked by its own Get
// and List. See [clusterapi.Shared].
func (c *Cluster) Shares(r clusterapi.Reader) bool { return r == clusterapi.Reader(c) }

// GetShared implements [clusterapi.Shared]: it returns what is stored, without
// copying. [Options].Intercept sees it as "Get".
func (c *Cluster) GetShared(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*clusterapi.Object, error) {
	var out *clusterapi.Object
	err := c.call(ctx, Call{Verb: "Get", GVK: gvk, Key: key}, func(ctx context.Context) error {
		k, err := c.touch(ctx, gvk)
		if err != nil {
			return err
		}
		e, err := c.stored(k, key)
		if err != nil {
			return err
		}
		out = c.shared(k, e)
		return nil
	})
	if err == nil && out == nil {
		err = errIntercepted
	}
	return out, err
}

// stored returns an object, or an error that reports that there is none.
func (c *Cluster) stored(k *kind, key types.NamespacedName) (*entry, error) {
	c.mu.RLock()
	e := c.find(k.ref(key))
	c.mu.RUnlock()
	if e != nil {
		return e, nil
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	return nil, c.notFound(k, key)
}

// notFound reports that an object is not there, or that this is not known. The lock
// is held.
func (c *Cluster) notFound(k *kind, key types.NamespacedName) error {
	if err := c.unknown(k.ref(key)); err != nil {
		return err
	}
	return apierrors.NewNotFound(k.resource(), key.Name)
}

// ref is where an object of the kind is stored.
func (k *kind) ref(key types.NamespacedName) ref {
	if k.scope == scopeCluster {
		key.Namespace = ""
	}
	return ref{kind: k.gvk.GroupKind(), key: key}
}

// shown is a stored object in the version of k, with the defaults that its
// definition has got since. It shares what does not change, and is obj if nothing
// does.
func (k *kind) shown(obj *unstructured.Unstructured) *unstructured.Unstructured {
	u := inVersion(obj, k.gvk.GroupVersion())
	if content := k.defaulted(u.Object); !objects.SameMap(content, u.Object) {
		return &unstructured.Unstructured{Object: content}
	}
	return u
}

// List implements [clusterapi.Reader]. It visits only the objects of the kind, of the
// namespace if one is selected, or of the node (pods).
func (c *Cluster) List(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	found, revision, err := c.listShared(ctx, gvk, opts)
	if found == nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{}}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	list.SetResourceVersion(revision)
	list.Items = make([]unstructured.Unstructured, len(found))
	for i, o := range found {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		list.Items[i] = *o.Unstructured().DeepCopy()
	}
	return list, err
}

// ListShared implements [clusterapi.Shared]. It is List without copying, and
// [Options].Intercept sees it as "List".
func (c *Cluster) ListShared(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) ([]*clusterapi.Object, error) {
	found, _, err := c.listShared(ctx, gvk, opts)
	return found, err
}

func (c *Cluster) listShared(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) (out []*clusterapi.Object, revision string, err error) {
	call := Call{Verb: "List", GVK: gvk, Key: types.NamespacedName{Namespace: opts.Namespace}}
	err = c.call(ctx, call, func(ctx context.Context) error {
		k, err := c.touch(ctx, gvk)
		if err != nil {
			return err
		}
		var found []*entry
		found, revision, err = c.list(k, opts)
		if err != nil && found == nil {
			return err
		}
		out = make([]*clusterapi.Object, len(found))
		for i, e := range found {
			out[i] = c.shared(k, e)
		}
		return err
	})
	if err == nil && out == nil {
		err = errIntercepted
	}
	return out, revision, err
}

// list finds the matching entries and the revision at which they are so. An error
// with entries explains why they may not be all.
func (c *Cluster) list(k *kind, opts clusterapi.ListOptions) ([]*entry, string, error) {
	var found []*entry
	over := false
	c.mu.RLock()
	partial := c.unknownIn(k.gvk.GroupKind(), opts.Namespace)
	if partial != nil { // which says more than that there are many
		opts.Limit, found = 0, []*entry{}
	}
	c.tables[k.gvk.GroupKind()].selected(opts, func(e *entry) bool {
		found = append(found, e)
		over = opts.Limit > 0 && len(found) > opts.Limit
		return !over
	})
	revision := strconv.FormatInt(c.revision, 10)
	c.mu.RUnlock()
	if over {
		return nil, "", opts.Exceeded(k.gvk)
	}
	return found, revision, partial
}

// Dependents returns the objects of a kind that name an owner, by its UID, in
// their ownerReferences, sorted by namespace, then name. They are shared as
// those of ListShared. It looks only at these. An API server has no such
// verb, so it is not intercepted. A kind that is not served is an error that
// meta.IsNoMatchError recognises; further errors are those of [Options].Base.
func (c *Cluster) Dependents(gvk schema.GroupVersionKind, owner types.UID) ([]*clusterapi.Object, error) {
	k, err := c.touch(context.Background(), gvk)
	if err != nil {
		return nil, err
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	var out []*clusterapi.Object
	for _, r := range c.dependentsOf(owner) {
		if r.kind == gvk.GroupKind() {
			out = append(out, c.shared(k, c.find(r)))
		}
	}
	return out, nil
}
