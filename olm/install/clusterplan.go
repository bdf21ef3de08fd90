package install

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/olm"
)

// PlanCluster describes what would become of the operators of a cluster, by
// [ReadSnapshots] and [olm.Plan], and for an update of the cluster to target,
// unless that is empty. Only what is subscribed to needs a catalog at hand. Errors
// are those of the two.
func PlanCluster(
	ctx context.Context, r clusterapi.Reader, catalogs map[types.NamespacedName]olm.Catalog, target string,
) (*olm.ClusterPlan, error) {
	snapshots, err := ReadSnapshots(ctx, r, SnapshotOptions{Catalogs: catalogs})
	if err != nil {
		return nil, err
	}
	return olm.Plan(ctx, snapshots, olm.PlanOptions{Resolve: olm.Options{TolerateUnusedCatalogs: true}, Target: target})
}
