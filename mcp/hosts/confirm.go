package hosts

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/internal/annotation"
	"github.com/clusterupdate/clusterupdate/mcp/internal/annotations"
)

var modify = clusterapi.ModifyOptions{FieldManager: clusterapi.ManagerRollout}

// Confirm records, in the name of a person, that what an action waits for has been
// done to a node: it sets an annotation, clusterupdate.github.io/confirmed.ACTION, that
// the action reads. action is the last part of the name of the action's package. Its
// errors are those of the cluster.
func Confirm(ctx context.Context, api clusterapi.ReadWriter, action, node string) error {
	_, err := clusterapi.Modify(ctx, api, clusterapi.Key("", node), modify, func(n *corev1.Node) error {
		if n.Annotations == nil {
			n.Annotations = map[string]string{}
		}
		n.Annotations[annotation.Confirmed+action] = "true"
		return nil
	})
	return err
}

// Uninstall removes what actions and [Confirm] keep in a cluster, for after the
// last plan has ended: their annotations of nodes. It continues if a node cannot be
// changed; its error joins those of all.
func Uninstall(ctx context.Context, api clusterapi.ClusterAPI) error {
	return annotations.Remove(ctx, api, func(name string) bool {
		return strings.HasPrefix(name, annotation.Confirmed) || strings.HasPrefix(name, annotation.Progress)
	})
}
