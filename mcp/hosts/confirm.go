package hosts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/internal/annotation"
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
	nodes, err := clusterapi.ReadAll[corev1.Node](ctx, api, clusterapi.ListOptions{})
	if err != nil {
		return err
	}
	var errs []error
	for _, n := range nodes {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(n.Annotations)), isOurs) {
			continue
		}
		_, err := clusterapi.Modify(ctx, api, clusterapi.Key("", n.Name), modify, func(n *corev1.Node) error {
			maps.DeleteFunc(n.Annotations, func(name, _ string) bool { return isOurs(name) })
			return nil
		})
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("node %s: %w", n.Name, err))
		}
	}
	return errors.Join(errs...)
}

func isOurs(name string) bool {
	return strings.HasPrefix(name, annotation.Confirmed) || strings.HasPrefix(name, annotation.Progress)
}
