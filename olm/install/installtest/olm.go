package installtest

import (
	"cmp"
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

// OLM describes how OLM behaves. Its zero value is ready to use. It is safe for
// concurrent use if Fault is.
type OLM struct {
	// Install is how long an operator takes to install; zero means 1 min.
	Install time.Duration
	// Connect is how long a catalog's server takes to answer; zero means 10 s.
	Connect time.Duration
	// Fault returns why the installation of an operator fails, "" if it does not. It
	// is asked again each minute, and the operator is installed again once the
	// fault has ended. nil means that none fails.
	Fault func(csv *olmapi.ClusterServiceVersion) string
}

// stepTime is how long OLM takes from one phase to the next if nothing else is
// awaited.
const stepTime = time.Second

// Process returns OLM as a process for a driver. When a phase began is in the
// status, so that a wait outlives a restart.
func (o OLM) Process() reconcile.Process {
	return reconcile.Process{Name: "olm", New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
		return []reconcile.Reconciler{&catalogs{o, api}, &installer{o, api}}
	}}
}

// Advance takes each ClusterServiceVersion of a namespace one phase further, without
// waiting, and reports whether it changed one. Errors are those of api.
func (o OLM) Advance(ctx context.Context, api clusterapi.ClusterAPI, namespace string) (changed bool, err error) {
	x := &installer{o, api}
	all, err := x.versions(ctx, namespace)
	if err != nil {
		return false, err
	}
	for _, csv := range all {
		next, err := x.next(ctx, csv, all)
		if err != nil {
			return changed, err
		}
		if next.name == "" {
			continue
		}
		changed = true
		if err := x.enter(ctx, csv, next, time.Time{}); err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// catalogs plays what becomes of a CatalogSource: its server answers as soon as its
// pod would be up. One that reports anything else than that it connects stays as
// it is.
type catalogs struct {
	olm OLM
	api clusterapi.ClusterAPI
}

// The states of a catalog's connection.
const (
	connecting = "CONNECTING"
	ready      = "READY"
)

func (*catalogs) Name() string { return "catalogs" }

func (*catalogs) Watches() []reconcile.Watch {
	kind := (*olmapi.CatalogSource)(nil).APIKind()
	return []reconcile.Watch{{GVK: kind, Changed: func(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake {
		return []reconcile.Wake{{Key: keyOf(cmp.Or(new, old))}}
	}}}
}

func (x *catalogs) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	key := clusterapi.Key(r.Key.Namespace, r.Key.Name)
	source, err := clusterapi.Get[olmapi.CatalogSource](ctx, x.api, key)
	if clusterapi.IsMissing(err) {
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	state := source.Status.ConnectionState
	wait := cmp.Or(x.olm.Connect, 10*time.Second)
	next := connecting
	if state != nil {
		if state.LastObservedState != connecting {
			return reconcile.Result{}, nil
		}
		if at := timeOf(state.LastConnect).Add(wait); at.After(r.Now) {
			return reconcile.Result{At: at}, nil
		}
		next = ready
	}
	_, err = clusterapi.Modify(ctx, x.api, key, clusterapi.ModifyOptions{Status: true}, func(c *olmapi.CatalogSource) error {
		c.Status.ConnectionState = &olmapi.CatalogConnectionState{
			Address:           cmp.Or(c.Spec.Address, c.Name+"."+c.Namespace+".svc:50051"),
			LastObservedState: next,
			LastConnect:       &metav1.Time{Time: r.Now},
		}
		return nil
	})
	return reconcile.Result{}, ignoreMissing(err) // the write wakes it
}

func keyOf(o *clusterapi.Object) reconcile.Key {
	key := o.Key()
	return reconcile.Key{Namespace: key.Namespace, Name: key.Name}
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// ignoreMissing returns err, nil if it reports an object or a kind that is missing.
func ignoreMissing(err error) error {
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	return err
}
