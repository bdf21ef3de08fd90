package preconditions

import (
	"context"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func poolsUpdatingCheck() Check {
	return documented{Rule{
		Name: "PoolsUpdating", Severities: []Severity{Warning, Blocking},
		Source: "Performing a Control Plane Only update", Link: docsPerforming,
		Reads: []schema.GroupVersionKind{gvkOf[mcfgv1.MachineConfigPool]()},
	}, poolsUpdating}
}

func poolsUpdating(ctx context.Context, in *Input) ([]Finding, error) { return nil, errUndone }
