package runlevel

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/runlevel/merge"
)

// applyMerged applies an object in mode [ApplyMerge]: it is created if live is nil,
// else updated, if a merge changes it. A conflict is an error: the task is tried
// again. What it returns must not be changed.
func (a *applier) applyMerged(
	ctx context.Context, live *clusterapi.Object, obj *unstructured.Unstructured,
) (*clusterapi.Object, error) {
	if live == nil {
		return a.createNew(ctx, obj)
	}
	merged, changed, err := merge.Merge(live.Unstructured(), obj)
	if err != nil || !changed {
		return live, err
	}
	return clusterapi.WriteShared(ctx, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return a.api.Update(ctx, merged, clusterapi.UpdateOptions{FieldManager: clusterapi.ManagerPayload})
	})
}

// createNew creates an object.
func (a *applier) createNew(ctx context.Context, obj *unstructured.Unstructured) (*clusterapi.Object, error) {
	return clusterapi.WriteShared(ctx, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return a.api.Create(ctx, obj, clusterapi.CreateOptions{FieldManager: clusterapi.ManagerPayload})
	})
}
