package preconditions

import (
	"context"
	"fmt"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/mcp"
)

func maxUnavailableCheck() Check {
	return documented{Rule{
		Name: "MaxUnavailable", Severities: []Severity{Warning, Blocking},
		Source: "Understanding OpenShift updates, Factors affecting update duration", Link: docsUnderstanding,
		Reads: []schema.GroupVersionKind{gvkOf[corev1.Node](), gvkOf[mcfgv1.MachineConfigPool]()},
	}, maxUnavailable}
}

// maxUnavailable: the control plane goes down one node at a time. All at once take
// etcd and the API with them.
func maxUnavailable(ctx context.Context, in *Input) ([]Finding, error) {
	pools, err := readPools(ctx, in)
	for _, p := range pools {
		if p.Name != controlPlanePool {
			continue
		}
		limit, _, limitErr := mcp.MaxUnavailable(p.MachineConfigPool, len(p.nodes))
		if limitErr != nil {
			return nil, fmt.Errorf("pool %s: %w", p.Name, limitErr)
		}
		if limit <= 1 {
			continue
		}
		severity := Warning
		if len(p.nodes) > 1 && limit >= len(p.nodes) && p.known {
			severity = Blocking
		}
		value := p.Spec.MaxUnavailable.String()
		return []Finding{newFinding(severity, "ControlPlaneMaxUnavailable",
			fmt.Sprintf("%d of the %d nodes of the control plane may be updated at a time", limit, len(p.nodes)),
			[]Object{poolObject(p.Name, "spec.maxUnavailable", value, "maxUnavailable "+value)},
			"Set it back to 1: oc patch mcp master --type=merge -p '{\"spec\":{\"maxUnavailable\":1}}'")}, err
	}
	return nil, err
}
