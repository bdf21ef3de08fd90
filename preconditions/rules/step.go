package rules

import (
	"context"
	"fmt"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/internal/facts"
)

// leavesMinor reports whether the step goes, or could go as far as is known, to
// another minor or major version and is not a rollback: the steps that an
// Upgradeable=False condition stops.
func leavesMinor(t preconditions.Transition) bool {
	return t.Kind == preconditions.Minor || t.Kind == preconditions.Major || t.Kind == ""
}

// currentVersion is the version that the cluster reconciles.
func currentVersion(ctx context.Context, in *preconditions.Input) (*semver.Version, error) {
	if in.Current != nil {
		return in.Current, nil
	}
	cv, err := theClusterVersion(ctx, in)
	if err != nil {
		return nil, err
	}
	v, err := facts.ParseVersion(cv.Status.Desired.Version)
	if err != nil {
		return nil, fmt.Errorf("current version %q: %w", cv.Status.Desired.Version, err)
	}
	return v, nil
}

// kubernetesMinor returns the minor version of Kubernetes 1 that a release of OpenShift
// has: by the input's table, else by the release itself, else by what is known of OpenShift's
// minor versions. Both the version and the payload may be nil.
func kubernetesMinor(in *preconditions.Input, v *semver.Version, payload *manifest.Payload) (uint64, bool) {
	if v != nil {
		if minor, ok := in.KubernetesMinors[openshift.MinorOf(v).String()]; ok {
			return minor, true
		}
	}
	if minor, ok := payloadMinor(payload); ok || v == nil {
		return minor, ok
	}
	return openshift.MinorOf(v).Kubernetes()
}

// payloadMinor returns the minor version of Kubernetes 1 that a release says it has.
func payloadMinor(payload *manifest.Payload) (uint64, bool) {
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
		if version := facts.VersionOrNil(v.Version); version != nil && version.Major() == 1 {
			return version.Minor(), true
		}
	}
	return 0, false
}

// crosses reports whether a step may lead from below a minor version to it, or beyond.
func crosses(t preconditions.Transition, minor string) bool {
	return facts.Crosses(t.Current, t.Target, minor)
}
