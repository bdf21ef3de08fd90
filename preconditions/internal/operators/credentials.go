// Package operators has what both checks and remedies know of objects of operators: of
// the cloud credential operator, the Machine API, and the operator for kernel modules.
package operators

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// AnnotationUpgradeableTo on CloudCredential cluster says up to which version of
// OpenShift an administrator has prepared the credentials.
const AnnotationUpgradeableTo = "cloudcredential.openshift.io/upgradeable-to"

// ManualCredentials reports whether an administrator maintains the credentials of a
// cluster in the cloud, given its CloudCredential: by its mode or, if that is not set, by
// the ConfigMap of older releases. Errors are those of reading the ConfigMap.
func ManualCredentials(ctx context.Context, r clusterapi.Reader, c *operatorv1.CloudCredential) (bool, error) {
	if c.Spec.CredentialsMode != operatorv1.CloudCredentialsModeDefault {
		return c.Spec.CredentialsMode == operatorv1.CloudCredentialsModeManual, nil
	}
	legacy, err := clusterapi.Read[corev1.ConfigMap](ctx, r, clusterapi.Key("openshift-cloud-credential-operator", "cloud-credential-operator-config"))
	if clusterapi.IsMissing(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return legacy.Data["disabled"] == "true", nil
}

// Requests are the CredentialsRequests of a release for a cluster.
type Requests struct {
	All []*manifest.CredentialsRequest // in the order of the release
	// Filter is what the cluster includes of a release.
	Filter manifest.Filter
	// creates are the Namespaces that the release creates itself.
	creates map[string]bool
}

// RequestsOf returns the requests of a release. current may be nil. The error is for
// those that cannot be read.
func RequestsOf(cv *configv1.ClusterVersion, current, target *manifest.Payload, platform configv1.PlatformType) (Requests, error) {
	r := Requests{Filter: manifest.ClusterFilter(cv, nil, current, target), creates: map[string]bool{}}
	r.Filter.Overrides = nil // as oc adm release extract --included selects
	included, _ := target.Included(r.Filter)
	for _, m := range included {
		if id := m.Identity(); id.Group == "" && id.Kind == "Namespace" {
			r.creates[id.Name] = true
		}
	}
	var err error
	r.All, err = target.CredentialsRequests(platform, r.Filter)
	return r, err
}

// The kinds that requests need.
var (
	NamespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")
	SecretKind    = corev1.SchemeGroupVersion.WithKind("Secret")
)

// Missing returns the requests of which an object of a kind is missing: the request
// itself, its Namespace unless the release creates it, or its Secret. Errors are those of
// reading, all of them.
func (r Requests) Missing(ctx context.Context, reader clusterapi.Reader, gvk schema.GroupVersionKind) (missing []*manifest.CredentialsRequest, errs []error) {
	for _, q := range r.All {
		key := ObjectOf(q, gvk)
		if gvk == NamespaceKind && r.creates[key.Name] {
			continue
		}
		_, err := clusterapi.GetShared(ctx, reader, gvk, key)
		switch {
		case apierrors.IsNotFound(err):
			missing = append(missing, q)
		case err != nil:
			errs = append(errs, err)
		}
	}
	return missing, errs
}

// ObjectOf is the name of the object of a kind that a request needs.
func ObjectOf(q *manifest.CredentialsRequest, gvk schema.GroupVersionKind) types.NamespacedName {
	switch gvk {
	case NamespaceKind:
		return clusterapi.Key("", q.Spec.SecretRef.Namespace)
	case SecretKind:
		return clusterapi.Key(q.Spec.SecretRef.Namespace, q.Spec.SecretRef.Name)
	}
	return clusterapi.Key(q.Namespace, q.Name)
}
