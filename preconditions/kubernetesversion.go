package preconditions

import (
	"fmt"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// kubernetesMinor returns the minor version of Kubernetes 1 that a release of
// OpenShift has: of 4.y it is y + 13; of others what the input's table or the
// release itself says. payload may be nil, and a nil version is that of payload.
func (in *Input) kubernetesMinor(v *semver.Version, payload *manifest.Payload) (uint64, bool) {
	if v == nil && payload != nil {
		v = versionOrNil(payload.Release.Version)
	}
	if v != nil {
		if minor, ok := in.KubernetesMinors[fmt.Sprintf("%d.%d", v.Major(), v.Minor())]; ok {
			return minor, true
		}
		if v.Major() == 4 {
			return v.Minor() + 13, true
		}
	}
	if payload == nil {
		return 0, false
	}
	for _, m := range payload.Manifests {
		id := m.Identity()
		if id.Kind != "ClusterOperator" || id.Name != apiServerOperator {
			continue
		}
		co, err := clusterapi.FromUnstructured[configv1.ClusterOperator](m.Object())
		if err != nil {
			continue
		}
		if minor, ok := apiServerMinor(co); ok {
			return minor, true
		}
	}
	return 0, false
}

const apiServerOperator = "kube-apiserver"

// apiServerMinor returns the minor version of the API server, as its operator
// reports or is to report it.
func apiServerMinor(co *configv1.ClusterOperator) (uint64, bool) {
	for _, v := range co.Status.Versions {
		if v.Name != "kube-apiserver" {
			continue
		}
		if version := versionOrNil(v.Version); version != nil && version.Major() == 1 {
			return version.Minor(), true
		}
	}
	return 0, false
}
