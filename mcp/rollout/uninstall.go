package rollout

import (
	"context"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/mcp/internal/annotations"
)

// Uninstall removes what a [Rollout] keeps in a cluster for itself, for after the last one
// has ended: clusterupdate.github.io/drain-since and clusterupdate.github.io/hooks of
// nodes. What the machine-config operator and its daemons share with it stays. It continues
// if a node cannot be changed; its error joins those of all.
func Uninstall(ctx context.Context, api clusterapi.ReadWriter) error {
	return annotations.Remove(ctx, api, func(name string) bool {
		return name == annotationDrainSince || name == annotationHooks
	})
}
