package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
	o := clusterapi.ListOptions{Namespace: namespaceOr(namespace), Labels: labels.NewSelector().Add(*marked)}
	return clusterapi.ReadAll[corev1.ConfigMap](ctx, api, o)
}

// Uninstall removes what plans keep in a cluster, for after the last runner has
// ended: the records in a namespace, "" meaning openshift-config, and the marks
// on pools, nodes, the ClusterVersion and objects that recorded plans applied.
// What plans that have not finished changed stays as it is. It continues if
// something cannot be changed; its error joins those of all, and records stay then.
func Uninstall(ctx context.Context, api clusterapi.ClusterAPI, namespace string) error {
	all, err := records(ctx, api, namespace)
	if err != nil {
		return err
	}
	var steps []Step
	var errs []error
	for _, c := range all {
		p, err := Decode([]byte(c.Data[keyPlan]))
		if err != nil {
			errs = append(errs, fmt.Errorf("ConfigMap %s/%s: %w", c.Namespace, c.Name, err))
		}
		steps = append(steps, p.Steps...)
	}
	err = eachChanged(ctx, api, steps, func(o *clusterapi.Object) error { return unmarkObject(ctx, api, o) })
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return err // the records say what plans applied
	}
	for _, c := range all {
		err := api.Delete(ctx, configMapKind, clusterapi.Key(c.Namespace, c.Name), clusterapi.DeleteOptions{UID: c.UID})
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// eachChanged calls f for each object that plans with these steps may have changed. Its
// error joins those of reads and of f.
func eachChanged(ctx context.Context, api clusterapi.Reader, steps []Step, f func(*clusterapi.Object) error) error {
	var errs []error
	kinds := []schema.GroupVersionKind{poolKind, nodeKind, versionKind, healthCheckKind}
	for _, gvk := range kinds {
		objects, err := clusterapi.ListShared(ctx, api, gvk, clusterapi.ListOptions{})
		if err != nil {
			errs = append(errs, unlessAbsent(err))
			continue
		}
		for _, o := range objects {
			errs = append(errs, f(o))
		}
	}
	seen := map[string]bool{}
	for i := range steps {
		if steps[i].Kind != ApplyObject {
			continue
		}
		want := objectOf(&steps[i])
		gvk := want.GroupVersionKind()
		name := gvk.GroupKind().String() + " " + objectName(want)
		if seen[name] || slices.Contains(kinds, gvk) {
			continue
		}
		seen[name] = true
		o, err := clusterapi.GetShared(ctx, api, gvk, clusterapi.KeyOf(want))
		if err != nil {
			errs = append(errs, unlessAbsent(err))
			continue
		}
		errs = append(errs, f(o))
	}
	return errors.Join(errs...)
}

func unlessAbsent(err error) error {
	if clusterapi.IsAbsent(err) {
		return nil
	}
	return err
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
			return unlessAbsent(err)
		}
		o, err = clusterapi.GetShared(ctx, api, u.GroupVersionKind(), clusterapi.KeyOf(u))
		if err != nil {
			return unlessAbsent(err)
		}
	}
	return fmt.Errorf("%s changes all the time", objectName(o.Unstructured()))
}
