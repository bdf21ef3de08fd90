package nodeaction

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
)

// Confirm says, in the name of a person, that what an action waits for has been
// done to a node: it sets an annotation that the action sees. action is its Name.
// Its errors are those of the cluster.
func Confirm(ctx context.Context, api clusterapi.ReadWriter, action, node string) error {
	_, err := clusterapi.Modify(ctx, api, clusterapi.Key("", node), modify, func(n *corev1.Node) error {
		annotate(n, ConfirmAnnotation(action), "true")
		return nil
	})
	return err
}

// ConfirmAnnotation returns the name of the annotation that [Confirm] sets; any
// value counts but an empty one.
func ConfirmAnnotation(action string) string { return confirmPrefix + action }

const confirmPrefix = clusterapi.AnnotationPrefix + "confirmed."

// Confirmed reports whether a person has confirmed that an action has been done
// to a node.
func Confirmed(n *corev1.Node, action string) bool {
	return n.Annotations[ConfirmAnnotation(action)] != ""
}

// Uninstall removes what [PlanAction] and [Confirm] keep in a cluster, for after the
// last plan has ended: their annotations of nodes. It continues where a node cannot be
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

func isOurs(annotation string) bool {
	return strings.HasPrefix(annotation, confirmPrefix) || strings.HasPrefix(annotation, progressPrefix)
}
