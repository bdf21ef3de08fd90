package install

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

// soon is the time until the next look while bundles are unpacked or steps are
// to be tried again.
const soon = 5 * time.Second

// Process returns the controller as a process of package reconcile: one key a
// namespace, one pass a look. Reading catalogs and unpacking bundles are jobs.
// Its errors are those of the cluster and of catalogs that panic; why there is
// no generation, and why a step failed, stands in the objects' statuses.
// Of the options API and Clock have no effect.
func (c *Controller) Process() reconcile.Process {
	return reconcile.Process{Name: "olm", New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
		subs := new(reconcile.Objects)
		all := subs.Index(func(*clusterapi.Object) []string { return []string{""} })
		in := subs.Index(func(o *clusterapi.Object) []string { return []string{o.Key().Namespace} })
		return []reconcile.Reconciler{
			&reconciler{c: c, api: api, subs: subs, allSubs: all, subsIn: in, looks: map[string]*look{}},
		}
	}}
}

type reconciler struct {
	c       *Controller
	api     clusterapi.ClusterAPI
	subs    *reconcile.Objects
	allSubs *reconcile.Index // by ""
	subsIn  *reconcile.Index // by namespace
	looks   map[string]*look // by namespace
	jobs    int              // so far
}

// look is what a pass over a namespace has been supplied with so far.
type look struct {
	job      *reconcile.Job // that runs
	err      error          // of the last one
	catalogs map[types.NamespacedName]olm.Catalog
	unpacked map[string]UnpackResult
	retry    time.Time // of plans; a new process tries at once
}

// Name implements [reconcile.Reconciler].
func (r *reconciler) Name() string { return "namespaces" }

// Keys implements [reconcile.Lister]: all namespaces with a Subscription.
func (r *reconciler) Keys() []reconcile.Key {
	var keys []reconcile.Key
	for _, o := range r.allSubs.At("") {
		keys = append(keys, reconcile.Key{Namespace: o.Key().Namespace})
	}
	return slices.Compact(keys)
}

// Watches implements [reconcile.Reconciler].
func (r *reconciler) Watches() []reconcile.Watch {
	wake := func(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake {
		return []reconcile.Wake{{Key: reconcile.Key{Namespace: cmp.Or(new, old).Key().Namespace}}}
	}
	watch := func(gvk schema.GroupVersionKind) reconcile.Watch { return reconcile.Watch{GVK: gvk, Changed: wake} }
	subs := watch((&olmapi.Subscription{}).APIKind())
	csvs := watch((&olmapi.ClusterServiceVersion{}).APIKind())
	sources := watch((&olmapi.CatalogSource{}).APIKind())
	plans := watch((&olmapi.InstallPlan{}).APIKind())
	groups := watch((&olmapi.OperatorGroup{}).APIKind())
	subs.Objects = r.subs
	csvs.Options.Labels = originals()
	sources.Changed = func(now time.Time, old, new *clusterapi.Object) []reconcile.Wake {
		if cmp.Or(new, old).Key().Namespace != r.c.o.global() {
			return wake(now, old, new)
		}
		var all []reconcile.Wake
		for _, key := range r.Keys() {
			all = append(all, reconcile.Wake{Key: key})
		}
		return all
	}
	return []reconcile.Watch{subs, csvs, sources, plans, groups}
}

// Reconcile implements [reconcile.Reconciler]: it has the catalogs read, then
// makes a pass, and if that needs the content of bundles a second one with
// it.
func (r *reconciler) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	namespace := q.Key.Namespace
	l := r.looks[namespace]
	if l == nil {
		l = &look{}
		r.looks[namespace] = l
	}
	switch {
	case l.job != nil:
		return reconcile.Result{Jobs: []reconcile.Job{*l.job}}, nil
	case l.err != nil:
		err := l.err
		*l = look{retry: l.retry}
		return reconcile.Result{}, err
	case r.subsIn.Count(namespace) == 0:
		delete(r.looks, namespace)
		return reconcile.Result{}, nil
	case l.catalogs == nil:
		return r.start(q.Key, l, "catalogs", func(ctx context.Context) (any, error) {
			return r.c.readCatalogs(ctx, namespace)
		}), nil
	}
	p := r.c.newPass(r.api, namespace, q.Now)
	p.state.Unpacked, p.retry = l.unpacked, l.retry
	var missing []*UnpackRequest
	_, err := p.run(ctx, l.catalogs, func(_ context.Context, requests []*UnpackRequest) (map[string]UnpackResult, bool) {
		missing = requests
		return nil, false
	})
	if err != nil {
		return reconcile.Result{}, err // what was supplied serves the next try
	}
	if missing != nil {
		return r.start(q.Key, l, "unpack", func(ctx context.Context) (any, error) {
			results, _ := r.c.unpackAll(ctx, missing)
			return results, nil
		}), nil
	}
	*l = look{retry: p.retry}
	next := q.Now.Add(r.c.o.Interval)
	if at := p.res.At; !at.IsZero() && at.Before(next) {
		next = at
	}
	switch {
	case p.res.Soon && p.retry.After(q.Now) && p.retry.Sub(q.Now) <= soon:
		return reconcile.Result{At: p.retry}, nil
	case p.res.Changed:
		return reconcile.Result{At: q.Now}, nil
	case p.res.Soon:
		return reconcile.Result{At: q.Now.Add(min(soon, r.c.o.Interval))}, nil
	}
	return reconcile.Result{At: next}, nil
}

// start starts a job of a look. What it returns is kept for the next look.
func (r *reconciler) start(
	key reconcile.Key, l *look, name string, run func(ctx context.Context) (any, error),
) reconcile.Result {
	type id struct {
		name string
		n    int
	}
	r.jobs++
	l.job = &reconcile.Job{
		ID:  id{name, r.jobs},
		Run: func(ctx context.Context, _ func(any)) (any, error) { return run(ctx) },
		Done: func(result any, err error) []reconcile.Wake {
			l.job, l.err = nil, err
			switch result := result.(type) {
			case map[types.NamespacedName]olm.Catalog:
				l.catalogs, l.unpacked = result, map[string]UnpackResult{}
			case map[string]UnpackResult:
				maps.Copy(l.unpacked, result)
			}
			return []reconcile.Wake{{Key: key}}
		},
	}
	return reconcile.Result{Jobs: []reconcile.Job{*l.job}}
}

// readCatalogs asks the catalogs that a namespace may see for their contents.
func (c *Controller) readCatalogs(ctx context.Context, namespace string) (map[types.NamespacedName]olm.Catalog, error) {
	var keys []types.NamespacedName
	for key := range c.o.Catalogs {
		if key.Namespace == namespace || key.Namespace == c.o.global() {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, compareKeys)
	read := make([]olm.Catalog, len(keys))
	err := reconcile.Each(ctx, 4, len(keys), func(ctx context.Context, i int) error {
		if catalog := c.o.Catalogs[keys[i]]; catalog != nil {
			contents, err := catalog.Contents(ctx)
			read[i] = catalogRead{contents, err}
		}
		return ctx.Err()
	})
	out := make(map[types.NamespacedName]olm.Catalog, len(keys))
	for i, key := range keys {
		out[key] = read[i]
	}
	return out, err
}

// catalogRead is what a catalog answered.
type catalogRead struct {
	contents *olm.Contents
	err      error
}

// Contents implements [olm.Catalog].
func (c catalogRead) Contents(context.Context) (*olm.Contents, error) { return c.contents, c.err }
