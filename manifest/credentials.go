package manifest

import (
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

var credentialsRequestKind = schema.GroupVersionKind{Group: "cloudcredential.openshift.io", Version: "v1", Kind: "CredentialsRequest"}

// CredentialsRequest asks the cloud credential operator, or in manual mode the
// administrator, for the credentials that a component has with a cloud. It has the
// fields that decisions need. It is plain data.
type CredentialsRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              CredentialsRequestSpec `json:"spec"`

	// Manifest is where a payload has it; nil for one of a cluster.
	Manifest *Manifest `json:"-"`
}

// CredentialsRequestSpec is plain data.
type CredentialsRequestSpec struct {
	// SecretRef is the Secret that the component reads its credentials from.
	SecretRef corev1.SecretReference `json:"secretRef"`
	// ProviderSpec is what the component has to be allowed, in the terms of the
	// cloud that its kind names.
	ProviderSpec map[string]any `json:"providerSpec,omitempty"`
	// ServiceAccountNames are those that use the credentials.
	ServiceAccountNames []string `json:"serviceAccountNames,omitempty"`
	CloudTokenPath      string   `json:"cloudTokenPath,omitempty"`
}

// APIKind implements [clusterapi.Kinder].
func (*CredentialsRequest) APIKind() schema.GroupVersionKind { return credentialsRequestKind }

// Provider is the kind of the provider's specification, such as AWSProviderSpec;
// empty if absent.
func (r *CredentialsRequest) Provider() string {
	kind, _ := r.Spec.ProviderSpec["kind"].(string)
	return kind
}

// credentialsProvider returns the kind of the specifications that are for a platform;
// empty for a platform that has none.
func credentialsProvider(platform configv1.PlatformType) string {
	switch platform {
	case configv1.AWSPlatformType:
		return "AWSProviderSpec"
	case configv1.AzurePlatformType:
		return "AzureProviderSpec"
	case configv1.GCPPlatformType:
		return "GCPProviderSpec"
	case configv1.IBMCloudPlatformType:
		return "IBMCloudProviderSpec"
	case configv1.PowerVSPlatformType:
		return "IBMCloudPowerVSProviderSpec"
	case configv1.NutanixPlatformType:
		return "NutanixProviderSpec"
	case configv1.OpenStackPlatformType:
		return "OpenStackProviderSpec"
	case configv1.VSpherePlatformType:
		return "VSphereProviderSpec"
	}
	return ""
}

// CredentialsRequests returns the requests of a release for a platform, in the order
// of the payload: those that f includes and that are not to be deleted, as
// oc adm release extract --credentials-requests --included selects them. A platform
// without cloud credentials has none.
//
// The error joins an [*Error] for each request that cannot be used, because it is
// malformed, has no provider, or names no Secret; the rest are returned with it.
func (p *Payload) CredentialsRequests(platform configv1.PlatformType, f Filter) ([]*CredentialsRequest, error) {
	want := credentialsProvider(platform)
	if want == "" {
		return nil, nil
	}
	included, _ := p.Included(f)
	var requests []*CredentialsRequest
	var errs []error
	for _, m := range included {
		if m.GVK() != credentialsRequestKind || m.Deletes() {
			continue
		}
		r, err := clusterapi.FromUnstructured[CredentialsRequest](m.Object())
		if err == nil && r.Provider() != "" && r.Provider() != want {
			continue
		}
		if err == nil {
			err = r.validate()
			if err != nil {
				err = fmt.Errorf("CredentialsRequest %s/%s: %w", r.Namespace, r.Name, err)
			}
		}
		if err != nil {
			errs = append(errs, &Error{File: m.Filename, Document: m.Document, Err: fmt.Errorf("%s: %w", m.Filename, err)})
			continue
		}
		r.Manifest = m
		requests = append(requests, r)
	}
	return requests, bounded.Errors(errs...)
}

func (r *CredentialsRequest) validate() error {
	switch {
	case r.Namespace == "" || r.Name == "":
		return errors.New("metadata has no namespace or no name")
	case r.Provider() == "":
		return errors.New("spec.providerSpec.kind is missing")
	case r.Spec.SecretRef.Namespace == "":
		return errors.New("spec.secretRef.namespace is missing")
	case r.Spec.SecretRef.Name == "":
		return errors.New("spec.secretRef.name is missing")
	}
	return nil
}
