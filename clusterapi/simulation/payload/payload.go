package payload

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// Release returns what a payload brings to a simulated cluster: the manifests
// that it includes, in its order, and its operators with their workloads. The
// objects are the payload's own, which a simulation does not change. It is safe
// for concurrent use.
func Release(p *manifest.Payload) simulation.Release {
	r := simulation.Release{Version: p.Release.Version, Image: p.Release.Image, Manifests: objects(p.Manifests)}
	for _, op := range p.Operators() {
		r.Operators = append(r.Operators, simulation.Operator{Name: op.Name, Versions: op.Versions, Workloads: objects(op.Workloads)})
	}
	return r
}

func objects(manifests []*manifest.Manifest) []*unstructured.Unstructured {
	all := make([]*unstructured.Unstructured, len(manifests))
	for i, m := range manifests {
		all[i] = m.Object()
	}
	return all
}
