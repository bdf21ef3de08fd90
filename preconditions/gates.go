package preconditions

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// PayloadGates returns the gates that a release ships, so that the
// acknowledgements wanted on the way out of it can be planned before it runs.
// Operators may add others at run time.
//
// Together with the gates it returns an error that names every gate with a
// Problem, so that the builder of a release can refuse it.
func PayloadGates(p *manifest.Payload) ([]Gate, error) {
	if p == nil {
		return nil, &NoSourceError{Source: "TargetPayload"}
	}
	var gates []Gate
	var errs []error
	for _, m := range p.Manifests {
		id := m.Identity()
		if id.Group != "" || id.Kind != "ConfigMap" || id.Namespace != gatesNamespace || id.Name != gatesName {
			continue
		}
		cm, err := clusterapi.FromUnstructured[corev1.ConfigMap](m.Object())
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m, err))
			continue
		}
		for _, g := range Gates(cm.Data) {
			if g.Problem != "" {
				errs = append(errs, fmt.Errorf("%s: %s", m, g.Problem))
			}
			gates = append(gates, g)
		}
	}
	return gates, bounded.Errors(errs...)
}
