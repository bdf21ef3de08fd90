package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/runtimeclient"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// Options are the options of [Add]. The zero value works.
type Options struct {
	// Driver are the options of reconcile.Run, but for Dispatch, which is set here.
	// Its API is as from [API] by default.
	Driver reconcile.Options
	// Direct are kinds that are not to come from the Manager's cache: large
	// ones, of which reconcilers keep little.
	Direct []schema.GroupVersionKind
	// EveryReplica runs the processes without regard to leader election.
	EveryReplica bool
	// MaxPause is for how long a leader may stand still, as one that is suspended
	// does. One that stood still for longer ends at once, since another may lead;
	// without this it would continue until it fails to renew its lease. It should
	// be below the Manager's LeaseDuration. Zero means 10 seconds, which fits the
	// default lease; [reconcile.Never] means any time.
	MaxPause time.Duration
}

const defaultMaxPause = 10 * time.Second

// ErrPaused reports that a leader stood still for longer than [Options].MaxPause.
var ErrPaused = errors.New("controllers: the process stood still for too long to go on as the leader")

// Add makes a Manager run processes, from its start, or from its election as
// leader, until it ends. Names of processes must be unique in the Manager. Its
// error is a negative MaxPause, or one of making a client or of the Manager.
func Add(mgr manager.Manager, o Options, processes ...reconcile.Process) error {
	if o.MaxPause < 0 {
		return fmt.Errorf("controllers.Options: MaxPause is negative: %s", o.MaxPause)
	}
	if o.Driver.API == nil {
		api, err := API(mgr, o.Direct...)
		if err != nil {
			return err
		}
		o.Driver.API = api
	}
	for _, p := range processes {
		h := &host{mgr: mgr, o: o, process: p, queues: make(map[string]*queue), failing: make(map[string]error)}
		if err := errors.Join(
			mgr.AddReadyzCheck(p.Name, h.ready),
			mgr.AddHealthzCheck(p.Name, h.alive),
			mgr.Add(h),
		); err != nil {
			return fmt.Errorf("process %s: %w", p.Name, err)
		}
	}
	return nil
}

// API returns the cluster of a Manager: reads and writes go to the server,
// watches that select nothing to the Manager's cache, unless their kind is
// among direct. It watches nothing before the Manager has started its cache.
func API(mgr manager.Manager, direct ...schema.GroupVersionKind) (clusterapi.ClusterAPI, error) {
	config := rest.CopyConfig(mgr.GetConfig())
	config.Wrap(runtimeclient.RefuseAtOnce)
	c, err := client.NewWithWatch(config, client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, err
	}
	api, err := runtimeclient.New(c, runtimeclient.Options{})
	if err != nil {
		return nil, err
	}
	return &cached{api, mgr.GetCache(), direct}, nil
}

// host is a process in a Manager.
type host struct {
	mgr     manager.Manager
	o       Options
	process reconcile.Process

	mu      sync.Mutex
	queues  map[string]*queue // by reconciler
	failing map[string]error  // by kind
	ended   error
}

var _ manager.LeaderElectionRunnable = (*host)(nil)

// NeedLeaderElection implements [manager.LeaderElectionRunnable].
func (h *host) NeedLeaderElection() bool { return !h.o.EveryReplica }

// Start implements [manager.Runnable].
func (h *host) Start(ctx context.Context) error {
	o := h.o.Driver
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	pauses := newPauses(h.o)
	go pauses.watch(ctx, cancel)
	o.Dispatch = func(_, reconciler string, key reconcile.Key, look func() error) {
		if pauses.tooLong() {
			cancel(ErrPaused)
		}
		h.mu.Lock()
		q := h.queues[reconciler]
		h.mu.Unlock()
		q.add(key, look)
	}
	o.Observe = func(e clusterapi.Event) {
		h.observe(e)
		if h.o.Driver.Observe != nil {
			h.o.Driver.Observe(e)
		}
	}
	var controllers sync.WaitGroup
	defer controllers.Wait()
	made := h.process
	made.New = func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
		all := h.process.New(api)
		for _, r := range all {
			c, err := h.controller(r)
			if err != nil {
				cancel(err)
				break
			}
			controllers.Go(func() {
				if err := c.Start(ctx); err != nil {
					cancel(fmt.Errorf("controller of %s: %w", r.Name(), err))
				}
			})
		}
		return all
	}
	err := reconcile.Run(ctx, o, made)
	if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	h.mu.Lock()
	h.ended = errors.Join(errors.New("it has ended"), err)
	h.mu.Unlock()
	return err
}

// controller makes the controller of a reconciler.
func (h *host) controller(r reconcile.Reconciler) (controller.TypedController[reconcile.Key], error) {
	q := &queue{looks: make(map[reconcile.Key]func() error)}
	h.mu.Lock()
	h.queues[r.Name()] = q
	h.mu.Unlock()
	o := controller.TypedOptions[reconcile.Key]{MaxConcurrentReconciles: 1, Reconciler: q}
	if c, ok := r.(reconcile.Concurrent); ok {
		o.MaxConcurrentReconciles = max(c.Workers(), 1)
	}
	o.DefaultFromConfig(h.mgr.GetControllerOptions())
	if o.Logger.GetSink() == nil {
		o.Logger = h.mgr.GetLogger()
	}
	c, err := controller.NewTypedUnmanaged(h.process.Name+"-"+r.Name(), o)
	if err != nil {
		return nil, err
	}
	return c, c.Watch(source.TypedFunc[reconcile.Key](func(_ context.Context, w workqueue.TypedRateLimitingInterface[reconcile.Key]) error {
		q.begin(w)
		return nil
	}))
}

// queue hands looks to the workers of a controller.
type queue struct {
	mu      sync.Mutex
	limited workqueue.TypedRateLimitingInterface[reconcile.Key] // nil before the controller has started
	looks   map[reconcile.Key]func() error
}

func (q *queue) begin(limited workqueue.TypedRateLimitingInterface[reconcile.Key]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.limited = limited
	for _, key := range slices.SortedFunc(maps.Keys(q.looks), reconcile.Key.Compare) {
		limited.Add(key)
	}
}

func (q *queue) add(key reconcile.Key, look func() error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.looks[key] = look
	if q.limited != nil {
		q.limited.Add(key)
	}
}

// Reconcile makes a look that the driver asked for. When to look again is the
// driver's business.
func (q *queue) Reconcile(_ context.Context, key reconcile.Key) (ctrlreconcile.Result, error) {
	q.mu.Lock()
	look := q.looks[key]
	delete(q.looks, key)
	q.mu.Unlock()
	if look == nil {
		return ctrlreconcile.Result{}, nil
	}
	// What ends a goroutine must not end a worker.
	if err := panics.Isolate(look); err != nil {
		return ctrlreconcile.Result{}, ctrlreconcile.TerminalError(err)
	}
	return ctrlreconcile.Result{}, nil
}

// observe remembers which kinds cannot be watched.
func (h *host) observe(e clusterapi.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	watch := e.Data.(*reconcile.Attempt).Watch
	switch {
	case e.Type == reconcile.EventWatchRecovered:
		delete(h.failing, watch)
	case e.Type == reconcile.EventWatchFailed, e.Type == reconcile.EventServerBusy && watch != "":
		h.failing[watch] = e.Err
	}
}

// ready is the readiness check.
func (h *host) ready(*http.Request) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var faults []string
	for _, kind := range slices.Sorted(maps.Keys(h.failing)) {
		faults = append(faults, fmt.Sprintf("watching %s: %v", kind, h.failing[kind]))
	}
	if len(faults) > 0 {
		return errors.New(strings.Join(faults, "; "))
	}
	return nil
}

// alive is the liveness check.
func (h *host) alive(*http.Request) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended
}
