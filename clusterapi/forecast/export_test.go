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
