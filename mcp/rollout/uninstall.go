package rollout

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Uninstall removes what a [Rollout] keeps in a cluster for itself, for after the last one
// has ended: clusterupdate.github.io/drain-since and clusterupdate.github.io/hooks of
// nodes. What the machine-config operator and its daemons share with it stays. It continues
// where a node cannot be changed; its error joins those of all.
func Uninstall(ctx context.Context, api clusterapi.ReadWriter) error {
	nodes, err := clusterapi.ReadAll[corev1.Node](ctx, api, clusterapi.ListOptions{})
	if err != nil {
		return err
	}
	var errs []error
	for _, n := range nodes {
		_, draining := n.Annotations[annotationDrainSince]
		if _, hooks := n.Annotations[annotationHooks]; !draining && !hooks {
			continue
		}
		_, err := clusterapi.Modify(ctx, api, clusterapi.Key("", n.Name), modifyNode, func(n *corev1.Node) error {
			delete(n.Annotations, annotationDrainSince)
			delete(n.Annotations, annotationHooks)
			return nil
		})
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("node %s: %w", n.Name, err))
		}
	}
	return errors.Join(errs...)
}
