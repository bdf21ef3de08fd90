package preview

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// implicit finds the capabilities that the update enables although nobody asks for
// them: the release moves into them what the cluster has.
func (r *run) implicit(ctx context.Context, p *Preview) error {
	capabilities := r.o.Filter.Capabilities
	if capabilities == nil {
		return nil
	}
	enabled := sets.New[string]()
	cv, err := clusterapi.Get[configv1.ClusterVersion](ctx, r.base, clusterapi.Key("", "version"))
	switch {
	case err == nil:
		for _, name := range cv.Status.Capabilities.EnabledCapabilities {
			enabled.Insert(string(name))
		}
	case clusterapi.IsAbsent(err):
		return nil // what is enabled now is not known
	default:
		return errorf("ClusterVersion: %w", err)
	}
	implicit := sets.New(manifest.ImplicitlyEnabled(r.o.Running, r.o.Payload, r.o.Filter)...)
	if fresh := implicit.Difference(enabled); len(fresh) > 0 {
		p.Implicit = sets.List(fresh)
	}
	return nil
}
