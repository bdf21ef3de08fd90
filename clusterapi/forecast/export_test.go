package forecast

import (
	"context"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
)

// Rest plays the cluster of a rehearsal without a request, and returns the nodes, pools
// and operators that were written meanwhile, and how many there are.
func Rest(ctx context.Context, o RehearseOptions, d time.Duration) (written []string, all int, err error) {
	s, err := newScene(ctx, o)
	if err != nil {
		return nil, 0, err
	}
	r, err := newRun(ctx, s, o.Seed, nil)
	if err != nil {
		return nil, 0, err
	}
	defer r.driver.Close()
	before, err := r.written(ctx)
	if err != nil {
		return nil, 0, err
	}
	if err := r.driver.RunUntil(s.now.Add(d)); err != nil {
		return nil, 0, err
	}
	after, err := r.written(ctx)
	for _, state := range after {
		if !slices.Contains(before, state) {
			written = append(written, state)
		}
	}
	return written, len(before), err
}

// Standstill plays a rehearsal in which time stands still before the update is requested.
func Standstill(ctx context.Context, o RehearseOptions) (*Rehearsal, error) {
	s, err := newScene(ctx, o)
	if err != nil {
		return nil, err
	}
	r, err := newRun(ctx, s, o.Seed, nil)
	if err != nil {
		return nil, err
	}
	made := func(clusterapi.ClusterAPI) []reconcile.Reconciler { return []reconcile.Reconciler{restless{}} }
	r.driver.Add(reconcile.Process{Name: "restless", New: made})
	out, err := r.play(ctx)
	if err != nil {
		return nil, err
	}
	return s.summary([]*result{out}), nil
}

// restless is a reconciler that wants to look again at once.
type restless struct{}

func (restless) Name() string { return "restless" }

func (restless) Watches() []reconcile.Watch {
	changed := func(time.Time, *clusterapi.Object, *clusterapi.Object) []reconcile.Wake { return []reconcile.Wake{{}} }
	return []reconcile.Watch{{GVK: configv1.GroupVersion.WithKind("ClusterVersion"), Changed: changed}}
}

func (restless) Reconcile(_ context.Context, q reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{At: q.Now}, nil
}

// written are the states of nodes, pools and operators.
func (r *run) written(ctx context.Context) (states []string, err error) {
	for _, gvk := range []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("Node"),
		mcfgv1.GroupVersion.WithKind("MachineConfigPool"),
		configv1.GroupVersion.WithKind("ClusterOperator"),
	} {
		all, err := clusterapi.ListShared(ctx, r.cluster, gvk, clusterapi.ListOptions{})
		if err != nil {
			return nil, err
		}
		for _, o := range all {
			states = append(states, gvk.Kind+" "+o.Name()+" "+o.Unstructured().GetResourceVersion())
		}
	}
	return states, nil
}
