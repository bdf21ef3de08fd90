package preconditions

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func machineHealthChecksCheck() Check {
	return documented{Rule{
		Name: "MachineHealthChecks", Severities: []Severity{Warning},
		Source: "Performing a cluster update, Pausing a MachineHealthCheck resource", Link: docsPerforming,
		Reads: []schema.GroupVersionKind{gvkOf[machinev1beta1.MachineHealthCheck](), gvkOf[configv1.Infrastructure](), gvkOf[corev1.Node]()},
	}, machineHealthChecks}
}

func machineHealthChecks(ctx context.Context, in *Input) ([]Finding, error) { return nil, errUndone }
