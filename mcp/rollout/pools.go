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
type poolsReconciler struct{ run *run }

func poolKey(name string) reconcile.Key { return reconcile.Key{Kind: "pool", Name: name} }

func (r *poolsReconciler) Name() string { return poolsName }

func (r *poolsReconciler) Watches() []reconcile.Watch {
	changed := func(now time.Time, _, _ *clusterapi.Object) []reconcile.Wake {
		r.run.lock(now)
		defer r.run.release()
		return r.run.queued()
	}
	watches := r.run.sources(true, nil)
	for i := range watches {
		watches[i].Changed = changed
	}
	return watches
}

// Keys are all pools, for the resync; those that there are at the start are queued
// as they come. One more key starts the rollout.
func (r *poolsReconciler) Keys() []reconcile.Key {
	r.run.mu.Lock()
	defer r.run.release()
	keys := []reconcile.Key{{Kind: "rollout"}}
	if !r.run.ready {
		return keys
	}
	for _, pool := range r.run.state.Pools() {
		keys = append(keys, poolKey(pool))
	}
	return keys
}

// Reconcile does one sync of a pool.
func (r *poolsReconciler) Reconcile(ctx context.Context, q reconcile.Request) (res reconcile.Result, err error) {
	r.run.lock(q.Now)
	defer r.run.release()
	if ok, res := r.run.permitted(ctx, q.Now); !ok {
		return res, nil
	}
	r.run.begin()
	pool := q.Key.Name
	if pool == "" {
		return res, nil
	}
	if r.run.o.Mode == ReadOnly {
		r.run.observePool(pool)
	} else if err := panics.Catch(func() error { return r.run.drivePool(ctx, pool, false) }); err != nil {
		if ctx.Err() != nil || apierrors.IsConflict(err) {
			return res, err
		}
		r.run.failures[pool]++
		res = r.run.retry(q.Now, r.run.failures[pool], pool, "", err)
		res.Wake = r.run.queued()
		return res, nil
	}
	delete(r.run.failures, pool)
	res.Wake = r.run.queued()
	res.At = r.run.checkStall(pool)
	return res, nil
}
