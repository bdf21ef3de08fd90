package controllers

import (
	"context"
	"iter"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// cached is a cluster that watches by a cache.
type cached struct {
	clusterapi.ClusterAPI
	cache  cache.Cache
	direct []schema.GroupVersionKind
}

var _ clusterapi.Watcher = (*cached)(nil)

// Watch implements [clusterapi.Watcher].
func (c *cached) Watch(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) iter.Seq2[clusterapi.WatchEvent, error] {
	selects := opts.Namespace != "" || opts.NodeName != "" || opts.Labels != nil && !opts.Labels.Empty()
	if selects || slices.Contains(c.direct, gvk) {
		return c.ClusterAPI.(clusterapi.Watcher).Watch(ctx, gvk, opts)
	}
	return func(yield func(clusterapi.WatchEvent, error) bool) {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gvk)
		informer, err := c.cache.GetInformer(ctx, u, cache.BlockUntilSynced(false))
		if err == nil {
			err = follow(ctx, informer, yield)
		}
		if err != nil && ctx.Err() == nil {
			yield(clusterapi.WatchEvent{}, err)
		}
	}
}

// follow yields what an informer has, and its events, until ctx ends.
func follow(ctx context.Context, informer cache.Informer, yield func(clusterapi.WatchEvent, error) bool) error {
	changes := &changes{some: make(chan struct{}, 1)}
	registration, err := informer.AddEventHandler(changes)
	if err != nil {
		return err
	}
	defer func() { _ = informer.RemoveEventHandler(registration) }()
	synced := registration.HasSyncedChecker().Done()
	for {
		complete := false
		select {
		case <-ctx.Done():
			return nil
		case <-synced: // all that existed is among the changes
			complete, synced = true, nil
		case <-changes.some:
		}
		for _, e := range changes.take() {
			// The informer's objects belong to all.
			e.Object = e.Object.DeepCopy()
			if ctx.Err() != nil || !yield(e, nil) {
				return nil
			}
		}
		if complete && !yield(clusterapi.WatchEvent{Type: clusterapi.Synced}, nil) {
			return nil
		}
	}
}

// changes are the events of an informer that have not been yielded.
type changes struct {
	some chan struct{} // holds a token when there may be some

	mu      sync.Mutex
	waiting []clusterapi.WatchEvent
}

var _ toolscache.ResourceEventHandler = (*changes)(nil)

func (c *changes) OnAdd(obj any, _ bool) { c.add(clusterapi.Added, obj) }

func (c *changes) OnUpdate(_, obj any) { c.add(clusterapi.Modified, obj) }

func (c *changes) OnDelete(obj any) {
	if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	c.add(clusterapi.Deleted, obj)
}

func (c *changes) add(what clusterapi.WatchEventType, obj any) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return
	}
	c.mu.Lock()
	c.waiting = append(c.waiting, clusterapi.WatchEvent{Type: what, Object: u})
	c.mu.Unlock()
	select {
	case c.some <- struct{}{}:
	default:
	}
}

func (c *changes) take() []clusterapi.WatchEvent {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := c.waiting
	c.waiting = nil
	return waiting
}
