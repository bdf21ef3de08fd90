package nodeaction

import (
	"context"
	"errors"
	"fmt"
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

// Confirmed reports whether a person has confirmed that an action has been done
// to a node.
func Confirmed(n *corev1.Node, action string) bool {
	return n.Annotations[ConfirmAnnotation(action)] != ""
}

// Uninstall removes what runs, [Func], [PlanAction], [Updater] and [Confirm] keep in
// a cluster, for after the last one has ended: their annotations of nodes, and the
// ConfigMap of the namespace; an empty one means openshift-config. It goes on
// where a node cannot be changed; its error joins those of all.
func Uninstall(ctx context.Context, api clusterapi.ClusterAPI, namespace string) error {
	if namespace == "" {
		namespace = defaultNamespace
	}
	nodes, err := clusterapi.ReadAll[corev1.Node](ctx, api, clusterapi.ListOptions{})
	if err != nil {
		return err
	}
	var errs []error
	for _, n := range nodes {
		if !hasOurs(n) {
			continue
		}
		_, err := clusterapi.Modify(ctx, api, clusterapi.Key("", n.Name), modify, func(n *corev1.Node) error {
			for name := range n.Annotations {
				if isOurs(name) {
					delete(n.Annotations, name)
				}
			}
			return nil
		})
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("node %s: %w", n.Name, err))
		}
	}
	gvk, err := clusterapi.KindOf[corev1.ConfigMap]()
	if err != nil {
		return err
	}
	if err := api.Delete(ctx, gvk, clusterapi.Key(namespace, configMapName), clusterapi.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func hasOurs(n *corev1.Node) bool {
	for name := range n.Annotations {
		if isOurs(name) {
			return true
		}
	}
	return false
}

func isOurs(annotation string) bool {
	return strings.HasPrefix(annotation, recordPrefix) || strings.HasPrefix(annotation, confirmPrefix) || strings.HasPrefix(annotation, progressPrefix)
}
