package preconditions

import (
	"context"
	"fmt"

	"github.com/Masterminds/semver/v3"
	blang "github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/versions"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// parseVersion parses a strict semantic version. Its errors are those of the parser
// of the cluster-version operator, whose conditions and summaries quote them.
//
// Build metadata does not count in comparisons (precedence).
func parseVersion(s string) (*semver.Version, error) {
	if _, err := blang.Parse(s); err != nil {
		return nil, err
	}
	return versions.Parse(s)
}

func versionOrNil(text string) *semver.Version {
	v, err := parseVersion(text)
	if err != nil {
		return nil
	}
	return v
}

// minorOf is major and minor as one number, which grows with them.
func minorOf(v *semver.Version) uint64 { return v.Major()<<32 | v.Minor()&(1<<32-1) }

// minorText is major and minor, such as 4.18.
func minorText(v *semver.Version) string { return fmt.Sprintf("%d.%d", v.Major(), v.Minor()) }

// sameMinor reports whether two versions have the same major and minor.
func sameMinor(a, b *semver.Version) bool {
	return a.Major() == b.Major() && a.Minor() == b.Minor()
}

// currentVersion is the version that the cluster reconciles.
func (in *Input) currentVersion(ctx context.Context) (*semver.Version, error) {
	if in.Current != nil {
		return in.Current, nil
	}
	cv, err := theClusterVersion(ctx, in)
	if err != nil {
		return nil, err
	}
	v, err := parseVersion(cv.Status.Desired.Version)
	if err != nil {
		return nil, fmt.Errorf("current version %q: %w", cv.Status.Desired.Version, err)
	}
	return v, nil
}

// kubernetesMinor returns the minor version of Kubernetes 1 that a release of
// OpenShift has: of 4.y it is y + 13; of others what the input's table or the
// release itself tells. payload may be nil, and a nil version is that of payload.
func (in *Input) kubernetesMinor(v *semver.Version, payload *manifest.Payload) (uint64, bool) {
	if v == nil && payload != nil {
		v = versionOrNil(payload.Release.Version)
	}
	if v != nil {
		if minor, ok := in.KubernetesMinors[minorText(v)]; ok {
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
		if id := m.Identity(); id.Kind != "ClusterOperator" || id.Name != apiServerOperator {
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
