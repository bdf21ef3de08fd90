package plan

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// List returns the IDs of the plans that have a record in a namespace, "" meaning
// openshift-config, by name. Its errors are those of the API.
func List(ctx context.Context, api clusterapi.Reader, namespace string) ([]string, error) {
	all, err := records(ctx, api, namespace)
	ids := make([]string, len(all))
	for i, c := range all {
		ids[i] = c.Labels[annotationPlan]
	}
	return ids, err
}

func records(ctx context.Context, api clusterapi.Reader, namespace string) ([]*corev1.ConfigMap, error) {
	marked, err := labels.NewRequirement(annotationPlan, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	return clusterapi.ReadAll[corev1.ConfigMap](ctx, api, clusterapi.ListOptions{Namespace: namespaceOr(namespace), Labels: labels.NewSelector().Add(*marked)})
}

// Uninstall removes what plans keep in a cluster, for after the last runner has
// ended: the records in a namespace, "" meaning openshift-config, and the marks
// on pools, nodes, the ClusterVersion and objects that recorded plans applied.
// What plans that have not finished changed stays as it is. It goes on where
// something cannot be changed; its error joins those of all.
func Uninstall(ctx context.Context, api clusterapi.ClusterAPI, namespace string) error {
	all, err := records(ctx, api, namespace)
	if err != nil {
		return err
	}
	errs := []error{
		unmarkKind(ctx, api, poolKind), unmarkKind(ctx, api, nodeKind), unmarkKind(ctx, api, versionKind),
		unmarkKind(ctx, api, healthCheckKind),
	}
	for _, c := range all {
		p, err := Decode([]byte(c.Data[keyPlan]))
		if err != nil {
			errs = append(errs, fmt.Errorf("ConfigMap %s/%s: %w", c.Namespace, c.Name, err))
			continue
		}
		for i := range p.Steps {
			if s := &p.Steps[i]; s.Kind == ApplyObject {
				errs = append(errs, unmarkApplied(ctx, api, s))
			}
		}
		if err := errors.Join(errs...); err != nil {
			continue // the record tells where marks are left
		}
		err = api.Delete(ctx, configMapKind, clusterapi.Key(c.Namespace, c.Name), clusterapi.DeleteOptions{UID: c.UID})
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func unmarkKind(ctx context.Context, api clusterapi.ClusterAPI, gvk schema.GroupVersionKind) error {
	all, err := clusterapi.ListShared(ctx, api, gvk, clusterapi.ListOptions{})
	if absent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, o := range all {
		errs = append(errs, unmarkObject(ctx, api, o))
	}
	return errors.Join(errs...)
}

func unmarkApplied(ctx context.Context, api clusterapi.ClusterAPI, s *Step) error {
	want := objectOf(s)
	o, err := clusterapi.GetShared(ctx, api, want.GroupVersionKind(), clusterapi.KeyOf(want))
	if absent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return unmarkObject(ctx, api, o)
}

// unmarkObject removes a mark, whichever plan's it is.
func unmarkObject(ctx context.Context, api clusterapi.ClusterAPI, o *clusterapi.Object) error {
	for range clusterapi.DefaultRetries {
		if o.Unstructured().GetAnnotations()[annotationPlan] == "" {
			return nil
		}
		u := o.Unstructured().DeepCopy()
		unmark(u)
		_, err := api.Update(ctx, u, clusterapi.UpdateOptions{FieldManager: clusterapi.ManagerRollout})
		if !apierrors.IsConflict(err) {
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		}
		o, err = clusterapi.GetShared(ctx, api, u.GroupVersionKind(), clusterapi.KeyOf(u))
		if err != nil {
			if absent(err) {
				return nil
			}
			return err
		}
	}
	return fmt.Errorf("%s changes all the time", objectName(o.Unstructured()))
}
