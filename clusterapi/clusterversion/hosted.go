package clusterversion

import (
	"context"
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// ErrHostedControlPlane reports a cluster whose control plane another cluster hosts
// (HyperShift). Its HostedCluster names the release that it runs, and its ClusterVersion
// follows. Whatever updates a cluster refuses such a one, and writes nothing.
var ErrHostedControlPlane = errors.New("the control plane of this cluster is hosted in another one: it is updated there, by spec.release of its HostedCluster and NodePools")

// RefuseHosted returns [ErrHostedControlPlane] for a cluster whose control plane is hosted
// elsewhere. Any other error reports that this is not known; a cluster without an
// Infrastructure has its own.
func RefuseHosted(ctx context.Context, r clusterapi.Reader) error {
	i, err := clusterapi.Read[configv1.Infrastructure](ctx, r, clusterapi.Key("", "cluster"))
	switch {
	case clusterapi.IsAbsent(err):
		return nil
	case err != nil:
		return fmt.Errorf("infrastructure: %w", err)
	case i.Status.ControlPlaneTopology == configv1.ExternalTopologyMode:
		return ErrHostedControlPlane
	}
	return nil
}
