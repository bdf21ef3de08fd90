package runtimeclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/internal/backend"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// Options are the options of [New]. The zero value works.
type Options struct {
	// PageSize is the number of objects that one request of a list asks for; 0
	// means 500.
	PageSize int64
	// MaxItems bounds the number of objects and pages of a list; 0 means
	// 1,000,000. More are an error in whose chain kubernetes.ErrTooLarge is.
	MaxItems int
	// Logger gets the faults that watches recover from; nil means no logging.
	Logger *slog.Logger
	// Clock is the time that a watch waits by after a fault; nil means the real
	// one.
	Clock clock.Clock
}

// New returns the cluster that a client reaches. It sends nothing yet, and is
// safe for concurrent use where the client is. Where the client is a
// client.WithWatch, the result is a [clusterapi.Watcher], too.
func New(c client.Client, o Options) (clusterapi.ClusterAPI, error) {
	if c == nil {
		return nil, errors.New("runtimeclient: a client is required")
	}
	if o.PageSize < 0 || o.MaxItems < 0 {
		return nil, fmt.Errorf("runtimeclient: Options.PageSize is %d and Options.MaxItems is %d: neither may be negative", o.PageSize, o.MaxItems)
	}
	if o.PageSize == 0 {
		o.PageSize = 500
	}
	if o.MaxItems == 0 {
		o.MaxItems = 1_000_000
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	api := &cluster{c, o}
	if w, ok := c.(client.WithWatch); ok {
		return &watched{api, w}, nil
	}
	return api, nil
}

// cluster is a [clusterapi.ClusterAPI] by way of a client.
type cluster struct {
	client client.Client
	o      Options
}

// on calls do with the key of an object of a kind that the server serves, which has
// a namespace where the kind is namespaced, and none if it is not.
func (c *cluster) on(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, do func(key types.NamespacedName) error) error {
	namespaced, err := c.namespaced(ctx, gvk)
	if err != nil {
		return err
	}
	if !namespaced {
		key.Namespace = ""
	}
	if err := backend.CheckNamespace(gvk.Kind, key.Namespace); err != nil {
		return err
	}
	return unserved(gvk, do(key))
}

// one is as on, for a single object.
func (c *cluster) one(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, do func(key types.NamespacedName) error) error {
	return c.on(ctx, gvk, key, func(out types.NamespacedName) error {
		if out.Namespace == "" {
			if namespaced, err := c.namespaced(ctx, gvk); err != nil {
				return err
			} else if namespaced {
				return backend.BadRequest("%s %s: the kind is namespaced, and no namespace is given", gvk.Kind, key.Name)
			}
		}
		return do(out)
	})
}

// namespaced asks the client's RESTMapper, which may ask the server and knows
// no contexts.
func (c *cluster) namespaced(ctx context.Context, gvk schema.GroupVersionKind) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, context.Cause(ctx)
	}
	type answer struct {
		namespaced bool
		err        error
	}
	answers := make(chan answer, 1)
	go func() {
		a := answer{err: &panics.Error{}}
		defer func() { answers <- a }()
		a.err = panics.Catch(func() (err error) {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(gvk)
			a.namespaced, err = c.client.IsObjectNamespaced(u)
			return err
		})
	}()
	select {
	case a := <-answers:
		return a.namespaced, a.err
	case <-ctx.Done():
		return false, fmt.Errorf("finding %s: %w", gvk, context.Cause(ctx))
	}
}

// unserved reports that a kind has no match where the server reports that it does
// not serve what the mapper found.
func unserved(gvk schema.GroupVersionKind, err error) error {
	if backend.IsUnserved(err) {
		return &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	}
	return err
}

// Get implements [clusterapi.Reader].
func (c *cluster) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (out *unstructured.Unstructured, err error) {
	err = c.one(ctx, gvk, key, func(key types.NamespacedName) error {
		if err := backend.CheckName(gvk.Kind, key.Name); err != nil {
			return err
		}
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gvk)
		if err := c.client.Get(ctx, key, u); err != nil {
			return err
		}
		out, err = u, backend.Same(u, gvk, key)
		return err
	})
	return only(out, err)
}

// only returns an object or an error, never both.
func only(u *unstructured.Unstructured, err error) (*unstructured.Unstructured, error) {
	if err != nil {
		return nil, err
	}
	return u, nil
}

// List implements [clusterapi.Reader].
func (c *cluster) List(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) (out *unstructured.UnstructuredList, err error) {
	err = c.on(ctx, gvk, types.NamespacedName{Namespace: opts.Namespace}, func(key types.NamespacedName) error {
		n := 0
		out, err = backend.Pages(ctx, gvk, opts, c.o.PageSize, func(ctx context.Context, request metav1.ListOptions) (*unstructured.UnstructuredList, error) {
			if request.Continue == "" {
				n = 0
			}
			page := listOf(gvk)
			if err := c.client.List(ctx, page, listOptions(opts, key.Namespace, request)); err != nil {
				return nil, err
			}
			if n += 1 + len(page.Items); n > c.o.MaxItems {
				return nil, fmt.Errorf("list of %s: %w: it exceeds Options.MaxItems, which is %d", gvk.Kind, backend.ErrTooLarge, c.o.MaxItems)
			}
			return page, backend.SameList(page, gvk)
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func listOf(gvk schema.GroupVersionKind) *unstructured.UnstructuredList {
	out := &unstructured.UnstructuredList{}
	out.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	return out
}

// listOptions describes what opts and a request say in the client's terms.
func listOptions(opts clusterapi.ListOptions, namespace string, request metav1.ListOptions) *client.ListOptions {
	out := &client.ListOptions{
		Namespace: namespace, LabelSelector: opts.Labels,
		Limit: request.Limit, Continue: request.Continue,
		Raw: &request,
	}
	if opts.NodeName != "" {
		out.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", opts.NodeName)
	}
	return out
}
