package preconditions

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func nodesUnavailableCheck() Check {
	return documented{Rule{
		Name: "NodesUnavailable", Severities: []Severity{Warning, Blocking},
		Source: "Understanding OpenShift updates, How updates are applied", Link: docsUnderstanding,
		Reads: []schema.GroupVersionKind{gvkOf[corev1.Node](), gvkOf[mcfgv1.MachineConfigPool](), gvkOf[configv1.Infrastructure]()},
	}, nodesUnavailable}
}

func nodesUnavailable(ctx context.Context, in *Input) ([]Finding, error) { return nil, errUndone }
