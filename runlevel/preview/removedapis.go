package preview

import (
	"context"
	"strconv"
	"strings"

	apiserverv1 "github.com/openshift/api/apiserver/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// RemovedAPI is an API that the target does not serve any more and that clients
// have asked for in the last day. It is plain data.
type RemovedAPI struct {
	// Resource is as in flowschemas.v1beta1.flowcontrol.apiserver.k8s.io.
	Resource string `json:"resource"`
	// Release is the version of Kubernetes that removes it; empty for a version of
	// a CustomResourceDefinition that the release removes.
	Release string `json:"release,omitempty"`
	// Requests counts them.
	Requests int64 `json:"requests"`
}

// removedAPIs finds the APIs in use that go with the update, by what the API
// server has counted.
func (r *run) removedAPIs(ctx context.Context, p *Preview) error {
	counts, err := clusterapi.ReadAll[apiserverv1.APIRequestCount](ctx, r.base, clusterapi.ListOptions{})
	if err != nil && !clusterapi.IsAbsent(err) {
		return errorf("APIRequestCounts: %w", err)
	}
	from, to := uint64(0), kubernetesMinor(p.Release.Version)
	if p.Running != nil {
		from = kubernetesMinor(p.Running.Version)
	}
	custom := removedVersions(p)
	for _, c := range counts {
		if c.Status.RequestCount <= 0 {
			continue
		}
		minor, known := strings.CutPrefix(c.Status.RemovedInRelease, "1.")
		removed, err := strconv.ParseUint(minor, 10, 32)
		switch {
		case custom[c.Name]:
			p.RemovedAPIs = append(p.RemovedAPIs, RemovedAPI{Resource: c.Name, Requests: c.Status.RequestCount})
		case known && err == nil && removed > from && (to == 0 || removed <= to):
			p.RemovedAPIs = append(p.RemovedAPIs, RemovedAPI{c.Name, c.Status.RemovedInRelease, c.Status.RequestCount})
		}
	}
	return nil
}

// kubernetesMinor is the minor version of Kubernetes 1 in a release of OpenShift; 0 if it is
// not known.
func kubernetesMinor(version string) uint64 {
	v, err := openshift.ParseVersion(version)
	if err != nil {
		return 0
	}
	minor, _ := openshift.MinorOf(v).Kubernetes()
	return minor
}

// removedVersions are the versions of custom resources that are served before
// the update and not after it, as APIRequestCounts name them.
func removedVersions(p *Preview) map[string]bool {
	out := make(map[string]bool)
	for i := range p.Changes {
		plural, group, _ := strings.Cut(p.Changes[i].Object.Name, ".")
		for _, version := range p.Changes[i].unserved {
			out[plural+"."+version+"."+group] = true
		}
	}
	return out
}
