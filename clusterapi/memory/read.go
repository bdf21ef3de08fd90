package memory

import (
	"context"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Get implements [clusterapi.Reader]. It takes constant time besides the copy.
func (c *Cluster) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	var out *unstructured.Unstructured
	err := c.call(ctx, Call{Verb: "Get", GVK: gvk, Key: key}, func(context.Context) error {
		k, err := c.kind(gvk)
		if err != nil {
			return err
		}
		e, err := c.stored(k, key)
		if err != nil {
			return err
		}
		out = k.result(e)
		return nil
	})
	return out, only(out, err)
}

// stored returns an object, or a NotFound error.
func (c *Cluster) stored(k *kind, key types.NamespacedName) (*entry, error) {
	c.mu.RLock()
	e := c.find(k.ref(key))
	c.mu.RUnlock()
	if e == nil {
		return nil, apierrors.NewNotFound(k.resource(), key.Name)
	}
	return e, nil
}

// ref is where an object of the kind is stored.
func (k *kind) ref(key types.NamespacedName) ref {
	if k.scope == scopeCluster {
		key.Namespace = ""
	}
	return ref{kind: k.gvk.GroupKind(), key: key}
}

// result copies an entry for a caller.
func (k *kind) result(e *entry) *unstructured.Unstructured { return k.shown(e.obj) }

// shown copies a stored object for a caller, with the defaults that its
// definition has got meanwhile.
func (k *kind) shown(obj *unstructured.Unstructured) *unstructured.Unstructured {
	u := inVersion(obj, k.gvk.GroupVersion())
	return (&unstructured.Unstructured{Object: k.defaulted(u.Object)}).DeepCopy()
}

// only makes an interceptor that swallows the verb and returns nil harmless:
// callers never get nil together with no error.
func only(out any, err error) error {
	if u, ok := out.(*unstructured.Unstructured); ok && u == nil && err == nil {
		return errIntercepted
	}
	if l, ok := out.(*unstructured.UnstructuredList); ok && l == nil && err == nil {
		return errIntercepted
	}
	return err
}

// List implements [clusterapi.Reader]. It visits the objects of the kind, and
// of the namespace where one is selected, and no others.
func (c *Cluster) List(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	var out *unstructured.UnstructuredList
	call := Call{Verb: "List", GVK: gvk, Key: types.NamespacedName{Namespace: opts.Namespace}}
	err := c.call(ctx, call, func(ctx context.Context) error {
		k, err := c.kind(gvk)
		if err != nil {
			return err
		}
		found, revision, err := c.list(k, opts)
		if err != nil {
			return err
		}
		list := &unstructured.UnstructuredList{Object: map[string]any{}}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		list.SetResourceVersion(revision)
		list.Items = make([]unstructured.Unstructured, len(found))
		for i, e := range found {
			if err := ctx.Err(); err != nil {
				return err
			}
			list.Items[i] = *k.result(e)
		}
		out = list
		return nil
	})
	return out, only(out, err)
}

// list finds the matching entries and the revision at which they are so.
func (c *Cluster) list(k *kind, opts clusterapi.ListOptions) ([]*entry, string, error) {
	var found []*entry
	over := false
	c.mu.RLock()
	c.tables[k.gvk.GroupKind()].each(opts.Namespace, func(_ types.NamespacedName, e *entry) bool {
		if selects(opts, e.obj) {
			found = append(found, e)
		}
		over = opts.Limit > 0 && len(found) > opts.Limit
		return !over
	})
	revision := strconv.FormatInt(c.revision, 10)
	c.mu.RUnlock()
	if over {
		return nil, "", &clusterapi.LimitError{GVK: k.gvk, Limit: opts.Limit}
	}
	return found, revision, nil
}

// selects tells whether the options select an object of the right kind.
func selects(opts clusterapi.ListOptions, obj *unstructured.Unstructured) bool {
	m := metadata(obj)
	if opts.Namespace != "" && m["namespace"] != opts.Namespace {
		return false
	}
	if opts.Labels != nil && !opts.Labels.Matches(labelsOf(m)) {
		return false
	}
	if opts.NodeName != "" {
		spec, _ := obj.Object["spec"].(map[string]any)
		if spec["nodeName"] != opts.NodeName {
			return false
		}
	}
	return true
}

// labelsOf presents the labels in metadata without copying them.
type labelsOf map[string]any

var _ labels.Labels = labelsOf(nil)

func (l labelsOf) Lookup(label string) (string, bool) {
	all, _ := l["labels"].(map[string]any)
	v, ok := all[label].(string)
	return v, ok
}

func (l labelsOf) Has(label string) bool {
	_, ok := l.Lookup(label)
	return ok
}

func (l labelsOf) Get(label string) string {
	v, _ := l.Lookup(label)
	return v
}
