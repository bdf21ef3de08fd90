package preconditions

import (
	"context"
	"fmt"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func poolsUpdatingCheck() Check {
	return documented{Rule{
		Name: "PoolsUpdating", Severities: []Severity{Warning, Blocking},
		Source: "Performing a Control Plane Only update", Link: docsPerforming,
		Reads: []schema.GroupVersionKind{gvkOf[mcfgv1.MachineConfigPool]()},
	}, poolsUpdating}
}

// poolsUpdating: nodes that are still on their way to the last configuration. It
// stops another minor version where they are of the control plane, and elsewhere
// where the plan has the others skip a version.
func poolsUpdating(ctx context.Context, in *Input) ([]Finding, error) {
	pools, err := listPools(ctx, in)
	var blocking, others []Object
	for _, p := range pools {
		updating, updated := poolCondition(p, mcfgv1.MachineConfigPoolUpdating), poolCondition(p, mcfgv1.MachineConfigPoolUpdated)
		isUpdating := updating != nil && updating.Status == corev1.ConditionTrue
		if p.Spec.Paused || !isUpdating && updated != nil && updated.Status == corev1.ConditionTrue {
			continue
		}
		o := poolObject(p.Name, "status.conditions", "", fmt.Sprintf("%d of %d machines updated", p.Status.UpdatedMachineCount, p.Status.MachineCount))
		if isUpdating {
			o.Value = "Updating=True"
		} else {
			o.Value = "Updated is not True"
		}
		if in.LeavesMinor() && (p.Name == controlPlanePool || in.Plan == ControlPlaneOnly) {
			blocking = append(blocking, o)
		} else {
			others = append(others, o)
		}
	}
	const remedy = "Wait until the pools are updated: oc get mcp"
	var findings []Finding
	if len(blocking) > 0 {
		sortObjects(blocking)
		findings = append(findings, newFinding(Blocking, "PoolUpdating", "Machine config pools are being updated, which this update has to wait for", blocking, remedy))
	}
	if len(others) > 0 {
		sortObjects(others)
		findings = append(findings, newFinding(Warning, "PoolUpdating", "Machine config pools are being updated", others, remedy))
	}
	return findings, err
}
