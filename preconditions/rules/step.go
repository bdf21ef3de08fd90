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
// has: by the input's table, by what is known of OpenShift's minor versions, or by the
// release itself. payload may be nil, and a nil version means the payload's.
func kubernetesMinor(in *preconditions.Input, v *semver.Version, payload *manifest.Payload) (uint64, bool) {
	if v == nil && payload != nil {
		v = facts.VersionOrNil(payload.Release.Version)
	}
	if v != nil {
		if minor, ok := in.KubernetesMinors[facts.MinorText(v)]; ok {
			return minor, true
		}
		if minor, known := openshift.MinorOf(v).Kubernetes(); known {
			return minor, true
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

// targetVersion is the text of the version asked for: the payload's if there is one,
// since a request may name an image alone.
func targetVersion(in *preconditions.Input) string {
	switch {
	case in.TargetPayload != nil && in.TargetPayload.Release.Version != "":
		return in.TargetPayload.Release.Version
	case in.Target != nil:
		return in.Target.String()
	default:
		return ""
	}
}
