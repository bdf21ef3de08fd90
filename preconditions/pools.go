package preconditions

import (
	"context"
	"fmt"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

const controlPlanePool = "master"

func listPools(ctx context.Context, in *Input) ([]*mcfgv1.MachineConfigPool, error) {
	pools, err := list[mcfgv1.MachineConfigPool](ctx, in, clusterapi.ListOptions{})
	return pools, optionalAPI(err, "machine config pools")
}

func poolObject(name, field, value, note string) Object {
	return Object{GVK: mcfgv1.GroupVersion.WithKind("MachineConfigPool"), Name: name, FieldPath: field, Value: value, Note: note}
}

func poolsPausedCheck() Check {
	return documented{Rule{
		Name: "PoolsPaused", Severities: []Severity{Info, Warning, Blocking},
		Source: "Preparing to update a cluster", Link: docsPreparing,
		Reads: []schema.GroupVersionKind{gvkOf[mcfgv1.MachineConfigPool]()},
	}, poolsPaused}
}

// poolsPaused: the nodes of a paused pool are not updated. That is a fault in
// the control plane, and elsewhere unless it is planned.
func poolsPaused(ctx context.Context, in *Input) ([]Finding, error) {
	pools, err := listPools(ctx, in)
	var controlPlane, others []Object
	for _, p := range pools {
		if !p.Spec.Paused {
			continue
		}
		o := poolObject(p.Name, "spec.paused", "true", "")
		if p.Name == controlPlanePool {
			controlPlane = append(controlPlane, o)
		} else {
			others = append(others, o)
		}
	}
	sortObjects(others)
	const remedy = "Unpause with: oc patch mcp NAME --type=merge -p '{\"spec\":{\"paused\":false}}'"
	var findings []Finding
	if len(controlPlane) > 0 {
		findings = append(findings, newFinding(Blocking, "ControlPlanePoolPaused", "The pool of the control plane is paused, its nodes would not be updated", controlPlane, remedy))
	}
	if len(others) > 0 {
		severity, meaning := Warning, "Pools are paused, their nodes are not updated until they are unpaused"
		switch in.Plan {
		case Canary:
			severity, meaning = Info, "Pools are paused, as a canary update wants it"
		case ControlPlaneOnly:
			end := in.PlanTarget
			switch {
			case end != nil && !openshift.EUS(end.Major(), end.Minor()):
				meaning = fmt.Sprintf("Pools are paused for a control-plane-only update, but %d.%d, where it ends, is not a minor version with extended update support", end.Major(), end.Minor())
			case end == nil && in.Target != nil && !openshift.EUS(in.Target.Major(), in.Target.Minor()):
				severity, meaning = Info, "Pools are paused, as a control-plane-only update wants it, which goes on from here to a minor version with extended update support"
			default:
				severity, meaning = Info, "Pools are paused, as a control-plane-only update wants it"
			}
		}
		findings = append(findings, newFinding(severity, "PoolPaused", meaning, others, remedy))
	}
	return findings, err
}

func poolsDegradedCheck() Check {
	return documented{Rule{
		Name: "PoolsDegraded", Severities: []Severity{Warning, Blocking},
		Source: "Performing a Control Plane Only update", Link: docsPerforming,
		Reads: []schema.GroupVersionKind{gvkOf[mcfgv1.MachineConfigPool]()},
	}, poolsDegraded}
}

// poolsDegraded: a pool that cannot apply its configuration now will not apply
// the next one.
func poolsDegraded(ctx context.Context, in *Input) ([]Finding, error) {
	pools, err := listPools(ctx, in)
	var bad []Object
	for _, p := range pools {
		for _, t := range []mcfgv1.MachineConfigPoolConditionType{mcfgv1.MachineConfigPoolDegraded, mcfgv1.MachineConfigPoolRenderDegraded, mcfgv1.MachineConfigPoolNodeDegraded} {
			if c := poolCondition(p, t); c != nil && c.Status == corev1.ConditionTrue {
				note := string(t)
				if c.Message != "" {
					note += ": " + c.Message
				}
				bad = append(bad, poolObject(p.Name, "status.conditions", "True", note))
				break // one entry a pool
			}
		}
	}
	if len(bad) == 0 {
		return nil, err
	}
	sortObjects(bad)
	return []Finding{newFinding(blockMinor(in.Transition), "DegradedPool", "Machine config pools are degraded", bad,
		"Look at the conditions with: oc describe mcp NAME")}, err
}

func poolCondition(p *mcfgv1.MachineConfigPool, t mcfgv1.MachineConfigPoolConditionType) *mcfgv1.MachineConfigPoolCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == t {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}
