package reconcile

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// calls is the cluster as the reconcilers of a live driver see it: every call has a
// deadline, and writes are known at once if the API has no events.
type calls struct {
	api     clusterapi.ClusterAPI
	clock   clock.WithTicker
	timeout time.Duration
	sources *sources
	// unwatched shows the watches what the calls write, if the API has no events.
	unwatched bool
}

var (
	_ clusterapi.ClusterAPI = (*calls)(nil)
	_ clusterapi.Shared     = (*calls)(nil)
)

// optional returns c with those optional interfaces that its API has.
func (c *calls) optional() clusterapi.ClusterAPI {
	w, watches := c.api.(clusterapi.Watcher)
	f, follows := c.api.(clusterapi.Follower)
	switch {
	case watches && follows:
		return struct {
			*calls
			watching
			clusterapi.Follower
		}{c, watching{w}, f}
	case watches:
		return struct {
			*calls
			watching
		}{c, watching{w}}
	case follows:
		return struct {
			*calls
			clusterapi.Follower
		}{c, f}
	}
	return c
}

type watching struct{ w clusterapi.Watcher }

func (w watching) Watch(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) iter.Seq2[clusterapi.WatchEvent, error] {
	return w.w.Watch(ctx, gvk, opts)
}

// do makes one call within its deadline.
func (c *calls) do(ctx context.Context, verb string, gvk schema.GroupVersionKind, key types.NamespacedName, f func(context.Context) error) error {
	timeout := c.timeout
	if d, ok := ctx.Value(callTimeoutKey{}).(time.Duration); ok {
		timeout = d
	}
	if timeout <= 0 || timeout == Never {
		return f(ctx)
	}
	call, cancel := within(ctx, c.clock, timeout)
	defer cancel()
	err := f(call)
	if err == nil || !timedOut(call) || timedOut(ctx) { // what limits the caller says so itself
		return err
	}
	what := gvk.Kind
	switch {
	case key.Name != "":
		what += " " + Key{Namespace: key.Namespace, Name: key.Name}.String()
	case key.Namespace != "":
		what += " in " + key.Namespace
	}
	return fmt.Errorf("%s of %s: no answer within %s: %w", verb, what, timeout, deadlineOf(err))
}

// errTimedOut is the cause of a context that ended at a deadline of the driver.
var errTimedOut = errors.New("the time that the driver allows has passed")

// timedOut reports whether a limit of the driver ended ctx.
func timedOut(ctx context.Context) bool {
	if c, ok := ctx.(*jobContext); ok {
		return c.err == context.DeadlineExceeded
	}
	return context.Cause(ctx) == errTimedOut
}

// deadlineOf makes of the error of a call that was ended at its deadline one
// that says so, however the clock ended it.
func deadlineOf(err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, context.Canceled):
		return context.DeadlineExceeded
	}
	return fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
}

// within returns a context that ends after d by the clock.
func within(ctx context.Context, c clock.WithTicker, d time.Duration) (context.Context, context.CancelFunc) {
	if c == clock.WithTicker(clock.RealClock{}) {
		return context.WithTimeoutCause(ctx, d, errTimedOut)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	timer := c.NewTimer(d)
	go func() {
		defer timer.Stop()
		select {
		case <-timer.C():
			cancel(errTimedOut)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

func (c *calls) GetShared(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (out *clusterapi.Object, err error) {
	err = c.do(ctx, "Get", gvk, key, func(ctx context.Context) (err error) {
		out, err = clusterapi.GetShared(ctx, c.api, gvk, key)
		return err
	})
	if err == nil {
		c.sources.read(out)
	}
	return out, err
}

func (c *calls) ListShared(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) (out []*clusterapi.Object, err error) {
	err = c.do(ctx, "List", gvk, types.NamespacedName{Namespace: opts.Namespace}, func(ctx context.Context) (err error) {
		out, err = clusterapi.ListShared(ctx, c.api, gvk, opts)
		return err
	})
	return out, err
}

func (c *calls) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (out *unstructured.Unstructured, err error) {
	err = c.do(ctx, "Get", gvk, key, func(ctx context.Context) (err error) {
		out, err = c.api.Get(ctx, gvk, key)
		return err
	})
	if err == nil && len(c.sources.filling(gvk)) > 0 {
		c.sources.read(clusterapi.NewObject(out.DeepCopy())) // the caller owns what it got
	}
	return out, err
}

func (c *calls) List(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) (out *unstructured.UnstructuredList, err error) {
	err = c.do(ctx, "List", gvk, types.NamespacedName{Namespace: opts.Namespace}, func(ctx context.Context) (err error) {
		out, err = c.api.List(ctx, gvk, opts)
		return err
	})
	return out, err
}

// writing is a verb that returns the object as stored. O are its options.
type writing[O any] func(context.Context, *unstructured.Unstructured, O) (*unstructured.Unstructured, error)

// writeLive makes a call that returns an object.
func writeLive[O any](
	ctx context.Context, c *calls, verb string, obj *unstructured.Unstructured, opts O, write writing[O],
) (out *unstructured.Unstructured, err error) {
	if obj == nil {
		return nil, apierrors.NewBadRequest("no object")
	}
	gvk := obj.GroupVersionKind()
	out, err = c.sources.write(ctx, gvk, func(ctx context.Context) (out *unstructured.Unstructured, err error) {
		err = c.do(ctx, verb, gvk, clusterapi.KeyOf(obj), func(ctx context.Context) (err error) {
			out, err = write(ctx, obj, opts)
			return err
		})
		return out, err
	})
	if err == nil && c.unwatched {
		c.sources.wrote(out)
	}
	return out, err
}

func (c *calls) Create(ctx context.Context, obj *unstructured.Unstructured, opts clusterapi.CreateOptions) (*unstructured.Unstructured, error) {
	return writeLive(ctx, c, "Create", obj, opts, c.api.Create)
}

func (c *calls) Apply(ctx context.Context, obj *unstructured.Unstructured, opts clusterapi.ApplyOptions) (*unstructured.Unstructured, error) {
	return writeLive(ctx, c, "Apply", obj, opts, c.api.Apply)
}

func (c *calls) Update(ctx context.Context, obj *unstructured.Unstructured, opts clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	return writeLive(ctx, c, "Update", obj, opts, c.api.Update)
}

func (c *calls) UpdateStatus(ctx context.Context, obj *unstructured.Unstructured, opts clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	return writeLive(ctx, c, "UpdateStatus", obj, opts, c.api.UpdateStatus)
}

func (c *calls) Delete(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, opts clusterapi.DeleteOptions) error {
	err := c.do(ctx, "Delete", gvk, key, func(ctx context.Context) error { return c.api.Delete(ctx, gvk, key, opts) })
	if err == nil && c.unwatched {
		c.sources.gone(ctx, gvk, key)
	}
	return err
}

func (c *calls) Evict(ctx context.Context, pod types.NamespacedName, opts clusterapi.EvictOptions) error {
	gvk := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	err := c.do(ctx, "Evict", gvk, pod, func(ctx context.Context) error { return c.api.Evict(ctx, pod, opts) })
	if err == nil && c.unwatched {
		c.sources.gone(ctx, gvk, pod)
	}
	return err
}
