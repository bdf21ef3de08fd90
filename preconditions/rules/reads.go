package rules

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/internal/facts"
)

// gvkOf returns the kind of a Go type; an unregistered one has none.
func gvkOf[T any]() schema.GroupVersionKind {
	gvk, _ := clusterapi.KindOf[T]()
	return gvk
}

// readCluster reads the object of a kind that is called cluster; nil if absent. A kind
// that is not served is a [preconditions.NotApplicableError].
func readCluster[T any](ctx context.Context, in *preconditions.Input, what string) (*T, error) {
	o, err := clusterapi.Read[T](ctx, in.Reader, clusterapi.Key("", "cluster"))
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return o, optionalAPI(err, what)
}

// optionalAPI turns "no such API" into "not applicable".
func optionalAPI(err error, what string) error {
	if meta.IsNoMatchError(err) {
		return &preconditions.NotApplicableError{Why: "the cluster has no " + what}
	}
	return err
}

// theClusterVersion fails as not applicable if there is none.
func theClusterVersion(ctx context.Context, in *preconditions.Input) (*configv1.ClusterVersion, error) {
	cv, err := facts.ClusterVersion(ctx, in.Reader)
	if err == nil && cv == nil {
		err = &preconditions.NotApplicableError{Why: "the cluster has no ClusterVersion"}
	}
	return cv, err
}

func clusterVersionObject(field, value string) preconditions.Object {
	return object[configv1.ClusterVersion]("", facts.ClusterVersionName, field, value, "")
}
