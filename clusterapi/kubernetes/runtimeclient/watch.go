package runtimeclient

import (
	"context"
	"fmt"
	"iter"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/internal/backend"
)

// watched is a cluster whose client can watch.
type watched struct {
	*cluster
	watching client.WithWatch
}

var _ clusterapi.Watcher = (*watched)(nil)

// Watch implements [clusterapi.Watcher]. Which faults end it is documented at
// Watch of package kubernetes.
func (c *watched) Watch(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) iter.Seq2[clusterapi.WatchEvent, error] {
	opts.Limit = 0
	return backend.Watch(ctx, backend.Source{
		List: func(ctx context.Context) (*unstructured.UnstructuredList, int64, error) {
			list, err := c.List(ctx, gvk, opts)
			return list, 0, err
		},
		Follow: func(ctx context.Context, request metav1.ListOptions, do func(watch.EventType, *unstructured.Unstructured, int64) error) error {
			return c.on(ctx, gvk, types.NamespacedName{Namespace: opts.Namespace}, func(key types.NamespacedName) error {
				return c.follow(ctx, gvk, listOptions(opts, key.Namespace, request), do)
			})
		},
		Logger: c.o.Logger,
		Clock:  c.o.Clock,
	}, gvk, opts)
}

// follow reads the events of one watch.
func (c *watched) follow(ctx context.Context, gvk schema.GroupVersionKind, request *client.ListOptions, do func(watch.EventType, *unstructured.Unstructured, int64) error) error {
	stream, err := c.watching.Watch(ctx, listOf(gvk), request)
	if err != nil {
		return err
	}
	defer stream.Stop()
	for {
		var e watch.Event
		var ok bool
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case e, ok = <-stream.ResultChan():
		}
		if !ok {
			return nil
		}
		if e.Type == watch.Error {
			return apierrors.FromObject(e.Object)
		}
		u, ok := e.Object.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("watch of %s: %w: an event with %T", gvk.Kind, backend.ErrAnswer, e.Object)
		}
		if err := do(e.Type, u, 0); err != nil {
			return err
		}
	}
}
