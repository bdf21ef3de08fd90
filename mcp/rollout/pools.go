package rollout

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// The names of the reconcilers of a rollout.
const (
	poolsName   = "pools"
	drainsName  = "drains"
	updatesName = "node updates"
)

// poolsReconciler targets nodes, and keeps taints and pool status. Its keys are
// pools.
type poolsReconciler struct{ *run }

func poolKey(name string) reconcile.Key { return reconcile.Key{Kind: "pool", Name: name} }

func (r *poolsReconciler) Name() string { return poolsName }

func (r *poolsReconciler) Watches() []reconcile.Watch {
	changed := func(now time.Time, _, _ *clusterapi.Object) []reconcile.Wake {
		r.lock(now)
		defer r.release()
		return r.queued()
	}
	watches := r.sources(true, nil)
	for i := range watches {
		watches[i].Changed = changed
	}
	return watches
}

// Keys are all pools, for the resync; those that there are at the start are queued
// as they come. One more key starts the rollout.
func (r *poolsReconciler) Keys() []reconcile.Key {
	r.mu.Lock()
	defer r.release()
	keys := []reconcile.Key{{Kind: "rollout"}}
	if !r.ready {
		return keys
	}
	for _, pool := range r.state.Pools() {
		keys = append(keys, poolKey(pool))
	}
	return keys
}

// Reconcile does one sync of a pool.
func (r *poolsReconciler) Reconcile(ctx context.Context, q reconcile.Request) (res reconcile.Result, err error) {
	r.lock(q.Now)
	defer r.release()
	if ok, res := r.permitted(ctx, q.Now); !ok {
		return res, nil
	}
	r.begin()
	pool := q.Key.Name
	if pool == "" {
		return res, nil
	}
	if r.o.Mode == ReadOnly {
		r.observePool(pool)
	} else if err := panics.Catch(func() error { return r.drivePool(ctx, pool, false) }); err != nil {
		if ctx.Err() != nil || apierrors.IsConflict(err) {
			return res, err
		}
		r.failures[pool]++
		res = r.retry(q.Now, r.failures[pool], pool, "", err)
		res.Wake = r.queued()
		return res, nil
	}
	delete(r.failures, pool)
	res.Wake = r.queued()
	res.At = r.checkStall(pool)
	return res, nil
}
