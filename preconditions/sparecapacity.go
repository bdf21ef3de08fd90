package preconditions

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func spareCapacityCheck() Check {
	return documented{Rule{
		Name: "SpareCapacity", Severities: []Severity{Warning},
		Source: "Understanding OpenShift updates, Factors affecting update duration", Link: docsUnderstanding,
		Reads: []schema.GroupVersionKind{gvkOf[corev1.Node](), gvkOf[corev1.Pod](), gvkOf[mcfgv1.MachineConfigPool](), gvkOf[configv1.Infrastructure]()},
	}, spareCapacity}
}

func spareCapacity(ctx context.Context, in *Input) ([]Finding, error) { return nil, errUndone }
