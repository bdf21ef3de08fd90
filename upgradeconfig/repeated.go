package upgradeconfig

import (
	"context"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// repeated is a reconciler with one key. Each look is a job, since hooks and
// providers take their time, and says itself when the next one is due.
type repeated struct {
	name string
	// each makes a look and returns how long to wait for the next.
	each func(ctx context.Context, l look) time.Duration
	// first is the wait before the first look; nil means none.
	first func(l look) time.Duration
	// poked returns when somebody wants a look now; nil: nobody does.
	poked func(ctx context.Context)
	// watch says what else does; without a kind, nothing.
	watch reconcile.Watch

	number int  // of the look
	busy   bool // one is under way
	begun  bool
	dirty  bool // another one is wanted
	pokes  int
	after  time.Duration // how long to wait after the look that has just ended
	ended  bool
	due    time.Time
}

// look is what a look knows besides the cluster: the time, which stands still
// meanwhile, and random numbers in [0, n).
type look struct {
	now  time.Time
	draw func(n int64) int64
}

func (l look) time() time.Time { return l.now }

func (r *repeated) Name() string { return r.name }

func (r *repeated) Keys() []reconcile.Key { return []reconcile.Key{{}} }

func (r *repeated) Watches() []reconcile.Watch {
	if r.watch.GVK.Empty() {
		return nil
	}
	w := r.watch
	w.Changed = func(now time.Time, old, new *clusterapi.Object) []reconcile.Wake {
		wakes := r.watch.Changed(now, old, new)
		r.dirty = r.dirty || len(wakes) > 0
		return wakes
	}
	return []reconcile.Watch{w}
}

// lookID names the jobs of a look, and of waiting to be poked.
type lookID struct {
	what   string
	number int
}

// now is the key that asks for a look at once.
var now = reconcile.Key{Kind: "now"}

// Reconcile implements [reconcile.Reconciler].
func (r *repeated) Reconcile(_ context.Context, q reconcile.Request) (res reconcile.Result, err error) {
	if q.Key == now {
		r.dirty = true
		return reconcile.Result{Wake: []reconcile.Wake{{}}}, nil
	}
	l := look{q.Now, rand.New(rand.NewPCG(q.Rand.Uint64(), q.Rand.Uint64())).Int64N} // q.Rand is for this call only
	if !r.begun {
		r.begun, r.ended = true, true
		if r.first != nil {
			r.after = r.first(l)
		}
	}
	if r.ended || r.due.Sub(q.Now) > r.after { // the clock was set back
		r.ended, r.due = false, q.Now.Add(r.after)
	}
	if r.poked != nil {
		res.Jobs = append(res.Jobs, reconcile.Job{
			ID:  lookID{"poke", r.pokes},
			Run: func(ctx context.Context, _ func(any)) (any, error) { r.poked(ctx); return nil, nil },
			Done: func(any, error) []reconcile.Wake {
				r.pokes++
				r.dirty = true
				return []reconcile.Wake{{}}
			},
		})
	}
	if !r.busy && (r.dirty || !q.Now.Before(r.due)) {
		r.busy, r.dirty = true, false
		r.number++
	}
	if !r.busy {
		res.At = r.due
		return res, nil
	}
	res.Jobs = append(res.Jobs, reconcile.Job{
		ID: lookID{"look", r.number},
		Run: func(ctx context.Context, _ func(any)) (out any, err error) {
			err = panics.Isolate(func() error { out = r.each(ctx, l); return nil })
			return out, err
		},
		Done: func(out any, err error) []reconcile.Wake {
			r.busy, r.ended, r.after = false, true, LookSoon
			if err == nil {
				r.after = out.(time.Duration)
			}
			return []reconcile.Wake{{}}
		},
	})
	return res, nil
}

// whole makes a cluster of what the options ask for; nobody evicts.
func whole(api clusterapi.ReadWriter) clusterapi.ClusterAPI {
	if c, ok := api.(clusterapi.ClusterAPI); ok {
		return c
	}
	return struct {
		clusterapi.ReadWriter
		clusterapi.Evictor
	}{api, nobody{}}
}

type nobody struct{}

func (nobody) Evict(context.Context, types.NamespacedName, clusterapi.EvictOptions) error {
	panic("upgradeconfig: evicts nothing")
}
