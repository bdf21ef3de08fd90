// Package annotations removes annotations of nodes.
package annotations

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Remove removes the annotations of all nodes whose names a function selects. It continues
// if a node cannot be changed; its error joins those of all.
func Remove(ctx context.Context, api clusterapi.ReadWriter, selects func(name string) bool) error {
	nodes, err := clusterapi.ReadAll[corev1.Node](ctx, api, clusterapi.ListOptions{})
	if err != nil {
		return err
	}
	remove := func(n *corev1.Node) error {
		maps.DeleteFunc(n.Annotations, func(name, _ string) bool { return selects(name) })
		return nil
	}
	var errs []error
	for _, n := range nodes {
		marked := false
		for name := range n.Annotations {
			marked = marked || selects(name)
		}
		if !marked {
			continue
		}
		o := clusterapi.ModifyOptions{FieldManager: clusterapi.ManagerRollout}
		_, err := clusterapi.Modify(ctx, api, clusterapi.Key("", n.Name), o, remove)
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("node %s: %w", n.Name, err))
		}
	}
	return errors.Join(errs...)
}
